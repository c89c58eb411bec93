"""A starter registry: the sandbox tools that `sandbox init` writes for a graph, and what they answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentctl.records.runs import Effect

StarterAnswer = Literal["recorded", "shortened", "nothing"]


@dataclass(frozen=True, slots=True)
class StarterTool:
    """One tool of a starter registry.

    Attributes:
        name: What the model calls it by.
        description: What the model is told of it.
        schema: JSON schema of the arguments that a model fills in.
        effect: Its effect; `write`, since nothing says that it is less.
        answers_with: `recorded` a result as a thread holds it; `shortened` one that was too long; `nothing`: it has no
            stub, since no thread that was read holds a result, or none that a stub could give.
        example: What it answers, an inert value; None where it answers with nothing.
        notes: What the example leaves out, or where the schema comes from.
    """

    name: str
    description: str
    schema: Mapping[str, object]
    effect: Effect
    answers_with: StarterAnswer
    example: object = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Starter:
    """A starter registry.

    Attributes:
        graph: Spec of the graph, as agentctl.yaml would have it.
        workflow: Name for the workflow.
        tools: In the order that the graph holds them.
        left_out: Names of its tools that need no stub: known to touch graph state alone, or to run nothing.
        threads: Threads that were read for results.
        is_complete: Whether all of the graph was looked through.
    """

    graph: str
    workflow: str
    tools: tuple[StarterTool, ...]
    left_out: tuple[str, ...]
    threads: tuple[str, ...]
    is_complete: bool = True
