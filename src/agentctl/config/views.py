"""A workflow's view: the YAML file that says in which words its state is shown and compared."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentctl.config.origins import Origin
from agentctl.config.yamlfile import Section, read_yaml
from agentctl.errors import ConfigError
from agentctl.records.views import FORMATS, FUNCTIONS, FieldView, ListView, View, is_code

_MONEY: Final = ("money", "cents")


def read_view(file: Path, workflow: str, origin: Origin) -> View:
    """Returns the view in a file.

    Args:
        file: Absolute.
        workflow: The workflow it is of.
        origin: Where the file is named.

    Raises:
        ConfigError: there is no such file, a key is unknown, a value of the wrong kind, or an expression no JMESPath;
            the message names file, line and key.
    """
    if not file.is_file():
        raise ConfigError(
            f"{origin.where}: workflow {workflow} names a view that is not there: {file}",
            hint="correct its `renderer`, or leave it out",
        )
    top = read_yaml(file)
    top.only({"fields", "lists"})
    fields, lists = top.section("fields"), top.section("lists")
    if not fields.data and not lists.data:
        raise ConfigError(f"{file}: a view has fields or lists", hint="such as: fields: {status: order.status}")
    view = View(workflow, _fields(fields), tuple(_list(lists.section(name), name) for name in lists.data))
    _refuse_twice(view, lists)
    return view


def _fields(section: Section) -> tuple[FieldView, ...]:
    return tuple(_field(section, name) for name in section.data)


def _field(section: Section, name: str) -> FieldView:
    """A field is a JMESPath alone, or a mapping with one under `path`."""
    if not isinstance(section.data[name], dict):
        return FieldView(name, _expression(section, name))
    own = section.section(name)
    own.only({"path", "format", "currency"})
    chosen = own.choice("format", FORMATS, "text")
    currency = own.text("currency") or ""
    if currency and chosen not in _MONEY:
        raise own.error("currency", f"is for format {' or '.join(_MONEY)}, not {chosen}")
    if currency and not is_code(currency):
        _expression(own, "currency")
    return FieldView(name, _expression(own, "path"), chosen, currency)


def _list(section: Section, name: str) -> ListView:
    section.only({"items", "key", "title", "fields"})
    return ListView(
        name=name,
        items=_expression(section, "items"),
        key=_expression(section, "key") if "key" in section.data else "",
        title=_expression(section, "title") if "title" in section.data else "",
        fields=_fields(section.section("fields")),
    )


def _refuse_twice(view: View, lists: Section) -> None:
    fields = {field.name for field in view.fields}
    for entry in view.lists:
        if entry.name in fields:
            raise lists.error(entry.name, "is a field already")


def _expression(section: Section, key: str) -> str:
    """Returns the JMESPath under a key, checked as far as it can be without values."""
    import jmespath
    from jmespath.exceptions import JMESPathError
    from jmespath.functions import Functions

    text = section.text(key)
    if text is None:
        raise section.error(key, "is missing: a JMESPath", hint="such as order.status")
    try:
        parsed = jmespath.compile(text).parsed
    except (JMESPathError, RecursionError) as error:
        raise section.error(key, f"is no JMESPath: {' '.join(str(error).split())}") from error
    known = (*FUNCTIONS, *Functions.FUNCTION_TABLE)
    for name in _called(parsed):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"functions are: {', '.join(known)}"
            raise section.error(key, f"calls {name}(), which is no function", hint=hint)
    return text


def _called(node: Mapping[str, object]) -> Iterator[str]:
    """Yields the functions that an expression calls, nested ones too."""
    if node.get("type") == "function_expression":
        yield str(node["value"])
    children = node.get("children")
    for child in children if isinstance(children, list) else ():
        if isinstance(child, dict):
            yield from _called(child)
