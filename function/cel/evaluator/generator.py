"""Generate closures from a checked tree: one Python function for each node, built once, run on a frame.

Why closures and no interpreter: a selector runs thousands of times in one call of the function, and walking a
tree each time costs more than what it computes. Why no `exec` of generated source: a selector is a user's
text.

A closure takes the frame of one evaluation and returns a value or raises. It keeps nothing between calls,
so any number of threads may run a program at once. The frame holds the subject, the budget that is left, the
steps that are left, and a slot for each name that a macro binds (`values`).

What a node costs is known before it runs, except for texts and lists. So costs are summed up at compile time
(`Code.cost`) and charged once for each stretch that runs as a whole; where a branch or a step of a loop may
not run, its cost is charged where it does. The budget is only looked at in loops and before work that depends
on sizes: everything between two looks is bounded by the length of the text.

`RULES` at the end has a rule for each kind of node; `calls` has those of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from function.cel.checker.check import PREDICATES
from function.cel.checker.state import Checked
from function.cel.evaluator import calls
from function.cel.evaluator.calls import Build, Code, CodeSteps, Frame, Run, call_code, constant, decided
from function.cel.library import declarations, lists, operators
from function.cel.library.charges import CREATE_LIST, CREATE_MAP, CREATE_MESSAGE, pairwise, spend
from function.cel.syntax import nodes
from function.cel.syntax.nodes import BOOL, DYN, Loop, OptionalMap, list_of
from function.cel.syntax.parser import collect, descend
from function.cel.values import (
    BUDGET,
    NONE,
    SUBJECT,
    WORK,
    Aborted,
    CostExceeded,
    EvaluationError,
    Map,
    Optional,
    TypeValue,
    Value,
    no_overload,
    normal_key,
    type_name,
)

# Comprehensions as closures. Each step is charged before it runs, so that none runs for long. In cel-go each
# is a fold: an accumulator, a condition and a step (`parser/macro.go`). The units below are what these nodes
# cost there, counted for each macro; the fold itself is Python's loop.

Walker: TypeAlias = "Callable[[Frame], Iterable[Value]]"

COUNT, RESULT = 2, 1
ALL_STEP, EXISTS_STEP = 3, 4
LIST_STEP = 1 + CREATE_LIST + 1
MAP_STEP, ENTRY_STEP = 3, 2
"""Units of a step besides those of its parts: the accumulator, the new element, joining them."""


def loop_code(build: Build, node: Loop) -> CodeSteps:
    """Return the code of a comprehension: what it walks over, and what each step does, by its macro.

    The result of a predicate is certainly a bool; of everything else the elements' types are not looked at.
    """
    over, *steps = yield from collect((node.range, *node.steps))
    walker = _walker(over.run, build.checked.slots[node])
    return Code(
        BUILDERS[node.kind](walker, steps), over.cost, certain=BOOL if node.kind in PREDICATES else DYN
    )


def _walker(over: Run, slots: tuple[int, ...]) -> Walker:
    """Return what puts each element into the loop's slots, one after the other, and yields it.

    The budget is looked at here, before each step: a loop cannot run longer than one step beyond it.
    """
    first = slots[0]

    def one(frame: Frame) -> Iterable[Value]:
        for value in _elements(over(frame)):
            frame[WORK] -= 1
            if frame[BUDGET] < 0 or frame[WORK] < 0:
                raise CostExceeded
            frame[first] = value
            yield value

    def two(frame: Frame) -> Iterable[Value]:
        for pair in _pairs(over(frame)):
            frame[WORK] -= 1
            if frame[BUDGET] < 0 or frame[WORK] < 0:
                raise CostExceeded
            frame[first], frame[slots[1]] = pair
            yield pair

    return one if len(slots) == 1 else two


def _elements(value: Value) -> Iterable[Value]:
    """Return what a loop with one name walks over: elements of a list, keys of a map.

    A map is walked in the order in which it was made. Go's order is random, so no selector may depend on one.
    """
    if type(value) is list:
        return value
    if type(value) is Map:
        return (key for key, _ in value.entries.values())
    raise EvaluationError(f"a {type_name(value)} is nothing to iterate over")


def _pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """Return what a loop with two names walks over: positions and elements, or keys and values."""
    if type(value) is list:
        return enumerate(value)
    if type(value) is Map:
        return value.entries.values()
    raise EvaluationError(f"a {type_name(value)} is nothing to iterate over")


def _bool(value: Value) -> bool:
    """Return a value that must be a bool, because a predicate decides by it.

    The check lets dyn pass as a predicate; what it turns out to be is known here. Unlike in `all` and
    `exists`, an error of the predicate is the result of the loop.
    """
    if type(value) is not bool:
        raise no_overload(f"{type_name(value)} is not a bool")
    return value


def _quantifier(walker: Walker, steps: list[Code], *, decisive: bool) -> Run:
    """Build `all` or `exists`: the first decisive element settles it, errors lose against it."""
    term = (steps[0].run, (EXISTS_STEP if decisive else ALL_STEP) + steps[0].cost)

    def run(frame: Frame) -> Value:
        value = decided(frame, (term for _ in walker(frame)), decisive)
        frame[BUDGET] -= RESULT
        return value

    return run


def _exists_one(walker: Walker, steps: list[Code]) -> Run:
    """Build `exists_one`: every element is looked at, and an error of one is the result.

    No element is decisive: after the second match a further error would still count, as in cel-go.
    """
    test, units = steps[0].run, steps[0].cost

    def run(frame: Frame) -> Value:
        matching = 0
        for _ in walker(frame):
            frame[BUDGET] -= units
            if _bool(test(frame)):
                frame[BUDGET] -= COUNT
                matching += 1
        frame[BUDGET] -= COUNT
        return matching == 1

    return run


def _filter(walker: Walker, steps: list[Code]) -> Run:
    """Build `filter`, charged for each element that is kept as for joining a list of one to the result."""
    test, test_units = steps[0].run, steps[0].cost

    def run(frame: Frame) -> Value:
        kept = []
        for value in walker(frame):
            frame[BUDGET] -= test_units
            if _bool(test(frame)):
                frame[BUDGET] -= LIST_STEP + 1
                kept.append(value)
        frame[BUDGET] -= RESULT
        return kept

    return run


def _map(walker: Walker, steps: list[Code]) -> Run:
    """Build `map` and `transformList`, with or without a predicate.

    With one name or two the element is in its slot already, so what is made does not depend on which macro it
    is.
    """
    test, test_units = (steps[0].run, steps[0].cost) if len(steps) > 1 else (None, 0)
    make, units = steps[-1].run, LIST_STEP + steps[-1].cost

    def run(frame: Frame) -> Value:
        made = []
        for _ in walker(frame):
            frame[BUDGET] -= test_units
            if test is None or _bool(test(frame)):
                frame[BUDGET] -= units
                made.append(make(frame))
        frame[BUDGET] -= RESULT
        return made

    return run


def _transform_map(walker: Walker, steps: list[Code], *, keyed: bool) -> Run:
    """Build `transformMap`, which makes a value for each key, or `transformMapEntry`, which makes both."""
    test, test_units = (steps[0].run, steps[0].cost) if len(steps) > 1 else (None, 0)
    make, units = steps[-1].run, (MAP_STEP if keyed else ENTRY_STEP) + steps[-1].cost

    def run(frame: Frame) -> Value:
        made: dict[Value, tuple[Value, Value]] = {}
        for key, _ in walker(frame):
            frame[BUDGET] -= test_units
            if test is None or _bool(test(frame)):
                frame[BUDGET] -= units
                entry = Map({normal_key(key): (key, make(frame))}) if keyed else make(frame)
                _insert(made, entry)
        frame[BUDGET] -= RESULT
        return Map(made)

    return run


def _insert(made: dict[Value, tuple[Value, Value]], entries: Value) -> None:
    """Add the entries of a map to another.

    A key that is there is an error, by CEL's equality: 1 and 1.0 are one.
    """
    if type(entries) is not Map:
        raise no_overload(f"{type_name(entries)} is not a map of one entry")
    for normal, entry in entries.entries.items():
        if Map(made).held(entry[0]) is not None:
            raise EvaluationError(f"insert failed: key {entry[0]} already exists")
        made[normal] = entry


def _sort_by(walker: Walker, steps: list[Code]) -> Run:
    """Build `sortBy`: the keys first, each once, then the elements in the order of their keys.

    cel-go makes a list of keys by a loop and hands both lists to a function; the units are those of the loop
    and of sorting (`charges.pairwise`).
    """
    key, units = steps[0].run, LIST_STEP + steps[0].cost

    def run(frame: Frame) -> Value:
        values, keys = [], []
        for value in walker(frame):
            frame[BUDGET] -= units
            values.append(value)
            keys.append(key(frame))
        spend(frame, pairwise(None, values))
        frame[BUDGET] -= RESULT + 2
        return lists.sorted_by(values, keys)

    return run


BUILDERS: dict[str, Callable[[Walker, list[Code]], Run]] = {
    "all": partial(_quantifier, decisive=False),
    "exists": partial(_quantifier, decisive=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": partial(_transform_map, keyed=True),
    "transformMapEntry": partial(_transform_map, keyed=False),
    "sortBy": _sort_by,
}


def optional_map_code(build: Build, node: OptionalMap) -> CodeSteps:
    """Return the code of `optMap` or `optFlatMap`: the body runs only where something is there."""
    optional, body = yield from collect((node.optional, node.body))
    given, make, units = optional.run, body.run, body.cost
    (slot,) = build.checked.slots[node]
    flat, keeps = node.flat, build.checked.dialect.optionals_keep_values

    def run(frame: Frame) -> Value:
        value = given(frame)
        if type(value) is not Optional:
            raise no_overload(f"{type_name(value)}.optMap")
        if not value.present:
            return NONE
        frame[slot] = value.value
        frame[BUDGET] -= units
        made = make(frame)
        if not flat:
            made = Optional(made)
        return made if keeps else calls.passed(made)

    return Code(run, optional.cost)


def generate(checked: Checked, node: nodes.Node, *, forms: bool) -> Code:
    """Return the code of a node and all below it; `forms` as in `Build`.

    The walk does not recurse (`descend`). What it makes does: a closure calls those of the nodes below it, so
    a selector needs as many frames of Python's stack as it is deep, at most a few hundred.
    """
    build = Build(checked, forms)
    code: Code = descend(lambda wanted: RULES[type(wanted)](build, wanted), node)
    return code


def _name(build: Build, node: nodes.Identifier) -> Code:
    """Return the code of a name: a type, or a variable's slot.

    Reading a name costs a unit. A name that holds an optional may lose what it holds on its way (`passing`).
    """
    if node in build.checked.type_values:
        return constant(TypeValue(build.checked.type_values[node]))
    variable = build.checked.variables[node]
    slot = variable.slot
    if slot == SUBJECT:  # To whoever does not read a field of it, the variable is a map.
        return Code(lambda frame: Map.of(frame[SUBJECT].fields), 1)
    run = _lazy(slot) if variable.lazy else (lambda frame: frame[slot])
    return Code(calls.passing(run, build.checked, node), 1)


def _select(build: Build, node: nodes.Select) -> CodeSteps:
    """Return the code of a selection, or of has().

    Four cases, the common one last in the text and first in practice: a name of a type; a test; a path to one
    value of the subject, which is one look-up (`path_code`); a whole field of the subject. Anything else is
    an element of a computed map.
    """
    if node in build.checked.type_values:
        return constant(TypeValue(build.checked.type_values[node]))
    operand, field = (yield node.operand), node.field
    run = calls.qualified(build.checked, node.operand, operand.run)
    units = operand.cost + calls.relative(node.operand)
    if node.test:
        return Code(lambda frame: calls.present(run(frame), field), units, certain=BOOL)
    fused = calls.path_code(build.checked, node)
    if fused is not None:
        return Code(fused, units + 1, certain=build.checked.types[node])
    if build.checked.types[node.operand] == build.checked.environment.type:
        return Code(lambda frame: frame[SUBJECT].fields[field], units + 1)
    return Code(lambda frame: operators.element(run(frame), field), units + 1)


def _list_literal(_build: Build, node: nodes.ListLiteral) -> CodeSteps:
    """Return the code of a list literal: elements in order, and an error of one is the result."""
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
    """Return the code of a map literal: of equal keys the last counts, `?key` without a value removes.

    A map of constants is made once, when the selector is compiled, and costs nothing after that.
    """
    keys = yield from collect(entry.key for entry in node.entries)
    values = yield from collect(entry.value for entry in node.entries)
    entries = [
        (key.run, value.run, entry.optional)
        for key, value, entry in zip(keys, values, node.entries, strict=True)
    ]

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

    if not all(code.is_constant for code in keys + values):
        return Code(run, CREATE_MAP + sum(code.cost for code in keys + values))
    try:
        return constant(run([]))
    except Aborted:  # A key that cannot be looked up stays an error of the evaluation.
        return Code(run)


def _message(_build: Build, node: nodes.MessageLiteral) -> CodeSteps:
    """Return the code of a message literal, which of the well-known types is a plain value.

    `google.protobuf.Int32Value{value: 1}` is 1: a message with a field is what the field holds, and one
    without is the zero of its type.
    """
    if not node.fields:
        zero = declarations.MESSAGES[node.name].zero
        return Code(lambda _frame: zero, CREATE_MESSAGE)
    codes = yield from collect(value for _, value, _ in node.fields)
    return Code(codes[-1].run, CREATE_MESSAGE + sum(code.cost for code in codes))


def _bind(build: Build, node: nodes.Bind) -> CodeSteps:
    """Return the code of cel.bind: the value is computed when it is first needed.

    So an error in a bound value shows only where the name is read, and its cost is charged there once.
    """
    value, body = yield from collect((node.value, node.body))
    (slot,) = build.checked.slots[node]
    run, pending = body.run, _Pending(value)

    def bind(frame: Frame) -> Value:
        frame[slot] = pending
        return run(frame)

    return Code(bind, body.cost)


class _Pending:
    """A bound value that nobody has asked for yet; it stands in the slot until then."""

    __slots__ = ("cost", "run")

    def __init__(self, code: Code) -> None:
        self.run = code.run
        self.cost = code.cost


def _lazy(slot: int) -> Run:
    """Return what reads a bound name, computing its value the first time; an error stays the value."""

    def run(frame: Frame) -> Value:
        """Compute a bound value once, and remember an error too.

        A later reader gets a new error of the same words: a raised one carries the frames of its raise.
        """
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
    """Return the code of a list without optional elements.

    One of constants is made once and costs nothing.
    """
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
    """Return an element marked with `?`, which must be an optional: nothing is added where it is empty."""
    if type(value) is not Optional:
        raise no_overload("an optional element needs an optional")
    return value


RULES: dict[type, Callable[[Build, Any], Code | CodeSteps]] = {
    nodes.Literal: lambda _build, node: constant(node.value, node.type),
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
