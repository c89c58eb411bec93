"""Masked copies between stores of every kind: nothing that was planted arrives, and all that is not personal does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agentctl.codec.values import decode
from agentctl.errors import Refused, StoreError
from agentctl.masking.keys import Key
from agentctl.masking.masker import Masker
from agentctl.masking.reader import masked
from agentctl.masking.rules import rules_of
from agentctl.records.copies import MASKED, CopyReport
from agentctl.records.masking import FieldRule, MaskSettings, PatternRule, ValuePlace
from agentctl.records.rows import Stored
from agentctl.stores.base import CopyPlan, Reader, RowPick
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.masked import is_masked
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.same import same_tables
from tests.catalog import config_of
from tests.support import customers, personal
from tests.support.customers import ASKING, FAILED, PLANTED, found_in, stored_bytes
from tests.support.postgres import new_database
from tests.support.server_stub import server_stub, task
from tests.support.stored import is_postgres
from tests.support.stores import saver_at

SETTINGS = MaskSettings(
    fields=tuple(FieldRule(name, "name") for name in customers.RULES["fields"]),
    patterns=tuple(PatternRule(name, regex) for name, regex in customers.RULES["patterns"].items()),
)
AES_KEY = "0123456789abcdef"
KINDS = ("sqlite", "postgres")
KNOWN_ANYWHERE = ("email", "card", "iban", "ip")
LEAST_TELLING = 6
"""Characters from which on a text is not found by chance."""


def new_masker(byte: int = 0) -> Masker:
    return Masker(rules_of(SETTINGS), Key(bytes([byte]) * 32))


def masking(url: str, masker: Masker | None = None, *, trusts_marks: bool = True) -> Reader:
    one = masker or new_masker()
    return masked(open_reader(url), lambda: one, trusts_marks=trusts_marks)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[dict[str, str]]:
    """A store of each kind with the application's threads."""
    with new_database(postgres_url) as database:
        urls = {"sqlite": str(tmp_path_factory.mktemp("source") / "prod.sqlite"), "postgres": database}
        for url in urls.values():
            customers.seed(url)
        yield urls


@pytest.fixture
def targets(tmp_path: Path, fresh_postgres_url: str) -> dict[str, str]:
    return {"sqlite": str(tmp_path / "target.sqlite"), "postgres": fresh_postgres_url}


def copied(reader: Reader, target: str, thread: str, **plan: Any) -> CopyReport:
    """Copies all of a thread under its own name."""
    with closing(reader), closing(open_writer(target)) as writer:
        head = reader.rows(thread)[0].id
        whole = replace(for_copy(reader, thread, "", head, "all", thread), **plan)
        (report,) = copy(reader, writer, [whole])
    return report


def state_of(url: str, thread: str) -> Any:
    """What the application's graph sees of a thread."""
    with saver_at(url) as saver:
        return customers.build_graph().compile(checkpointer=saver).get_state(config_of(thread))


def test_what_is_searched_for_is_in_the_source(sources: dict[str, str]) -> None:
    for url in sources.values():
        found = found_in(stored_bytes(url))
        assert [text for text in PLANTED if not any(each.startswith(text) for each in found)] == []


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_nothing_that_was_planted_arrives_and_the_state_loads(
    sources: dict[str, str], targets: dict[str, str], source: str, target: str
) -> None:
    masker = new_masker()
    for thread in (ASKING, FAILED):
        report = copied(masking(sources[source], masker), targets[target], thread, provenance={MASKED: "true"})
        assert report.verified and report.masked
        with saver_at(sources[source]) as saver:
            assert report.n_checkpoints == len(list(saver.list(config_of(thread))))
    assert found_in(stored_bytes(targets[target])) == set()
    before, after = state_of(sources[source], ASKING), state_of(targets[target], ASKING)
    assert after.values.keys() == before.values.keys()
    assert type(after.values["contact"]) is type(before.values["contact"])
    assert type(after.values["address"]) is type(before.values["address"])
    assert [message.id for message in after.values["messages"]] == [m.id for m in before.values["messages"]]
    calling, answering = after.values["messages"][1:3]
    assert calling.tool_calls[0]["id"] == answering.tool_call_id == "call_1"
    assert after.values["customer"]["order"] == customers.ORDER
    assert (after.config, after.next, after.created_at) == (before.config, before.next, before.created_at)


class Corpus(TypedDict):
    found: list[Any]


