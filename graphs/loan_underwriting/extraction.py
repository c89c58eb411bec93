"""Reading one document: its entries by reference, the model's candidates, checked before they count."""

from __future__ import annotations

from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.loan_underwriting import prompts
from graphs.loan_underwriting.asking import first_problem
from graphs.loan_underwriting.kit import Kit
from graphs.loan_underwriting.state import Candidate, DocumentToRead, Extraction

FieldName = Literal["full_name", "birth_date", "id_last4", "employer_id", "employer_name", "monthly_income", "currency"]


class ReadField(BaseModel):
    """One field that the document states."""

    model_config = ConfigDict(extra="forbid")

    field: FieldName
    value: str = Field(min_length=1, max_length=200)
    confidence: float = Field(ge=0.0, le=1.0)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: str = Field(min_length=1, max_length=80)
    value: str = Field(min_length=1, max_length=400)


class _Recognised(BaseModel):
    """The document service's answer: what it recognised, and not the document."""

    model_config = ConfigDict(extra="ignore")

    entries: list[_Entry] = Field(min_length=1, max_length=60)


class DocumentReading(BaseModel):
    """What the document states."""

    model_config = ConfigDict(extra="forbid")

    fields: list[ReadField]
    inconsistencies: list[str] = Field(default_factory=list, max_length=10)


def read(
    item: DocumentToRead, *, kit: Kit, model: BaseChatModel, config: RunnableConfig
) -> tuple[Extraction, list[AnyMessage]]:
    """Reads a document.

    Returns:
        The reading, and the messages of the tool call.
    """
    number = "" if item["attempt"] == 1 else f":{item['attempt']}"
    call_id = f"read_document:{item['document_id']}{number}"
    called = kit.call("read_document", {"document_id": item["document_id"]}, id=call_id, config=config)
    if called.failed:
        return _unread(item, f"{called.content}"), called.messages
    try:
        entries = _Recognised.model_validate(called.content).entries
    except ValidationError as error:
        return _unread(item, f"not recognised: {first_problem(error)}"), called.messages
    text = "\n".join(f"{entry.label}: {entry.value}" for entry in entries)
    settings = kit.settings(config)
    messages = prompts.extraction_messages(settings.prompt, kind=item["kind"], text=text, problems=item["problems"])
    sampling = {} if settings.temperature is None else {"temperature": settings.temperature}
    bound = model.bind_tools([DocumentReading], tool_choice="DocumentReading")
    answer = bound.invoke(messages, config, **sampling)
    return _checked(item, answer.tool_calls[0]["args"] if answer.tool_calls else None), called.messages


def _checked(item: DocumentToRead, answer: object) -> Extraction:
    """Takes what fits the schema; anything else is a problem, never a value."""
    try:
        reading = DocumentReading.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return _unread(item, f"the reading does not fit: {'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}")
    fields: dict[str, Candidate] = {
        each.field: Candidate(value=each.value, confidence=each.confidence) for each in reading.fields
    }
    return {**_unread(item, ""), "fields": fields, "inconsistencies": reading.inconsistencies}


def _unread(item: DocumentToRead, problem: str) -> Extraction:
    return Extraction(
        document_id=item["document_id"],
        kind=item["kind"],
        attempt=item["attempt"],
        fields={},
        inconsistencies=[],
        problem=problem,
    )
