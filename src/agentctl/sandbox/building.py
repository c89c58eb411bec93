"""What a graph spec names, imported and made into a compiled graph."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast

from agentctl.errors import NotFound, UsageError
from agentctl.sandbox.environment import OWN_NAME
from agentctl.sandbox.registry import ToolRegistry
from agentctl.sandbox.specs import GraphSpec, near_names

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

GraphKind = Literal["graph", "builder", "function", "build_graph"]


@dataclass(frozen=True, slots=True)
class Given:
    """What a function that builds a graph may be given."""

    registry: ToolRegistry | None
    model: object
    memory: object
    config: Mapping[str, object] | None


async def build(spec: GraphSpec, given: Given, around: AsyncExitStack) -> tuple[GraphKind, Pregel[Any, Any, Any, Any]]:
    """Returns what kind of thing a spec names and the graph that came of it.

    Args:
        spec: Where to look; its paths are on the import path.
        given: What a function may be given.
        around: Holds the context managers that were entered.

    Raises:
        UsageError: it is no graph and gives none, or needs what is not given.
        NotFound: no such module or attribute.
    """
    value = attribute_of(module_of(spec), spec)
    if (compiled := _compiled(value)) is not None:
        return compiled
    if not callable(value):
        raise UsageError(f"{spec.text} is a {type(value).__name__}, not a graph or a function that gives one")
    kind: GraphKind = "function"
    parameters = inspect.signature(value).parameters
    if "tools" in parameters:
        kind = "build_graph"
        if given.registry is None:
            raise UsageError(
                f"{spec.text} takes its tools as an argument, and no registry of tools was given",
                hint="name the workflow's sandbox registry under `workflows:` in agentctl.yaml",
            )
        keywords = {"model": given.model, "memory": given.memory}
        made = value(given.registry, **{name: arg for name, arg in keywords.items() if name in parameters})
    else:
        made = value(*_positional(spec, parameters, given))
    made = await _entered(made, around)
    compiled = _compiled(made)
    if compiled is None:
        raise UsageError(f"{spec.text} gave a {type(made).__name__}, not a graph")
    return kind, compiled[1]


def module_of(spec: GraphSpec) -> ModuleType:
    """Imports the module that a spec names, by the name its project imports it by.

    Raises:
        NotFound: there is no such module.
    """
    if spec.file is None:
        try:
            found = importlib.util.find_spec(spec.module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise NotFound(
                f"there is no module {spec.module}", hint=f"it is looked for in {spec.project} and the environment"
            )
        return importlib.import_module(spec.module)
    if not spec.module.startswith(OWN_NAME):
        return importlib.import_module(spec.module)
    found = importlib.util.spec_from_file_location(spec.module, spec.file)
    if found is None or found.loader is None:
        raise NotFound(f"{spec.file} is not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[spec.module] = module
    found.loader.exec_module(module)
    return module


def attribute_of(module: ModuleType, spec: GraphSpec) -> object:
    """Returns the attribute that a spec names.

    Raises:
        NotFound: the module has none of that name; the candidates are like names.
    """
    if hasattr(module, spec.attr):
        return getattr(module, spec.attr)
    public = [name for name, value in vars(module).items() if not name.startswith("_") and _may_be_graph(value, module)]
    near = near_names(spec.attr, public) or public
    place = spec.text.rpartition(":")[0]
    raise NotFound(
        f"{place} has no {spec.attr}",
        hint=f"did you mean {place}:{near[0]}?" if near else f"{place} holds no graph and no function",
        candidates=[{"graph": f"{place}:{name}"} for name in near],
    )


def _may_be_graph(value: object, module: ModuleType) -> bool:
    return _compiled(value) is not None or (inspect.isfunction(value) and value.__module__ == module.__name__)


def _compiled(value: object) -> tuple[GraphKind, Pregel[Any, Any, Any, Any]] | None:
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    if isinstance(value, Pregel):
        return "graph", value
    if isinstance(value, StateGraph):
        return "builder", value.compile()
    return None


def _positional(spec: GraphSpec, parameters: Mapping[str, inspect.Parameter], given: Given) -> tuple[object, ...]:
    needed = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    takes_config = "config" in parameters or len(needed) == 1
    if len(needed) > 1 or any(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in needed):
        raise UsageError(
            f"{spec.text} needs {', '.join(needed)}",
            hint="a function for --graph takes nothing, a config, or `tools` (build_graph)",
        )
    if not takes_config or (not needed and next(iter(parameters)) != "config"):
        return ()
    return ({"configurable": {}, **(given.config or {})},)


async def _entered(made: object, around: AsyncExitStack) -> object:
    """Returns what a function gave once it is awaited or entered, for the time the graph is loaded."""
    if inspect.isawaitable(made):
        made = await made
    if _compiled(made) is not None:
        return made
    if hasattr(made, "__aenter__"):
        return await around.enter_async_context(cast("AbstractAsyncContextManager[object]", made))
    if hasattr(made, "__enter__"):
        return around.enter_context(cast("AbstractContextManager[object]", made))
    return made
