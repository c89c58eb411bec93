import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.experiments.judging.statistics import fisher_exact, runs_that_would_tell, wilson_interval


@pytest.mark.parametrize(
    ("n_failed", "n", "low", "high"),
    [(5, 5, 0.5655, 1.0), (0, 5, 0.0, 0.4345), (4, 10, 0.1682, 0.6873), (1, 1, 0.2065, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_intervals_have_their_published_values(n_failed: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(n_failed, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((5, 5, 0, 5), 0.007937),
        ((4, 4, 0, 4), 0.028571),
        ((3, 3, 0, 3), 0.1),
        ((3, 4, 1, 4), 0.485714),  # the lady tasting tea, two-sided
        ((5, 5, 5, 5), 1.0),
        ((8, 10, 1, 10), 0.005477),
        ((0, 0, 3, 5), 1.0),
    ],
)
def test_fishers_test_has_its_published_values(table: tuple[int, int, int, int], p: float) -> None:
    assert fisher_exact(*table) == pytest.approx(p, abs=1e-6)


@given(st.integers(0, 30), st.integers(0, 30), st.data())
def test_fishers_test_does_not_care_which_group_comes_first(a: int, b: int, data: st.DataObject) -> None:
    a_failed, b_failed = data.draw(st.integers(0, a)), data.draw(st.integers(0, b))
    p = fisher_exact(a_failed, a, b_failed, b)
    assert 0 < p <= 1
    assert p == pytest.approx(fisher_exact(b_failed, b, a_failed, a))


@given(st.integers(0, 60), st.data())
def test_an_interval_holds_the_share_that_was_seen(n: int, data: st.DataObject) -> None:
    n_failed = data.draw(st.integers(0, n))
    low, high = wilson_interval(n_failed, n)
    assert 0 <= low <= high <= 1
    if n:
        assert low <= n_failed / n <= high


def test_four_runs_a_side_tell_a_full_flip_and_no_number_tells_equal_shares() -> None:
    assert runs_that_would_tell(1.0, 0.0) == 4
    assert runs_that_would_tell(0.5, 0.5) is None
