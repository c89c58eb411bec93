"""Examples that run again: earlier state put back, tools answered from the recording, outcomes judged."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agentctl.codec.jsontext import dumps
from agentctl.datasets.export import with_reference
from agentctl.datasets.folder import example_object, example_of
from agentctl.datasets.rerun import Outcome, rerun
from agentctl.errors import DecodeError, NotFound, UsageError
from agentctl.experiments.runs.running import Limits
from agentctl.records.datasets import Example, Reference
from tests.support.examples import examples_of

REPOSITORY = Path(__file__).parents[2]
CATALOG_GRAPHS = """
    from tests.catalog import CATALOG

    def graph():
        return CATALOG[{name!r}].build(None)
"""


def project(folder: Path, text: str) -> Path:
    (folder / "app.py").write_text(textwrap.dedent(text), "utf-8")
    return folder


def run(folder: Path, name: str, example: Example, **options: Any) -> Outcome:
    """Runs an example that was read back from JSON, on the catalog's graph."""
    read = example_of(json.loads(dumps(example_object(example))))
    return rerun(read, graph="app.py:graph", project=project(folder, CATALOG_GRAPHS.format(name=name)), **options)


def own(examples: tuple[Example, ...]) -> tuple[Example, ...]:
    return with_reference(examples, own_outcome=True)


@pytest.mark.parametrize(
    "name",
    [
        "agent",
        "agent two turns",
        "agent approved",
        "deep agent",
        "delta",
        "functional twice",
        "two turns",
        "interrupt twice answered",
        "parallel interrupts answered",
        "subgraph nested answered",
        "command",
        "fan out",
    ],
)
def test_every_turn_runs_again_to_its_recorded_outcome(tmp_path: Path, name: str) -> None:
    for example in own(examples_of(tmp_path, name)):
        outcome = run(tmp_path, name, example)
        assert outcome.problems == ()
        assert outcome.observed.status == "done"


def test_a_later_turn_sees_the_conversation_and_the_state_before_it(tmp_path: Path) -> None:
    for example in own(examples_of(tmp_path, "delta")):
        values = run(tmp_path, "delta", example).observed.values
        messages = values["messages"]
        assert isinstance(messages, list)
        assert [message["id"] for message in messages] == [
            entry["data"]["id"]
            for part in (example.inputs, example.outputs)
            for entry in part["messages"]  # type: ignore[attr-defined]
        ]
        notes = [f"note {2 * turn + 1}" for turn in range(example.turn)]
        assert [note for note in values["notes"] if note.startswith("note")] == notes  # type: ignore[attr-defined]


def test_the_nodes_are_those_of_the_recorded_steps(tmp_path: Path) -> None:
    for name in ("agent two turns", "subgraph nested answered"):
        for example in own(examples_of(tmp_path, name)):
            nodes = run(tmp_path, name, example).nodes
            assert sorted(nodes) == sorted(example.steps)


def test_calls_are_answered_from_the_recording_of_the_turn_and_not_from_earlier_turns(tmp_path: Path) -> None:
    first, second = own(examples_of(tmp_path, "agent two turns"))
    changed = dataclasses.replace(
        second, tool_calls=tuple(_reading(call, "lost") if not call.before else call for call in second.tool_calls)
    )
    outcome = run(tmp_path, "agent two turns", changed)
    results = {call.name: call.result for call in outcome.observed.tool_calls if call.served_by == "recorded"}
    assert '"lost"' in str(results["lookup_order"])
    assert run(tmp_path, "agent two turns", first).problems == ()


def _reading(call: Any, status: str) -> Any:
    result = json.loads(dumps(call.result).replace("delivered", status))
    return dataclasses.replace(call, result=result)


def test_a_call_that_nothing_answers_is_a_problem_with_the_option_that_would(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "agent"))
    bare = dataclasses.replace(example, tool_calls=example.tool_calls[1:])
    (problem,) = run(tmp_path, "agent", bare).problems
    assert 'nothing recorded answers lookup_order({"order_id": "A1"})' in problem
    assert "--stub lookup_order=" in problem


def test_a_stub_answers_what_the_recording_does_not_hold(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "agent"))
    bare = dataclasses.replace(example, tool_calls=example.tool_calls[1:])
    stubs = {"lookup_order": {"order_id": "A1", "status": "delivered"}}
    assert run(tmp_path, "agent", bare, stubs=stubs).problems == ()


def test_a_question_without_a_recorded_answer_is_a_problem_that_names_it(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "interrupt answered"))
    (problem,) = run(tmp_path, "interrupt answered", dataclasses.replace(example, answers=())).problems
    assert "review asks" in problem
    assert "--resume JSON" in problem


def test_answers_given_by_hand_take_the_place_of_the_recorded_ones(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "interrupt answered"))
    outcome = run(tmp_path, "interrupt answered", example, answers=["no"])
    assert outcome.observed.values["log"] == ["input", "draft", "review: no", "send"]
    (problem,) = outcome.problems
    assert problem == 'log[2] is "review: no", expected "review: yes"'


