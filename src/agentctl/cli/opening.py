"""The first two steps of every command: open the store, resolve the target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from agentctl.cli.admission import admitted
from agentctl.cli.env import Env
from agentctl.cli.grouped import Where
from agentctl.cli.masking import MaskWish, make_masker, masked_reader
from agentctl.cli.output import warn
from agentctl.config.load import Config, load_config
from agentctl.config.stores import StoreChoice
from agentctl.errors import NotFound, Refused
from agentctl.records.copies import command
from agentctl.revisions.grammar import Range, Revision
from agentctl.revisions.target import Target, parse_target

if TYPE_CHECKING:
    from agentctl.masking.masker import Masker
    from agentctl.records.masking import MaskReport
    from agentctl.revisions.resolve import RangeResolution
    from agentctl.revisions.scope import Resolution
    from agentctl.stores.base import Reader
    from agentctl.stores.reading.facts import StoredFacts

TERMINAL_PAGE = 50
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def page_size(env: Env, limit: int | None) -> int | None:
    """Returns how many rows to list: as asked (0 is all), else 50 on a terminal and all elsewhere."""
    if limit is None:
        return TERMINAL_PAGE if env.is_terminal and not env.as_json else None
    return limit or None


@dataclass
class Stores:
    """The stores that one command has open, by profile and address; each is opened once.

    `mask` says which of them are seen masked; None, for commands that only look, sees all as they are.
    """

    env: Env
    config: Config
    flag: str | None
    schema: str | None
    debug_flag: str | None
    stack: ExitStack
    mask: MaskWish | None = None
    open: dict[StoreChoice, Reader] = field(default_factory=dict)

    def choice(self, profile: str) -> StoreChoice:
        """Returns which store a target without (`''`) or with a profile is in."""
        return self.config.store_of(profile or None, self.flag, schema=self.schema, debug_flag=self.debug_flag)

    def reader(self, profile: str) -> Reader:
        """Returns the store opened for reading.

        Raises:
            Refused: its profile needs a ticket, and none was given; or it has to be masked, and `--no-mask` was.
            StoreError: it cannot be opened, or the audit log cannot be written.
        """
        from agentctl.stores.counting import count_reads
        from agentctl.stores.open import open_reader

        choice = self.choice(profile)
        if choice not in self.open:
            masks = self.mask is not None and self.mask.holds(choice)
            tally = self.stack.enter_context(admitted(self.env, self.config, choice, "read"))
            reader = open_reader(choice.url, profile=choice.profile, schema=choice.schema, warn=partial(warn, self.env))
            self.stack.callback(reader.close)
            count_reads(reader, tally)
            for text in reader.info.warnings:
                warn(self.env, text)
            self.open[choice] = masked_reader(reader, choice, lambda: self.masker) if masks else reader
        return self.open[choice]

    @cached_property
    def masker(self) -> Masker:
        """What masks for this command."""
        return make_masker(
            self.env, self.config, self.debug_flag, keeps_key=self.mask is not None and self.mask.keeps_key
        )

    def has_thread(self, profile: str, thread: str) -> bool:
        """Tells whether a store holds checkpoints of a thread; a store that cannot be opened raises."""
        from agentctl.stores.stated import holds

        return holds(self.reader(profile), thread)

    def takes_uuids_alone(self, text: str) -> bool:
        """Says whether a target without a UUID was looked for where every thread has one as its id."""
        return _UUID.search(text) is None and any(reader.info.kind == "server" for reader in self.open.values())


@dataclass
class Opened:
    """A target with its store open. `ns` is what `--ns` asked for, a full name or a path of nodes, or None."""

    env: Env
    stores: Stores
    reader: Reader
    target: Target
    ns: str | None
    branch: str | None

    @property
    def config(self) -> Config:
        """The configuration the store was found by."""
        return self.stores.config

    @property
    def thread(self) -> str:
        """Exact thread id."""
        return self.target.thread

    @property
    def store_choice(self) -> StoreChoice:
        """How the store was chosen, with its access."""
        return self.stores.choice(self.target.profile)

    @property
    def full_ns(self) -> str:
        """The namespace that `--ns` asked for by its full name, '' for the root graph.

        Raises:
            NotFound: the thread has no such namespace.
        """
        from agentctl.revisions.namespaces import pick_namespace

        return pick_namespace(self.ns, self.facts.namespaces(), self.thread) if self.ns else ""

    def branch_id(self, ns: str) -> str | None:
        """Returns the full id of the tip that `--branch` names, or None.

        Raises:
            NotFound: no such checkpoint in the namespace.
        """
        from agentctl.revisions.scope import find_id

        return find_id(self.branch, self.facts, ns) if self.branch else None

    @cached_property
    def facts(self) -> StoredFacts:
        """What revisions of this thread are resolved against."""
        from agentctl.stores.reading.facts import StoredFacts

        return StoredFacts(self.reader, self.thread)

    @property
    def is_masked(self) -> bool:
        """Whether the target's thread is seen masked, because its reader masks it or its rows hold masked values."""
        return self.reader.info.masked or self.was_masked

    @cached_property
    def was_masked(self) -> bool:
        """Whether the rows of the target's thread hold masked values: it is a masked copy, or was made from one."""
        from agentctl.stores.masked import is_masked

        return is_masked(self.reader, self.thread)

    def require_nameless(self) -> None:
        """Refuses to make something after a masked thread whose id is personal.

        Raises:
            Refused: it is such a thread.
        """
        if self.shown(self.thread) != self.thread:
            raise Refused(
                "the thread's id holds personal data, and what is made from it would be named after it",
                hint=f"copy it under another name first: {command('copy', str(self.target), '--mask', '--as', 'NAME')}",
            )

    def shown(self, name: str) -> str:
        """Returns a name as it may stand in what is made from a masked thread: with a token where it is personal."""
        if not self.reader.info.masked:
            return name
        from agentctl.masking.naming import shown_name

        return shown_name(name, self.stores.masker)

    def mask_report(self) -> MaskReport | None:
        """Returns what was masked so far, None where the target is seen as it is stored."""
        return self.stores.masker.report() if self.reader.info.masked else None

    def resolve_range(self) -> RangeResolution | None:
        """Returns both ends of a range, or None where the target names one checkpoint."""
        if not isinstance(self.target.rev, Range):
            return None
        from agentctl.revisions.resolve import resolve_range

        return resolve_range(self.target.rev, self.facts, ns=self.ns, branch=self.branch, now=self.env.now())

    def chain(self, ns: str, tip: str) -> tuple[str, ...]:
        """Returns the ids of a checkpoint and its ancestors."""
        return tuple(row.id for row in self.facts.lineage(ns, tip).rows)

    def all_ids(self, ns: str) -> tuple[str, ...]:
        """Returns every id among which a short one must be unique: those of the root graph and of a namespace."""
        return tuple(id for name in dict.fromkeys(("", ns)) for id in self.facts.ids(name))

    def resolve(self, revision: Revision | None = None) -> Resolution:
        """Returns the one checkpoint that the target names, or that another revision names in its thread."""
        from agentctl.revisions.resolve import resolve

        wanted = revision or self.target.one
        return resolve(wanted, self.facts, ns=self.ns, branch=self.branch, now=self.env.now())

    def edit_notes(self) -> tuple[str, ...]:
        """Returns a note where the head descends from an edit and no branch was chosen: the customer saw another."""
        from agentctl.revisions.heads import find_edit

        if self.branch is not None:
            return ()
        rows = self.reader.rows(self.thread)
        edited = find_edit(rows, rows[0].id) if rows else None
        if edited is None or edited.last_head is None:
            return ()
        return (
            f"the head descends from an edit ({edited.edit}); "
            f"the customer saw {edited.last_head}: --branch {edited.last_head}",
        )


