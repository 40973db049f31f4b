"""The macros: calls that bind names. A call with a macro's name and number of arguments is the macro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import Mistake
from function.cel.syntax.nodes import Bind, Call, Identifier, Loop, OptionalMap, Select

if TYPE_CHECKING:
    from function.cel.syntax.nodes import Node

ONE_NAME = frozenset(
    {
        ("all", 2),
        ("exists", 2),
        ("exists_one", 2),
        ("map", 2),
        ("map", 3),
        ("filter", 2),
        ("sortBy", 2),
    }
)
TWO_NAMES = frozenset(
    {
        *((name, 3) for name in ("all", "exists", "exists_one", "existsOne")),
        *((name, n) for name in ("transformList", "transformMap", "transformMapEntry") for n in (3, 4)),
    }
)
"""Loops that bind one name and two: the macro and how many arguments it has."""
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
        return Loop(call.span, call.function, call.target, names, call.args[1:])
    if form in TWO_NAMES:
        kind = "exists_one" if call.function == "existsOne" else call.function
        return Loop(call.span, kind, call.target, _two_variables(call), call.args[2:])
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
    on_cel = isinstance(call.target, Identifier) and call.target.name == "cel"
    return on_cel and call.function == "bind" and len(call.args) == BIND_ARGS


def _bind(call: Call) -> Bind:
    name, value, body = call.args
    if not isinstance(name, Identifier):
        raise Mistake("cel.bind() variable names must be simple identifiers", name.span.at)
    return Bind(call.span, _readable(name), value, body)


def _variable(node: Node, *, read: bool = False) -> str:
    if not isinstance(node, Identifier):
        raise Mistake("argument must be a simple name", node.span.at)
    if node.name == ACCUMULATOR:
        raise Mistake("iteration variable overwrites accumulator variable", node.span.at)
    return _readable(node) if read else node.name


def _readable(node: Identifier) -> str:
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
