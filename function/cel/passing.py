"""What an optional loses on its way through a name or a branch of `? :`, in Kubernetes and so here.

cel-go takes the optional apart there, down to a value of Go, and puts it together again. On the way
optionals in optionals become one, a type becomes its name, and a value of Kubernetes' own types cannot be
put together again. There the optional is an error from then on; here the evaluation ends at once in that
error, so that nothing can match by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import EvaluationError
from function.cel.library.network import Cidr, Ip
from function.cel.library.urls import Url
from function.cel.quantity import Quantity
from function.cel.semver import Semver
from function.cel.values import Optional, TypeValue, Value, type_name

if TYPE_CHECKING:
    from function.cel.code import Frame, Run
    from function.cel.types import Type

_FOREIGN = frozenset({Quantity, Semver, Ip, Cidr, Url})
_MAYBE = frozenset({"optional", "dyn"})


def passed(value: Value) -> Value:
    """Return what comes out on the other side. Raises EvaluationError for an optional that does not."""
    if type(value) is not Optional or not value.present:
        return value
    held = value.value
    while type(held) is Optional:
        held = held.value if held.present else None
    if type(held) is TypeValue:
        held = held.name
    if type(held) in _FOREIGN:
        raise EvaluationError(f"unsupported conversion of an optional {type_name(held)}")
    return Optional(held)


def passing(run: Run, kind: Type) -> Run:
    """Return what runs and passes its value on; itself for what is certainly no optional."""
    if kind.name not in _MAYBE:
        return run

    def through(frame: Frame) -> Value:
        value = run(frame)
        return passed(value) if type(value) is Optional else value

    return through
