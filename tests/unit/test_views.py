"""A workflow's view: its file, what it reads out of values, how two readings differ, and how values are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentctl.config.origins import Origin
from agentctl.config.views import read_view
from agentctl.errors import ConfigError
from agentctl.experiments.comparing.diff import Tip, diff_tips
from agentctl.experiments.comparing.view_functions import OPTIONS
from agentctl.experiments.comparing.views import compare, in_words, plain_path, read_view_of
from agentctl.records.copies import Place
from agentctl.records.views import FORMATS, FUNCTIONS, Reading, Shown, View, ViewChange
from agentctl.render.diff import body, human
from agentctl.render.views import change_lines, change_plain, label_width, reading_lines, value_text

NAMED = Origin("file", "agentctl.yaml:7")
DOCS = Path(__file__).parents[2] / "docs" / "views.md"

BOOKING = """
fields:
  decision: decision.outcome
  reply: reply(messages)
  total: {path: quote.total, format: money, currency: quote.currency}
lists:
  lines:
    items: quote.lines
    key: kind
    title: description
    fields:
      price: {path: price_cents, format: cents, currency: EUR}
  approvals:
    items: values(approvals || `{}`)
    fields: {by: by}
"""


def view_in(folder: Path, text: str) -> View:
    (folder / "view.yaml").write_text(text, "utf-8")
    return read_view(folder / "view.yaml", "bookings", NAMED)


@pytest.fixture
def booking(tmp_path: Path) -> View:
    return view_in(tmp_path, BOOKING)


def line(kind: str, price: int, description: str = "") -> dict[str, object]:
    return {"kind": kind, "price_cents": price, "description": description}


def values(*lines: Mapping[str, object], total: str = "100.00", **state: Any) -> dict[str, object]:
    return {"quote": {"total": total, "currency": "EUR", "lines": list(lines)}, **state}


def differing(view: View, left: Mapping[str, object], right: Mapping[str, object]) -> list[ViewChange]:
    return list(compare(read_view_of(view, left), read_view_of(view, right)))


def told(changes: list[ViewChange], width: int = 80) -> list[str]:
    return [text.plain.rstrip() for text in change_lines(changes, width, label_width(changes, 11))]


# --- the file


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("feilds: {a: b}", 1, "unknown key feilds", "did you mean fields?"),
        ("fields:\n  a: {path: b, fromat: money}", 2, "unknown key fields.a.fromat", "did you mean format?"),
        ("fields:\n  a: {path: b, format: euro}", 2, "fields.a.format must be text or money", None),
        ("fields:\n  a: [b]", 2, "fields.a must be a text", None),
        ("fields:\n  a: 'b['", 2, "fields.a is no JMESPath", None),
        ("fields:\n  a: {format: money}", None, "fields.a.path is missing", "such as order.status"),
        ("fields:\n  a: repyl(messages)", 2, "fields.a calls repyl(), which is no function", "did you mean reply?"),
        ("fields:\n  a: b[?length(entires(c))]", 2, "calls entires()", "did you mean entries?"),
        ("fields:\n  a: {path: b, currency: EUR}", 2, "fields.a.currency is for format money or cents, not text", None),
        ("fields:\n  a: {path: b, format: money, currency: 'c['}", 2, "fields.a.currency is no JMESPath", None),
        ("fields: {a: b}\nlists:\n  a: {items: b, key: c}", 3, "lists.a is a field already", None),
        ("lists:\n  a: {key: id}", None, "lists.a.items is missing", None),
        ("lists:\n  a:\n    items: b\n    key: 3", 4, "lists.a.key must be a text", None),
        ("lists:\n  a: {items: b, order: c}", 2, "unknown key lists.a.order", None),
        ("fields: {a: b}\nfields: {c: d}", 2, "fields was given in line 1 already", None),
        ("- a", None, "must be a mapping", None),
        ("{}", None, "a view has fields or lists", "such as"),
    ],
)
def test_a_wrong_view_names_the_file_the_line_and_the_key(
    tmp_path: Path, text: str, line: int | None, message: str, hint: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        view_in(tmp_path, text)
    assert caught.value.message.startswith(f"{tmp_path / 'view.yaml'}" + (f":{line}:" if line else ""))
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    if hint:
        assert hint in (caught.value.hint or "")


def test_a_view_that_is_not_there_names_the_workflow_and_where_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_view(tmp_path / "view.yaml", "bookings", NAMED)
    assert caught.value.message.startswith("agentctl.yaml:7: workflow bookings names a view that is not there")


def test_the_view_in_the_documentation_is_read_and_every_key_and_function_is_explained(tmp_path: Path) -> None:
    text = DOCS.read_text("utf-8")
    _, example = (part.removeprefix("yaml\n") for part in text.split("```") if part.startswith("yaml\n"))
    assert [field.name for field in view_in(tmp_path, example).fields] == ["decision", "reply", "total", "hold until"]
    keys = [f"| `{key}` |" for key in ("path", "format", "currency", "items", "key", "title", "fields")]
    functions = [f"| `{name}(" for name in FUNCTIONS]
    assert [each for each in (*keys, *functions, *(f"`{name}`" for name in FORMATS)) if each not in text] == []


def test_every_function_that_a_view_may_call_is_there() -> None:
    assert set(FUNCTIONS) == {
        name.removeprefix("_func_") for name in vars(type(OPTIONS.custom_functions)) if name.startswith("_func_")
    }


# --- reading


def test_a_field_that_is_missing_shows_nothing_and_is_no_problem(booking: View) -> None:
    reading = read_view_of(booking, {})
    assert [field.value for field in reading.fields] == [None, None, None]
    assert [each.items for each in reading.lists] == [(), ()]
    assert reading.problems == ()
    assert list(reading_lines(reading, 80, full=False)) == []


def test_an_expression_that_does_not_fit_is_told_once_and_hides_nothing_else(tmp_path: Path) -> None:
    view = view_in(tmp_path, "fields: {n: length(n), ok: ok}\nlists: {x: {items: ok}}")
    reading = read_view_of(view, {"n": 3, "ok": "fine"})
    assert reading.fields[1].value == "fine"
    assert len(reading.problems) == 2
    assert reading.problems[0].startswith("view of bookings: n: In function length(), invalid type")
    assert reading.problems[1] == "view of bookings: x: ok is no list"


def test_calls_are_read_with_their_parsed_results_and_open_ones_without(tmp_path: Path) -> None:
    calls = [{"name": "pay", "id": f"c{i}", "args": {"amount": i}, "type": "tool_call"} for i in (1, 2, 3)]
    messages = [
        {"type": "ai", "content": "", "id": "a", "tool_calls": calls},
        {"type": "tool", "content": '{"status": "paid"}', "tool_call_id": "c1", "status": "success"},
        {"type": "tool", "content": "no such card", "tool_call_id": "c2", "status": "error"},
    ]
    fields = "{status: result.status || status, said: result}"
    view = view_in(tmp_path, f"lists: {{paid: {{items: tool_calls(messages), key: id, fields: {fields}}}}}")
    (paid,) = read_view_of(view, {"messages": messages}).lists
    assert [(item.key, *(field.value for field in item.fields)) for item in paid.items] == [
        ("c1", "paid", {"status": "paid"}),
        ("c2", "error", "no such card"),
        ("c3", None, None),
    ]


def test_typed_values_are_shown_without_their_types(tmp_path: Path) -> None:
    view = view_in(tmp_path, "fields: {score: r.score, whole: r, note: from_json(r.note).a}\nlists: {f: {items: r.f}}")
    report = {
        "$type": "app.Report",
        "score": {"$type": "decimal.Decimal", "$value": "0.5"},
        "f": [None],
        "note": '{"a": 1}',
    }
    reading = read_view_of(view, {"r": report})
    assert [field.value for field in reading.fields] == ["0.5", {"score": "0.5", "f": [None], "note": '{"a": 1}'}, 1]
    assert reading.lists[0].items == ()


@pytest.mark.parametrize(
    ("expression", "of_field", "of_list"),
    [
        ("quote.total", "quote.total", "quote.total"),
        ("a.b.c", "a.b.c", "a.b.c"),
        ("quote.lines[]", "", "quote.lines"),
        ("quote.lines[].kind", "", "quote.lines"),
        ("quote.lines[?price > `3`]", "", ""),
        ("entries(files)", "", "files"),
        ("reply(messages)", "", ""),
        ("quote.lines[0].kind", "", ""),
        ("a.b || c", "a.b", "a.b"),
        ("(a || c).b", "a.b", "a.b"),
        ("reply(a) || b", "", ""),
        ("[flight, hotel]", "", ""),
    ],
)
def test_where_an_expression_stands_in_the_state_is_known_where_it_is_one_path(
    expression: str, of_field: str, of_list: str
) -> None:
    assert (plain_path(expression), plain_path(expression, of_list=True)) == (of_field, of_list)


# --- comparing


def test_equal_values_do_not_differ_whatever_the_order_of_a_list(booking: View) -> None:
    left, right = values(line("hotel", 1), line("flight", 2)), values(line("flight", 2), line("hotel", 1))
    assert differing(booking, left, right) == []
    assert differing(booking, {}, {}) == []


def test_items_are_added_gone_and_changed_by_key(booking: View) -> None:
    left = values(line("flight", 20000, "LIS to OSL"), line("car", 5000))
    right = values(line("hotel", 9000, "2 nights"), line("flight", 25000, "LIS to OSL"), total="340.00")
    changes = differing(booking, left, right)
    assert [(each.name, each.key, each.side) for each in changes] == [
        ("total", None, "both"),
        ("lines", "flight", "both"),
        ("lines", "car", "left"),
        ("lines", "hotel", "right"),
    ]
    assert told(changes) == [
        "total      ~ 100.00 EUR -> 340.00 EUR",
        "lines      ~ flight price: 200.00 EUR -> 250.00 EUR",
        "           - car: price 50.00 EUR",
        "           + hotel 2 nights: price 90.00 EUR",
    ]


def test_items_of_one_key_are_paired_in_their_order(booking: View) -> None:
    left, right = values(line("flight", 1), line("flight", 2)), values(line("flight", 1))
    (gone,) = differing(booking, left, right)
    assert (gone.side, gone.fields[0].left) == ("left", Shown("price", 2, "cents", "EUR", "price_cents"))


def test_items_without_a_key_are_compared_by_their_place(booking: View) -> None:
    left = values(approvals={"c1": {"by": "ann"}, "c2": {"by": "bob"}})
    right = values(approvals={"c7": {"by": "ann"}, "c8": {"by": "eve"}})
    assert told(differing(booking, left, right)) == ["approvals  ~ 2 by: bob -> eve"]


def test_the_currency_of_an_item_may_stand_beside_its_list(tmp_path: Path) -> None:
    view = view_in(
        tmp_path, "lists: {lines: {items: q.lines, fields: {value: {path: n, format: money, currency: q.currency}}}}"
    )
    lines = [{"n": 3}, {"n": 4, "q": {"currency": "USD"}}]
    (shown,) = read_view_of(view, {"q": {"currency": "EUR", "lines": lines}}).lists
    assert [value_text(item.fields[0]) for item in shown.items] == ["3.00 EUR", "4.00 USD"]


def test_what_is_nothing_on_both_sides_does_not_differ_and_on_one_side_has_no_line(booking: View) -> None:
    assert differing(booking, {"decision": {"outcome": ""}}, {"decision": {"outcome": None}}) == []
    changes = differing(booking, {"decision": {"outcome": ""}}, {"decision": {"outcome": "yes"}})
    assert told(changes) == ["decision   + yes"]
    assert [row for each in changes for row in change_plain(each)] == [("view", "~", "decision", None, "yes")]


def test_a_value_that_an_item_is_all_about_has_no_label(tmp_path: Path) -> None:
    view = view_in(tmp_path, "lists: {read: {items: entries(f), key: key, fields: {value: value}}}")
    left, right = {"f": {"name": "Ann", "born": "1990"}}, {"f": {"name": "Bob", "id": "4"}}
    assert told(differing(view, left, right)) == [
        "read       ~ name: Ann -> Bob",
        "           - born: 1990",
        "           + id: 4",
    ]


def test_another_currency_is_a_difference(booking: View) -> None:
    left, right = values(), values()
    right["quote"] = {**dict(right["quote"]), "currency": "USD"}  # type: ignore[call-overload]
    assert told(differing(booking, left, right)) == ["total      ~ 100.00 EUR -> 100.00 USD"]


def test_long_sides_get_a_line_each_and_long_items_a_second_line(tmp_path: Path) -> None:
    view = view_in(tmp_path, "lists: {findings: {items: f, key: id, title: says, fields: {says: says, confidence: c}}}")
    one, other = "The agency reported a rise of 3 per cent.", "The agency reported a fall of 3 per cent."
    left = {"f": [{"id": "f1", "says": one, "c": "high"}]}
    right = {"f": [{"id": "f1", "says": other, "c": "low"}, {"id": "f2", "says": one, "c": "high"}]}
    assert told(differing(view, left, right)) == [
        "findings   - f1 says: The agency reported a rise of 3 per cent.",
        "           + f1 says: The agency reported a fall of 3 per cent.",
        "           ~ f1 confidence: high -> low",
        "           + f2 The agency reported a rise of 3 per cent.",
        "           +   says The agency reported a rise of 3 per cent., confidence high",
    ]
    assert all(len(text) <= 40 for text in told(differing(view, left, right), width=40))


def test_a_pipe_gets_a_row_for_each_value_with_its_label(booking: View) -> None:
    left, right = values(line("flight", 1)), values(line("flight", 2), line("hotel", 3))
    rows = [row for each in differing(booking, left, right) for row in change_plain(each)]
    assert rows == [
        ("view", "~", "lines flight price", "0.01 EUR", "0.02 EUR"),
        ("view", "+", "lines hotel price", None, "0.03 EUR"),
    ]


def test_state_that_the_view_tells_is_not_told_twice_and_all_the_rest_is(booking: View) -> None:
    left = values(line("flight", 1, "window"), decision={"outcome": "yes", "by": "ann"})
    right = values(line("flight", 2, "aisle"), decision={"outcome": "no", "by": "bob"}, seats=1)
    tips = [Tip(Place("s", "t", id), ["1", id], state, {}) for id, state in (("2", left), ("3", right))]
    found = in_words(diff_tips(*tips), *tips, booking)
    assert diff_tips(*tips) == in_words(diff_tips(*tips), *tips, None)
    assert [str(part).rstrip() for part in human(found, 80)][1:] == [
        "decision   ~ yes -> no",
        "lines      ~ flight price: 0.01 EUR -> 0.02 EUR",
        "state      - decision.by: ann",
        "           + decision.by: bob",
        "           + seats: 1",
        "           ~ quote.lines: 2 changes, by item above",
    ]
    assert len(body(found)["state"]) == 5  # type: ignore[arg-type]


# --- showing


@pytest.mark.parametrize(
    ("value", "format", "currency", "text"),
    [
        ("120", "money", "EUR", "120.00 EUR"),
        (1234567.5, "money", "EUR", "1,234,567.50 EUR"),
        ("0.125", "money", "", "0.125"),
        (-5, "money", "USD", "-5.00 USD"),
        (12900, "cents", "EUR", "129.00 EUR"),
        ("about 12", "money", "EUR", "about 12"),
        (True, "money", "EUR", "yes"),
        (float("nan"), "money", "EUR", '{"$float": "nan"}'),
        (0.375, "percent", "", "37.5 %"),
        (1, "percent", "", "100 %"),
        ("0.07", "percent", "", "7 %"),
        ("2026-11-30T17:04:05.123+01:00", "time", "", "2026-11-30 16:04:05 UTC"),
        ("2026-11-30T17:04:05", "time", "", "2026-11-30 17:04:05"),
        (0, "time", "", "1970-01-01 00:00:00 UTC"),
        ("2026-11-30", "time", "", "2026-11-30"),
        (1e30, "time", "", "1e+30"),
        (None, "text", "", "-"),
        ("", "text", "", "-"),
        (["a", 1, False], "text", "", "a, 1, no"),
        ([], "text", "", "none"),
        ({"a": [1]}, "text", "", '{"a": [1]}'),
    ],
)
def test_a_value_is_written_by_its_format_and_as_it_is_where_it_does_not_fit(
    value: object, format: Any, currency: str, text: str
) -> None:
    assert value_text(Shown("x", value, format, currency)) == text


def test_a_reading_is_shown_a_line_a_value_and_no_wider_than_the_terminal(booking: View) -> None:
    many = values(*(line(f"leg-{i}", i, "a seat by the window " * 5) for i in range(14)), decision={"outcome": "ok"})
    reading: Reading = read_view_of(booking, many)
    lines = [text.plain for text in reading_lines(reading, 60, full=False)]
    assert lines[:3] == ["bookings", "  decision  ok", "  total     100.00 EUR"]
    assert lines[3].startswith("  lines     leg-0 a seat by the window")
    assert lines[-1].strip() == "4 more not shown (all: --full)"
    assert max(map(len, lines)) <= 60
    assert len(list(reading_lines(reading, 60, full=True))) == 3 + 14


def test_control_characters_of_stored_texts_reach_no_terminal(booking: View) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jhi"
    left, right = values(line(evil, 1, evil), decision={"outcome": "a"}), values(decision={"outcome": evil})
    shown = [
        *told(differing(booking, left, right)),
        *(t.plain for t in reading_lines(read_view_of(booking, left), 80, full=True)),
    ]
    assert "\x1b" not in "".join(shown)
    assert "\x07" not in "".join(shown)
