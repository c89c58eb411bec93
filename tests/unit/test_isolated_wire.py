"""What a process apart sends: read by the type that is awaited, and nothing of it is run."""

from __future__ import annotations

import json
import math
import pickle
import socket
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from agentctl.errors import (
    Ambiguous,
    Blocked,
    Escaped,
    GraphFailed,
    IsolationFailed,
    NotFound,
    Refused,
    RevisionSyntaxError,
    StoreError,
    ThreadExists,
    UsageError,
)
from agentctl.experiments.isolated import messages
from agentctl.experiments.isolated.channel import Channel
from agentctl.experiments.isolated.messages import as_error, as_failed, read_message, write_message
from agentctl.experiments.isolated.wire import Forged, decoded, parse, to_text
from agentctl.records.absent import ABSENT
from agentctl.records.copies import CopyReport, Place
from agentctl.records.masking import MaskReport, Unmasked
from agentctl.records.runs import (
    Answered,
    ForkReport,
    MemoryWrite,
    Plan,
    PlannedTool,
    ReplayReport,
    RunGroup,
    RunReport,
    SideEffects,
    ToolCallReport,
    Usage,
)
from agentctl.stores.base import RowPick

PLACE = Place("prod.sqlite", "t", "1f", "prod")
PLAN = Plan(PLACE, ("a",), (PlannedTool("pay", "write", "stub"),), (), {"user": "u", "n": 1}, "none", False, "g")
ODD = {
    "tuple": (1, [2, (3,)]),
    "bytes": b"\x00\xff",
    "time": datetime(2026, 1, 2, tzinfo=UTC),
    "set": frozenset({1, 2}),
    "large": 2**70,
    "infinite": math.inf,
    "gone": ABSENT,
    "half": "\ud800",
    1: {None: True},
    "$": "a tag of the user's own",
}
CALL = ToolCallReport("pay", {"odd": ODD}, "c1", "stub", duration_ms=1)
RUN = RunReport(
    "t.replay-1",
    "done",
    ("a", "b|c"),
    (CALL,),
    "Paid.",
    None,
    None,
    Usage(1, 2, 3, 0.5),
    memory=(MemoryWrite(("users", "u"), "k", None, {"x": ODD}),),
)
COPY = CopyReport(
    PLACE, PLACE, 1, 2, 0, 3, True, masking=MaskReport({"email": 1}, unmasked=(Unmasked("write x", 1, 2),))
)
REPLAY = ReplayReport(PLACE, PLAN, (COPY,), RunGroup((RUN,), 1, 0, 0, (0.0, 1.0)), SideEffects(stubbed=1))


@pytest.mark.parametrize(
    "record",
    [
        REPLAY,
        ForkReport(
            PLACE,
            PLACE,
            PLAN,
            (),
            None,
            ("a",),
            (Answered("pay", "c1", "substituted", (("status", "a", ABSENT),)),),
            REPLAY.group,
            SideEffects(),
        ),
        RowPick("ns", "id", except_tasks=frozenset({"x"}), channels=frozenset({"y"})),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_comes_back_as_it_was(record: Any) -> None:
    assert decoded(type(record), json.loads(to_text(record))) == record


def test_a_value_of_the_users_own_class_comes_back_as_what_is_printed_of_it() -> None:
    class Money:
        def __repr__(self) -> str:
            return "Money(1)"

    run = replace(RUN, tool_calls=(replace(CALL, args={"m": Money()}),))
    back = decoded(RunReport, json.loads(to_text(run)))
    assert back.tool_calls[0].args["m"] == {"$type": f"{__name__}.{Money.__qualname__}", "$repr": "Money(1)"}


def _changed(change: Any) -> object:
    document = json.loads(to_text(REPLAY))
    change(document)
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.pop("plan"),
        lambda it: it.update(extra=1),
        lambda it: it.update(case=1),
        lambda it: it.update(case=None),
        lambda it: it.update(plan=[]),
        lambda it: it["plan"].update(masked="yes"),
        lambda it: it["plan"]["tools"]["v"][0].update(effect="pay"),
        lambda it: it["plan"].update(tools={"$": "tuple", "v": 1}),
        lambda it: it["plan"].update(configurable={"$": "map", "v": [1]}),
        lambda it: it["plan"].update(configurable={"$": "map", "v": [[["x"], 1]]}),
        lambda it: it["plan"].update(configurable={"$": "map", "v": [["x", {"$": "pickle", "v": "gASV"}]]}),
        lambda it: it["plan"].update(configurable={"$": "map", "v": [["x", {"$": "bytes", "v": "!"}]]}),
        lambda it: it["plan"].update(configurable={"$": "map", "v": [["x", {"$": "int", "v": "0xz"}]]}),
        lambda it: it["plan"].update(configurable={"$": "map", "v": [["x", {"$": "time", "v": "then"}]]}),
        lambda it: it["group"].update(interval={"$": "tuple", "v": [0.1]}),
        lambda it: it["group"].update(n=True),
        lambda it: it["group"].update(n=1.5),
    ],
)
def test_a_record_that_is_not_of_its_type_is_forged(change: Any) -> None:
    with pytest.raises(Forged):
        decoded(ReplayReport, _changed(change))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        b"1" * 5000,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        pickle.dumps(print),
        b'{"is":"Job","it":{}}',
        b'{"is":"Failed","it":{}}',
        b'{"is":["Done"],"it":{}}',
        b'{"is":"Held","it":{"layers":"x"},"more":1}',
        b'{"is":"Done","it":{"report":1}}',
        b'{"is":"Done","it":{"report":1,"recording":[]}}',
        b'{"is":"AskNames","it":{"kind":"prod","n":1}}',
        b'{"is":"AskRows","it":{"thread":"t","ns":"","ids":["x"],"metadata":true}}',
        b'{"is":"Planned","it":{"plan":' + b'{"$":"tuple","v":[' * 400 + b"1" + b"]}" * 400 + b"}}",
    ],
    ids=range(17),
)
def test_a_message_of_no_kind_is_forged(data: bytes) -> None:
    with pytest.raises(Forged):
        read_message(data)


