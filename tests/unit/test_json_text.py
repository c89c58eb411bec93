"""One field of a recorded result changes; not one other character does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import Ambiguous, UsageError
from agentctl.experiments.forking.json_text import compact, patch_content
from agentctl.experiments.forking.paths import Path


def patched(content: object, path: Path, value: object) -> tuple[object, object]:
    return patch_content(content, path, value, name="lookup_order")


@pytest.mark.parametrize(
    ("text", "path", "value", "result", "old"),
    [
        ('{"status":"delivered","n":1}', ("status",), "lost", '{"status":"lost","n":1}', "delivered"),
        ('{ "n" : 1.50 ,\n "status": "x"}', ("status",), None, '{ "n" : 1.50 ,\n "status": null}', "x"),
        ('{"a": [1, {"b": 2}]}', ("a", 1, "b"), [3, 4], '{"a": [1, {"b": [3, 4]}]}', 2),
        ('{"a":[1,{"b":2}]}', ("a", -1, "b"), [3, 4], '{"a":[1,{"b":[3,4]}]}', 2),
        ('{"a": 1, "a": 2}', ("a",), 3, '{"a": 1, "a": 3}', 2),
        ('{"s": "\\u00e9", "t": 1}', ("t",), "é", '{"s": "\\u00e9", "t": "\\u00e9"}', 1),
        ('{"s": "é", "t": 1}', ("t",), "ü", '{"s": "é", "t": "ü"}', 1),
        ("[10, 20]", (0,), 11, "[11, 20]", 10),
        ('{"a.b": {"": 1}}', ("a.b", ""), 2, '{"a.b": {"": 2}}', 1),
    ],
)
def test_the_field_changes_and_the_rest_of_the_text_stays(
    text: str, path: Path, value: object, result: str, old: object
) -> None:
    assert patched(text, path, value) == (result, old)


def test_text_that_is_not_json_says_to_give_the_whole_result() -> None:
    with pytest.raises(UsageError, match="is not JSON") as refused:
        patched("Order is delivered.", ("status",), "lost")
    assert refused.value.hint == "give the whole result: --answer lookup_order=JSON, or lookup_order=@FILE"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (("statsu",), "it has: status, items"),
        (("items", 2), "items is a list of 1"),
        (("items", "x"), "items is a list of 1"),
        (("status", "x"), "status is a single value"),
    ],
)
def test_a_field_that_is_not_there_is_named_with_those_that_are(path: Path, hint: str) -> None:
    with pytest.raises(UsageError, match="has no") as refused:
        patched('{"status": "x", "items": [1]}', path, 1)
    assert refused.value.hint == hint


BLOCKS = [
    {"type": "text", "text": '{"status": "delivered"}', "id": "lc_1"},
    {"type": "image", "url": "http://127.0.0.1/a.png"},
]


def test_the_one_block_that_has_the_field_is_changed() -> None:
    content, old = patched(BLOCKS, ("status",), "lost")
    assert old == "delivered"
    assert content == [{**BLOCKS[0], "text": '{"status": "lost"}'}, BLOCKS[1]]


def test_a_block_can_be_chosen_and_its_own_field_set() -> None:
    content, old = patched(BLOCKS, (1, "url"), "x")
    assert (content, old) == ([BLOCKS[0], {"type": "image", "url": "x"}], "http://127.0.0.1/a.png")
    content, _ = patched([BLOCKS[0], BLOCKS[0]], (1, "status"), "lost")
    assert content == [BLOCKS[0], {**BLOCKS[0], "text": '{"status": "lost"}'}]


def test_a_field_in_two_blocks_is_ambiguous() -> None:
    with pytest.raises(Ambiguous, match="2 blocks") as refused:
        patched([BLOCKS[0], BLOCKS[0]], ("status",), "lost")
    assert "lookup_order:[0].status" in (refused.value.hint or "")


def test_a_field_in_no_block_is_refused() -> None:
    with pytest.raises(UsageError, match="no block"):
        patched(BLOCKS, ("price",), 1)


def test_an_answer_is_text_as_it_is_and_anything_else_compact_json() -> None:
    assert compact("lost, é") == "lost, é"
    assert compact({"status": "é", "n": [1, None]}) == '{"status":"é","n":[1,null]}'


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


def places(tree: Any, above: Path = ()) -> list[Path]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(tree, dict):
        inner = list(tree.items())
    elif isinstance(tree, list):
        inner = list(enumerate(tree))
    found = [(*above, key) for key, _ in inner]
    return found + [path for key, value in inner for path in places(value, (*above, key))]


@given(TREES.filter(places), st.data(), TREES, st.sampled_from([None, (",", ":"), (" , ", " : ")]), st.booleans())
def test_any_place_of_any_json_in_any_style_is_replaced_alone(
    tree: Any, data: st.DataObject, value: Any, separators: Any, ascii_only: bool
) -> None:
    path = data.draw(st.sampled_from(places(tree)))
    text = json.dumps(tree, separators=separators, ensure_ascii=ascii_only)
    changed, old = patched(text, path, value)
    want = json.loads(text)
    at = want
    for step in path[:-1]:
        at = at[step]
    assert old == at[path[-1]]
    at[path[-1]] = value
    assert json.loads(str(changed)) == want
