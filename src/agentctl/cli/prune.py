"""`agentctl prune`: old checkpoints and threads, taken away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from agentctl.cli import options
from agentctl.cli.admission import admitted
from agentctl.cli.env import Env
from agentctl.cli.opening import Stores, open_in, open_stores
from agentctl.cli.output import Answer, emit, say
from agentctl.config.profiles import ALL_THREADS, DEBUG
from agentctl.config.stores import StoreChoice
from agentctl.errors import Refused, UsageError
from agentctl.records.copies import command
from agentctl.records.prunes import Key, ThreadPrune
from agentctl.records.threads import ThreadStatus
from agentctl.render import prune as rendering
from agentctl.revisions.times import parse_age

if TYPE_CHECKING:
    from agentctl.upkeep.prune.prune import Pruning

STATUSES: tuple[ThreadStatus, ...] = get_args(ThreadStatus)


def prune(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="[PROFILE::][THREAD]", help="A store or one of its threads; the default store without."),
    ] = "",
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Only threads with no checkpoint younger than that, such as 30d."
        ),
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status", metavar="STATUS", help="Only threads that are: " + ", ".join(STATUSES) + ". Repeatable."
        ),
    ] = None,
    keep_turns: Annotated[
        int | None,
        typer.Option(
            "--keep-turns", metavar="N", min=1, help="Of each thread keep the last N user turns; older ones go."
        ),
    ] = None,
    keep_branchable: Annotated[
        bool, typer.Option("--keep-branchable", help="Of older turns keep the last checkpoint, to fork from.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="TARGET", help="Keep this checkpoint, or this thread. Repeatable."),
    ] = None,
    snapshot: Annotated[
        bool,
        typer.Option(
            "--snapshot", help="Store delta channels with the oldest checkpoint that stays, so that older ones can go."
        ),
    ] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Take whole threads away, from all tables.")] = False,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Take only rows that no checkpoint refers to; every checkpoint stays.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Do it. Without this the plan is shown.")] = False,
    batch_rows: Annotated[
        int, typer.Option("--batch-rows", metavar="N", min=1, help="About how many rows one transaction takes away.")
    ] = 1000,
    pause: Annotated[
        float, typer.Option("--pause", metavar="SECONDS", min=0, help="Wait between two transactions.")
    ] = 0.05,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="SQLite: afterwards give the room back to the system, and say how much.")
    ] = False,
    store: options.Store = None,
    schema: options.Schema = None,
    literal: options.Literal = False,
    debug_store: options.DebugStore = None,
    ticket: options.Ticket = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Take old checkpoints or whole threads away. Shows what would go, and what could not be forked any more.

    The head and its branch stay, and so does what newer checkpoints are rebuilt from. A thread with a question that
    waits is touched only where the command names it. Safe beside an application that writes (docs/prune.md).

    Example: agentctl prune prod:: --older-than 30d --keep-turns 2 --keep-branchable

    JSON: agentctl.prune/1 {store, thread, mode, applied, items, total, command}.

    Exit: 0 done or shown, 1 a thread was written to meanwhile, 3 no such thread, 4 no such store
    or --vacuum gave no room back, 5 refused.
    """
    env: Env = ctx.obj
    with open_stores(env, store=store, schema=schema, debug_store=debug_store) as stores:
        from agentctl.stores.deleting import open_deleter
        from agentctl.upkeep.prune.prune import Pruning
        from agentctl.upkeep.prune.request import PruneRequest

        profile, thread = _scope(stores, target, literal=literal)
        choice, reader = stores.choice(profile), stores.reader(profile)
        delete = delete or (not orphans and _means_retention(stores, choice, thread, keep_turns, older_than, status))
        age = older_than or _retention(stores, choice, thread, delete=delete, status=status)
        thinning = (keep_turns is not None, keep_branchable, snapshot)
        if orphans:
            _check_orphans_alone((delete, *thinning, bool(keep)), apply, vacuum)
        else:
            _check_combination(thread, age, status, keep_turns, delete, thinning[1:], apply, vacuum)
        with closing(open_deleter(choice.url, reader, schema=choice.schema)) as deleter, ExitStack() as stack:
            if apply:
                _require_writable(choice, thread)
                deleter.check_allowed(compact=vacuum)
                stack.enter_context(admitted(env, stores.config, choice, "write"))
            request = PruneRequest(
                now=env.now(),
                thread=thread,
                older_than=parse_age(age) if age else None,
                statuses=_statuses(status),
                delete=delete,
                orphans=orphans,
                keep_turns=keep_turns or 1,
                keep_branchable=keep_branchable,
                protects=choice.protects,
                kept=_kept(stores, profile, keep or []),
                snapshot=snapshot,
                batch_rows=batch_rows,
            )
            pruning = Pruning(reader, deleter, request, apply, lambda: time.sleep(pause))
            _answer(env, pruning, str(reader.info), choice, vacuum)
    if pruning.tally.n_overtaken or pruning.tally.n_faulty:
        raise typer.Exit(1)
    if pruning.tally.compaction is not None and pruning.tally.compaction.problem:
        raise typer.Exit(4)


