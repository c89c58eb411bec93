"""Checks: what failing means, in a file or inline, settled on what a run showed.

A clause answers True (it holds), False, or None (cannot be said yet), and `all`, `any` and `not` combine these by
three-valued logic. A run that did not end settles only clauses about calls that it made, and `interrupted` and
`ends_at`, which speak of where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from agentctl.config.yamldocument import NotYaml, read_document
from agentctl.errors import GraphFailed, NotFound, UsageError, is_of_called_code
from agentctl.experiments.runs.observed import Observed

Settle = Callable[[Observed], bool | None]

INLINE_FORMS = (
    "reply contains TEXT",
    "reply not contains TEXT",
    "reply matches REGEX",
    "called NAME",
    "not called NAME",
    "state JMESPATH",
)
_CLAUSES = ("all", "any", "not", "reply", "tool_called", "tool_not_called", "state", "ends_at", "interrupted", "python")
END = "END"


@dataclass(frozen=True, slots=True)
class Clause:
    """A check, or a part of one: its text and how it is settled."""

    text: str
    decide: Settle

    def settle(self, observed: Observed) -> bool | None:
        """Returns True where the run failed, False where it did not, None where that cannot be said."""
        return None if observed.forced_end else self.decide(observed)


def parse_checks(texts: Sequence[str], cwd: Path) -> Clause | None:
    """Returns one check for all `--check` values: each a file or an inline form; all must hold. None for no values.

    Args:
        texts: Values as given. One that names an existing file, or ends in .yaml, .yml or .json, is a file.
        cwd: The folder that file names are relative to.

    Raises:
        UsageError: a value is neither, a clause is unknown, a regex or a JMESPath does not parse.
        NotFound: a check file does not exist.
    """
    if not texts:
        return None
    return _all([_parse_one(text, cwd) for text in texts])


def require_forms(texts: Sequence[str], cwd: Path) -> None:
    """Raises what `parse_checks` would raise of inline forms and of files that are missing; no code is loaded.

    Raises:
        UsageError: a value is no check.
        NotFound: a check file does not exist.
    """
    for text in texts:
        path = _file_of(text, cwd)
        if path is None:
            parse_inline(text)
        elif not path.exists():
            raise _missing(path)


def _parse_one(text: str, cwd: Path) -> Clause:
    path = _file_of(text, cwd)
    return parse_inline(text) if path is None else load_check(path)


def _file_of(text: str, cwd: Path) -> Path | None:
    """Returns the file that a value of `--check` names, None for an inline form."""
    path = cwd / text
    is_file = text.endswith((".yaml", ".yml", ".json")) or ("\n" not in text and len(text) < 256 and path.is_file())
    return path if is_file else None


def _missing(path: Path) -> NotFound:
    return NotFound(f"no check file at {path}", hint="inline forms: " + "; ".join(INLINE_FORMS))


def parse_inline(text: str) -> Clause:
    """Returns the check of one inline form.

    Raises:
        UsageError: the text is none of `INLINE_FORMS`.
    """
    head, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if head == "reply" and rest:
        for word in ("not contains", "contains", "matches"):
            if rest.startswith(word + " "):
                return _reply({word.replace(" ", "_"): rest[len(word) + 1 :].strip()})
    elif head == "called" and rest:
        return _called(rest, None)
    elif head == "not" and rest.startswith("called "):
        return _not(_called(rest.removeprefix("called ").strip(), None))
    elif head == "state" and rest:
        return _state(rest)
    raise UsageError(
        f"not a check: {text!r}", hint="one of: " + "; ".join(repr(form) for form in INLINE_FORMS) + "; or a file"
    )


def load_check(path: Path) -> Clause:
    """Returns the check of a YAML or JSON file with the one top key `fails_when`.

    Raises:
        NotFound: the file does not exist.
        UsageError: it does not say what a check says.
    """
    try:
        document, _ = read_document(path.read_text("utf-8"))
    except FileNotFoundError:
        raise _missing(path) from None
    except (NotYaml, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path.name} cannot be read as a check: {error}") from error
    if not isinstance(document, dict) or list(document) != ["fails_when"]:
        raise UsageError(
            f"{path.name} must have the one top key fails_when", hint="fails_when:\n  reply: {contains: TEXT}"
        )
    return _parse_clause(document["fails_when"], path)


def _parse_clause(value: object, path: Path) -> Clause:
    if isinstance(value, str):
        return parse_inline(value)
    if not isinstance(value, dict) or not value:
        raise UsageError(
            f"{path.name}: a clause is a mapping such as {{tool_called: {{name: issue_refund}}}}, not {value!r}"
        )
    return _all([_parse_key(str(key), inner, path) for key, inner in value.items()])


def _parse_key(key: str, value: object, path: Path) -> Clause:
    match key, value:
        case (("all" | "any"), list()) if value:
            parts = [_parse_clause(part, path) for part in value]
            return _all(parts) if key == "all" else _any(parts)
        case "not", _:
            return _not(_parse_clause(value, path))
        case "reply", dict() if value:
            return _reply({str(word): text for word, text in value.items()})
        case "tool_called", str():
            return _called(value, None)
        case "tool_called", {"name": str(name), **rest} if set(rest) <= {"args"}:
            arguments = rest.get("args")
            if arguments is not None and not isinstance(arguments, dict):
                raise UsageError(f"{path.name}: tool_called.args must be a mapping")
            return _called(name, arguments)
        case "tool_not_called", str(name) | {"name": str(name)}:
            return _not(_called(name, None))
        case "state", str():
            return _state(value)
        case "ends_at", str():
            return _ends_at(value)
        case "interrupted", bool():
            return _interrupted() if value else _not(_interrupted())
        case "python", str():
            return _python(value, path.parent)
    if key not in _CLAUSES:
        near = get_close_matches(key, _CLAUSES, 1)
        raise UsageError(
            f"{path.name}: unknown clause {key}",
            hint=f"did you mean {near[0]}?" if near else "clauses: " + ", ".join(_CLAUSES),
        )
    raise UsageError(f"{path.name}: {key} does not take {value!r}")


def _all(parts: Sequence[Clause]) -> Clause:
    if len(parts) == 1:
        return parts[0]

    def decide(observed: Observed) -> bool | None:
        answers = [part.settle(observed) for part in parts]
        return False if False in answers else None if None in answers else True

    return Clause(" and ".join(part.text for part in parts), decide)


def _any(parts: Sequence[Clause]) -> Clause:
    def decide(observed: Observed) -> bool | None:
        answers = [part.settle(observed) for part in parts]
        return True if True in answers else None if None in answers else False

    return Clause("(" + " or ".join(part.text for part in parts) + ")", decide)


def _not(part: Clause) -> Clause:
    def decide(observed: Observed) -> bool | None:
        answer = part.settle(observed)
        return None if answer is None else not answer

    return Clause(f"not {part.text}", decide)


def _at_end(decide: Callable[[Observed], bool]) -> Settle:
    return lambda observed: decide(observed) if observed.status == "done" else None


def _reply(words: Mapping[str, object]) -> Clause:
    parts = [_reply_word(word, text) for word, text in words.items()]
    return _all(parts)


def _reply_word(word: str, text: object) -> Clause:
    if not isinstance(text, str) or not text:
        raise UsageError(f"reply {word} needs a text")
    wanted = text.casefold()
    if word == "contains":
        return Clause(f"reply contains {text}", _at_end(lambda seen: wanted in (seen.reply or "").casefold()))
    if word == "not_contains":
        return Clause(f"reply not contains {text}", _at_end(lambda seen: wanted not in (seen.reply or "").casefold()))
    if word == "matches":
        try:
            pattern = re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"reply matches {text!r}: {error}", hint="(?i) at its start ignores case") from error
        return Clause(f"reply matches {text}", _at_end(lambda seen: bool(pattern.search(seen.reply or ""))))
    raise UsageError(f"reply does not know {word}", hint="contains, not_contains, matches")


def _called(name: str, arguments: Mapping[str, object] | None) -> Clause:
    """A call that was made settles it at once, a blocked one too; that none was made is known only at the end."""

    def decide(observed: Observed) -> bool | None:
        for call in observed.tool_calls:
            if call.name == name and (arguments is None or _includes(call.args, arguments)):
                return True
        return False if observed.status == "done" else None

    shown = "" if arguments is None else "(" + ", ".join(f"{key}={value!r}" for key, value in arguments.items()) + ")"
    return Clause(f"called {name}{shown}", decide)


def _includes(actual: object, wanted: object) -> bool:
    """Mappings need the wanted keys only; all else must be equal."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and _includes(actual[key], value) for key, value in wanted.items()
        )
    return actual == wanted


