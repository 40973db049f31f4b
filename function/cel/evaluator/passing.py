"""Drop what Kubernetes drops of an optional when it passes a name or a branch of `? :`.

cel-go takes the optional apart there, down to a value of Go, and puts it together again. On the way
optionals in optionals become one, a type becomes its name, and a value of Kubernetes' own types cannot be
put together again: the optional is there, and an error to whoever reads it. A map forgets what it has for
keys that are not there. Kubernetes 1.37 mends all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.evaluator.code import is_path
from function.cel.library.network import Cidr, Ip
from function.cel.library.quantity import Quantity
from function.cel.library.semver import Semver
from function.cel.library.urls import Url
from function.cel.values import Map, Optional, TypeValue, Value, type_name

if TYPE_CHECKING:
    from function.cel.checker.state import Checked
    from function.cel.evaluator.code import Frame, Run
    from function.cel.syntax.nodes import Node

_FOREIGN = frozenset({Quantity, Semver, Ip, Cidr, Url})
_MAYBE = frozenset({"optional", "dyn"})


def passed(value: Value) -> Value:
    """Return what comes out on the other side."""
    if type(value) is not Optional or not value.present or value.fails:
        return value
    held = value.value
    while type(held) is Optional:
        if held.fails:
            return held
        held = held.value if held.present else None
    if type(held) is TypeValue:
        held = held.name
    if type(held) in _FOREIGN:
        return Optional(fails=f"unsupported conversion of an optional {type_name(held)}")
    if type(held) is Map and held.default is not None:
        held = Map(held.entries, of_texts=held.of_texts)
    return Optional(held)


def qualified(checked: Checked, operand: Node, run: Run) -> Run:
    """Return what runs the operand of a selection or index; a computed optional is taken apart there too."""
    return run if is_path(operand) else passing(run, checked, operand)


def passing(run: Run, checked: Checked, node: Node) -> Run:
    """Return what runs a node and passes its value on; itself for what is certainly no optional."""
    if checked.dialect.optionals_keep_values or checked.types[node].name not in _MAYBE:
        return run

    def through(frame: Frame) -> Value:
        value = run(frame)
        return passed(value) if type(value) is Optional else value

    return through
