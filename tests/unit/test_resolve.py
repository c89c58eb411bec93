"""Head, parents, steps, visits of nodes, interrupts and errors, resolved against a thread that is written down."""

from __future__ import annotations

import pytest

from agentctl.errors import Ambiguous, NotFound
from tests.support.written_thread import Support, Written


def test_head_and_root_are_the_ends_of_the_heads_lineage() -> None:
    thread = Support()
    assert thread.to("head").id == thread.end
    assert thread.to("root").id == thread.input
    assert thread.to("head").why == "the head: its newest checkpoint"


def test_tildes_climb_the_parents_and_end_at_the_root() -> None:
    thread = Support()
    assert thread.to("head~2").id == thread.asked_2
    assert thread.to("head~0").id == thread.end
    assert thread.to("head~6").id == thread.input
    with pytest.raises(NotFound, match="beyond the root") as caught:
        thread.to("head~7")
    assert caught.value.hint == f"the root is prod::support-17@{thread.input}"


def test_head_root_ids_and_parents_read_no_metadata_writes_or_calls() -> None:
    thread = Support()
    for text in ("head", "root", "head~3", thread.reply, thread.reply[-8:], "at:2h"):
        thread.to(text)
    assert set(thread.asked) == {"ids"}


def test_a_step_is_that_of_the_lineage_not_of_another_branch() -> None:
    thread = Support()
    assert thread.to("step:4").id == thread.edit
    assert thread.to("step:4", branch=thread.reply).id == thread.told_2
    assert thread.to("step:-1").id == thread.input


def test_a_missing_step_says_which_there_are_and_where_else_it_is() -> None:
    thread = Support()
    far = thread.add(10, thread.reply, step=6)
    thread.add(11, thread.end, step=6, source="update")
    with pytest.raises(NotFound) as caught:
        thread.to("step:6", branch=thread.end)
    assert "steps -1 to 5" in str(caught.value.hint)
    assert far in [row["revision"] for row in caught.value.candidates]


def test_a_step_that_stands_twice_on_one_lineage_is_ambiguous() -> None:
    thread = Written()
    first = thread.add(1, None, step=0)
    second = thread.add(2, first, step=0)
    with pytest.raises(Ambiguous) as caught:
        thread.to("step:0")
    assert [row["revision"] for row in caught.value.candidates] == [first, second]


def test_before_and_after_name_visits_counted_from_either_end() -> None:
    thread = Support()
    assert thread.to("before:tools").id == thread.asked_2
    assert thread.to("before:tools:1").id == thread.asked_1
    assert thread.to("before:tools:2").id == thread.asked_2
    assert thread.to("before:tools:-2").id == thread.asked_1
    assert thread.to("after:agent").id == thread.end
    assert thread.to("after:agent:1").id == thread.asked_1
    assert thread.to("after:tools", branch=thread.reply).id == thread.told_2


def test_occurrences_are_counted_along_one_lineage() -> None:
    thread = Support()
    assert thread.to("after:tools").id == thread.told_1
    with pytest.raises(NotFound, match="number 2") as caught:
        thread.to("after:tools:2")
    assert caught.value.hint == "it has 1: after:tools:1"


def test_a_node_that_never_runs_is_not_found_and_the_nodes_are_listed() -> None:
    with pytest.raises(NotFound) as caught:
        Support().to("before:tool")
    assert caught.value.hint == "nodes there: __start__, agent, tools"


def test_the_last_visit_of_a_long_lineage_is_found_without_reading_all_of_it() -> None:
    thread = Written()
    tip: str | None = None
    for n in range(500):
        tip = thread.add(n, tip, step=n, next=["tools"] if n % 10 == 3 else ["agent"])
    assert thread.to("before:tools").id == thread.rows[""][493].id
    assert thread.asked["next"] == 64
    assert thread.to("before:tools:-20").id == thread.rows[""][303].id
    assert thread.to("before:tools:50").id == thread.rows[""][493].id


@pytest.mark.parametrize("n", [3, 64, 65, 66, 128, 129, 200])
def test_a_visit_is_the_same_counted_from_the_start_and_from_the_end(n: int) -> None:
    thread = Written()
    tip: str | None = None
    for i in range(n):
        source = "fork" if i % 4 == 2 else "loop"
        tip = thread.add(i, tip, step=i, source=source, next=["agent"] if i % 4 == 3 else ["tools"])
    n_visits = 0
    with pytest.raises(NotFound):
        while True:
            thread.to(f"before:tools:{n_visits + 1}")
            n_visits += 1
    for k in range(1, n_visits + 1):
        assert thread.to(f"before:tools:{k}").id == thread.to(f"before:tools:{k - 1 - n_visits}").id


def test_a_fork_row_about_to_run_the_same_node_is_the_same_visit() -> None:
    thread = Written()
    first = thread.add(1, None, step=0, next=["tools"])
    fork = thread.add(2, first, step=1, source="fork", next=["tools"])
    told = thread.add(3, fork, step=2, next=["agent"], wrote=["tools"])
    thread.add(4, told, step=3, next=["tools"], wrote=["agent"])
    assert thread.to("before:tools:1").id == fork
    assert thread.to("before:tools:2").id == thread.head("")


def test_what_rows_cannot_tell_is_noted() -> None:
    thread = Written()
    first = thread.add(1, None, step=0, next=["?"])
    thread.add(2, first, step=1, next=["tools"])
    assert thread.to("before:tools:1").notes == ("rows cannot tell it for 1 checkpoints of the lineage; --graph can",)


def test_interrupts_and_errors_are_counted_too() -> None:
    thread = Support()
    thread.asking = {thread.asked_1, thread.asked_2, thread.reply}
    thread.failing = {thread.told_1}
    assert thread.to("interrupt").id == thread.asked_2
    assert thread.to("interrupt:1").id == thread.asked_1
    assert thread.to("interrupt", branch=thread.reply).id == thread.reply
    assert thread.to("error:-1~").id == thread.asked_1
    with pytest.raises(NotFound, match="failed") as caught:
        thread.to("error:2")
    assert caught.value.hint == "it has 1: error:1"
    assert not thread.asked["next"]


def test_a_thread_without_interrupts_says_where_to_look() -> None:
    with pytest.raises(NotFound) as caught:
        Support().to("interrupt")
    assert "agentctl history prod::support-17" in str(caught.value.hint)