@pytest.mark.parametrize("kind", KINDS)
def test_of_values_that_the_detectors_never_saw_none_arrives(
    tmp_path: Path, targets: dict[str, str], kind: str
) -> None:
    drawn = [
        sample
        for sample in personal.samples(seed=11, count=6)
        if sample.form == "field" or sample.kind in KNOWN_ANYWHERE
    ]
    secrets = {secret for sample in drawn for secret in sample.secrets if len(secret) >= LEAST_TELLING}
    builder = StateGraph(Corpus)
    builder.add_node("keep", lambda state: {"found": state["found"]})
    builder.add_edge(START, "keep")
    source = str(tmp_path / "corpus.sqlite")
    with SqliteSaver.from_conn_string(source) as saver:
        app = builder.compile(checkpointer=saver)
        app.invoke({"found": [sample.value for sample in drawn]}, config_of("corpus"), durability="sync")
    in_source = found_in(stored_bytes(source), secrets)
    assert len(secrets) > 100 and all(any(each.startswith(secret) for each in in_source) for secret in secrets)
    assert copied(masking(source), targets[kind], "corpus").verified
    assert found_in(stored_bytes(targets[kind]), secrets) == set()


def test_equal_values_stay_equal_across_channels_rows_and_threads(
    sources: dict[str, str], targets: dict[str, str]
) -> None:
    emails = set()
    for thread in (ASKING, FAILED):
        copied(masking(sources["sqlite"], new_masker()), targets["sqlite"], thread)
        values = state_of(targets["sqlite"], thread).values
        (call,) = values["messages"][1].tool_calls
        emails |= {values["customer"]["email"], values["contact"].email, call["args"]["email"]}
        assert values["customer"]["full_name"] in str(values["messages"][0].content)
    assert len(emails) == 1
    other = targets["sqlite"].replace("target", "other")
    copied(masking(sources["sqlite"], new_masker(1)), other, ASKING)
    assert state_of(other, ASKING).values["customer"]["email"] not in emails


def test_the_memory_store_is_read_masked_and_found_by_the_masked_key(sources: dict[str, str]) -> None:
    for url in sources.values():
        with closing(masking(url)) as reader:
            (state,) = reader.stored(ASKING, "", [reader.rows(ASKING)[0].id], channels=["customer"])
            (user,) = reader.memory(("users",))
            assert user.key.encode() in state.values["customer"].data
            items = reader.memory()
            assert len(items) == 2
            assert found_in(repr(items).encode()) == set()


def test_changes_of_a_plan_are_written_as_they_are_given(sources: dict[str, str], targets: dict[str, str]) -> None:
    with closing(masking(sources["sqlite"])) as reader:
        answer = next(write for write in reader.writes(ASKING, "") if write.channel == "__resume__")
    given = Stored("msgpack", b"\xa5hello")
    key = (answer.ns, answer.checkpoint_id, answer.task_id, answer.idx)
    copied(masking(sources["sqlite"]), targets["sqlite"], ASKING, edits={key: given})
    with closing(open_reader(targets["sqlite"])) as copy_:
        written = {
            (write.ns, write.checkpoint_id, write.task_id, write.idx): write for write in copy_.writes(ASKING, "")
        }
    assert written[key].value == given


class _Wavering(Masker):
    """Masks a channel otherwise from the third time on that it is read: after it was checked and written."""

    n_times = 0

    def stored(self, stored: Stored, place: ValuePlace) -> Stored:
        if place == ValuePlace("channel", "is_owner"):
            self.n_times += 1
            if self.n_times > 2:
                return Stored("msgpack", b"\xc2")
        return super().stored(stored, place)


@pytest.mark.parametrize("target", KINDS)
def test_a_copy_that_is_not_what_the_masked_source_is_is_taken_back(
    sources: dict[str, str], targets: dict[str, str], target: str
) -> None:
    reader = masking(sources["sqlite"], _Wavering(rules_of(SETTINGS), Key(bytes(32))))
    with closing(reader), closing(open_writer(targets[target])) as writer:
        plan = CopyPlan(ASKING, "copy", (RowPick("", reader.rows(ASKING)[0].id),))
        with pytest.raises(StoreError, match=r"channel is_owner of checkpoint .* did not read back"):
            copy(reader, writer, [plan])
        assert not writer.namespaces("copy")


def test_a_thread_that_is_masked_already_is_given_as_it_is_unless_that_is_not_believed(
    sources: dict[str, str], targets: dict[str, str]
) -> None:
    url = targets["sqlite"]
    copied(masking(sources["sqlite"]), url, ASKING, provenance={MASKED: "true"})
    with closing(open_reader(url)) as raw:
        assert is_masked(raw, ASKING)
        expected = list(raw.stored(ASKING, "", [row.id for row in raw.rows(ASKING)]))
    with closing(masking(url, new_masker(1))) as reader:
        assert list(reader.stored(ASKING, "", [row.id for row in reader.rows(ASKING)])) == expected
    with closing(masking(url, new_masker(1), trusts_marks=False)) as reader:
        assert list(reader.stored(ASKING, "", [row.id for row in reader.rows(ASKING)])) != expected
    with closing(open_reader(sources["sqlite"])) as raw:
        assert not is_masked(raw, ASKING)


