"""`agentctl show`."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.catalog import CATALOG, run_case
from tests.support.cli import AGENT, ASKING, EDITED, FAILED, Cli


def test_a_waiting_checkpoint_says_how_to_answer(cli: Cli) -> None:
    out = cli.named(cli("show", ASKING, terminal=True).out, ASKING).splitlines()
    assert out[:7] == [
        "prod::support-19@id-00002  step 1  loop  3h ago",
        "id       <id 2>",
        "parent   <id 1>",
        "wrote    model",
        "next     HumanInTheLoopMiddleware.after_model",
        "task     HumanInTheLoopMiddleware.after_model: asks",
        out[6],
    ]
    assert out[7] == "answer   agentctl replay prod::support-19@<id 2> --resume JSON", "prod is only read"
    assert out[8] == "messages"
    assert out[-1].startswith(' * messages: [{"$type": "langchain_core.messages.human.HumanMessage"')


def test_an_older_question_is_answered_on_a_copy(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "answered.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["interrupt answered"], saver, "t")
    asked = cli("resolve", "t@interrupt", "--store", path).rows[0][0]
    out = cli("show", f"t@{asked}", "--store", path, terminal=True).out
    assert f"answer   agentctl replay --store {path} t@{asked} --resume JSON" in out


def test_several_questions_are_answered_by_id_where_the_thread_may_go_on(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "parallel.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["parallel interrupts"], saver, "t")

    def answer(*words: str | Path) -> str:
        shown = cli("show", *words, terminal=True).out
        (line,) = [line for line in shown.splitlines() if line.startswith("answer")]
        return line

    own = answer("debug::t", "--debug-store", path)
    assert own.startswith(f"answer   agentctl resume --debug-store {path} debug::t --map=")
    assert (own.count("--map="), own.count("--tools production")) == (2, 0)
    assert answer("t", "--store", path).endswith(" --resume JSON --resume JSON"), "a copy is asked in turn"


def test_a_question_in_a_store_that_may_be_written_is_answered_for_real(cli: Cli) -> None:
    config = cli.cwd / "agentctl.yaml"
    text = config.read_text("utf-8").replace("  prod:\n", "  prod:\n    access: write\n")
    config.write_text(text, "utf-8")
    out = cli("show", ASKING, terminal=True).out
    assert "answer   agentctl resume prod::support-19 --value JSON --tools production" in out


def test_a_failed_task_is_shown_with_its_error(cli: Cli) -> None:
    out = cli("show", FAILED, terminal=True).out
    assert ": failed" in out and "ValueError('the bureau did not answer')" in out
    assert ": finished" in out


def test_earlier_messages_and_cut_values_are_said(cli: Cli) -> None:
    out = cli("show", EDITED, terminal=True).out
    assert "..." in out
    whole = cli("show", EDITED, "--full", terminal=True).out
    assert "..." not in whole
    assert '"$type": "langchain_core.messages.ai.AIMessage"' in whole


def test_a_pipe_gets_whole_values(cli: Cli) -> None:
    fields = {row[0]: row[1] for row in cli("show", AGENT).rows}
    assert fields["thread"] == AGENT
    assert len(fields["id"]) == 36
    assert fields["channel messages"].startswith('[{"$type"')


def test_the_document_has_its_keys(cli: Cli) -> None:
    document = cli("show", ASKING, "--json").json
    assert document["schema"] == "agentctl.show/1"
    assert document["changed"] == ["messages"]
    assert document["tasks"][0]["interrupts"][0]["id"]
    assert document["warnings"] == []


def test_a_branch_as_a_conversation(cli: Cli) -> None:
    assert cli.named(cli("show", AGENT, "--messages", terminal=True).out, AGENT) == (
        "support 17  prod (sqlite)  5 messages in channel messages\n"
        "   1    3h  human   id-00001  where is my order?\n"
        '   2    3h  ai      id-00002  -> lookup_order(order_id="A1")\n'
        '                              <- {"order_id": "A1", "status": "delivered"}\n'
        '                              -> get_policy(topic="lost")\n'
        '                              <- {"topic": "lost", "days": 30}\n'
        "   5    3h  ai      id-00004  No refund is due: your order was delivered.\n"
    )


def test_a_thread_without_messages_is_said_to_have_none(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["linear"], saver, "t")
    out = cli("show", "t", "--store", path, "--messages", terminal=True).out
    assert out.rstrip().endswith("no channel of messages")


def test_an_unanswered_call_is_marked(cli: Cli) -> None:
    out = cli("show", ASKING, "--messages", terminal=True).out
    assert out.count("unanswered") == 2


def test_a_part_of_a_conversation_says_that_there_is_more(cli: Cli) -> None:
    out = cli("show", EDITED, "--messages", "--last", "1", terminal=True).out
    assert "1 shown; all: --all" in out
    assert cli("show", EDITED, "--messages", "--json").json["truncated"] is False
    found = cli("show", EDITED, "--messages", "--grep", "on its way", "--json").json
    assert [item["message"]["role"] for item in found["items"]] == ["ai"]
    assert found["truncated"] is True


def test_a_long_message_is_cut_with_its_length_said(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "long.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        CATALOG["agent"].build(saver).invoke(
            {"messages": [("user", "help " * 1000)]}, {"configurable": {"thread_id": "t"}}, durability="sync"
        )
    out = cli("show", "t", "--messages", "--store", path, terminal=True).out
    assert "... (5,000 characters; whole: --full)" in " ".join(out.split())
    assert cli("show", "t", "--messages", "--full", "--store", path, terminal=True).out.count("help") == 1000
    assert cli("show", "t", "--messages", "--store", path).out.count("help") == 1000


def test_a_call_is_shown_verbatim_with_a_target_that_can_be_pasted(cli: Cli) -> None:
    out = cli.named(cli("show", AGENT, "--call", "lookup_order", terminal=True).out, AGENT)
    assert out == (
        "lookup_order  c1  occurrence 1\n"
        "pending  'prod::support 17@<id 2>'\n"
        "arguments\n"
        '{\n  "order_id": "A1"\n}\n'
        "result\n"
        '{"order_id": "A1", "status": "delivered"}\n'
    )
    fields = dict(cli("show", AGENT, "--call", "lookup_order").rows)
    assert fields["result"] == '{"order_id": "A1", "status": "delivered"}'
    assert cli("show", AGENT, "--call", "c1", "--json").json["result"]["content"] == fields["result"]


def test_a_channel_and_a_path(cli: Cli) -> None:
    assert cli("show", AGENT, "--channel", "messages", "--path", "[0].content").out == '"where is my order?"\n'
    assert cli("show", AGENT, "--path", "messages[-1].type").rows == [['"ai"']]
    assert cli("show", AGENT, "--channel", "messages", "--json").json["channel"] == "messages"


@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        ([AGENT, "--channel", "mesages"], 3, "no channel mesages", "channels: messages"),
        ([AGENT, "--path", "["], 2, "--path '['", ""),
        ([AGENT, "--call", "lookup"], 3, "lookup", "did you mean"),
        ([AGENT, "--call", "x", "--messages"], 2, "exclude each other", ""),
        (["nobody"], 3, "there is no thread nobody", "agentctl threads"),
    ],
)
def test_what_cannot_be_shown_is_said(cli: Cli, args: list[str], code: int, message: str, hint: str) -> None:
    failed = cli("show", *args)
    assert (failed.code, failed.out) == (code, "")
    assert message in failed.err and hint in failed.err


def test_a_repeated_call_is_ambiguous_with_what_tells_the_calls_apart(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "twice.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run_case(CATALOG["agent two turns"], saver, "t")
    failed = cli("show", "t", "--call", "lookup_order", "--store", path, "--json")
    assert failed.code == 3
    error = failed.json["error"]
    assert error["kind"] == "ambiguous"
    assert len(error["candidates"]) == 2
    for candidate in error["candidates"]:
        assert cli("resolve", f"t@{candidate['revision']}", "--store", path).code == 0
