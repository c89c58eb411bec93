"""YAML text of whoever wrote it to plain values: no tag builds anything, and no anchor makes much of little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from yaml.nodes import Node

MAX_DEPTH: Final = 50
MAX_NODES: Final = 100_000
"""How many values a document may hold where each anchor is counted as often as it is used."""


class NotYaml(ValueError):
    """The text is no YAML, or more than is taken.

    Attributes:
        line: Where, from 1; None where that is not known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read_document(text: str) -> tuple[object, Node | None]:
    """Returns the value of a YAML text and the node it was made from, which knows the lines.

    Raises:
        NotYaml: It is none, has a tag of its own, an anchor inside itself, or is deeper or larger than is taken.
    """
    import yaml

    class Bounded(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            if self.depth == MAX_DEPTH:
                raise NotYaml(f"nested deeper than {MAX_DEPTH} levels", self.line + 1)
            self.depth += 1
            try:
                node: Node | None = super().compose_node(parent, index)
                return node
            finally:
                self.depth -= 1

    try:
        loader = Bounded(text)
        root = loader.get_single_node()
        if root is None:
            return None, None
        if _n_nodes(root, {}) > MAX_NODES:
            raise NotYaml(f"more than {MAX_NODES:,} values, each anchor counted as often as it is used")
        return loader.construct_document(root), root
    except NotYaml:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise NotYaml(str(error.problem or error), mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, OverflowError, KeyError, AttributeError, TypeError, RecursionError) as error:
        # PyYAML lets through what Python says of a date that is none, or of a tag that does not fit its text.
        raise NotYaml(f"a value that cannot be read ({type(error).__name__}: {error})") from error


def _n_nodes(node: Node, known: dict[int, int | None]) -> int:
    """Returns how many nodes a node stands for; `known` holds those counted, None for those being counted."""
    if id(node) in known:
        found = known[id(node)]
        if found is None:
            raise NotYaml("an anchor that holds itself", node.start_mark.line + 1)
        return found
    known[id(node)] = None
    parts = [] if isinstance(node.value, str) else node.value
    n = 1 + sum(
        sum(_n_nodes(each, known) for each in part) if isinstance(part, tuple) else _n_nodes(part, known)
        for part in parts
    )
    known[id(node)] = n
    return n