def test_a_graph_that_raises_is_a_problem_with_its_own_traceback(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "linear"))
    folder = project(
        tmp_path,
        """
        from typing import TypedDict
        from langgraph.graph import StateGraph

        class State(TypedDict, total=False):
            log: list

        def broken(state):
            raise ValueError("no such customer")

        graph = StateGraph(State).add_node("broken", broken).add_edge("__start__", "broken").compile()
        """,
    )
    (problem,) = rerun(example, graph="app.py:graph", project=folder).problems
    assert "ValueError: no such customer" in problem
    assert "in broken" in problem


def test_a_run_that_goes_on_too_long_is_a_problem_that_names_the_limit(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "loop"))
    (problem,) = run(tmp_path, "loop", example, limits=Limits(max_steps=2)).problems
    assert "no end within 2 steps" in problem
    assert "max_steps" in problem


@pytest.mark.parametrize(
    ("check", "problems"),
    [("reply contains no refund", 1), ("reply contains on its way", 0), ("called issue_refund", 0)],
)
def test_with_a_check_the_problem_is_that_it_holds(tmp_path: Path, check: str, problems: int) -> None:
    (example,) = with_reference(examples_of(tmp_path, "agent"), check=[check])
    outcome = run(tmp_path, "agent", example)
    assert len(outcome.problems) == problems
    assert all(check in problem for problem in outcome.problems)


def test_a_check_file_is_read_from_the_project_folder(tmp_path: Path) -> None:
    (tmp_path / "check.yaml").write_text("fails_when:\n  reply: {contains: no refund}\n", "utf-8")
    (example,) = with_reference(examples_of(tmp_path, "agent"), check=["check.yaml"])
    assert len(run(tmp_path, "agent", example).problems) == 1
    missing = dataclasses.replace(example, reference=Reference(check=("gone.yaml",)))
    with pytest.raises(NotFound, match=r"gone\.yaml"):
        run(tmp_path, "agent", missing)


def test_an_undecided_check_is_a_problem(tmp_path: Path) -> None:
    (example,) = with_reference(examples_of(tmp_path, "agent"), check=["reply contains anything"])
    (problem,) = run(tmp_path, "agent", dataclasses.replace(example, tool_calls=())).problems
    assert problem.startswith("undecided: nothing recorded answers")


def test_a_reply_is_compared_but_for_white_space(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "agent")
    same = dataclasses.replace(example, reference=Reference(" No refund is due:\n your order was  delivered. "))
    other = dataclasses.replace(example, reference=Reference("Your refund is on its way."))
    assert run(tmp_path, "agent", same).problems == ()
    assert run(tmp_path, "agent", other).problems == (
        "the reply is 'No refund is due: your order was delivered.', expected 'Your refund is on its way.'",
    )


def test_an_expected_call_that_was_not_made_is_named_with_its_arguments(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "agent")
    wanted = (
        {"name": "lookup_order", "args": {"order_id": "A1"}},
        {"name": "lookup_order", "args": {"order_id": "B2"}},
    )
    (problem,) = run(tmp_path, "agent", dataclasses.replace(example, reference=Reference(None, wanted))).problems
    assert problem.startswith('the call lookup_order({"order_id": "B2"}) was not made; calls were lookup_order')


def test_recorded_configuration_reaches_the_graph_and_what_is_given_wins(tmp_path: Path) -> None:
    (example,) = with_reference(examples_of(tmp_path, "linear"), check=["state nothing"])
    folder = project(
        tmp_path,
        """
        from typing import TypedDict
        from langchain_core.runnables import RunnableConfig
        from langgraph.graph import StateGraph

        class State(TypedDict, total=False):
            log: list
            seen: dict

        def look(state: State, config: RunnableConfig):
            settings = config["configurable"]
            return {"seen": {name: settings.get(name) for name in ("a", "b", "c")}}

        graph = StateGraph(State).add_node("look", look).add_edge("__start__", "look").compile()
        """,
    )
    told = dataclasses.replace(
        example,
        configurable={"a": 1, "b": 1, "c": 1},
        rerun=dataclasses.replace(example.rerun, configurable={"b": 2, "c": 2}),
    )
    outcome = rerun(told, graph="app.py:graph", project=folder, configurable={"c": 3})
    assert outcome.observed.values["seen"] == {"a": 1, "b": 2, "c": 3}


def test_an_example_without_its_input_runs_with_what_the_user_said(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "agent"))
    told = dataclasses.replace(example, inputs={**example.inputs, "input": None})
    assert run(tmp_path, "agent", told).problems == ()


def test_an_example_that_holds_no_input_at_all_is_refused(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "exit"))
    with pytest.raises(UsageError, match="does not hold what its graph was given"):
        run(tmp_path, "exit", example)


def test_a_state_value_that_cannot_be_made_again_is_named(tmp_path: Path) -> None:
    _, example = own(examples_of(tmp_path, "two turns"))
    odd = dataclasses.replace(example, inputs={**example.inputs, "state": {"log": {"$type": "gone.Class"}}})
    with pytest.raises(DecodeError, match=r"gone\.Class"):
        run(tmp_path, "two turns", odd)


def test_nothing_is_left_behind_and_nothing_is_written_in_the_project(tmp_path: Path) -> None:
    (example,) = own(examples_of(tmp_path, "agent"))
    run(tmp_path, "agent", example)
    before = sorted(path.name for path in tmp_path.iterdir())
    run(tmp_path, "agent", example)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
