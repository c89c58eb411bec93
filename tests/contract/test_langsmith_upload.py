"""Uploads through the real LangSmith client to a server on loopback, by both routes that the client takes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.datasets import langsmith_upload
from agentctl.datasets.export import export
from agentctl.errors import ConfigError, StoreError, UsageError
from agentctl.records.datasets import ExportReport, Reference
from tests.support.examples import example
from tests.support.langsmith_loopback import LangSmith, langsmith_server

RIGHT = dataclasses.replace(example(), reference=Reference("Right.", ({"name": "lookup_order", "args": {}},)))
OTHER = dataclasses.replace(RIGHT, id="00000000-0000-5000-8000-000000000002", split="train", turn=2)


@pytest.fixture(params=[True, False], ids=["multipart", "bulk"])
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmith]:
    monkeypatch.setenv("LANGSMITH_API_KEY", "key-of-the-test")
    with langsmith_server(multipart=request.param) as running:
        yield running


def upload(service: LangSmith, folder: Path, *examples: object, **options: object) -> ExportReport:
    return export(
        examples,  # type: ignore[arg-type]
        base=folder,
        dataset="refunds",
        format="langsmith",
        endpoint=service.url,
        **options,  # type: ignore[arg-type]
    )


def test_a_missing_dataset_is_made_and_filled(service: LangSmith, tmp_path: Path) -> None:
    report = upload(service, tmp_path, RIGHT, OTHER)
    assert (report.n_examples, report.n_new, report.files) == (2, 2, ())
    assert report.url
    assert service.datasets["refunds"] in report.url
    assert set(service.examples) == {RIGHT.id, OTHER.id}
    assert {held["dataset_id"] for held in service.examples.values()} == {service.datasets["refunds"]}
    assert list(tmp_path.iterdir()) == []


def test_the_client_took_the_route_that_the_service_named(service: LangSmith, tmp_path: Path) -> None:
    upload(service, tmp_path, RIGHT)
    platform = f"/v1/platform/datasets/{service.datasets['refunds']}/examples"
    route = platform if service.multipart else "/examples/bulk"
    assert ("POST", route) in service.requests


def test_inputs_reference_provenance_and_split_arrive_as_they_are_in_the_file(
    service: LangSmith, tmp_path: Path
) -> None:
    upload(service, tmp_path, RIGHT)
    export([RIGHT], base=tmp_path, dataset="refunds", format="jsonl")
    written = json.loads((tmp_path / "refunds" / "examples.jsonl").read_text("utf-8"))
    held = service.examples[RIGHT.id]
    assert held["inputs"] == written["inputs"]
    assert held["outputs"] == written["reference"]
    assert held["split"] == written["split"]
    assert {**held["metadata"]} == {**written["metadata"], "recorded": written["outputs"]}


def test_uploading_again_replaces_the_example_that_is_there(service: LangSmith, tmp_path: Path) -> None:
    upload(service, tmp_path, RIGHT)
    corrected = dataclasses.replace(RIGHT, reference=Reference("Even better."))
    report = upload(service, tmp_path, corrected, OTHER)
    assert (report.n_examples, report.n_new) == (2, 1)
    assert len(service.datasets) == 1
    assert service.examples[RIGHT.id]["outputs"]["reply"] == "Even better."


def test_a_dry_run_sends_nothing(service: LangSmith, tmp_path: Path) -> None:
    report = upload(service, tmp_path, RIGHT, dry_run=True)
    assert report.dry_run
    assert service.requests == []


def test_an_example_that_the_service_would_refuse_for_its_size_is_found_before_anything_is_sent(
    service: LangSmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(langsmith_upload, "MAX_EXAMPLE_BYTES", 1000)
    with pytest.raises(UsageError, match=RIGHT.id):
        upload(service, tmp_path, RIGHT)
    assert service.requests == []


def test_a_refusal_of_the_service_is_a_store_error_with_its_words(service: LangSmith, tmp_path: Path) -> None:
    service.refuse_with = 422
    with pytest.raises(StoreError, match="refused"):
        upload(service, tmp_path, RIGHT)
    assert service.examples == {}


def test_without_a_key_nothing_is_sent(service: LangSmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGSMITH_API_KEY")
    with pytest.raises(ConfigError, match="LANGSMITH_API_KEY"):
        upload(service, tmp_path, RIGHT)
    assert service.requests == []


def test_the_key_goes_to_the_service_and_nowhere_into_the_dataset(service: LangSmith, tmp_path: Path) -> None:
    upload(service, tmp_path, RIGHT)
    assert service.keys == {"key-of-the-test"}
    assert "key-of-the-test" not in json.dumps(service.examples)
