"""Scopes: a node together with the names that it sees, which is what the check walks over."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from function.cel.syntax.nodes import Node
from function.cel.syntax.types import Type


class Variable(NamedTuple):
    """A name in scope. The slot of a lazy one holds its value or the error of computing it."""

    type: Type
    slot: int
    lazy: bool = False


Scope: TypeAlias = dict[str, Variable]
ScopedNode: TypeAlias = tuple[Node, Scope]
"""A node and the names it sees."""
TypeSteps: TypeAlias = Generator[ScopedNode, Type, Type]