def test_what_nests_deeply_is_forged_wherever_any_value_may_stand() -> None:
    deep = b'{"$":"map","v":[["x",' * 210 + b"1" + b"]]}" * 210
    with pytest.raises(Forged, match="nests too deeply"):
        read_message(b'{"is":"Done","it":{"report":null,"recording":%s}}' % deep)


def test_a_value_of_ours_that_nests_too_deeply_is_cut_where_it_does() -> None:
    value: object = 1
    for _ in range(300):
        value = {"x": value}
    back: object = decoded(ToolCallReport, json.loads(to_text(replace(CALL, args={"deep": value})))).args
    while isinstance(back, dict):
        (back,) = back.values()
    assert back == "(nested too deeply to be shown)"


def test_every_message_is_read_as_it_was_written() -> None:
    said = [
        messages.Held("seccomp"),
        messages.AskNamespaces("t"),
        messages.AskRows("t", "", ("a",), True),
        messages.AskRows("t", "", None, False),
        messages.AskStored("t", "", ("a",), None, 5),
        messages.AskMore(1),
        messages.Enough(1),
        messages.AskWrites("t", "ns", None, None, ("c",)),
        messages.AskMemory(("users", "u")),
        messages.AskPicked("t", (RowPick("", "a", "null_task"),)),
        messages.AskNames("fork", 3),
        messages.Planned(PLAN),
        messages.Stopped("reach host:1"),
        messages.Failed("NotFound", "no", "try", ({"a": 1},)),
    ]
    kinds = {*get_args(messages.Asked), *get_args(messages.Told)} - {messages.Done}
    assert {type(message) for message in said} == kinds
    assert [read_message(write_message(message)) for message in said] == said


@pytest.mark.parametrize(
    "error",
    [
        UsageError("a", hint="b"),
        NotFound("a"),
        Ambiguous("a", candidates=[{"id": "x", "step": 1}]),
        StoreError("a"),
        Refused("a"),
        Blocked("a"),
        Escaped("a"),
        RevisionSyntaxError("a", text="x@y", span=(1, 2), hint="h"),
        GraphFailed("a", traceback="File x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_crosses_with_all_that_it_says(error: Any) -> None:
    message = read_message(write_message(as_failed(error)))
    assert isinstance(message, messages.Failed)
    back: Any = as_error(message)
    assert type(back) is type(error) and vars(back) == vars(error)


@pytest.mark.parametrize("error", [ThreadExists("a"), IsolationFailed("a")], ids=lambda error: type(error).__name__)
def test_a_special_refusal_crosses_as_a_refusal(error: Refused) -> None:
    assert type(as_error(as_failed(error))) is Refused


def test_an_error_of_another_kind_is_a_fault_of_ours_and_makes_no_class_of_its_name() -> None:
    for name in ("", "SystemExit", "KeyboardInterrupt", "AgentctlError", "os.system"):
        assert type(as_error(messages.Failed(name, "x"))) is RuntimeError


def test_a_channel_takes_whole_messages_up_to_its_size() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours, max_bytes=10)
        Channel(theirs).send(b"0123456789")
        assert channel.receive() == b"0123456789"
        Channel(theirs).send(b"0123456789!")
        with pytest.raises(Forged, match="a message of 11 bytes"):
            channel.receive()


@pytest.mark.parametrize("sent", [b"\x00\x00", b"\x00" * 7 + b"\x05abc"])
def test_a_message_that_is_cut_off_is_forged_and_an_end_between_messages_is_the_end(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(sent)
        theirs.close()
        with pytest.raises(Forged):
            Channel(ours).receive()
        assert Channel(ours).receive() is None


def test_a_channel_that_hears_nothing_for_too_long_says_so() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours)
        channel.wait_at_most(0.01)
        with pytest.raises(TimeoutError):
            channel.receive()


def test_numbers_of_too_many_digits_are_forged() -> None:
    with pytest.raises(Forged):
        parse(b'{"a":' + b"9" * 10_000 + b"}")
