"""docs/field-reports.md is what tests/field/reports/ and the tests say, and no report is left without an answer."""

from __future__ import annotations

import pytest

from docs.field_reports import PAGE, Group, Report, field_page, groups, held_by_report

REPORTS = [report for group in groups() for report in group.reports]
TESTED = held_by_report()


def test_the_page_is_what_the_reports_and_the_tests_say() -> None:
    assert PAGE.read_text("utf-8") == field_page(), "run `make docs`"


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.id)
def test_each_report_tells_what_agentctl_does_and_has_a_test_or_the_reason_why_not(report: Report) -> None:
    assert report.agentctl
    assert bool(TESTED.get(report.id)) != bool(report.untested)


def test_tests_name_only_reports_that_exist() -> None:
    assert set(TESTED) <= {report.id for report in REPORTS}


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.letter)
def test_reports_of_a_group_are_numbered_without_gaps(group: Group) -> None:
    assert [report.id for report in group.reports] == [f"{group.letter}{n}" for n in range(1, len(group.reports) + 1)]
