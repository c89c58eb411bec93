"""`agentctl resume`: answers to the questions that wait on a thread."""

from __future__ import annotations

from typing import Annotated

import typer

from agentctl.cli import options
from agentctl.cli.admission import admitted
from agentctl.cli.env import Env
from agentctl.cli.experimenting import read_json
from agentctl.cli.grouped import Where, WorkflowOptions, expanded
from agentctl.cli.opening import Opened, open_target
from agentctl.cli.workflows import Following, refuse_server, workflow
from agentctl.errors import Refused, UsageError
from agentctl.stores.copying import lacks


@expanded
def resume(
    ctx: typer.Context,
    target: options.Target,
    chosen: WorkflowOptions,
    where: Where,
    value: Annotated[
        str | None, typer.Option("--value", metavar="JSON|@FILE", help="The answer, where one question waits.")
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="ID=JSON|ID=@FILE", help="The answer to one question, by interrupt id. Repeatable."
        ),
    ] = None,
    graph: options.Graph = None,
    as_json: options.Json = False,
) -> None:
    """Answer what a thread waits for, and run on. Any JSON value is an answer, null too.

    Of several questions some may be answered; the others go on waiting. With sandbox tools, in the debug store alone;
    what production needs stands under `agentctl run`. An older checkpoint's question is answered on a copy: agentctl
    fork TARGET --resume JSON. Of two commands that answer at the same time one is refused.

    Example: agentctl resume debug::try-1 --value '{"decision": "approve"}' --configurable actor=maria

    JSON: agentctl.resume/1, with the keys of agentctl.run/1.

    Exit: 0 done or waiting again, 1 stopped by a limit, 2 no such question, 5 blocked or refused, 6 the graph raised.
    """
    env: Env = ctx.obj
    by_id, single = _answers(env, value, answers)
    with open_target(env, target, where) as opened:
        from agentctl.experiments.runs.answered import find_answerer
        from agentctl.experiments.runs.streaming import parse_modes
        from agentctl.experiments.waits import check_waits
        from agentctl.experiments.workflows.runs import departure_with_answers, read_stand, resume_workflow

        parse_modes(chosen.stream or ())
        if not chosen.dry_run:
            refuse_server(opened.store_choice, opened.thread)
        head = _require_head(opened)
        metadata = opened.reader.rows(opened.thread)[0].metadata

        def answered(id: str) -> str | None:
            found = find_answerer(opened.reader, opened.thread, id)
            return None if found is None else str(found)

        choice, loaded = opened.store_choice, opened.config.graph_for(metadata, graph)
        with workflow(env, choice, loaded, chosen, reader=opened.reader, metadata=metadata) as ready:
            for checkpoint in opened.reader.stored(opened.thread, "", [head]):
                check_waits(opened.reader.info, checkpoint, ready.graph)
            follow = Following(env, "resume", opened.config, choice, loaded, chosen, ready, metadata, where.debug_store)
            if chosen.dry_run:
                stand = read_stand(ready, opened.thread, seen=head)
                departure = departure_with_answers(ready, opened.thread, single, by_id, stand, answered)
                raise typer.Exit(follow.answer_plan(departure))
            with admitted(env, opened.config, choice, "write"):
                ended = resume_workflow(
                    ready,
                    opened.thread,
                    value=single,
                    by_id=by_id,
                    seen=head,
                    answered=answered,
                    env=env.environ,
                    watch=follow.watch,
                )
    raise typer.Exit(follow.answer(ended))


def _answers(env: Env, value: str | None, texts: list[str] | None) -> tuple[dict[str, object] | None, object]:
    """Returns the answers by id, or None and the one answer."""
    if (value is None) == (texts is None):
        raise UsageError("resume takes --value JSON, or --map ID=JSON", hint="a text is JSON too: --value '\"yes\"'")
    if texts is None:
        assert value is not None
        return None, read_json(value, env.cwd, "--value")
    by_id: dict[str, object] = {}
    for text in texts:
        id, equals, answer = text.partition("=")
        if not equals or not id:
            raise UsageError(f"--map takes ID=JSON, not {text!r}", hint="ids: agentctl show TARGET")
        if id in by_id:
            raise UsageError(f"--map answers {id} twice", hint="one answer a question")
        by_id[id] = read_json(answer, env.cwd, f"--map {id}")
    return by_id, None


def _require_head(opened: Opened) -> str:
    """Returns the head's id, after refusing a revision that is another: a run of the thread itself goes on from it."""
    found = opened.resolve()
    head = opened.reader.rows(opened.thread, metadata=False)[0].id
    if found.ns or found.id != head:
        place = str(opened.target)
        raise Refused(
            f"{place} is not the head, and only the head can be resumed", hint=f"agentctl fork {place} --resume JSON"
        )
    lacks.require_head(opened.reader, opened.thread)
    return head
