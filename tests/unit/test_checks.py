from pathlib import Path

import pytest

from agentctl.errors import GraphFailed, NotFound, UsageError
from agentctl.experiments.judging.checks import parse_checks, parse_inline
from agentctl.experiments.runs.observed import Observed
from agentctl.records.runs import ToolCallReport

REFUND = ToolCallReport("issue_refund", {"order_id": "A1", "amount": 120.0}, "c3", "blocked")
DONE = Observed("done", "No refund is due.", values={"tier": "gold", "risk": {"score": 7}})
BLOCKED = Observed("blocked", None, (REFUND,))
ASKING = Observed("interrupted", None, next=("approve_refund",))


def settle(text: str, observed: Observed) -> bool | None:
    return parse_inline(text).settle(observed)


def test_a_reply_is_searched_without_regard_to_case() -> None:
    assert settle("reply contains no refund", DONE) is True
    assert settle("reply contains on its way", DONE) is False
    assert settle("reply not contains on its way", DONE) is True
    assert settle("reply matches ^No .* due", DONE) is True
    assert settle("reply matches ^no", DONE) is False


def test_a_reply_is_undecided_until_the_run_ends() -> None:
    assert settle("reply contains no refund", BLOCKED) is None
    assert settle("reply not contains refund", ASKING) is None


def test_a_call_that_was_made_settles_a_check_although_the_run_was_blocked_there() -> None:
    assert settle("called issue_refund", BLOCKED) is True
    assert settle("not called issue_refund", BLOCKED) is False
    assert settle("called send_email", BLOCKED) is None
    assert settle("called send_email", DONE) is False
    assert settle("not called send_email", DONE) is True


def test_state_is_asked_by_jmespath() -> None:
    assert settle("state tier == 'gold'", DONE) is True
    assert settle("state risk.score > `8`", DONE) is False
    assert settle("state tier", BLOCKED) is None


def test_a_branch_that_was_ended_by_hand_settles_nothing() -> None:
    ended = Observed("done", "No refund is due.", (REFUND,), forced_end=True)
    assert settle("reply contains refund", ended) is None
    assert settle("not called issue_refund", ended) is None


@pytest.mark.parametrize("text", ["reply", "reply has x", "call x", "state", "", "not x"])
def test_a_text_that_is_no_check_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_inline(text)
    assert "reply contains TEXT" in (caught.value.hint or "")


def test_bad_expressions_are_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="matches"):
        parse_inline("reply matches (")
    with pytest.raises(UsageError, match="state"):
        parse_inline("state a[")


def test_several_checks_must_all_hold(tmp_path: Path) -> None:
    check = parse_checks(["reply contains no refund", "called issue_refund"], tmp_path)
    assert check is not None
    assert check.text == "reply contains no refund and called issue_refund"
    assert check.settle(DONE) is False
    assert check.settle(Observed("done", "No refund is due.", (REFUND,))) is True
    assert check.settle(BLOCKED) is None
    assert parse_checks([], tmp_path) is None


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return path.name


def test_a_file_combines_clauses(tmp_path: Path) -> None:
    name = write(
        tmp_path / "check.yaml",
        """
fails_when:
  any:
    - all:
        - reply: {contains: no refund, not_contains: sorry}
        - tool_not_called: issue_refund
    - tool_called: {name: issue_refund, args: {order_id: A1}}
    - not: {state: tier}
    - ends_at: approve_refund
    - interrupted: true
""",
    )
    check = parse_checks([name], tmp_path)
    assert check is not None
    assert check.settle(DONE) is True
    assert check.settle(BLOCKED) is True
    assert check.settle(ASKING) is True
    assert check.settle(Observed("done", "Your refund is on its way.", values={"tier": "gold"})) is False
    assert check.settle(Observed("timeout", None)) is None


def test_a_python_check_sees_what_was_observed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def wrong(seen):\n    return 'refund' in seen.reply\ndef broken(seen):\n    return 1 / 0\n"
    )
    name = write(tmp_path / "c.yaml", "fails_when: {python: 'mine.py:wrong'}")
    check = parse_checks([name], tmp_path)
    assert check is not None
    assert check.settle(DONE) is True
    broken = parse_checks([write(tmp_path / "d.yaml", "fails_when: {python: 'mine.py:broken'}")], tmp_path)
    assert broken is not None
    with pytest.raises(GraphFailed, match="ZeroDivisionError"):
        broken.settle(DONE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fails_when: {repyl: {contains: x}}", "unknown clause repyl"),
        ("passes_when: {}", "fails_when"),
        ("fails_when: []", "a clause is a mapping"),
        ("fails_when: {state: 3}", "state does not take"),
        ("fails_when: {reply: {is: x}}", "reply does not know is"),
        (": [", "cannot be read"),
    ],
)
def test_a_bad_file_is_refused_and_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_checks([write(tmp_path / "c.yaml", text)], tmp_path)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        parse_checks(["nothere.yaml"], tmp_path)
    with pytest.raises(NotFound, match="no function"):
        (tmp_path / "mine.py").write_text("")
        parse_checks([write(tmp_path / "c.yaml", "fails_when: {python: 'mine.py:f'}")], tmp_path)