@contextmanager
def open_stores(
    env: Env,
    *,
    store: str | None = None,
    schema: str | None = None,
    debug_store: str | None = None,
    mask: MaskWish | None = None,
) -> Iterator[Stores]:
    """Gives the configured stores, opened as they are asked for and closed at the end."""
    config = load_config(env.cwd, env.environ)
    with ExitStack() as stack:
        yield Stores(env, config, store, schema, debug_store, stack, mask)


@contextmanager
def open_target(
    env: Env, text: str, where: Where, *, ranges: bool = False, mask: MaskWish | None = None
) -> Iterator[Opened]:
    """Gives a parsed target with its store open for reading, masked where the command wishes or the profile says so.

    Raises:
        NotFound: no such thread; the hint lists threads.
        Ambiguous: the text can be read in two ways.
        Refused: it is not to be masked, and its profile has `mask: always`.
        StoreError: the store cannot be opened.
    """
    with open_stores(env, store=where.store, schema=where.schema, debug_store=where.debug_store, mask=mask) as stores:
        yield open_in(stores, text, ns=where.ns, branch=where.branch, literal=where.literal, ranges=ranges)


def open_in(
    stores: Stores,
    text: str,
    *,
    ns: str | None = None,
    branch: str | None = None,
    literal: bool = False,
    ranges: bool = False,
) -> Opened:
    """Returns a target of stores that are open already."""
    try:
        target = parse_target(
            text,
            stores.has_thread,
            profiles=stores.config.profile_names,
            literal=literal,
            ranges=ranges,
            find_run=lambda profile, run_id: stores.reader(profile).find_run(run_id),
        )
    except NotFound as error:
        if stores.takes_uuids_alone(text):
            message = f"{error.message}: the threads of an Agent Server have UUIDs as ids"
            raise NotFound(message, hint=error.hint, candidates=error.candidates) from None
        raise
    return Opened(stores.env, stores, stores.reader(target.profile), target, ns, branch)
