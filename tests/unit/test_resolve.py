"""Revisions resolved against a thread that is written down, not stored."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from agentctl.errors import Ambiguous, NotFound
from agentctl.records.messages import CallSite, Message
from agentctl.records.rows import CheckpointRow, Lineage, id_time
from agentctl.revisions.grammar import Range, parse_expression, parse_revision
from agentctl.revisions.heads import find_edit
from agentctl.revisions.namespaces import node_path, pick_namespace
from agentctl.revisions.resolve import RangeResolution, resolve, resolve_range
from agentctl.revisions.scope import Resolution
from agentctl.revisions.target import parse_target

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)
START = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


def uuid6(at: datetime, node: int) -> str:
    """Makes an id as LangGraph does, for a time and a node number."""
    ticks = (at - _EPOCH) // timedelta(microseconds=1) * 10
    text = f"{ticks >> 28:08x}{ticks >> 12 & 0xFFFF:04x}6{ticks & 0xFFF:03x}8000{node:012x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@dataclass
class Written:
    """A thread as test data. `asked` counts which facts were read."""

    thread: str = "support-17"
    rows: dict[str, list[CheckpointRow]] = field(default_factory=dict)
    next_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    wrote_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    sites: list[CallSite] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        node: int,
        parent: str | None,
        *,
        step: int | None = None,
        source: str = "loop",
        ns: str = "",
        id: str | None = None,
        next: Sequence[str] = (),
        wrote: Sequence[str] = (),
    ) -> str:
        id = id or uuid6(START + timedelta(minutes=node), node)
        metadata: dict[str, object] = {"source": source} if step is None else {"step": step, "source": source}
        self.rows.setdefault(ns, []).append(CheckpointRow(self.thread, ns, id, parent, metadata))
        self.next_of[id], self.wrote_of[id] = tuple(next), tuple(wrote)
        return id

    @property
    def place(self) -> str:
        return f"prod::{self.thread}"

    def namespaces(self) -> Sequence[str]:
        return sorted(self.rows)

    def has(self, ns: str, checkpoint_id: str) -> bool:
        return any(row.id == checkpoint_id for row in self.rows.get(ns, []))

    def ids(self, ns: str) -> Sequence[str]:
        self.asked["ids"] += 1
        return sorted((row.id for row in self.rows.get(ns, [])), reverse=True)

    def head(self, ns: str) -> str | None:
        return max((row.id for row in self.rows.get(ns, [])), default=None)

    def lineage(self, ns: str, tip: str) -> Lineage:
        by_id = {row.id: row for row in self.rows[ns]}
        chain = [by_id[tip]]
        while (parent := chain[-1].parent) in by_id:
            chain.append(by_id[str(parent)])
        rows = tuple(reversed(chain))
        return Lineage(rows, rows[0].parent, {row.id: i for i, row in enumerate(rows)})

    def details(self, ns: str, ids: Collection[str]) -> Mapping[str, CheckpointRow]:
        self.asked["details"] += 1
        return {row.id: row for row in self.rows[ns] if row.id in ids}

    def next(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        self.asked["next"] += len(ids)
        return {id: self.next_of[id] for id in ids}

    def wrote(self, ns: str, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        self.asked["wrote"] += len(ids)
        return {id: self.wrote_of[id] for id in ids}

    def interrupts(self, ns: str, ids: Collection[str]) -> Collection[str]:
        self.asked["interrupts"] += len(ids)
        return self.asking & set(ids)

    def errors(self, ns: str, ids: Collection[str]) -> Collection[str]:
        self.asked["errors"] += len(ids)
        return self.failing & set(ids)

    def calls(self, ns: str, tip: str, name: str) -> Sequence[CallSite]:
        self.asked["calls"] += 1
        return [site for site in self.sites if name in (site.name, site.id)]

    def called(self, ns: str, tip: str) -> Sequence[str]:
        return list(dict.fromkeys(site.name for site in self.sites))

    def to(self, text: str, *, ns: str | None = None, branch: str | None = None) -> Resolution:
        return resolve(parse_revision(text), self, now=NOW, ns=ns, branch=branch)

    def between(self, text: str) -> RangeResolution:
        parsed = parse_expression(text)
        assert isinstance(parsed, Range)
        return resolve_range(parsed, self, now=NOW)


class Support(Written):
    """Input, then two visits of `tools`, an edit at the second one, and the branch that it left."""

    def __init__(self) -> None:
        super().__init__()
        self.input = self.add(1, None, step=-1, source="input", next=["__start__"])
        self.start = self.add(2, self.input, step=0, next=["agent"], wrote=["__start__"])
        self.asked_1 = self.add(3, self.start, step=1, next=["tools"], wrote=["agent"])
        self.told_1 = self.add(4, self.asked_1, step=2, next=["agent"], wrote=["tools"])
        self.asked_2 = self.add(5, self.told_1, step=3, next=["tools", "tools"], wrote=["agent"])
        self.told_2 = self.add(6, self.asked_2, step=4, next=["agent"], wrote=["tools", "tools"])
        self.reply = self.add(7, self.told_2, step=5, wrote=["agent"])
        self.edit = self.add(8, self.asked_2, step=4, source="update", next=["agent"])
        self.end = self.add(9, self.edit, step=5, wrote=["agent"])


def site(
    name: str, id: str, pending_at: str, *, ns: str = "", occurrence: int = 1, answer: str | None = "delivered"
) -> CallSite:
    message = Message("tool", None, answer, answer, tool_call_id=id) if answer is not None else None
    return CallSite(name, id, {"order_id": "A1"}, occurrence, ns, pending_at, None, message, 0, None)


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


def test_a_call_is_where_it_waits_for_its_answer() -> None:
    thread = Support()
    thread.sites = [site("get_policy", "c0", thread.asked_1), site("lookup_order", "c1", thread.asked_2)]
    for text in ("call:lookup_order", "call:c1", "call:lookup_order:1", "call:c1:-1"):
        found = thread.to(text)
        assert (found.id, found.why) == (thread.asked_2, "where call c1 of lookup_order waits for its answer")
        assert found.call is thread.sites[1]


def test_a_call_made_twice_is_ambiguous_with_arguments_results_and_revisions_that_work() -> None:
    thread = Support()
    thread.sites = [
        site("lookup_order", "c1", thread.asked_1),
        site("lookup_order", "c1", thread.asked_2, occurrence=2, answer=None),
    ]
    for name in ("lookup_order", "c1"):
        with pytest.raises(Ambiguous) as caught:
            thread.to(f"call:{name}")
        rows = caught.value.candidates
        assert [row["revision"] for row in rows] == [f"call:{name}:1", f"call:{name}:2"]
        assert [row["result"] for row in rows] == ["delivered", None]
        assert rows[0]["args"] == {"order_id": "A1"}
        assert [thread.to(str(row["revision"])).id for row in rows] == [thread.asked_1, thread.asked_2]
        assert str(caught.value.hint).endswith(f"prod::support-17@call:{name}:2")


def test_an_occurrence_beyond_the_last_is_not_found_and_lists_those_there_are() -> None:
    thread = Support()
    thread.sites = [site("lookup_order", "c1", thread.asked_1)]
    for k in (2, -2):
        with pytest.raises(NotFound, match="1 occurrence, not 2") as caught:
            thread.to(f"call:lookup_order:{k}")
        assert [row["revision"] for row in caught.value.candidates] == ["call:lookup_order:1"]


def test_a_call_in_a_namespace_below_says_where_it_was_found() -> None:
    thread = Support()
    inner = thread.add(20, None, step=0, ns="research:1f")
    thread.sites = [site("search", "s1", inner, ns="research:1f", answer=None)]
    found = thread.to("call:search")
    assert (found.ns, found.id) == ("research:1f", inner)
    assert found.notes == ("found in namespace research:1f", "the call has no answer yet")


def test_parents_of_a_call_below_stay_in_its_namespace() -> None:
    thread = Support()
    first = thread.add(20, None, step=-1, ns="research:1f")
    second = thread.add(21, first, step=0, ns="research:1f")
    thread.sites = [site("search", "s1", second, ns="research:1f")]
    assert (thread.to("call:search~").ns, thread.to("call:search~").id) == ("research:1f", first)


def test_a_call_id_that_ends_in_a_number_is_found_whole() -> None:
    thread = Support()
    thread.sites = [
        site("lookup", "functions.lookup:0", thread.asked_1),
        site("pay", "functions.pay:1", thread.asked_2),
    ]
    assert thread.to("call:functions.lookup:0").id == thread.asked_1
    assert thread.to("call:functions.pay:1").id == thread.asked_2


def test_a_call_that_reads_as_an_id_and_as_an_occurrence_is_ambiguous() -> None:
    thread = Support()
    thread.sites = [site("pay", "x", thread.asked_1), site("pay", "pay:1", thread.asked_2)]
    with pytest.raises(Ambiguous) as caught:
        thread.to("call:pay:1")
    assert caught.value.hint == "for the id write 'prod::support-17@call:\"pay:1\"'"
    assert thread.to('call:"pay:1"').id == thread.asked_2


def test_a_call_whose_id_is_its_name_and_number_is_one_call() -> None:
    thread = Support()
    thread.sites = [site("pay", "pay:1", thread.asked_1), site("pay", "pay:2", thread.asked_2)]
    assert thread.to("call:pay:1").id == thread.asked_1
    assert thread.to("call:pay:2").id == thread.asked_2


def test_an_unknown_call_names_its_neighbour_or_what_was_called() -> None:
    thread = Support()
    thread.sites = [site("lookup_order", "c1", thread.asked_1)]
    with pytest.raises(NotFound) as near:
        thread.to("call:lookup_ordr")
    assert near.value.hint == "did you mean prod::support-17@call:lookup_order?"
    with pytest.raises(NotFound) as far:
        thread.to("call:refund")
    assert far.value.hint == "called there: lookup_order"


def test_a_time_is_the_last_checkpoint_not_later() -> None:
    thread = Support()
    assert thread.to("at:11:05").id == thread.asked_2
    assert thread.to("at:2026-11-30T11:04:59.5Z").id == thread.told_1
    assert thread.to("at:2h").id == thread.end
    assert thread.to("at:11:07", branch=thread.reply).id == thread.reply


def test_a_printed_time_pasted_back_names_its_checkpoint() -> None:
    thread = Written()
    id = thread.add(0, None, id=uuid6(START + timedelta(microseconds=654321), 1))
    at = id_time(id)
    assert at is not None
    for printed in (at.isoformat(), at.isoformat(timespec="seconds"), at.isoformat().replace("+00:00", "Z")):
        assert thread.to(f"at:{printed}").id == id


def test_a_time_before_the_thread_names_its_first_checkpoint() -> None:
    thread = Support()
    with pytest.raises(NotFound) as caught:
        thread.to("at:2026-11-29")
    assert str(caught.value.hint).startswith(f"its first is prod::support-17@{thread.input}")


def test_ids_without_a_time_cannot_be_reached_by_one() -> None:
    thread = Written()
    first = thread.add(0, None, id="0-first")
    with pytest.raises(NotFound, match="no times"):
        thread.to("at:2h")
    thread.add(1, first)
    assert thread.to("at:2h").notes == ("1 checkpoints without a time were passed over",)


def test_an_id_is_found_whole_or_by_its_end_on_any_branch() -> None:
    thread = Support()
    assert thread.to(thread.reply).id == thread.reply
    assert thread.to(thread.reply[-8:]).id == thread.reply
    assert thread.to(thread.reply.upper()).id == thread.reply


def test_ids_that_end_alike_are_ambiguous_with_step_time_and_next() -> None:
    thread = Support()
    twin = thread.add(99, thread.end, step=6, next=["agent"], id=uuid6(START + timedelta(minutes=50), 7))
    with pytest.raises(Ambiguous) as caught:
        thread.to(thread.reply[-8:])
    rows = caught.value.candidates
    assert [row["revision"] for row in rows] == [twin, thread.reply]
    assert rows[0] == {"revision": twin, "ns": "", "step": 6, "at": "2026-11-30T11:50:00Z", "next": ["agent"]}
    assert thread.to(str(rows[1]["revision"])).id == thread.reply


def test_an_id_that_is_no_uuid_is_given_whole() -> None:
    thread = Written()
    thread.add(0, None, id="00cafe", step=1)
    assert thread.to("00cafe").id == "00cafe"
    with pytest.raises(NotFound):
        thread.to("cafe")


@pytest.mark.parametrize(
    ("text", "hint"), [("heda", "did you mean prod::support-17@head?"), ("b1", "at least 4 hex digits")]
)
def test_an_id_that_is_not_there_says_what_was_perhaps_meant(text: str, hint: str) -> None:
    with pytest.raises(NotFound) as caught:
        Support().to(text)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("name", ["support-17", "ann lee@work::7", "it's~2"])
@pytest.mark.parametrize(
    "text", ["heda", "head~9", "at:2026-11-29", "call:lookup", "call:lookup_ordr", "call:pay", "call:lookup_order:9"]
)
def test_a_target_in_a_hint_can_be_pasted_into_a_shell(name: str, text: str) -> None:
    thread = Support()
    thread.thread = name
    thread.sites = [
        site("lookup_order", "c1", thread.asked_1),
        site("lookup_order", "c2", thread.asked_2),
        site("pay", "c3", thread.asked_1),
        site("pay", "c3", thread.asked_2),
    ]
    with pytest.raises((NotFound, Ambiguous)) as caught:
        thread.to(text)
    words = shlex.split(str(caught.value.hint).rstrip("?"))
    targets = [word for word in words if word.startswith("prod::")]
    assert len(targets) == 1
    target = parse_target(targets[0], lambda profile, found: (profile, found) == ("prod", name), profiles=["prod"])
    assert target.thread == name
    if "lookup_ordr" not in text and text != "call:lookup":
        assert resolve(target.one, thread, now=NOW)


def test_an_id_of_a_namespace_below_is_found_without_naming_it() -> None:
    thread = Support()
    inner = thread.add(33, None, ns="research:1f")
    found = thread.to(inner[-8:])
    assert (found.ns, found.id, found.notes) == ("research:1f", inner, ("found in namespace research:1f",))
    assert thread.to(inner).ns == "research:1f"
    with pytest.raises(NotFound):
        thread.to(thread.reply, ns="research")


def test_one_id_in_two_namespaces_is_ambiguous_until_one_is_named() -> None:
    thread = Support()
    shared = thread.add(33, None, ns="a:1", step=0)
    thread.add(33, None, ns="b:1", step=0)
    with pytest.raises(Ambiguous) as caught:
        thread.to(shared)
    assert [row["ns"] for row in caught.value.candidates] == ["a:1", "b:1"]
    assert thread.to(shared, ns="b:1").ns == "b:1"


def test_a_namespace_is_named_in_full_by_its_nodes_or_by_its_beginning() -> None:
    stored = ["", "sub", "tools:1f0|model:2a", "tools:1f0", "tools:9cc"]
    assert node_path("tools:1f0|model:2a") == "tools|model"
    assert pick_namespace("tools:9cc", stored, "t") == "tools:9cc"
    assert pick_namespace("tools|model", stored, "t") == "tools:1f0|model:2a"
    assert pick_namespace("sub", stored, "t") == "sub"
    assert pick_namespace("tools:9", stored, "t") == "tools:9cc"
    with pytest.raises(Ambiguous) as caught:
        pick_namespace("tools", stored, "t")
    assert [row["ns"] for row in caught.value.candidates] == ["tools:1f0", "tools:9cc"]


def test_a_namespace_that_is_not_stored_lists_those_that_are() -> None:
    thread = Support()
    with pytest.raises(NotFound) as caught:
        thread.to("head", ns="default")
    assert caught.value.hint == "it has the root namespace only: leave --ns away"


def test_a_thread_without_rows_or_without_root_rows_is_not_found() -> None:
    with pytest.raises(NotFound, match="there is no thread support-17"):
        Written().to("head")
    thread = Written()
    thread.add(1, None, ns="story")
    with pytest.raises(NotFound) as caught:
        thread.to("head")
    assert caught.value.hint == "give --ns, one of: story"


def test_a_branch_is_read_from_its_id_up() -> None:
    thread = Support()
    assert thread.to("head", branch=thread.reply[-8:]).id == thread.reply
    assert thread.to("head~", branch=thread.told_2).id == thread.asked_2
    with pytest.raises(NotFound):
        thread.to("head", branch="0000ffff")


def test_a_cut_lineage_is_said_to_be_cut() -> None:
    thread = Written()
    thread.add(1, "gone", step=7)
    assert thread.to("root").notes == ("its parent gone is not stored: the lineage is cut here",)


def test_a_range_is_after_its_left_up_to_its_right() -> None:
    thread = Support()
    found = thread.between("before:tools:1..before:tools:2")
    assert (found.common, found.left_ids) == (thread.asked_1, ())
    assert found.right_ids == (thread.told_1, thread.asked_2)


def test_three_dots_are_both_sides_since_they_parted() -> None:
    thread = Support()
    found = thread.between(f"{thread.reply}...head")
    assert found.common == thread.asked_2
    assert found.left_ids == (thread.told_2, thread.reply)
    assert found.right_ids == (thread.edit, thread.end)
    assert thread.between(f"{thread.reply}..head").left_ids == ()


def test_a_range_backwards_is_empty_and_one_without_an_ancestor_is_whole() -> None:
    thread = Support()
    assert thread.between("head..root").right_ids == ()
    alone = thread.add(30, None, step=-1)
    found = thread.between(f"{thread.reply}...{alone}")
    assert (found.common, found.right_ids, len(found.left_ids)) == (None, (alone,), 7)


def test_a_range_over_two_namespaces_is_refused() -> None:
    thread = Support()
    inner = thread.add(33, None, ns="research:1f")
    with pytest.raises(NotFound, match="namespace"):
        thread.between(f"root..{inner}")


def test_a_head_that_descends_from_an_edit_names_the_last_head_without_it() -> None:
    thread = Support()
    found = find_edit(thread.rows[""], thread.end)
    assert found is not None
    assert (found.edit, found.last_head) == (thread.edit, thread.reply)
    assert find_edit(thread.rows[""], thread.reply) is None


def test_the_last_head_without_an_edit_is_not_one_of_an_earlier_experiment() -> None:
    thread = Written()
    first = thread.add(1, None, step=0)
    seen = thread.add(2, first, step=1)
    fork = thread.add(3, first, step=1, source="fork")
    thread.add(4, fork, step=2)
    again = thread.add(5, first, step=1, source="fork")
    head = thread.add(6, again, step=2)
    found = find_edit(thread.rows[""], head)
    assert found is not None
    assert (found.edit, found.last_head) == (again, seen)


def test_a_thread_that_began_with_an_update_names_the_head_before_the_last_one() -> None:
    thread = Written()
    first = thread.add(1, None, step=-1, source="update")
    seen = thread.add(2, first, step=0)
    edit = thread.add(3, seen, step=1, source="update")
    head = thread.add(4, edit, step=2)
    found = find_edit(thread.rows[""], head)
    assert found is not None
    assert (found.edit, found.last_head) == (edit, seen)
    alone = find_edit(thread.rows[""][:1], first)
    assert alone is not None
    assert alone.last_head is None


def test_an_edit_is_followed_through_rows_whose_clock_ran_behind() -> None:
    thread = Written()
    first = thread.add(10, None, step=0)
    edit = thread.add(20, first, step=1, source="update")
    late = thread.add(5, edit, step=2)
    head = thread.add(30, late, step=3)
    found = find_edit(thread.rows[""], head)
    assert found is not None
    assert found.last_head == first
