"""The forms of a fork, as the command line gives them: text to records, nothing of a store looked at.

All forms of one command are one fork. What cannot be meant together is refused here.
"""

from __future__ import annotations

import json
import pathlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentctl.codec import jsontext
from agentctl.errors import RevisionSyntaxError, UsageError
from agentctl.experiments.forking.paths import Path, parse_path, path_text

ReadFile = Callable[[str], str]
"""Reads a named file as text; raises OSError."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`--answer CALL=JSON|@FILE`: the whole result of one call. `content` is text, blocks or any JSON value."""

    call: str
    content: object
    as_blocks: bool = False
    form: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """`--patch CALL:PATH=JSON`: one field of the recorded result of one call."""

    call: str
    path: Path
    value: object
    form: str = ""


@dataclass(frozen=True, slots=True)
class Assign:
    """`--set PATH=JSON`: a state value; the first step of the path is the channel."""

    path: Path
    value: object
    form: str = ""

    @property
    def channel(self) -> str:
        """The channel that is set."""
        return str(self.path[0])


@dataclass(frozen=True, slots=True)
class MemoryItemForm:
    """`--memory NS/KEY=JSON`: one item of the memory store; `namespace` is NS split at slashes."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, object]
    form: str = ""


@dataclass(frozen=True, slots=True)
class NewInput:
    """`--input FILE`: what the graph is given instead of going on."""

    value: object
    form: str = ""


@dataclass(frozen=True, slots=True)
class Forms:
    """Everything one fork changes. Empty means: run the target again as it is."""

    answers: tuple[Answer, ...] = ()
    patches: tuple[Patch, ...] = ()
    assigns: tuple[Assign, ...] = ()
    update: Mapping[str, object] | None = None
    update_form: str = ""
    as_node: str | None = None
    goto: str | None = None
    resume: tuple[object, ...] = ()
    new_input: NewInput | None = None
    memory: tuple[MemoryItemForm, ...] = ()

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls whose results are changed, as named."""
        return (*(form.call for form in self.answers), *(form.call for form in self.patches))

    @property
    def changes_state(self) -> bool:
        """Whether a run finds other values than were recorded, or takes another route."""
        forms = (self.assigns, self.memory, self.update is not None, self.goto is not None, self.new_input is not None)
        return any(forms)

    @property
    def texts(self) -> tuple[str, ...]:
        """The forms as given, each one flag and its value: what reproduces the fork."""
        texts = [*(form.form for form in self.answers), *(form.form for form in self.patches)]
        texts += [form.form for form in self.assigns]
        if self.update is not None:
            texts.append(self.update_form)
        if self.as_node is not None:
            texts.append(f"--as-node {self.as_node}")
        if self.goto is not None:
            texts.append(f"--goto {self.goto}")
        if self.new_input is not None:
            texts.append(self.new_input.form)
        return (*texts, *(form.form for form in self.memory))

    @property
    def op(self) -> str:
        """The names of the forms used, for the fork's metadata: `answer`, `set+goto` ..."""
        used = {
            "answer": bool(self.answers),
            "patch": bool(self.patches),
            "set": bool(self.assigns),
            "update": self.update is not None,
            "goto": self.goto is not None,
            "input": self.new_input is not None,
            "memory": bool(self.memory),
            "resume": bool(self.resume),
        }
        return "+".join(name for name, is_used in used.items() if is_used) or "rerun"


