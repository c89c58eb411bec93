import pytest

from agentctl.experiments.judging.statistics import wilson_interval
from agentctl.experiments.judging.verdict import Evidence, Untried, decide, group_replies
from agentctl.records.runs import RunGroup, RunReport, RunStatus, Substitution, Usage

ANSWER = Substitution("--patch lookup_order:status", ("lookup_order", "c1"), "status")
SET = Substitution("--set tier", None, "tier")
GOTO = Substitution("--goto refunds_agent", None, "refunds_agent")
POLICY = Untried("get_policy", "c2", "agentctl diagnose t --answer get_policy=...")


def run(failed: bool | None, status: RunStatus = "done", *, model: bool = True, hint: str | None = None) -> RunReport:
    return RunReport("t", status, (), (), "hello", failed, None, Usage(), model_ran=model, blocked_hint=hint)


def group(n_failed: int, n_passed: int, *undecided: RunReport, model: bool = True) -> RunGroup:
    runs = [run(True, model=model)] * n_failed + [run(False, model=model)] * n_passed
    n = n_failed + n_passed
    return RunGroup((*runs, *undecided), n, n_failed, len(undecided), wilson_interval(n_failed, n))


@pytest.mark.parametrize(("change", "name"), [(ANSWER, "tool_data"), (SET, "state"), (GOTO, "routing")])
def test_a_fork_that_ends_the_failure_names_what_was_substituted(change: Substitution, name: str) -> None:
    verdict = decide(Evidence(group(5, 0), group(0, 5), (change,), ("lookup_order.status",)))
    assert verdict.name == name
    assert verdict.cause.substituted == (change,)
    assert verdict.cause.fields == ("lookup_order.status",)
    assert verdict.p_value == pytest.approx(0.00794, abs=1e-5)
    assert verdict.remaining == wilson_interval(0, 5)


def test_four_runs_a_side_are_enough_and_three_are_not() -> None:
    assert decide(Evidence(group(4, 0), group(0, 4), (ANSWER,))).name == "tool_data"
    few = decide(Evidence(group(3, 0), group(0, 3), (ANSWER,)))
    assert few.name == "inconclusive"
    assert "-n 4" in few.sentence
    assert few.cause.substituted == ()


def test_a_partial_cure_keeps_its_verdict_and_tells_what_remains() -> None:
    verdict = decide(Evidence(group(10, 0), group(2, 8), (ANSWER,)))
    assert verdict.name == "tool_data"
    assert "2 of 10 still fail" in verdict.sentence


def test_a_fork_that_still_fails_is_not_the_cause_while_other_results_are_untried() -> None:
    verdict = decide(Evidence(group(5, 0), group(5, 0), (ANSWER,), untried=(POLICY,)))
    assert verdict.name == "not_the_cause"
    assert verdict.commands == (POLICY.command,)


def test_the_model_is_blamed_only_when_nothing_else_is_left_or_the_rest_is_trusted() -> None:
    assert decide(Evidence(group(5, 0), group(5, 0), (ANSWER,))).name == "model_or_prompt"
    assert (
        decide(Evidence(group(5, 0), group(5, 0), (ANSWER,), untried=(POLICY,), trust_rest=True)).name
        == "model_or_prompt"
    )


def test_the_graphs_code_is_blamed_where_no_model_ran() -> None:
    assert decide(Evidence(group(5, 0), group(5, 0, model=False), (ANSWER,))).name == "graph_code"


def test_some_failing_replays_are_nondeterminism_with_their_rate() -> None:
    verdict = decide(Evidence(group(4, 6)))
    assert verdict.name == "nondeterminism"
    assert "4 times in 10 (40 %)" in verdict.sentence


def test_nondeterminism_keeps_the_forks_effect_when_it_is_significant() -> None:
    verdict = decide(Evidence(group(9, 1), group(0, 10), (ANSWER,)))
    assert verdict.name == "nondeterminism"
    assert verdict.cause.substituted == (ANSWER,)


def test_no_failing_replay_is_not_reproduced() -> None:
    assert decide(Evidence(group(0, 5), group(0, 5), (ANSWER,))).name == "not_reproduced"


def test_without_a_fork_the_verdict_is_inconclusive_and_lists_what_to_try() -> None:
    verdict = decide(Evidence(group(5, 0), untried=(POLICY,)))
    assert (verdict.name, verdict.commands) == ("inconclusive", (POLICY.command,))


def test_undecided_runs_leave_n_and_the_flag_that_lets_them_end_is_named() -> None:
    blocked = run(None, "blocked", hint="--stub send_email='\"sent\"'")
    verdict = decide(Evidence(group(0, 0, blocked, blocked)))
    assert verdict.name == "inconclusive"
    assert "--stub send_email=" in verdict.sentence
    assert "2 blocked" in verdict.sentence
    assert "--resume JSON" in decide(Evidence(group(5, 0), group(0, 0, run(None, "interrupted")), (ANSWER,))).sentence


def test_without_a_check_replies_are_grouped_and_nothing_is_concluded() -> None:
    assert decide(Evidence(group(0, 0, run(None)), has_check=False)).name == "inconclusive"
    assert group_replies([run(None), run(None), run(None, "blocked")]) == [("hello", 2)]
