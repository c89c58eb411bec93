"""Notes and pages: one file per source, with what was read and verbatim quotes; kept in the virtual filesystem."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphs.research_report.report import DATE, SOURCE_ID

NOTES = "/notes"
PAGES = "/pages"
DRAFT = "/draft.json"


class Quote(BaseModel):
    """A verbatim quote and the claim that it may support."""

    model_config = ConfigDict(extra="forbid")

    quote: str = Field(min_length=1, max_length=1000)
    claim: str = Field(min_length=1, max_length=500)


class Note(BaseModel):
    """What was read at one source for one sub-question; `/notes/SUB_QUESTION/SOURCE_ID.json`."""

    model_config = ConfigDict(extra="forbid")

    source_id: str = Field(pattern=SOURCE_ID)
    sub_question: str = Field(pattern=r"^q\d{1,2}$")
    url: str
    title: str
    publisher: str | None = None
    type: str | None = None
    accessed_on: str = Field(pattern=DATE)
    published_on: str | None = None
    duplicates: list[str] = Field(default_factory=list, description="Sources that carry the same text.")
    readable: bool = True
    reason: str | None = Field(default=None, description="Why it could not be read.")
    quotes: list[Quote] = Field(default_factory=list)

    @property
    def path(self) -> str:
        """Where the note belongs."""
        return f"{NOTES}/{self.sub_question}/{self.source_id}.json"


class Page(BaseModel):
    """A page as fetch_page gave it; `/pages/SOURCE_ID.json`."""

    model_config = ConfigDict(extra="ignore")

    source_id: str = Field(pattern=SOURCE_ID)
    url: str
    title: str = ""
    publisher: str | None = None
    type: str | None = None
    accessed_on: str
    published_on: str | None = None
    text: str = ""
    text_sha256: str = ""
    readable: bool = True
    reason: str | None = None
    duplicate_of: str | None = None

    @field_validator("title", "text", "text_sha256", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        return "" if value is None else value

    @property
    def path(self) -> str:
        """Where the page is kept."""
        return f"{PAGES}/{self.source_id}.json"


Files = Mapping[str, Mapping[str, Any]]


def text_file(text: str) -> dict[str, str]:
    """Returns a file as deepagents keeps it in state, without a time: the same contents are the same bytes."""
    return {"content": text, "encoding": "utf-8"}


def as_json(model: BaseModel) -> str:
    """Writes a note, a page or a report as the files hold it: indented, so that no line is cut when it is read."""
    return json.dumps(model.model_dump(mode="json"), indent=1, ensure_ascii=False)


def content(files: Files, path: str) -> str | None:
    """Returns a file's text, None where there is none."""
    found = files.get(path)
    if found is None:
        return None
    text = found.get("content", "")
    return "\n".join(text) if isinstance(text, list) else str(text)


def read_notes(files: Files) -> list[Note]:
    """Returns the notes, by path; files that are no note are left out."""
    return list(_parsed(Note, files, NOTES))


def read_pages(files: Files) -> dict[str, Page]:
    """Returns the pages by source id."""
    return {page.source_id: page for page in _parsed(Page, files, PAGES)}


def origins(pages: Iterable[Page]) -> dict[str, str]:
    """Returns for each source id the source whose text it is: copies of one release have one origin.

    A copy says so itself (`duplicate_of`, a source id or URL), or has the same text.
    """
    known = sorted(pages, key=lambda page: (page.published_on or "9999", page.source_id))
    by_url = {page.url: page.source_id for page in known}
    first_with_text: dict[str, str] = {}
    found: dict[str, str] = {}
    for page in known:
        named = by_url.get(page.duplicate_of or "", page.duplicate_of)
        same = first_with_text.setdefault(page.text_sha256 or page.source_id, page.source_id)
        found[page.source_id] = named or same
    return {source: _root(source, found) for source in found}


def sha256(text: str) -> str:
    """Returns the hash of a page's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _root(source: str, parents: Mapping[str, str]) -> str:
    seen = {source}
    while (parent := parents.get(source, source)) not in seen:
        seen.add(parent)
        source = parent
    return source


def _parsed(schema: type[Any], files: Files, folder: str) -> Iterable[Any]:
    for path in sorted(files):
        if not PurePosixPath(path).is_relative_to(folder):
            continue
        try:
            yield schema.model_validate_json(content(files, path) or "")
        except ValidationError:
            continue
