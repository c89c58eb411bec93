"""case.json: a case's state and history on the disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from agentctl.casebook.files import read_plain, replace_document
from agentctl.codec.jsontext import timestamp
from agentctl.errors import Refused, StoreError
from agentctl.records.cases import Case, CaseEvent
from agentctl.records.copies import Place

SCHEMA: Final = "agentctl.case/1"
CASE_FILE: Final = "case.json"


def write_case(case: Case) -> None:
    """Writes case.json at once. The caller holds the folder's lock, or the folder is not yet in its place."""
    document: dict[str, object] = {
        "schema": SCHEMA,
        "name": case.name,
        "state": case.state,
        "source": _place(case.source) if case.source else None,
        "events": [{"kind": event.kind, "at": timestamp(event.at), "text": event.text} for event in case.events],
    }
    replace_document(case.folder / CASE_FILE, document)


def read_case(folder: Path) -> Case:
    """Returns the case of a folder.

    Raises:
        StoreError: case.json is missing, damaged, or of a newer version.
    """
    path = folder / CASE_FILE
    try:
        document = json.loads(read_plain(path))
        if document["schema"] != SCHEMA:
            raise StoreError(f"{path} has schema {document['schema']}, this version reads {SCHEMA}")
        events = tuple(
            CaseEvent(event["kind"], datetime.fromisoformat(event["at"]), event["text"]) for event in document["events"]
        )
        if document["state"] not in ("open", "closed") or not events:
            raise ValueError("no state")
        source = Place(**document["source"]) if document["source"] else None
    except FileNotFoundError as exc:
        raise StoreError(f"{folder} is no case: it has no {CASE_FILE}", hint="move it away") from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise StoreError(f"{path} is damaged: {exc}", hint="its ledgers beside it are plain files still") from exc
    return Case(folder.name, folder, document["state"], events, source)


def require_open(case: Case) -> Case:
    """Returns the case.

    Raises:
        Refused: it is closed; nothing is added to it until it is opened again.
    """
    if case.state == "closed":
        raise Refused(f"case {case.name} is closed", hint=f"reopen it: agentctl case open {case.name}")
    return case


def _place(place: Place) -> Mapping[str, str]:
    return {"store": place.store, "thread": place.thread, "profile": place.profile}