def _answer(env: Env, pruning: Pruning, store: str, choice: StoreChoice, vacuum: bool) -> None:
    applied, tally, request = pruning.apply, pruning.tally, pruning.request

    def next_command() -> str:
        return env.pasteable(command("prune", *(word for word in env.argv[1:] if word != "--json"), "--apply"))

    def threads() -> Iterator[ThreadPrune]:
        yield from pruning.threads()
        if vacuum:
            tally.compaction = pruning.deleter.compact()

    emit(
        env,
        Answer(
            human=lambda width: rendering.human(
                threads(),
                tally,
                applied=applied,
                alone=request.thread is not None,
                now=request.now,
                notes=() if applied else _obstacles(choice, request.thread),
                next_command=next_command(),
                width=width,
            ),
            plain=lambda: rendering.plain(threads()),
            document=lambda: rendering.as_document(
                store,
                request.thread,
                request.mode,
                threads(),
                tally,
                applied=applied,
                next_command=next_command,
            ),
        ),
    )
    if not env.is_terminal:
        for line in rendering.totals(tally, applied=applied):
            say(env, line)


def _scope(stores: Stores, text: str, *, literal: bool) -> tuple[str, str | None]:
    """Returns the profile, and the thread where one is named: `PROFILE::` alone, or nothing, is a whole store."""
    if not text or (text.endswith("::") and not literal):
        return text.removesuffix("::"), None
    opened = open_in(stores, text, literal=literal)
    if opened.target.explicit:
        raise UsageError(
            f"prune takes a thread, not a checkpoint of it: {opened.target}",
            hint=f"leave the revision away: {opened.reader.info.target(opened.thread)}",
        )
    return opened.target.profile, opened.thread


def _means_retention(
    stores: Stores,
    choice: StoreChoice,
    thread: str | None,
    keep_turns: int | None,
    older_than: str | None,
    status: list[str] | None,
) -> bool:
    """Returns whether a debug store is named and nothing else: whole threads older than its retention are meant."""
    if choice.profile != DEBUG or keep_turns is not None or older_than is not None:
        return False
    return _retention(stores, choice, thread, delete=True, status=status) is not None


def _retention(
    stores: Stores, choice: StoreChoice, thread: str | None, *, delete: bool, status: list[str] | None
) -> str | None:
    """Returns the age that the profile keeps threads for, where whole threads are meant and nothing else says which."""
    if not delete or thread is not None or status:
        return None
    profile = stores.config.profiles.get(choice.profile)
    return profile.retention if profile is not None else None


def _check_combination(
    thread: str | None,
    age: str | None,
    status: list[str] | None,
    keep_turns: int | None,
    delete: bool,
    thinning: tuple[bool, ...],
    apply: bool,
    vacuum: bool,
) -> None:
    _check_vacuum(apply, vacuum)
    if not delete and keep_turns is None:
        hint = "--keep-turns N thins threads, --delete takes them away, --orphans takes what belongs to nothing"
        raise UsageError("nothing says what is to go", hint=hint)
    if delete and (keep_turns is not None or any(thinning)):
        raise UsageError(
            "--delete takes whole threads away, so no turn of them stays",
            hint="leave --keep-turns, --keep-branchable and --snapshot out, or --delete",
        )
    if delete and thread is None and age is None and not status:
        raise UsageError(
            "--delete would take every thread away", hint="say which: THREAD, --older-than 90d, --status done"
        )


def _check_orphans_alone(others: tuple[bool, ...], apply: bool, vacuum: bool) -> None:
    _check_vacuum(apply, vacuum)
    if any(others):
        raise UsageError(
            "--orphans takes only rows that no checkpoint refers to, so every checkpoint stays",
            hint="leave --delete, --keep-turns, --keep-branchable, --keep and --snapshot out, or --orphans",
        )


def _check_vacuum(apply: bool, vacuum: bool) -> None:
    if vacuum and not apply:
        raise UsageError("--vacuum writes the file anew, which takes --apply", hint="leave it out to see the plan")


def _statuses(texts: list[str] | None) -> frozenset[ThreadStatus]:
    for text in texts or ():
        if text not in STATUSES:
            raise UsageError(f"no status {text}", hint="one of: " + ", ".join(STATUSES))
    return frozenset(status for status in STATUSES if status in (texts or ()))


def _kept(stores: Stores, profile: str, texts: list[str]) -> dict[str, frozenset[Key]]:
    """Returns the checkpoints that `--keep` names, by thread."""
    found: dict[str, frozenset[Key]] = {}
    for text in texts:
        opened = open_in(stores, text if "::" in text or not profile else f"{profile}::{text}")
        if opened.store_choice.url != stores.choice(profile).url:
            raise UsageError(f"--keep {text} is in another store", hint=f"name one of {stores.reader(profile).info}")
        resolved = opened.resolve()
        found[opened.thread] = found.get(opened.thread, frozenset()) | {(resolved.ns, resolved.id)}
    return found


def _require_writable(choice: StoreChoice, thread: str | None) -> None:
    for obstacle in _obstacles(choice, thread):
        raise Refused(obstacle, hint="without --apply the plan is shown")


def _obstacles(choice: StoreChoice, thread: str | None) -> list[str]:
    """Returns what keeps rows of a store, or of the one thread that is meant, from being taken away."""
    name = choice.profile or choice.shown
    if ALL_THREADS in choice.protected:
        return [f"{name} is protected: true in agentctl.yaml, so nothing of it is pruned"]
    if thread is not None and choice.protects(thread):
        patterns = ", ".join(choice.protected)
        return [f"{thread} is protected in agentctl.yaml ({name}: {patterns}), so nothing of it is pruned"]
    if choice.access != "write":
        return [f"{name} can be read, not written: --apply takes a profile with access: write in agentctl.yaml"]
    return []