def parse_forms(
    *,
    answer: Sequence[str] = (),
    patch: Sequence[str] = (),
    assign: Sequence[str] = (),
    update: str | None = None,
    as_node: str | None = None,
    goto: str | None = None,
    resume: Sequence[str] = (),
    new_input: str | None = None,
    memory: Sequence[str] = (),
    read_file: ReadFile | None = None,
) -> Forms:
    """Parses the values of the fork flags.

    Args:
        answer: Values of `--answer`.
        patch: Values of `--patch`.
        assign: Values of `--set`.
        update: Value of `--update`, a file.
        as_node: Value of `--as-node`.
        goto: Value of `--goto`.
        resume: Values of `--resume`, each JSON.
        new_input: Value of `--input`, a file.
        memory: Values of `--memory`.
        read_file: Reads files; the real ones by default.

    Raises:
        RevisionSyntaxError: a value cannot be read; the span is underlined.
        UsageError: a file cannot be read, or the forms contradict each other.
    """
    read = _FileReader(read_file or _read_text)
    forms = Forms(
        answers=tuple(_answer(text, read) for text in answer),
        patches=tuple(_patch(text) for text in patch),
        assigns=tuple(_assign(text) for text in assign),
        update=None if update is None else _mapping(read.json(update, "--update"), "--update"),
        update_form="" if update is None else f"--update {shlex.quote(update)}",
        as_node=as_node,
        goto=goto,
        resume=tuple(parse_json(text, "--resume") for text in resume),
        new_input=None
        if new_input is None
        else NewInput(read.json(new_input, "--input"), f"--input {shlex.quote(new_input)}"),
        memory=tuple(_memory(text) for text in memory),
    )
    _refuse_contradictions(forms)
    return forms


def parse_json(text: str, flag: str) -> object:
    """Parses a JSON value of a flag.

    Raises:
        RevisionSyntaxError: it is not JSON; the hint shows how text is quoted.
    """
    try:
        value: object = jsontext.parse(text)
    except ValueError as error:
        at = min(getattr(error, "pos", 0), max(len(text) - 1, 0))
        raise RevisionSyntaxError(
            f"{flag} takes JSON, and this is not: {text}",
            text=text,
            span=(at, len(text)),
            hint=f"text needs quotes that the shell leaves alone: '{json.dumps(text, ensure_ascii=False)}'",
        ) from error
    return value


def _answer(text: str, read: _FileReader) -> Answer:
    call, value = _split(text, "--answer", "CALL=JSON or CALL=@FILE")
    form = f"--answer {shlex.quote(text)}"
    if value.startswith("@"):
        content, as_blocks = _file_content(read.text(value[1:], "--answer"))
        return Answer(call, content, as_blocks, form)
    return Answer(call, parse_json(value, "--answer"), form=form)


def _file_content(text: str) -> tuple[object, bool]:
    """Returns a result as `show --call` printed it: a JSON string, content blocks, or text taken as it is."""
    body = text.removesuffix("\n")
    try:
        value = jsontext.parse(body)
    except ValueError:
        return body, False
    if isinstance(value, str):
        return value, False
    is_blocks = isinstance(value, list) and bool(value) and all(isinstance(b, dict) and "type" in b for b in value)
    return (value, True) if is_blocks else (body, False)


def _patch(text: str) -> Patch:
    left, value = _split(text, "--patch", "CALL:PATH=JSON")
    colon = _last_outside_brackets(left, ":")
    if colon <= 0 or colon == len(left) - 1:
        call = left.rstrip(":")
        raise RevisionSyntaxError(
            f"--patch takes CALL:PATH=JSON, and this has no path: {text}",
            text=text,
            span=(0, len(left)),
            hint=f"one field: --patch {call}:FIELD=JSON; the whole result: --answer {call}=JSON",
        )
    return Patch(
        left[:colon], parse_path(left[colon + 1 :]), parse_json(value, "--patch"), f"--patch {shlex.quote(text)}"
    )


def _assign(text: str) -> Assign:
    left, value = _split(text, "--set", "PATH=JSON")
    path = parse_path(left)
    if not isinstance(path[0], str):
        raise RevisionSyntaxError(
            "--set names a channel first", text=text, span=(0, len(left)), hint="like messages[0].content=JSON"
        )
    return Assign(path, parse_json(value, "--set"), f"--set {shlex.quote(text)}")


