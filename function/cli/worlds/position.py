"""Positions: where an object stands in the files, and the line of a field of it.

Lines are looked for when there is something to say about one: the file is parsed again, into nodes that know
where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import yaml

from function.cli.worlds.parsing import compose_documents

if TYPE_CHECKING:
    from function.cli.admission.finding import Path

LARGEST = 4_000_000
"""Characters of a file above which no lines are looked for: such a file is a dump that nobody edits."""


@dataclass(frozen=True, slots=True)
class Position:
    """One object of a file."""

    file: str
    text: str = field(repr=False)
    document: int
    items: tuple[int, ...] = ()
    """Indexes through the lists that it is an item of."""
    below: Path = ()
    """Keys and indexes down to it, where it is a part of an object."""

    @property
    def number(self) -> int:
        """Its number among the objects of the file or list, from 1, for an object without a name."""
        return (self.items[-1] if self.items else self.document) + 1

    def locate(self, path: Path) -> tuple[int, int] | None:
        """Return line and column, from 1, of a field or of the nearest above it that is written."""
        documents = _nodes(self.text) if len(self.text) <= LARGEST else ()
        if self.document >= len(documents):
            return None
        whole = tuple(step for item in self.items for step in ("items", item))
        mark = _mark(documents[self.document], (*whole, *self.below, *path))
        return mark.line + 1, mark.column + 1


@lru_cache(maxsize=4)
def _nodes(text: str) -> tuple[yaml.Node, ...]:
    return tuple(compose_documents(text))


def _mark(node: yaml.Node, path: Path) -> yaml.Mark:
    """Where the last step of a path is written: the key of a map, the item of a list."""
    mark = node.start_mark
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == step]
            if not pairs:
                break
            mark, node = pairs[0][0].start_mark, pairs[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            mark = node.start_mark
        else:
            break
    return mark
