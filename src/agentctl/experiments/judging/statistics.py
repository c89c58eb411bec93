"""Intervals and tests for small counts of runs. Pure functions, no dependency."""

from __future__ import annotations

from math import comb, sqrt

Z_95 = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""

SIGNIFICANT = 0.05
"""A p-value below this counts as an effect."""


def wilson_interval(n_failed: int, n: int) -> tuple[float, float]:
    """Returns the Wilson 95 % score interval of a share, as fractions; (0, 1) when `n` is 0.

    Args:
        n_failed: Failing runs, 0 <= n_failed <= n.
        n: Decided runs.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    if n == 0:
        return 0.0, 1.0
    share = n_failed / n
    z2 = Z_95 * Z_95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = 0.0 if n_failed == 0 else max(0.0, centre - half)
    high = 1.0 if n_failed == n else min(1.0, centre + half)
    return low, high


def fisher_exact(a_failed: int, a: int, b_failed: int, b: int) -> float:
    """Returns the two-sided p-value of Fisher's exact test between two groups of runs.

    Two-sided means the sum over all tables, margins fixed, that are no more likely than the one seen.

    Args:
        a_failed: Failing runs of the first group.
        a: Decided runs of the first group.
        b_failed: Failing runs of the second group.
        b: Decided runs of the second group.

    Source: R. A. Fisher, On the interpretation of chi-squared from contingency tables, JRSS 85 (1922).
    """
    total, failed = a + b, a_failed + b_failed
    ways = comb(total, failed)
    weights = [comb(a, k) * comb(b, failed - k) for k in range(max(0, failed - b), min(a, failed) + 1)]
    seen = comb(a, a_failed) * comb(b, b_failed)
    return min(1.0, sum(weight for weight in weights if weight <= seen) / ways)


def runs_that_would_tell(replay_share: float, fork_share: float, *, limit: int = 200) -> int | None:
    """Returns how many runs a side would make the seen shares significant; None where no number up to `limit` does."""
    if replay_share == fork_share:
        return None
    for n in range(2, limit + 1):
        if fisher_exact(round(replay_share * n), n, round(fork_share * n), n) < SIGNIFICANT:
            return n
    return None
