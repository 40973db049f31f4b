"""Reading the variable: `device.attributes["gpu.nvidia.com"].architecture` is one look-up, not four."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.errors import EvaluationError, no_overload
from function.cel.scope import SUBJECT
from function.cel.syntax.nodes import Call, Literal, Name, Node, Select
from function.cel.values import NONE, Map, Optional, Value, type_name

if TYPE_CHECKING:
    from function.cel.check import Checked
    from function.cel.code import Frame, Run

_MISSING = object()


def literal_path(checked: Checked, node: Node) -> tuple[str, ...] | None:
    """Return the keys that lead from the variable to a node, if all are written out."""
    keys: list[str] = []
    while True:
        if isinstance(node, Select) and not node.test:
            keys.append(node.field)
            node = node.operand
        elif isinstance(node, Call) and node.function == "_[_]" and node.target is None:
            node, key = node.args
            if not isinstance(key, Literal) or not isinstance(key.value, str):
                return None
            keys.append(key.value)
        elif isinstance(node, Name) and node in checked.variables:
            return tuple(reversed(keys)) if checked.variables[node].slot == SUBJECT else None
        else:
            return None


def path_code(checked: Checked, node: Node) -> Run | None:
    """Return what reads a single value of the variable in one step, or None if it is no such path."""
    path = literal_path(checked, node)
    if not path or len(path) != checked.environment.fields[path[0]].depth + 1:
        return None

    def run(frame: Frame) -> Value:
        value = frame[SUBJECT].values.get(path, _MISSING)
        if value is _MISSING:
            raise frame[SUBJECT].lacks(path)
        return value

    return run


def selected(operand: Value, field: str) -> Value:
    """Return `operand.field`."""
    kind = type(operand)
    if kind is Map:
        entry = operand.find(field)
        if entry is not None:
            return entry[1]
        raise EvaluationError(f"no such key: {field}")
    if kind is Optional:
        return optional_selected(operand, field)
    raise no_overload(f"{type_name(operand)} has no fields, so no {field}")


def optional_selected(operand: Value, field: str) -> Optional:
    """Return `operand.?field`."""
    kind = type(operand)
    if kind is Optional:
        return optional_selected(operand.value, field) if operand.present else NONE
    if kind is Map:
        entry = operand.find(field)
        return NONE if entry is None else Optional(entry[1])
    if kind is list:
        raise EvaluationError("unsupported index type 'string' in list")
    return NONE


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
