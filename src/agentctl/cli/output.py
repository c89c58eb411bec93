"""The only printer. Answers go to stdout as a table, as tab-separated lines or as JSON; all else goes to stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentctl.cli.env import Env
from agentctl.codec.jsontext import dumps, pieces
from agentctl.codec.secrets import hide_secrets
from agentctl.errors import AgentctlError, GraphFailed, RevisionSyntaxError
from agentctl.render.clean import clean, cut, without_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Cell = str | int | float | None

_HELD_BYTES = 1024 * 1024
"""How much of a document is held in memory; it may be there twice while it grows."""

_PART_CHARACTERS = 64 * 1024
"""How much of it is written at once: a text takes up to 4 bytes a character, several times while it is written."""

_TOLD_WIDTH = 80
"""How much of one cell of a candidate is told on stderr; --json has all of it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer in its three forms; only the one that is printed is made.

    `human` returns Rich renderables or plain strings; `plain` returns rows of cells, printed tab-separated and whole;
    `document` returns the JSON document; fields that are iterators are lists too long to be held in memory.
    """

    human: Callable[[int], Iterable[RenderableType]]
    plain: Callable[[], Iterable[Sequence[Cell]]]
    document: Callable[[], Mapping[str, object]]


def console(env: Env, *, stderr: bool = False) -> Console:
    """Returns a Rich console that interprets nothing in what it prints: no markup, no emoji, no highlighting.

    Without a terminal, with NO_COLOR or on a dumb terminal it writes no escape sequence at all.
    """
    from rich.console import Console

    styled = env.err_styled if stderr else env.styled
    return Console(
        file=env.stderr if stderr else env.stdout,
        width=env.width,
        markup=False,
        emoji=False,
        highlight=False,
        force_terminal=styled,
        no_color=not styled,
        soft_wrap=False,
        legacy_windows=False,
    )


def emit(env: Env, answer: Answer) -> None:
    """Prints an answer in the form that the reader needs."""
    if env.on_answer is not None:
        env.on_answer(answer)
        return
    if env.as_json:
        _write_document(env, answer.document())
    elif env.is_terminal:
        out = console(env)
        for part in answer.human(env.width):
            out.print(_safe(part), soft_wrap=True)
    else:
        for row in answer.plain():
            env.stdout.write(_line(row))
    env.stdout.flush()


def stream(
    env: Env,
    *,
    human: Callable[[], Iterable[tuple[RenderableType, str]]],
    plain: Callable[[], Sequence[Cell]] | None = None,
) -> None:
    """Prints a part of an answer that is still being made, at once; under --json nothing.

    Args:
        env: The world.
        human: Returns parts for people, each with what ends it: a line's end, or nothing where the line goes on.
        plain: Returns the cells of one line; None for nothing.
    """
    if env.as_json:
        return
    if env.is_terminal:
        out = console(env)
        for part, end in human():
            out.print(_safe(part), end=end, soft_wrap=True)
    elif plain is not None:
        env.stdout.write(_line(plain()))
    env.stdout.flush()


def say(env: Env, text: str) -> None:
    """Prints a line for people on stderr: status, plans, warnings. Silent under --json."""
    if not env.as_json:
        env.stderr.write(hide_secrets(clean(text, keep_newlines=True)) + "\n")
        env.stderr.flush()


def relay(env: Env, text: str) -> None:
    """Passes on a line that code of others printed, to stderr."""
    env.stderr.write(hide_secrets(clean(text, keep_newlines=True)))
    env.stderr.flush()


def warn(env: Env, text: str) -> None:
    """Prints a warning line on stderr; under --json warnings are part of the document instead."""
    env.warnings.append(hide_secrets(clean(text)))
    say(env, f"warning: {text}")


def _write_document(env: Env, document: Mapping[str, object]) -> None:
    """Writes a JSON document, whole or, where making it fails, not at all; a long one waits in a temporary file."""
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(_HELD_BYTES, "w+", encoding="utf-8", newline="") as text:
        for piece in pieces(_with_warnings(document, env.warnings)):
            text.write(piece)  # not `writelines`: that looks at how much is held after the last one
        text.write("\n")
        text.seek(0)
        while part := text.read(_PART_CHARACTERS):
            env.stdout.write(part)


def _with_warnings(document: Mapping[str, object], told: Sequence[str]) -> dict[str, object]:
    """Returns the document with everything that was warned of: its own, and what opening the stores told."""
    own = document.get("warnings", ())
    return {**document, "warnings": _all_warnings(told, own if isinstance(own, list | tuple) else ())}


def _all_warnings(told: Sequence[str], own: Sequence[object]) -> Iterator[object]:
    """Yields warnings, those that are told while the fields before them are made too."""
    yield from told
    yield from own


def progress(env: Env, verb: str) -> Callable[[int, int], None] | None:
    """Returns a callback that shows `verb 40 of 100` on stderr while it goes on; None where nobody looks on."""
    if not env.err_is_terminal or env.as_json:
        return None

    def show(done: int, total: int) -> None:
        env.stderr.write(f"\r{verb} {done:,} of {total:,}" if done < total else "\r\x1b[K")
        env.stderr.flush()

    return show


def fail(env: Env, error: AgentctlError) -> None:
    """Prints an error: one JSON object on stdout under --json, else message, hint and candidates on stderr."""
    message = hide_secrets(error.message)
    if env.as_json:
        body = {
            "kind": error.kind,
            "message": message,
            "hint": env.pasteable(error.hint or ""),
            "candidates": [dict(row) for row in error.candidates],
        }
        env.stdout.write(dumps({"error": body}) + "\n")
        env.stdout.flush()
        return
    if isinstance(error, GraphFailed) and error.traceback:
        env.stderr.write(clean(error.traceback, keep_newlines=True).rstrip() + "\n")
    env.stderr.write(f"error: {clean(message, keep_newlines=True)}\n")
    if isinstance(error, RevisionSyntaxError):
        start, end = error.span
        env.stderr.write(f"  {clean(error.text)}\n  {' ' * start}{'^' * max(end - start, 1)}\n")
    for row in error.candidates:
        cells = (_told(cell) for cell in row.values() if cell not in (None, "") and not isinstance(cell, bool))
        env.stderr.write("  " + "  ".join(cells) + "\n")
    if error.hint:
        hint = env.pasteable(hide_secrets(clean(error.hint, keep_newlines=True)))
        env.stderr.write(f"hint: {hint}\n")
    env.stderr.flush()


def fail_internal(env: Env, error: BaseException) -> None:
    """Prints an error that is our own fault: its traceback on stderr, and under --json one object on stdout."""
    import traceback

    lines = "".join(traceback.format_exception(error))
    env.stderr.write(hide_secrets(clean(lines, keep_newlines=True)))
    env.stderr.flush()
    message = f"this is a bug in agentctl: {type(error).__name__}: {error}"
    fail(env, AgentctlError(message, hint="report it with the lines above, which are on stderr"))


def _safe(part: RenderableType) -> RenderableType:
    """Returns a part in which nothing is left that a terminal would obey, whatever its renderer did."""
    from rich.text import Text

    if isinstance(part, str):
        return clean(part, keep_newlines=True)
    if isinstance(part, Text):
        part.plain = without_controls(part.plain)
    return part


def _told(value: object) -> str:
    """Returns one cell of a candidate: names and ids whole, arguments and results as far as they tell calls apart."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    text = clean(value if isinstance(value, str) else dumps(value))
    return cut(text, _TOLD_WIDTH) if " " in text else text


def _line(row: Sequence[Cell]) -> str:
    cells = ["" if cell is None else str(cell) for cell in row]
    if not "".join(cells).isprintable():  # asked once a line: most have nothing to clean
        cells = [clean(cell) for cell in cells]
    return "\t".join(cells) + "\n"
