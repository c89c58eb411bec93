"""Examples into a LangSmith dataset, through its own client."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from agentctl.codec.jsontext import jsonable
from agentctl.datasets.folder import example_object
from agentctl.errors import ConfigError, MissingExtra, StoreError, UsageError
from agentctl.records.datasets import Example, ExportReport

API_KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
MAX_EXAMPLE_BYTES = 20_000_000
"""An example larger than this is refused by the service; it is found before anything is sent."""


def upload(examples: Sequence[Example], dataset: str, *, endpoint: str | None, dry_run: bool) -> ExportReport:
    """Creates the dataset where it is missing and adds the examples, or replaces those that are there.

    The client takes its key from LANGSMITH_API_KEY and, without `endpoint`, its address from LANGSMITH_ENDPOINT.

    Raises:
        MissingExtra: langsmith is not installed.
        UsageError: an example is too large; nothing was sent.
        ConfigError: there is no API key.
        StoreError: the service refused or could not be reached.
    """
    try:
        from langsmith import Client
        from langsmith.utils import LangSmithError
    except ImportError as error:
        raise MissingExtra(
            "format langsmith needs the langsmith package", hint="pip install 'langgraph-agentctl[langsmith]'"
        ) from error

    payloads = [_payload(example) for example in examples]
    for payload in payloads:
        n_bytes = len(json.dumps(payload))
        if n_bytes > MAX_EXAMPLE_BYTES:
            raise UsageError(
                f"example {payload['id']} has {n_bytes:,} bytes, more than LangSmith takes",
                hint="--format jsonl has no limit",
            )
    if dry_run:
        return ExportReport(dataset, "langsmith", len(payloads), len(payloads), (), dry_run=True)
    if not any(os.environ.get(name) for name in API_KEYS):
        raise ConfigError(f"{API_KEYS[0]} is not set", hint=f"{API_KEYS[0]}=... agentctl export ..., or --format jsonl")
    try:
        client = Client(api_url=endpoint, auto_batch_tracing=False)
        found = (
            client.read_dataset(dataset_name=dataset)
            if client.has_dataset(dataset_name=dataset)
            else client.create_dataset(dataset, description="Turns exported from LangGraph threads by agentctl.")
        )
        known = {
            str(example.id)
            for example in client.list_examples(dataset_id=found.id, example_ids=[p["id"] for p in payloads])
        }
        new = [payload for payload in payloads if payload["id"] not in known]
        if new:
            client.create_examples(dataset_id=found.id, examples=new)
        for payload in payloads:
            if payload["id"] in known:
                client.update_example(
                    payload["id"],
                    inputs=payload["inputs"],
                    outputs=payload["reference_outputs"],
                    metadata=payload["metadata"],
                    split=payload["split"],
                    dataset_id=found.id,
                )
    except LangSmithError as error:
        raise StoreError(
            f"LangSmith refused: {error}", hint="LANGSMITH_API_KEY and LANGSMITH_ENDPOINT say where and who"
        ) from error
    return ExportReport(dataset, "langsmith", len(payloads), len(new), (), url=found.url)


def _payload(example: Example) -> dict[str, Any]:
    """The same dicts as in `examples.jsonl`; the reference is what LangSmith calls the example's outputs."""
    whole: Any = jsonable(example_object(example))
    return {
        "id": example.id,
        "inputs": whole["inputs"],
        "reference_outputs": whole["reference"],
        "metadata": {**whole["metadata"], "recorded": whole["outputs"]},
        "split": example.split,
    }
