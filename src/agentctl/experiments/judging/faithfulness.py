"""What differs between the recorded run and a replay of it, besides chance: reasons why a failure may not show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agentctl.codec import jsontext
from agentctl.codec.messages import text_of
from agentctl.experiments.comparing.values_diff import changes
from agentctl.experiments.experiment import Experiment, Target, recorded_configurable
from agentctl.records.rows import CheckpointRow
from agentctl.records.runs import RunGroup, ToolCallReport
from agentctl.stores.reading.state import read_values

VERSION_CHANNELS = ("graph_version", "policy_version", "prompt_version", "model")
_VERSION_METADATA = ("langgraph_version", "graph_version", "revision_id")


def faithfulness(experiment: Experiment, target: Target, row: CheckpointRow, group: RunGroup) -> tuple[str, ...]:
    """Returns one line for everything known that differs, and for what the rows cannot tell.

    Args:
        experiment: The experiment.
        target: The replayed checkpoint.
        row: Its row.
        group: The replays.
    """
    return (
        *_versions(experiment, target, group),
        *_installed(row.metadata),
        *_configuration(experiment, row),
        *_tool_data(experiment, group),
        *_model(experiment, group),
    )


def _versions(experiment: Experiment, target: Target, group: RunGroup) -> Iterator[str]:
    """A version that the state records and that a replay wrote differently."""
    run = next((run for run in group.runs if run.head), None)
    if run is None or run.head is None:
        return
    recorded = read_values(experiment.source, target.thread, target.ns, target.id, channels=VERSION_CHANNELS).values
    replayed = read_values(experiment.debug.writer, run.thread, "", run.head, channels=VERSION_CHANNELS).values
    for channel in VERSION_CHANNELS:
        if channel in recorded and channel in replayed and recorded[channel] != replayed[channel]:
            yield f"{channel}: recorded {recorded[channel]}, replayed under {replayed[channel]}"


def _installed(metadata: Mapping[str, object]) -> Iterator[str]:
    recorded = metadata.get("langgraph_version")
    if not isinstance(recorded, str):
        return
    from importlib.metadata import version

    if version("langgraph") != recorded:
        yield f"langgraph: recorded under {recorded}, replayed under {version('langgraph')}"


def _configuration(experiment: Experiment, row: CheckpointRow) -> Iterator[str]:
    recorded = recorded_configurable(row.metadata)
    for key, value in experiment.configurable.items():
        if recorded.get(key) != value:
            was = json.dumps(recorded[key]) if key in recorded else "not recorded"
            yield f"configurable {key}: {was}, replayed with {json.dumps(value)}"


def _tool_data(experiment: Experiment, group: RunGroup) -> Iterator[str]:
    """What tools that ran live, or stubs, answered otherwise than the recording."""
    seen: set[str] = set()
    for call in (call for run in group.runs for call in run.tool_calls):
        recorded = experiment.recording.example(call.name)
        if call.served_by not in ("live", "stub") or recorded is None or call.result is None:
            continue
        line = _difference(call, text_of(recorded.content))
        if line is not None and line not in seen:
            seen.add(line)
            yield line


def _difference(call: ToolCallReport, recorded: str) -> str | None:
    result = call.result or ""
    if result == recorded:
        return None
    try:
        found = list(changes(jsontext.parse(recorded), jsontext.parse(result)))
    except ValueError:
        return f"tool data: {call.name} answered otherwise ({call.served_by})"
    fields = ", ".join(
        f"{c.path} {json.dumps(c.left, default=str)} -> {json.dumps(c.right, default=str)}" for c in found[:4]
    )
    return f"tool data: {call.name} has changed since ({call.served_by}): {fields}" if found else None


def _model(experiment: Experiment, group: RunGroup) -> Iterator[str]:
    if experiment.models is not None:
        yield "model: none ran, its answers are the recorded ones; a prompt or model changed since does not show"
    elif any(run.model_ran for run in group.runs):
        yield "model: answers are not recorded, the model ran again; a prompt or model changed since shows here alone"
