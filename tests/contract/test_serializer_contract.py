"""What LangGraph's serializer writes, read back without it."""

from __future__ import annotations

import dataclasses
import enum
import math
import subprocess
import sys
from collections import deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Overwrite, Send
from pydantic import BaseModel, SecretStr

from agentctl.codec import tree as codes
from agentctl.codec.messages import message_of
from agentctl.codec.values import decode, pack, unpack
from agentctl.errors import DecodeError
from agentctl.records.rows import Stored

SERDE = JsonPlusSerializer()


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    ADA = "ada"


@dataclasses.dataclass
class Claim:
    amount: object
    when: datetime | None = None


class Pair(NamedTuple):
    left: object
    right: object


class Model(BaseModel):
    name: str
    inner: object = None


def written(value: object) -> Stored:
    return Stored(*SERDE.dumps_typed(value))


TEXT = st.text(max_size=20)
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | TEXT
    | st.binary(max_size=20)
    | st.datetimes()
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=2)), ZoneInfo("Europe/Berlin")]))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.decimals()
    | st.ip_addresses()
    | st.sampled_from([Colour.RED, Level.HIGH, Name.ADA, Path("/a/b"), SecretStr("s")])
    | st.frozensets(st.integers(0, 9), max_size=3)
    | st.sets(TEXT, max_size=3)
)
KEYS = TEXT | st.integers(-100, 100) | st.booleans() | st.none() | st.tuples(st.integers(0, 3), TEXT)


def containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    texts = st.dictionaries(TEXT, inner, max_size=3)
    return (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(deque)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.builds(Claim, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Model, name=TEXT, inner=TEXT)
        | st.builds(Send, TEXT, inner)
        | st.builds(Interrupt, value=inner, id=TEXT)
        | st.builds(Command, update=inner, goto=TEXT)
        | st.builds(Overwrite, inner)
        | inner.map(_DeltaSnapshot)
        | st.builds(HumanMessage, content=TEXT, id=TEXT, additional_kwargs=texts.filter(_dumpable))
        | st.builds(ToolMessage, content=TEXT, tool_call_id=TEXT, artifact=st.integers(0, 9))
        | st.builds(AIMessage, content=TEXT, tool_calls=st.just([{"name": "f", "args": {"x": 1}, "id": "c"}]))
    )


def _dumpable(value: object) -> bool:
    return all(isinstance(v, (str, int, float, type(None))) for v in value.values())  # type: ignore[attr-defined]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(ATOMS, containers, max_leaves=10))
def test_what_the_serializer_writes_packs_back_to_the_same_bytes(value: object) -> None:
    stored = written(value)

    tree = unpack(stored)

    assert pack(tree) == stored
    decode(stored)