def _memory(text: str) -> MemoryItemForm:
    left, value = _split(text, "--memory", "NS/KEY=JSON")
    *namespace, key = left.split("/")
    if not namespace or not key or not all(namespace):
        raise RevisionSyntaxError(
            f"--memory takes NS/KEY=JSON: {text}",
            text=text,
            span=(0, len(left)),
            hint="a namespace of several parts has slashes: travellers/u-1/preferences=JSON",
        )
    return MemoryItemForm(
        tuple(namespace), key, _mapping(parse_json(value, "--memory"), "--memory"), f"--memory {shlex.quote(text)}"
    )


def _refuse_contradictions(forms: Forms) -> None:
    """Refuses forms that cannot be meant together.

    Raises:
        UsageError: they cannot.
    """
    named = [call for call in forms.calls if forms.calls.count(call) > 1 and any(a.call == call for a in forms.answers)]
    if named:
        raise UsageError(f"{named[0]} is given more than one result", hint="one --answer, or several --patch, per call")
    twice = [a.form for i, a in enumerate(forms.assigns) for b in forms.assigns[:i] if a.path == b.path]
    if twice:
        raise UsageError(f"{path_text(forms.assigns[-1].path)} is set twice")
    if forms.update is not None and forms.as_node is None:
        raise UsageError("--update needs --as-node", hint="the node whose result this is: --as-node NODE")
    if forms.as_node is not None and forms.update is None and not forms.assigns:
        raise UsageError("--as-node says who made an update", hint="give --update FILE or --set PATH=JSON with it")
    if forms.new_input is not None and (forms.update is not None or forms.goto is not None):
        raise UsageError("--input starts a new turn, so --update and --goto would not be used", hint="use it without")
    if forms.calls and forms.update is not None:
        raise UsageError(
            "--update writes a whole node's result, and --answer or --patch a part of one", hint="use one of them"
        )


class _FileReader:
    """Reads the files that flags name, and says which flag when it cannot."""

    def __init__(self, read: ReadFile) -> None:
        self._read = read

    def text(self, path: str, flag: str) -> str:
        try:
            return self._read(path)
        except (OSError, UnicodeDecodeError) as error:
            hint = f"{flag} takes a file: write the JSON into one" if path.lstrip()[:1] in ("{", "[") else None
            raise UsageError(f"{flag} cannot read {path}: {_reason(error)}", hint=hint) from error

    def json(self, path: str, flag: str) -> object:
        text = self.text(path.removeprefix("@"), flag)
        try:
            value: object = jsontext.parse(text)
        except ValueError as error:
            raise UsageError(f"{flag}: {path} is not JSON: {error}") from error
        return value


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"


def _split(text: str, flag: str, form: str) -> tuple[str, str]:
    at = _first_outside_brackets(text, "=")
    if at <= 0:
        raise RevisionSyntaxError(f"{flag} takes {form}: {text}", text=text, span=(0, len(text)))
    return text[:at], text[at + 1 :]


def _outside_brackets(text: str, wanted: str) -> list[int]:
    """Returns where `wanted` stands outside `["..."]`."""
    found = []
    in_quotes = escaped = False
    for at, character in enumerate(text):
        if in_quotes:
            in_quotes = character != '"' or escaped
            escaped = character == "\\" and not escaped
        elif character == '"' and text[at - 1 : at] == "[":
            in_quotes = True
        elif character == wanted:
            found.append(at)
    return found


def _first_outside_brackets(text: str, wanted: str) -> int:
    return next(iter(_outside_brackets(text, wanted)), -1)


def _last_outside_brackets(text: str, wanted: str) -> int:
    return next(reversed(_outside_brackets(text, wanted)), -1)


def _mapping(value: object, flag: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise UsageError(f"{flag} takes a JSON object", hint='like {"channel": value}')
    return value


def _read_text(path: str) -> str:
    return pathlib.Path(path).expanduser().read_text(encoding="utf-8")
