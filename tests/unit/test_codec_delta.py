from __future__ import annotations

from agentctl.codec.delta import NO_SEED, rebuild


def human(mid: str | None, text: str) -> dict[str, object]:
    return {"$type": "langchain_core.messages.human.HumanMessage", "type": "human", "id": mid, "content": text}


def remove(mid: str) -> dict[str, object]:
    return {"$type": "langchain_core.messages.modifier.RemoveMessage", "type": "remove", "id": mid, "content": ""}


def test_messages_are_appended_replaced_and_removed_by_id() -> None:
    rebuilt = rebuild(
        [human("a", "1"), human("b", "2")], [[human("a", "one")], human("c", "3"), [remove("b"), human("b", "again")]]
    )

    assert rebuilt.known
    assert rebuilt.value == [human("a", "one"), human("c", "3"), human("b", "again")]


def test_remove_all_drops_what_came_before_it() -> None:
    rebuilt = rebuild([human("a", "1")], [[human("b", "2"), remove("__remove_all__"), human("c", "3")]])

    assert rebuilt.value == [human("c", "3")]


def test_a_removal_of_an_unknown_id_changes_nothing() -> None:
    assert rebuild([human("a", "1")], [remove("x")]).value == [human("a", "1")]


def test_messages_without_an_id_are_appended() -> None:
    assert rebuild(NO_SEED, [[human(None, "1")], [human(None, "1")]]).value == [human(None, "1")] * 2


def test_a_snapshot_is_the_seed() -> None:
    seed = {"$type": "langgraph.checkpoint.serde.types._DeltaSnapshot", "$value": [human("a", "1")]}

    assert rebuild(seed, [human("b", "2")]).value == [human("a", "1"), human("b", "2")]


def test_the_last_overwrite_replaces_the_value() -> None:
    for overwrite in (
        {"$type": "langgraph.types.Overwrite", "value": [human("x", "new")]},
        {"__overwrite__": [human("x", "new")]},
        {"type": "__overwrite__", "value": [human("x", "new")]},
    ):
        assert rebuild([human("a", "1")], [human("b", "2"), overwrite, human("c", "3")]).value == [
            human("x", "new"),
            human("c", "3"),
        ]


def test_an_overwrite_alone_needs_no_reducer() -> None:
    rebuilt = rebuild(5, [1, {"__overwrite__": 7}])

    assert (rebuilt.value, rebuilt.known) == (7, True)


def test_files_merge_and_none_deletes() -> None:
    one, two = {"content": "1", "encoding": "utf-8"}, {"content": ["2"], "modified_at": "t"}
    rebuilt = rebuild({"/a": one, "/b": one}, [{"/b": None, "/c": two}, {"/a": two}])

    assert rebuilt.known
    assert rebuilt.value == {"/a": two, "/c": two}


def test_an_unknown_reducer_shows_its_writes() -> None:
    assert rebuild(NO_SEED, [[1], [2]]).value == {"$writes": [[1], [2]]}
    rebuilt = rebuild({"n": 1}, [{"n": 2}])
    assert rebuilt.value == {"$seed": {"n": 1}, "$writes": [{"n": 2}]}
    assert not rebuilt.known


def test_the_seed_and_the_writes_stay_as_they_were() -> None:
    seed, writes = [human("a", "1")], [[human("a", "2")]]

    rebuild(seed, writes)

    assert (seed, writes) == ([human("a", "1")], [[human("a", "2")]])


def test_text_and_pairs_beside_whole_messages_are_messages() -> None:
    rebuilt = rebuild(NO_SEED, [[["user", "hello"]], [human("b", "2")], "and more"])

    assert rebuilt.known
    assert rebuilt.value == [
        {"role": "user", "content": "hello"},
        human("b", "2"),
        {"type": "human", "content": "and more"},
    ]


def test_text_alone_is_a_message_in_a_channel_of_that_name_only() -> None:
    assert rebuild(NO_SEED, ["hello"], channel="messages").value == [{"type": "human", "content": "hello"}]
    assert not rebuild(NO_SEED, [["first line"], ["second line"]], channel="log").known