MESSAGES: list[BaseMessage] = [
    HumanMessage("hi", id="1", name="ada"),
    AIMessage([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}], id="2"),
    AIMessage(
        "x",
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c"}],
        invalid_tool_calls=[{"name": "g", "args": "{", "id": "d", "error": None}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    AIMessageChunk("part", id="3"),
    ToolMessage("r", tool_call_id="c", status="error", artifact={"rows": [1]}),
    SystemMessage("s"),
    FunctionMessage("f", name="g"),
    ChatMessage("c", role="poet"),
    RemoveMessage("1"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_every_kind_of_message_is_recognised(message: BaseMessage) -> None:
    stored = written(message)

    inert = decode(stored)
    recognised = message_of(inert)

    assert pack(unpack(stored)) == stored
    assert recognised is not None
    assert recognised.text == str(message.text)
    assert recognised.id == message.id
    assert isinstance(inert, dict)
    assert inert["$type"] == f"{type(message).__module__}.{type(message).__name__}"
    calls = getattr(message, "tool_calls", []) + getattr(message, "invalid_tool_calls", [])
    assert [(c.name, c.id, c.args) for c in recognised.tool_calls] == [(c["name"], c["id"], c["args"]) for c in calls]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Colour.RED, {"$type": f"{__name__}.Colour", "$value": "red"}),
        (datetime(2026, 11, 30, 14, 1, tzinfo=UTC), "2026-11-30T14:01:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(1, 2, 3), "01:02:03"),
        (UUID("00000000-0000-0000-0000-000000000001"), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        (Path("/a/b"), "/a/b"),
        (ip_address("::1"), "::1"),
        ({3}, [3]),
        (timedelta(days=1, seconds=2), {"$type": "datetime.timedelta", "days": 1, "seconds": 2, "microseconds": 0}),
        (Send("n", {"x": 1}), {"$type": "langgraph.types.Send", "node": "n", "arg": {"x": 1}}),
        (Claim(5), {"$type": f"{__name__}.Claim", "amount": 5, "when": None}),
        (Pair(1, 2), {"$type": f"{__name__}.Pair", "left": 1, "right": 2}),
        (Model(name="x"), {"$type": f"{__name__}.Model", "name": "x", "inner": None}),
        (ValueError("x"), "ValueError('x')"),
        (SecretStr("s"), "**********"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_typed_values_are_readable(value: object, shown: object) -> None:
    inert = decode(written(value))

    if isinstance(inert, dict) and not isinstance(shown, dict):
        inert = inert["$value"]
    assert inert == shown


def test_documents_items_and_commands_show_their_fields() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    item = Item(value={"a": 1}, key="k", namespace=("n",), created_at=now, updated_at=now)
    for value, field in [(Document("text"), "page_content"), (item, "key"), (Command(goto="x"), "goto")]:
        inert = decode(written(value))
        assert isinstance(inert, dict)
        assert field in inert


def test_nan_stays_nan_and_int_keys_stay_ints() -> None:
    inert = decode(written({"x": [float("nan"), math.inf, {1: "a"}]}))

    assert isinstance(inert, dict)
    nan, infinity, keyed = inert["x"]
    assert math.isnan(nan)
    assert infinity == math.inf
    assert keyed == {"$map": [[1, "a"]]}


def test_a_numpy_array_keeps_its_bytes() -> None:
    numpy = pytest.importorskip("numpy")
    for array in (numpy.arange(6).reshape(2, 3), numpy.asfortranarray(numpy.ones((2, 2)))):
        stored = written(array)
        inert = decode(stored)
        assert pack(unpack(stored)) == stored
        assert isinstance(inert, dict)
        assert inert["shape"] == list(array.shape)


def test_encrypted_values_open_with_the_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Crypto")
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"k" * 16)
    stored = Stored(*serde.dumps_typed({"a": [1]}))

    assert stored.type == "msgpack+aes"
    assert decode(stored, key=b"k" * 16) == {"a": [1]}
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "k" * 16)
    assert decode(stored) == {"a": [1]}
    with pytest.raises(DecodeError, match="not the key"):
        decode(stored, key=b"z" * 16)
    with pytest.raises(DecodeError, match="not the key"):
        decode(Stored(stored.type, stored.data[:-1] + b"\x00\x00"), key=b"k" * 16)


def test_the_extension_codes_are_the_ones_read_here() -> None:
    assert {name: value for name, value in vars(jsonplus).items() if name.startswith("EXT_")} == {
        "EXT_CONSTRUCTOR_SINGLE_ARG": codes.CONSTRUCTOR_SINGLE_ARG,
        "EXT_CONSTRUCTOR_POS_ARGS": codes.CONSTRUCTOR_POSITIONAL,
        "EXT_CONSTRUCTOR_KW_ARGS": codes.CONSTRUCTOR_KEYWORDS,
        "EXT_METHOD_SINGLE_ARG": codes.METHOD_SINGLE_ARG,
        "EXT_PYDANTIC_V1": codes.PYDANTIC_V1,
        "EXT_PYDANTIC_V2": codes.PYDANTIC_V2,
        "EXT_NUMPY_ARRAY": codes.NUMPY_ARRAY,
        "EXT_DELTA_SNAPSHOT": codes.DELTA_SNAPSHOT,
    }


def test_decoding_imports_neither_langgraph_nor_langchain() -> None:
    program = (
        "import sys\n"
        "from agentctl.codec import delta, messages, packed, values\n"
        "from agentctl.records.rows import Stored\n"
        f"print(values.decode(Stored('msgpack', {written(MESSAGES).data!r}))[0]['content'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('langgraph', 'langchain_core', 'pydantic')])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["hi", "[]"]
