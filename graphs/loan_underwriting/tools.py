"""The production tools: the back office over HTTP, effects exactly once, nothing real outside production."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import ClientOptions, EffectClient, access_from_environment, effect_client
from graphs.common.services import Retries
from graphs.loan_underwriting.catalog import registry_of

DEBUG_IDENTITY = "loan-agent@debug"
_SERVICES = ("documents", "statements", "employers", "inquiries", "reviews", "decisions", "loans")


class ProductionTools:
    """The tools over the back office. The idempotency key of an effect is `THREAD:CALL_ID`.

    Args:
        client: Calls the services.
    """

    def __init__(self, client: EffectClient) -> None:
        self._client = client

    def registry(self) -> ToolRegistry:
        """Returns them as the workflow takes them."""
        return registry_of(
            {
                "read_document": self.read_document,
                "fetch_statement": self.fetch_statement,
                "lookup_employer": self.lookup_employer,
                "pull_bureau": self.pull_bureau,
                "notify_underwriters": self.notify_underwriters,
                "write_decision_record": self.write_decision_record,
                "book_loan": self.book_loan,
            }
        )

    def read_document(self, document_id: str) -> str:
        """Reads what the document service recognised in a document; the document itself stays there."""
        return self._client.read("documents", document_id)

    def fetch_statement(self, statement_id: str) -> str:
        """Reads an account statement."""
        return self._client.read("statements", statement_id)

    def lookup_employer(self, employer_id: str) -> str:
        """Reads an employer's record."""
        return self._client.read("employers", employer_id)

    def pull_bureau(self, config: RunnableConfig, tool_call_id: str, **body: Any) -> str:
        """Asks the bureau."""
        return self._client.cause("inquiries", "pull_bureau", body, config=config, call_id=tool_call_id)

    def notify_underwriters(self, config: RunnableConfig, tool_call_id: str, **body: Any) -> str:
        """Queues the case."""
        case = {"case": str(config["configurable"]["thread_id"])}
        return self._client.cause(
            "reviews", "notify_underwriters", {**case, **body}, config=config, call_id=tool_call_id
        )

    def write_decision_record(self, config: RunnableConfig, tool_call_id: str, **body: Any) -> str:
        """Writes the record, with the case and, as a note, the checkpoint that it was decided on."""
        info = get_runtime().execution_info
        return self._client.cause(
            "decisions",
            "write_decision_record",
            {"case": str(config["configurable"]["thread_id"]), **body},
            config=config,
            call_id=tool_call_id,
            note={"checkpoint_id": info.checkpoint_id if info is not None else ""},
        )

    def book_loan(self, config: RunnableConfig, tool_call_id: str, **body: Any) -> str:
        """Books the loan."""
        return self._client.cause("loans", "book_loan", body, config=config, call_id=tool_call_id)


def production_tools(base_url: str, **options: Unpack[ClientOptions]) -> ToolRegistry:
    """Builds the production registry over the back office at an address.

    A tool makes one attempt: the node is what is tried again, under the same key.
    """
    once = Retries(max_attempts=1)
    return ProductionTools(effect_client(_SERVICES, base_url, retries=once, **options)).registry()


def registry_from_environment(env: Mapping[str, str] = os.environ) -> ToolRegistry:
    """Builds the production registry from LOAN_BACKOFFICE_URL, LOAN_SERVICE_IDENTITY and LOAN_DATABASE_URL.

    Outside production the address alone is needed: reads may run, under an identity that may do nothing else.

    Raises:
        KeyError: a variable is missing.
    """
    access = access_from_environment("LOAN", env, debug_identity=DEBUG_IDENTITY)
    return production_tools(
        env["LOAN_BACKOFFICE_URL"], identity=access.identity, database_url=access.database_url, env=env
    )
