"""Find the keys by which an expression reads its variable: `device.attributes["d"].x` is attributes, d, x."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cel.frame import SUBJECT
from function.cel.syntax.nodes import Call, Identifier, Literal, Node, Select, children

if TYPE_CHECKING:
    from function.cel.checker.state import Checked
    from function.cel.subject import ReadPath


def literal_path(checked: Checked, node: Node) -> ReadPath | None:
    """Return the keys that lead from the variable to a node, if all are written out and none is optional."""
    keys: list[str] = []
    while not isinstance(node, Identifier):
        step = None if _is_optional(node) or (isinstance(node, Select) and node.test) else _step(node)
        key = None if step is None else step[1]
        if step is None or key is None:
            return None
        node = step[0]
        keys.append(key)
    variable = checked.variables.get(node)
    return tuple(reversed(keys)) if variable is not None and variable.slot == SUBJECT else None


def value_path(checked: Checked, node: Node) -> ReadPath | None:
    """Return the literal path of a node that is a single value of the variable, not a map of several."""
    path = literal_path(checked, node)
    whole = path and len(path) == checked.environment.fields[path[0]].depth + 1
    return path if whole else None


def _is_optional(node: Node) -> bool:
    return isinstance(node, Call) and node.function in ("_[?_]", "_?._")


def paths(checked: Checked, root: Node) -> frozenset[ReadPath]:
    """Return the longest literal paths that an expression reads; () is the whole subject."""
    read: set[ReadPath] = set()
    todo: list[Node] = [root]
    while todo:
        path, rest = _path(checked, todo.pop())
        if path is not None:
            read.add(path)
        todo += rest
    return frozenset(read)


def _path(checked: Checked, node: Node) -> tuple[ReadPath | None, list[Node]]:
    """Return the path that a node reads, if it is one, and the nodes still to look at."""
    keys: list[str | None] = []
    rest: list[Node] = []
    current = node
    while not isinstance(current, Identifier):
        step = _step(current)
        if step is None:
            return None, children(node)
        current, key, others = step
        keys.append(key)
        rest += others
    variable = checked.variables.get(current)
    if variable is None or variable.slot != SUBJECT:
        return None, children(node)
    written: list[str] = []
    for key in reversed(keys):
        if key is None:
            break
        written.append(key)
    return tuple(written[: checked.environment.fields[written[0]].depth + 1]) if written else (), rest


def _step(node: Node) -> tuple[Node, str | None, list[Node]] | None:
    """Return the operand of a selection or index, its key if it is written out, and what else it computes."""
    if isinstance(node, Select):
        return node.operand, node.field, []
    if isinstance(node, Call) and node.target is None and node.function in ("_[_]", "_[?_]", "_?._"):
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value, []
        return operand, None, [key]
    return None