def _state(expression: str) -> Clause:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        compiled = jmespath.compile(expression)
    except (JMESPathError, RecursionError) as error:
        raise UsageError(
            f"state {expression!r}: {error}", hint="JMESPath over channel values, such as state.risk > `5`"
        ) from error

    def decide(observed: Observed) -> bool:
        try:
            return bool(compiled.search(dict(observed.values)))
        except (JMESPathError, RecursionError) as error:
            raise UsageError(f"state {expression!r} cannot be applied: {error}") from error

    return Clause(f"state {expression}", _at_end(decide))


def _ends_at(node: str) -> Clause:
    """Where the run stopped: `END`, or the node that an interrupted run waits at."""

    def decide(observed: Observed) -> bool | None:
        if observed.status == "done":
            return node == END
        return node in observed.next if observed.status == "interrupted" else None

    return Clause(f"ends at {node}", decide)


def _interrupted() -> Clause:
    def decide(observed: Observed) -> bool | None:
        return {"interrupted": True, "done": False}.get(observed.status)

    return Clause("interrupted", decide)


def _python(spec: str, folder: Path) -> Clause:
    """A function of `Observed` in the user's own file; it is asked only about runs that ended."""
    import importlib.util

    file, _, attribute = spec.rpartition(":")
    path = (folder / file).resolve()
    if not file or not path.is_file():
        raise NotFound(f"no Python check at {spec}", hint="python: path.py:function, relative to the check file")
    module_spec = importlib.util.spec_from_file_location(f"agentctl_check_{path.stem}", path)
    if module_spec is None or module_spec.loader is None:
        raise UsageError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except BaseException as error:
        if not is_of_called_code(error):
            raise
        raise GraphFailed(f"the check {path.name} cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise NotFound(f"{path.name} has no function {attribute}")

    def decide(observed: Observed) -> bool:
        try:
            return bool(function(observed))
        except BaseException as error:
            if not is_of_called_code(error):
                raise
            raise GraphFailed(f"the check {spec} raised {type(error).__name__}: {error}") from error

    return Clause(f"python {spec}", _at_end(decide))
