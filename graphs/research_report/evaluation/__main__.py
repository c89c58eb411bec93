"""Runs the evaluation on sandbox tools: `python -m graphs.research_report.evaluation [MODEL]`; exits 1 for a miss."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from graphs.research_report.evaluation import Score, load_cases, run_cases, totals
from graphs.research_report.graph import build_graph
from sandbox_tools.research import registry


def main(arguments: Sequence[str]) -> int:
    """Runs every case, and says how each went. Returns the exit code."""
    scores = run_cases(build_graph(registry(), model=arguments[0] if arguments else None), load_cases())
    sys.stdout.write("".join(f"{_line(each)}\n" for each in scores))
    sys.stdout.write("".join(f"{name:20} {value:.2f}\n" for name, value in totals(scores).items()))
    return 0 if all(each.is_good for each in scores) else 1


def _line(score: Score) -> str:
    faults = [*(f"wrong: {word}" for word in score.wrong), *score.missing]
    verdict = "good" if score.is_good else "; ".join(faults) or "unsupported, or a fact is missing"
    return (
        f"{score.case:20} {score.trap:24} supported {score.n_supported}/{score.n_findings}"
        f"  facts {score.n_covered}/{score.n_facts}  {verdict}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
