"""The macros: calls that bind names. A call with a macro's name and number of arguments is the macro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import Mistake
from function.cel.syntax.nodes import Bind, Call, Loop, Name, OptionalMap, Select

if TYPE_CHECKING:
    from function.cel.syntax.nodes import Node

ONE_NAME = {
    ("all", 2): "all",
    ("exists", 2): "exists",
    ("exists_one", 2): "exists_one",
    ("map", 2): "map",
    ("map", 3): "map",
    ("filter", 2): "filter",
    ("sortBy", 2): "sortBy",
}
TWO_NAMES = {
    ("all", 3): "all",
    ("exists", 3): "exists",
    ("exists_one", 3): "exists_one",
    ("existsOne", 3): "exists_one",
    ("transformList", 3): "transformList",
    ("transformList", 4): "transformList",
    ("transformMap", 3): "transformMap",
    ("transformMap", 4): "transformMap",
    ("transformMapEntry", 3): "transformMapEntry",
    ("transformMapEntry", 4): "transformMapEntry",
}
OPTIONAL = {"optMap": False, "optFlatMap": True}
READ = frozenset({"filter", "transformMap"})
"""Loops that read their first name themselves, whatever their steps say."""
ACCUMULATOR = "__result__"
BIND_ARGS = 3
OPTIONAL_ARGS = 2


def expand(call: Call) -> Node:
    """Return what a call stands for. Raises Mistake."""
    if call.target is None:
        return _presence(call) if call.function == "has" and len(call.args) == 1 else call
    if _is_bind(call):
        return _bind(call)
    form = (call.function, len(call.args))
    if form in ONE_NAME:
        names = (_variable(call.args[0], read=call.function in READ),)
        return Loop(call.span, ONE_NAME[form], call.target, names, call.args[1:])
    if form in TWO_NAMES:
        return Loop(call.span, TWO_NAMES[form], call.target, _two_variables(call), call.args[2:])
    if call.function in OPTIONAL and len(call.args) == OPTIONAL_ARGS:
        name = _variable(call.args[0], read=True)
        return OptionalMap(call.span, call.target, name, call.args[1], OPTIONAL[call.function])
    return call


def _presence(call: Call) -> Node:
    field = call.args[0]
    if not isinstance(field, Select) or field.test:
        raise Mistake(
            "invalid argument to has() macro: it takes a field selection, such as a.b", field.span.at
        )
    return Select(call.span, field.operand, field.field, test=True)


def _is_bind(call: Call) -> bool:
    on_cel = isinstance(call.target, Name) and call.target.name == "cel"
    return on_cel and call.function == "bind" and len(call.args) == BIND_ARGS


def _bind(call: Call) -> Bind:
    name, value, body = call.args
    if not isinstance(name, Name):
        raise Mistake("cel.bind() variable names must be simple identifiers", name.span.at)
    return Bind(call.span, _readable(name), value, body)


def _variable(node: Node, *, read: bool = False) -> str:
    if not isinstance(node, Name):
        raise Mistake("argument must be a simple name", node.span.at)
    if node.name == ACCUMULATOR:
        raise Mistake("iteration variable overwrites accumulator variable", node.span.at)
    return _readable(node) if read else node.name


def _readable(node: Name) -> str:
    """Return a name that the macro itself reads: nobody can read one that begins with a dot."""
    if node.name.startswith("."):
        raise Mistake(f"undeclared reference to '{node.name}' (in container '')", node.span.at)
    return node.name


def _two_variables(call: Call) -> tuple[str, str]:
    one = _variable(call.args[0], read=call.function in READ)
    other = _variable(call.args[1])
    if one == other:
        raise Mistake(f"duplicate variable name: {one}", call.args[1].span.at)
    return one, other
