"""What a run does while it runs: nodes that really start, models called, tokens used, tools that run for real.

Imports LangChain, so it is imported by running code only, never by a looking command.

Source: langgraph 1.2.24, pregel/_algo.py (task metadata) and langchain-core 1.8.3, callbacks/base.py. A node's own run
is named like its `langgraph_node`; it starts only where the node is executed, so a task whose stored result is taken
over, or that comes from a node cache, never shows up here, which stream mode `tasks` does not tell.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from agentctl.experiments.runs.running import node_path
from agentctl.records.runs import ToolCallReport, Usage
from agentctl.sandbox.answers import cut_result
from agentctl.sandbox.replies import reply_text

HIDDEN_TAG = "langsmith:hidden"


class RunEvents(BaseCallbackHandler):
    """Collects one run's nodes, usage and tool calls. Safe to call from the threads that sync nodes run in.

    The tool calls are of use where no desk answers them: each ran for real (`live`).
    """

    run_inline = True

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: set[str] = set()
        self._nodes: list[str] = []
        self._model_calls = 0
        self._input_tokens = 0
        self._output_tokens = 0
        self._calls: dict[UUID, ToolCallReport] = {}
        self._began_s: dict[UUID, float] = {}

    @property
    def calls(self) -> tuple[ToolCallReport, ...]:
        """Every tool call that ran, in the order they began; one that did not end has no result."""
        with self._lock:
            return tuple(self._calls.values())

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes in the order they first started, inner ones with their path; a retried or resumed task counts once."""
        with self._lock:
            return tuple(self._nodes)

    def usage(self, wall_s: float) -> Usage:
        """Returns what was used so far; `wall_s` is given by the caller, whose clock it is."""
        with self._lock:
            return Usage(self._model_calls, self._input_tokens, self._output_tokens, wall_s)

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Notes a node that starts."""
        facts = metadata or {}
        node, ns = facts.get("langgraph_node"), facts.get("langgraph_checkpoint_ns")
        if not node or not ns or kwargs.get("name") != node or HIDDEN_TAG in (tags or ()):
            return
        with self._lock:
            if ns not in self._seen:
                self._seen.add(ns)
                self._nodes.append(node_path(ns))

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Notes a tool call that begins, injected arguments left out."""
        ns = str((metadata or {}).get("langgraph_checkpoint_ns") or "").rpartition("|")[0]
        name = str((serialized or {}).get("name") or kwargs.get("name") or "")
        call = ToolCallReport(name, dict(inputs or {}), str(kwargs.get("tool_call_id") or ""), "live", ns)
        with self._lock:
            self._calls[run_id] = call
            self._began_s[run_id] = time.perf_counter()

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Notes what a tool call gave."""
        self._settle(run_id, reply_text(output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Notes what a tool call raised."""
        self._settle(run_id, f"{type(error).__name__}: {error}")

    def _settle(self, run_id: UUID, result: str) -> None:
        with self._lock:
            if (call := self._calls.get(run_id)) is not None:
                duration_ms = round((time.perf_counter() - self._began_s[run_id]) * 1000, 3)
                self._calls[run_id] = replace(call, duration_ms=duration_ms, result=cut_result(result))

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Counts a chat model call."""
        with self._lock:
            self._model_calls += 1

    def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **kwargs: Any) -> None:
        """Counts a completion model call."""
        with self._lock:
            self._model_calls += 1

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Adds the tokens that the model reported."""
        sent, received = _tokens(response)
        with self._lock:
            self._input_tokens += sent
            self._output_tokens += received


def _tokens(response: LLMResult) -> tuple[int, int]:
    """Returns (input, output) tokens: of the messages, or of the provider's summary where messages carry none."""
    messages = [
        generation.message
        for generations in response.generations
        for generation in generations
        if isinstance(generation, ChatGeneration)
    ]
    counts = [
        message.usage_metadata for message in messages if isinstance(message, AIMessage) and message.usage_metadata
    ]
    if counts:
        return sum(c["input_tokens"] for c in counts), sum(c["output_tokens"] for c in counts)
    summary = (response.llm_output or {}).get("token_usage") or {}
    return _count(summary, ("prompt_tokens", "input_tokens")), _count(summary, ("completion_tokens", "output_tokens"))


def _count(summary: Mapping[str, Any], names: Sequence[str]) -> int:
    return next((summary[name] for name in names if isinstance(summary.get(name), int)), 0)
