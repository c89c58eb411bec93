from __future__ import annotations

import pytest

from agentctl.codec.messages import coerced_messages, is_message_list, message_of, messages_in, text_of

AI = {
    "$type": "langchain_core.messages.ai.AIMessage",
    "type": "ai",
    "id": "m1",
    "content": "",
    "tool_calls": [{"name": "lookup", "args": {"id": "A1"}, "id": "c1", "type": "tool_call"}],
    "invalid_tool_calls": [{"name": "pay", "args": "{oops", "id": "c2", "error": "x", "type": "invalid_tool_call"}],
}


def test_a_typed_ai_message_has_its_calls_and_the_invalid_ones_count() -> None:
    message = message_of(AI)

    assert message is not None
    assert (message.role, message.id, message.raw) == ("ai", "m1", AI)
    assert [(c.name, c.id, c.args, c.position, c.valid) for c in message.tool_calls] == [
        ("lookup", "c1", {"id": "A1"}, 0, True),
        ("pay", "c2", "{oops", 1, False),
    ]


def test_an_openai_dict_has_its_calls_parsed() -> None:
    message = message_of(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{"}},
            ],
        }
    )

    assert message is not None
    assert message.text == ""
    assert [(c.name, c.args, c.valid) for c in message.tool_calls] == [("f", {"x": 1}, True), ("g", "{", False)]


def test_an_empty_call_id_is_kept() -> None:
    message = message_of({"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": ""}]})

    assert message is not None
    assert message.tool_calls[0].id == ""


def test_an_old_constructor_message_is_known_by_its_class() -> None:
    message = message_of({"$type": "langchain.schema.messages.ToolMessage", "content": "x", "tool_call_id": "c1"})

    assert message is not None
    assert (message.role, message.tool_call_id) == ("tool", "c1")


@pytest.mark.parametrize(
    ("kind", "role"),
    [("human", "human"), ("AIMessageChunk", "ai"), ("system", "system"), ("function", "function"), ("tool", "tool")],
)
def test_roles_follow_the_type(kind: str, role: str) -> None:
    message = message_of({"type": kind, "content": "x"})

    assert message is not None
    assert message.role == role


def test_a_message_subclass_of_the_app_is_a_message() -> None:
    assert message_of({"$type": "app.state.MyMessage", "type": "human", "content": "x"}) is not None


def test_a_chat_message_has_the_role_other() -> None:
    message = message_of(
        {"$type": "langchain_core.messages.chat.ChatMessage", "type": "chat", "role": "poet", "content": "x"}
    )

    assert message is not None
    assert message.role == "other"


def test_a_removal_is_a_message_without_text() -> None:
    message = message_of({"$type": "langchain_core.messages.modifier.RemoveMessage", "type": "remove", "id": "m1"})

    assert message is not None
    assert (message.role, message.id, message.text) == ("remove", "m1", "")


@pytest.mark.parametrize(
    "value",
    [
        {"type": "text", "text": "x"},
        {"role": "admin", "content": "x"},
        {"content": "x"},
        {"type": "human"},
        {"$type": "app.Note", "content": "x"},
        "text",
        None,
    ],
)
def test_other_values_are_not_messages(value: object) -> None:
    assert message_of(value) is None


def test_text_joins_the_text_blocks_only() -> None:
    content = [
        "a",
        {"type": "text", "text": "b"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "c"},
    ]

    assert text_of(content) == "abc"
    assert text_of({"a": 1}) == '{"a":1}'


def test_a_list_of_messages_is_told_from_other_lists() -> None:
    assert is_message_list([AI])
    assert not is_message_list([])
    assert not is_message_list([AI, "x"])
    assert [m.id for m in messages_in([AI, "x", {"role": "user", "content": "y"}])] == ["m1", None]


def test_a_write_may_use_the_short_forms() -> None:
    short = coerced_messages([["user", "hi"], "you", {"role": "assistant", "content": "yes"}])

    assert [(m.role, m.text) for m in short] == [("human", "hi"), ("human", "you"), ("ai", "yes")]
    assert [(m.role, m.text) for m in coerced_messages(["system", "be kind"])] == [("system", "be kind")]
    assert [m.text for m in coerced_messages("hello")] == ["hello"]
