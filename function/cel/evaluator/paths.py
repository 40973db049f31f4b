"""Read the variable in one look-up: `device.attributes["gpu.nvidia.com"].architecture` is one, not four."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.checker.paths import value_path
from function.cel.errors import EvaluationError
from function.cel.frame import SUBJECT
from function.cel.values import Map, Optional, Value

if TYPE_CHECKING:
    from function.cel.checker.state import Checked
    from function.cel.evaluator.code import Frame, Run
    from function.cel.syntax.nodes import Node

_MISSING = object()


def path_code(checked: Checked, node: Node) -> Run | None:
    """Return what reads a single value of the variable in one step, or None if it is no such path."""
    path = value_path(checked, node)
    if path is None:
        return None

    def run(frame: Frame) -> Value:
        value = frame[SUBJECT].values.get(path, _MISSING)
        if value is _MISSING:
            raise frame[SUBJECT].lacks(path)
        return value

    return run


def present(operand: Value, field: str) -> bool:
    """Return `has(operand.field)`."""
    kind = type(operand)
    if kind is Map:
        return operand.find(field) is not None
    if kind is Optional:
        return bool(operand.present) and present(operand.value, field)
    if kind is list:
        raise EvaluationError("unsupported index type 'string' in list")
    return False
