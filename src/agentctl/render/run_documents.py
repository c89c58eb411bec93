"""Copies, plans, runs, forks and verdicts as JSON documents."""

from __future__ import annotations

from agentctl.codec.secrets import hide_secrets_in
from agentctl.records.copies import CopyReport
from agentctl.records.runs import (
    Answered,
    DiagnoseReport,
    ForkReport,
    Plan,
    ReplayReport,
    RunGroup,
    RunReport,
    SideEffects,
)
from agentctl.render.diff import body, place
from agentctl.render.machine import document
from agentctl.render.masking import mask_object


def copy_document(report: CopyReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.copy/1`."""
    return document("copy", {**_copy(report), "masking": mask_object(report.masking)})


def _copy(report: CopyReport) -> dict[str, object]:
    return {
        "source": place(report.source),
        "target": place(report.target),
        "n_checkpoints": report.n_checkpoints,
        "n_writes": report.n_writes,
        "n_blobs": report.n_blobs,
        "n_bytes": report.n_bytes,
        "verified": report.verified,
        "masked": report.masked,
        "dry_run": report.dry_run,
        "warnings": list(report.warnings),
    }


def replay_document(report: ReplayReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.replay/1`."""
    return document(
        "replay",
        {
            "source": place(report.source),
            "plan": plan_object(report.plan),
            "copies": [_copy(copied) for copied in report.copies],
            **group_object(report.group),
            "side_effects": effects_object(report.side_effects),
            "isolation": report.plan.isolation,
            "case": report.case,
            "warnings": list(report.warnings),
            "masking": mask_object(report.masking),
        },
    )


def fork_document(report: ForkReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.fork/1`."""
    return document(
        "fork",
        {
            "source": place(report.source),
            "target": place(report.target),
            "plan": plan_object(report.plan),
            "copies": [_copy(copied) for copied in report.copies],
            "as_node": report.as_node,
            "next": list(report.next),
            "answered": [answered_object(entry) for entry in report.answered],
            **group_object(report.group),
            "side_effects": effects_object(report.side_effects),
            "isolation": report.plan.isolation,
            "case": report.case,
            "warnings": list(report.warnings),
            "masking": mask_object(report.masking),
        },
    )


def diagnose_document(report: DiagnoseReport) -> dict[str, object]:
    """Returns the JSON document `agentctl.diagnose/1`."""
    forks: list[dict[str, object]] = []
    if report.fork:
        forks.append(
            {
                "answers": [answered_object(entry) for entry in report.fork.answered],
                "target": place(report.fork.target),
                "diff": body(report.diff) if report.diff else None,
                **group_object(report.fork.group),
            }
        )
    verdict = report.verdict
    return document(
        "diagnose",
        {
            "source": place(report.source),
            "check": report.check,
            "replays": group_object(report.replays.group),
            "forks": forks,
            "p_value": verdict.p_value,
            "verdict": verdict.name,
            "sentence": verdict.sentence,
            "cause": {
                "substituted": [
                    {
                        "form": change.form,
                        "call": {"name": change.call[0], "id": change.call[1]} if change.call else None,
                        "path": change.path,
                    }
                    for change in verdict.cause.substituted
                ],
                "fields": list(verdict.cause.fields),
            },
            "remaining": list(verdict.remaining) if verdict.remaining else None,
            "faithfulness": list(report.faithfulness),
            "commands": list(report.commands),
            "side_effects": effects_object(report.side_effects),
            "isolation": report.replays.plan.isolation,
            "case": report.case,
            "warnings": list(report.warnings),
            "masking": mask_object(report.masking),
        },
    )


def plan_object(plan: Plan) -> dict[str, object]:
    """Returns a plan as an object."""
    return {
        "nodes": list(plan.nodes),
        "tools": [{"name": tool.name, "effect": tool.effect, "served_by": tool.served_by} for tool in plan.tools],
        "interrupts": list(plan.interrupts),
        "configurable": hide_secrets_in(plan.configurable),
        "model": plan.model,
        "masked": plan.masked,
        "graph": plan.graph,
        "isolation": plan.isolation,
    }


def group_object(group: RunGroup) -> dict[str, object]:
    """Returns a group of runs as an object; `interval` is [low, high] as fractions."""
    return {
        "runs": [run_object(run) for run in group.runs],
        "n": group.n,
        "n_failed": group.n_failed,
        "n_undecided": group.n_undecided,
        "interval": list(group.interval),
    }


def run_object(run: RunReport) -> dict[str, object]:
    """Returns one run as an object."""
    return {
        "thread": run.thread,
        "status": run.status,
        "nodes": list(run.nodes),
        "tool_calls": [
            {
                "name": call.name,
                "args": dict(call.args),
                "id": call.id,
                "served_by": call.served_by,
                "ns": call.ns,
                "result": call.result,
            }
            for call in run.tool_calls
        ],
        "reply": run.reply,
        "failed": run.failed,
        "error": run.error,
        "head": run.head,
        "interrupts": [dict(asked) for asked in run.interrupts],
        "waits_before": list(run.waits_before),
        "blocked_hint": run.blocked_hint,
        "memory": [
            {"namespace": list(write.namespace), "key": write.key, "old": write.old, "new": write.new}
            for write in run.memory
        ],
        "usage": {
            "model_calls": run.usage.model_calls,
            "recorded": run.usage.recorded,
            "input_tokens": run.usage.input_tokens,
            "output_tokens": run.usage.output_tokens,
            "wall_s": round(run.usage.wall_s, 3),
        },
    }


def answered_object(entry: Answered) -> dict[str, object]:
    """Returns one fixed answer as an object."""
    return {
        "name": entry.name,
        "id": entry.id,
        "how": entry.how,
        "form": entry.form,
        "fields": [{"path": path, "left": old, "right": new} for path, old, new in entry.fields],
    }


def effects_object(effects: SideEffects) -> dict[str, object]:
    """Returns side effects as an object."""
    return {
        "recorded": effects.recorded,
        "stubbed": effects.stubbed,
        "live": effects.live,
        "blocked": effects.blocked,
        "escaped": effects.escaped,
    }
