"""Answering an interrupt: the owner is checked before anything is written, and of two answers one wins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt

from graphs.common.database import Database
from graphs.common.owners import CUSTOMER, Caller, caller_of, check_owner

CLAIMS_TABLE = """
CREATE TABLE IF NOT EXISTS answer_claims (
  thread TEXT NOT NULL, interrupt_id TEXT NOT NULL, actor TEXT NOT NULL, actor_role TEXT NOT NULL, answer TEXT NOT NULL,
  claimed_at TEXT NOT NULL, PRIMARY KEY (thread, interrupt_id)
)"""

Graph = CompiledStateGraph[Any, Any, Any, Any]


class ClaimAnswer(Protocol):
    """Claims a question for whoever `configurable` names."""

    def __call__(
        self,
        thread: str,
        interrupt_id: str,
        answer: object,
        configurable: Mapping[str, object],
        env: Mapping[str, str] = ...,
    ) -> None:
        """Claims it, or raises `AlreadyAnswered`."""
        ...


class NothingAsked(RuntimeError):
    """The thread is not waiting for an answer, or not for this one."""


class AlreadyAnswered(RuntimeError):
    """Somebody else answered first; `winner` is who."""

    def __init__(self, thread: str, winner: str) -> None:
        super().__init__(f"{thread} was answered by {winner}")
        self.winner = winner


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer that won."""

    actor: str
    role: str
    answer: object


class AnswerClaims:
    """One row per question that was answered: whoever writes it first has won.

    Args:
        database: The application's database; it must hold `CLAIMS_TABLE`.
        clock: Returns the present time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    def take(self, thread: str, interrupt_id: str, caller: Caller, answer: object) -> None:
        """Claims a question.

        Raises:
            AlreadyAnswered: it is claimed; the winner is named.
        """
        with self._database.transaction() as transaction:
            taken = transaction.execute(
                "INSERT INTO answer_claims VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING actor",
                (thread, interrupt_id, caller.actor, caller.role, json.dumps(answer), self._clock().isoformat()),
            )
            if not taken:
                winner = transaction.execute(
                    "SELECT actor FROM answer_claims WHERE thread = ? AND interrupt_id = ?", (thread, interrupt_id)
                )
                raise AlreadyAnswered(thread, winner[0]["actor"])

    def find(self, thread: str, interrupt_id: str) -> Claim | None:
        """Returns the answer that won a question, None while it has none."""
        with self._database.transaction() as transaction:
            found = transaction.execute(
                "SELECT actor, actor_role, answer FROM answer_claims WHERE thread = ? AND interrupt_id = ?",
                (thread, interrupt_id),
            )
        return Claim(found[0]["actor"], found[0]["actor_role"], json.loads(found[0]["answer"])) if found else None


def claim_answer(
    database: Database, thread: str, interrupt_id: str, answer: object, configurable: Mapping[str, object]
) -> None:
    """Claims a question for whoever a run's `configurable` names: for a program that answers without `answer`.

    Raises:
        AlreadyAnswered: it is claimed; the winner is named.
    """
    AnswerClaims(database).take(thread, interrupt_id, caller_of(configurable), answer)


def claims_in(variable: str, database: Callable[[str], Database]) -> ClaimAnswer:
    """Returns what claims a question before `agentctl resume` answers it, as a workflow's `claims` names it.

    It raises `AlreadyAnswered` where the question is claimed, and KeyError where the variable is missing.

    Args:
        variable: The environment variable that holds the URL of the application's database.
        database: Opens it.
    """

    def claim(
        thread: str,
        interrupt_id: str,
        answer: object,
        configurable: Mapping[str, object],
        env: Mapping[str, str] = os.environ,
    ) -> None:
        claim_answer(database(env[variable]), thread, interrupt_id, answer, configurable)

    return claim


def answer(
    graph: Graph, config: RunnableConfig, value: object, *, claims: AnswerClaims, asked: str | None = None
) -> Any:
    """Answers the question that a thread waits at, and runs on.

    Args:
        graph: The graph, with its checkpointer.
        config: Names the thread, and the authenticated caller.
        value: The answer.
        claims: Where the winner is kept.
        asked: The id of the question that the caller saw; by default the only one there is.

    Raises:
        NotTheOwner: the caller has no business on this thread.
        NothingAsked: the thread does not wait for this.
        AlreadyAnswered: another answer won.
    """
    configurable = config.get("configurable", {})
    caller, thread = caller_of(configurable), str(configurable["thread_id"])
    state = graph.get_state(config)
    check_owner(state.values.get("owner"), caller)
    if asked is not None and (claim := claims.find(thread, asked)) is not None:
        raise AlreadyAnswered(thread, claim.actor)
    question = _question(thread, state.interrupts, asked)
    claims.take(thread, question.id, caller, value)
    return graph.invoke(Command(resume={question.id: value}), config, durability="sync")


def recover(graph: Graph, config: RunnableConfig, *, claims: AnswerClaims) -> Any:
    """Runs on with the answer that won, where its process died before the thread took it.

    Raises:
        NothingAsked: the thread does not wait, or nobody answered.
    """
    configurable = dict(config.get("configurable", {}))
    thread = str(configurable["thread_id"])
    question = _question(thread, graph.get_state(config).interrupts, None)
    claim = claims.find(thread, question.id)
    if claim is None:
        raise NothingAsked(f"{thread} waits, and nobody has answered")
    as_winner: RunnableConfig = {
        **config,
        "configurable": {**configurable, "actor": claim.actor, "actor_role": claim.role or CUSTOMER},
    }
    return graph.invoke(Command(resume={question.id: claim.answer}), as_winner, durability="sync")


def _question(thread: str, interrupts: tuple[Interrupt, ...], asked: str | None) -> Interrupt:
    matching = [question for question in interrupts if asked in (None, question.id)]
    if len(matching) != 1:
        raise NothingAsked(f"{thread} waits for {len(interrupts)} answers, {len(matching)} of them this one")
    return matching[0]
