"""One line of what happened."""

from __future__ import annotations

import pytest

from agentctl.codec.tree import Typed
from agentctl.codec.values import pack
from agentctl.records.rows import Stored, WriteRow
from agentctl.records.threads import Interrupt, Task
from agentctl.stores.reading import summary
from agentctl.stores.reading.taskrows import task_rows


def message(kind: str, content: str, **fields: object) -> dict[str, object]:
    return {"$type": f"langchain_core.messages.{kind.lower()}.{kind}Message", "content": content, **fields}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", '"text"'),
        ("two\nlines", '"two lines"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ([1, 2], "[1, 2]"),
        (list(range(100)), "[100 items]"),
        ({"a": 1}, '{"a": 1}'),
        ({"/notes/a.md": "x" * 90, "/notes/b.md": ""}, "{/notes/a.md, /notes/b.md}"),
        ({str(i): i for i in range(40)}, "{40 fields}"),
        ({"$unread": 20000}, "(20,000 bytes)"),
        ({"$type": "decimal.Decimal", "$value": "12.50"}, "12.50"),
        ({"$type": "app.models.Report", "title": "x"}, "Report"),
    ],
)
def test_small_values_are_shown_whole_and_others_by_their_keys_or_size(value: object, text: str) -> None:
    assert summary.short(value) == text


def test_long_text_is_cut() -> None:
    assert summary.short("x" * 500) == '"' + "x" * 79 + '…"'


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"order_id": "A1", "status": "lost"}', 'lookup -> status "lost"'),
        ('{"order_id": "A1", "days": 30}', "lookup -> days 30"),
        ('{"order_id": "A1", "title": "A book"}', 'lookup -> title "A book"'),
        ('{"error": "no such order", "status": 404}', 'lookup -> error "no such order"'),
        ("plain text", 'lookup -> "plain text"'),
        ("[1, 2, 3]", "lookup -> [1, 2, 3]"),
        ('{"items": []}', 'lookup -> {"items": []}'),
    ],
)
def test_a_tool_result_is_told_by_its_most_telling_field(content: str, text: str) -> None:
    after = [message("Tool", content, name="lookup", tool_call_id="c1", id="m1")]
    assert summary.of_change("messages", [], after) == text


def test_a_change_of_messages_names_new_changed_and_removed_ones() -> None:
    before = [message("Human", "hello", id="1"), message("AI", "hi", id="2"), message("AI", "gone", id="3")]
    after = [message("Human", "hello", id="1"), message("AI", "hi there", id="2"), message("Human", "more", id="4")]
    assert summary.of_change("messages", before, after) == 'reply "hi there", "more", removed "gone"'


def test_a_change_that_changes_nothing_says_so() -> None:
    same = [message("Human", "hello", id="1")]
    assert summary.of_change("messages", same, same) == "messages unchanged"


def test_another_channel_is_shown_with_its_new_value() -> None:
    assert summary.of_change("n", 1, 2) == "n = 2"


def test_open_tasks_are_errors_and_questions_each_once() -> None:
    asked = Interrupt(
        "i", {"action_requests": [{"name": "pay", "args": {}}, {"name": "mail", "args": {}}]}, "t", "hitl"
    )
    tasks = [
        Task("1", "bureau", "", finished=False, error="ValueError('no')"),
        Task("2", "bureau", "", finished=False, error="ValueError('no')"),
        Task("3", "retry", "", finished=True, error="ValueError('once')"),
        Task("4", "hitl", "", finished=False, interrupts=(asked,)),
    ]
    assert summary.of_tasks(tasks) == (
        "bureau failed: ValueError('no'), retry failed: ValueError('once'), then finished, asks: approve pay, mail"
    )


def test_a_line_is_bounded_however_much_was_written() -> None:
    tasks = [Task(str(i), f"node{i}", "", finished=False, error="x" * 500) for i in range(100)]
    assert len(summary.of_tasks(tasks)) == 400


def window(texts: list[str]) -> WriteRow:
    messages = [
        Typed(5, "langchain_core.messages.human", "HumanMessage", {"content": t, "type": "human"}) for t in texts
    ]
    value = pack(messages)
    return WriteRow("", "1", "task", "~__pregel_pull, agent", 0, "messages", value, len(value.data))


def test_of_a_long_list_of_messages_the_newest_is_told() -> None:
    rows = [task_rows("task", "~__pregel_pull, agent", [window([str(i) for i in range(40)])])]
    assert summary.of_writes(rows) == '(39 messages before), "39"'


def test_a_value_that_is_nested_too_deeply_is_said_to_be() -> None:
    deep = Stored("msgpack", b"\x91" * 900 + b"\xc0")
    write = WriteRow("", "1", "task", "~__pregel_pull, agent", 0, "notes", deep, len(deep.data))
    rows = [task_rows("task", "~__pregel_pull, agent", [write])]
    assert summary.of_writes(rows) == "notes: the value is nested too deeply to be shown"


def test_a_list_of_a_few_messages_is_told_whole() -> None:
    rows = [task_rows("task", "~__pregel_pull, agent", [window(["a", "b", "c", "d"])])]
    assert summary.of_writes(rows) == '"a", "b", "c", "d"'


@pytest.mark.parametrize("text", ["a  b", " a", "a\nb", "a\u00a0b", "a" + " " * 400 + "b", "a b " * 200])
def test_white_space_is_a_single_blank_before_text_is_cut(text: str) -> None:
    joined = " ".join(text.split())
    assert summary.short(text) == f'"{joined if len(joined) <= 80 else joined[:79] + "…"}"'
