"""Names and slots. A frame is a list: subject, budget, steps left, then a slot for each name."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from function.cel.syntax.nodes import Node
from function.cel.types import Type

SUBJECT = 0
BUDGET = 1
WORK = 2
FIRST_SLOT = 3


class Variable(NamedTuple):
    """A name in scope. The slot of a lazy one holds its value or the error of computing it."""

    type: Type
    slot: int
    lazy: bool = False


Scope: TypeAlias = dict[str, Variable]
Place: TypeAlias = tuple[Node, Scope]
"""A node and the names it sees."""
TypeSteps: TypeAlias = Generator[Place, Type, Type]
