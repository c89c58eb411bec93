"""The evaluation set: questions with traps over the recorded web, and what a run is measured by."""

from graphs.research_report.evaluation.cases import Case, load_cases
from graphs.research_report.evaluation.running import run_cases
from graphs.research_report.evaluation.scoring import Score, totals

__all__ = ["Case", "Score", "load_cases", "run_cases", "totals"]
