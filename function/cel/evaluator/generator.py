"""Generate closures from a checked tree: one Python function for each node, built once, run on a frame.

A closure takes the frame of one evaluation and returns a value or raises. It keeps nothing between calls,
so any number of threads may run a program at once. What a node costs is known before it runs, except for
texts and lists, so costs are summed up at compile time and charged once for each stretch that runs as a
whole.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from function.cel.errors import Aborted, EvaluationError, no_overload
from function.cel.evaluator.build import Build
from function.cel.evaluator.calls import call_code
from function.cel.evaluator.code import Code, CodeSteps, Frame, Run, constant, relative
from function.cel.evaluator.comprehensions import loop_code, optional_map_code
from function.cel.evaluator.passing import passing, qualified
from function.cel.evaluator.paths import path_code, present
from function.cel.frame import BUDGET, SUBJECT
from function.cel.library.charges import CREATE_LIST, CREATE_MAP, CREATE_MESSAGE
from function.cel.library.messages import MESSAGES
from function.cel.library.relations import element
from function.cel.syntax import nodes
from function.cel.syntax.descent import collect, descend
from function.cel.syntax.types import BOOL, DYN, list_of
from function.cel.values import Map, Optional, TypeValue, Value, normal_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.cel.checker.state import Checked


def generate(checked: Checked, node: nodes.Node, *, forms: bool) -> Code:
    """Return the code of a node and all below it."""
    code: Code = descend(partial(_rule, Build(checked, forms)), node)
    return code


def _rule(build: Build, node: nodes.Node) -> Code | CodeSteps:
    """Return the code of a node, or the steps to it."""
    return RULES[type(node)](build, node)


def _literal(_build: Build, node: nodes.Literal) -> Code:
    """Return the code of a literal."""
    return constant(node.value, node.type)


def _name(build: Build, node: nodes.Identifier) -> Code:
    """Return the code of a name: a type, or a variable's slot."""
    if node in build.checked.type_values:
        return constant(TypeValue(build.checked.type_values[node]))
    variable = build.checked.variables[node]
    slot = variable.slot
    if slot == SUBJECT:
        return Code(lambda frame: frame[SUBJECT].whole, 1)
    run = _lazy(slot) if variable.lazy else (lambda frame: frame[slot])
    return Code(passing(run, build.checked, node), 1)


def _select(build: Build, node: nodes.Select) -> CodeSteps:
    """Return the code of a selection, or of has()."""
    if node in build.checked.type_values:
        return constant(TypeValue(build.checked.type_values[node]))
    operand, field = (yield node.operand), node.field
    run, units = qualified(build.checked, node.operand, operand.run), operand.cost + relative(node.operand)
    if node.test:
        return Code(lambda frame: present(run(frame), field), units, certain=BOOL)
    fused = path_code(build.checked, node)
    if fused is not None:
        return Code(fused, units + 1, certain=build.checked.types[node])
    if build.checked.types[node.operand] == build.checked.environment.type:
        return Code(lambda frame: frame[SUBJECT].fields[field], units + 1)
    return Code(lambda frame: element(run(frame), field), units + 1)


def _list_literal(_build: Build, node: nodes.ListLiteral) -> CodeSteps:
    """Return the code of a list literal."""
    codes = yield from collect(item.value for item in node.items)
    optional = [item.optional for item in node.items]
    if not any(optional):
        return _plain_list(codes)
    items = [(code.run, mark) for code, mark in zip(codes, optional, strict=True)]

    def run(frame: Frame) -> Value:
        made = []
        for part, mark in items:
            value = part(frame)
            if not mark:
                made.append(value)
            elif _optional(value).present:
                made.append(value.value)
        return made

    return Code(run, CREATE_LIST + sum(code.cost for code in codes))


def _map_literal(_build: Build, node: nodes.MapLiteral) -> CodeSteps:
    """Return the code of a map literal."""
    keys = yield from collect(entry.key for entry in node.entries)
    values = yield from collect(entry.value for entry in node.entries)
    entries = [
        (key.run, value.run, entry.optional)
        for key, value, entry in zip(keys, values, node.entries, strict=True)
    ]
    run = _map_of(entries)
    if all(code.is_constant for code in keys + values):
        return _constant_map(run)
    return Code(run, CREATE_MAP + sum(code.cost for code in keys + values))


def _message(_build: Build, node: nodes.MessageLiteral) -> CodeSteps:
    """Return the code of a message literal."""
    if not node.fields:
        zero = MESSAGES[node.name].zero
        return Code(lambda _frame: zero, CREATE_MESSAGE)
    codes = yield from collect(value for _, value, _ in node.fields)
    return Code(codes[-1].run, CREATE_MESSAGE + sum(code.cost for code in codes))


def _bind(build: Build, node: nodes.Bind) -> CodeSteps:
    """Return the code of cel.bind: the value is computed when it is first needed."""
    value, body = yield from collect((node.value, node.body))
    (slot,) = build.checked.slots[node]
    run, pending = body.run, _Pending(value)

    def bind(frame: Frame) -> Value:
        frame[slot] = pending
        return run(frame)

    return Code(bind, body.cost)


class _Pending:
    """A bound value that nobody has asked for yet."""

    __slots__ = ("cost", "run")

    def __init__(self, code: Code) -> None:
        self.run = code.run
        self.cost = code.cost


def _lazy(slot: int) -> Run:
    """Return what reads a bound name, computing its value the first time."""

    def run(frame: Frame) -> Value:
        value = frame[slot]
        if type(value) is _Pending:
            frame[BUDGET] -= value.cost
            try:
                value = value.run(frame)
            except EvaluationError as error:
                value = error
            frame[slot] = value
        if isinstance(value, EvaluationError):
            raise EvaluationError(*value.args)
        return value

    return run


def _plain_list(codes: list[Code]) -> Code:
    kinds = {code.certain for code in codes}
    certain = list_of(kinds.pop() if len(kinds) == 1 else DYN)
    if all(code.is_constant for code in codes):
        return constant([code.constant for code in codes], certain)
    runs = [code.run for code in codes]
    units = CREATE_LIST + sum(code.cost for code in codes)
    if len(runs) == 1:
        only = runs[0]
        return Code(lambda frame: [only(frame)], units, certain=certain)

    def run(frame: Frame) -> Value:
        made = []
        for part in runs:
            made.append(part(frame))  # noqa: PERF401 - a comprehension would be one more frame
        return made

    return Code(run, units, certain=certain)


def _optional(value: Value) -> Optional:
    if type(value) is not Optional:
        raise no_overload("an optional element needs an optional")
    return value


def _constant_map(run: Run) -> Code:
    """Build the map now; one with a key that cannot be looked up stays a runtime error."""
    try:
        return constant(run([]))
    except Aborted:
        return Code(run)


def _map_of(entries: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Frame) -> Value:
        made: dict[Value, tuple[Value, Value]] = {}
        for key_run, value_run, mark in entries:
            key, value = key_run(frame), value_run(frame)
            normal = normal_key(key)
            if mark:
                if not _optional(value).present:
                    made.pop(normal, None)
                    continue
                value = value.value
            made[normal] = (key, value)
        return Map(made)

    return run


RULES: dict[type, Callable[[Build, Any], Code | CodeSteps]] = {
    nodes.Literal: _literal,
    nodes.Identifier: _name,
    nodes.Select: _select,
    nodes.Call: call_code,
    nodes.ListLiteral: _list_literal,
    nodes.MapLiteral: _map_literal,
    nodes.MessageLiteral: _message,
    nodes.Bind: _bind,
    nodes.Loop: loop_code,
    nodes.OptionalMap: optional_map_code,
}