def test_two_schemas_of_a_database_stay_two_stores_behind_a_mask(sources: dict[str, str]) -> None:
    url = sources["postgres"]
    with closing(masking(url)) as reader:
        with closing(open_writer(url)) as own:
            assert same_tables(reader, own)
        with closing(open_writer(url, schema="elsewhere")) as other:
            assert not same_tables(reader, other)


@dataclass(frozen=True)
class Sealed:
    """A store whose rows are encrypted."""

    url: str

    def saver(self, stack: ExitStack) -> Any:
        serde = EncryptedSerializer.from_pycryptodome_aes(key=AES_KEY.encode())
        saver = stack.enter_context(
            (PostgresSaver if is_postgres(self.url) else SqliteSaver).from_conn_string(self.url)
        )
        saver.serde = serde
        saver.setup()
        return saver

    def run(self) -> None:
        with ExitStack() as stack:
            app = customers.build_graph().compile(checkpointer=self.saver(stack))
            app.update_state(
                config_of(ASKING), {"customer": {"email": customers.EMAIL}, "messages": []}, as_node="identify"
            )

    def email(self) -> str:
        with ExitStack() as stack:
            app = customers.build_graph().compile(checkpointer=self.saver(stack))
            return str(app.get_state(config_of(ASKING)).values["customer"]["email"])


@pytest.mark.parametrize("kind", KINDS)
def test_encrypted_rows_are_opened_masked_and_sealed_again(
    tmp_path: Path, targets: dict[str, str], postgres_url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        database = stack.enter_context(new_database(postgres_url)) if kind == "postgres" else ""
        source = Sealed(database or str(tmp_path / "sealed.sqlite"))
        source.run()
        with pytest.raises(Refused, match="cannot be masked: the value is encrypted and LANGGRAPH_AES_KEY is not set"):
            copied(masking(source.url), targets[kind], ASKING)
        assert kind == "postgres" or not Path(targets[kind]).exists()
        monkeypatch.setenv("LANGGRAPH_AES_KEY", AES_KEY)
        assert copied(masking(source.url), targets[kind], ASKING).verified
        if kind == "sqlite":
            with pytest.raises(Refused, match="encrypted"):
                copied(masking(source.url), targets["postgres"], ASKING)
        else:
            assert copied(masking(source.url), targets["sqlite"], ASKING).verified
    data = stored_bytes(targets[kind])
    assert found_in(data) == set()
    token = Sealed(targets[kind]).email()
    assert token != customers.EMAIL and "@" in token
    assert token.encode() not in data


def test_what_nobody_can_read_is_refused_by_name(sources: dict[str, str], targets: dict[str, str]) -> None:
    pickled = str(Path(targets["sqlite"]).with_name("pickled.sqlite"))
    with SqliteSaver.from_conn_string(pickled) as saver:
        app = customers.build_graph().compile(checkpointer=saver)
        app.update_state(config_of(ASKING), {"is_owner": True}, as_node="identify")
        app.update_state(config_of(ASKING), {"is_owner": False}, as_node="reply")
        saver.conn.execute("UPDATE writes SET type = 'pickle'")
        saver.conn.commit()
    with pytest.raises(Refused, match=r"cannot be masked: .*pickle"):
        copied(masking(pickled), targets["sqlite"], ASKING)
    assert not Path(targets["sqlite"]).exists()


def test_what_a_server_states_is_masked_before_rows_are_made_of_it(targets: dict[str, str]) -> None:
    with server_stub() as stub:
        thread = stub.thread("letters", 2)
        for place, one in enumerate(reversed(stub.states[thread, ""])):
            one["values"]["customer"] = {"full_name": customers.NAME, "email": customers.EMAIL}
            one["values"]["messages"][0]["content"] = f"I am {customers.NAME}, {customers.EMAIL}."
            if place == 1:
                asked = {"value": {"question": f"Write to {customers.EMAIL}?"}, "id": "q1"}
                one["tasks"] = [task(1, "ask") | {"interrupts": [asked]}]
                one["next"], one["interrupts"] = ["ask"], [asked]
        report = copied(masking(stub.url), targets["sqlite"], thread)
    assert report.verified
    assert found_in(stored_bytes(targets["sqlite"])) == set()
    with closing(open_reader(targets["sqlite"])) as made:
        question = next(write for write in made.writes(thread, "") if write.channel == "__interrupt__")
        (state,) = made.stored(thread, "", [made.rows(thread)[0].id], channels=["customer"])
    assert question.value is not None
    email = str(decode(state.values["customer"])["email"])  # type: ignore[index]
    assert email.endswith("example.com") and email in str(decode(question.value))
