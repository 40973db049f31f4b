"""Comprehensions as closures. Each step is charged before it runs, so that none runs for long."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from function.cel.checker.comprehensions import PREDICATES
from function.cel.errors import CostExceeded, EvaluationError, no_overload
from function.cel.evaluator.calls import decided
from function.cel.evaluator.code import Code, CodeSteps, Frame, Run
from function.cel.evaluator.passing import passed
from function.cel.frame import BUDGET, WORK
from function.cel.library.charges import CREATE_LIST, sorting, spend
from function.cel.library.lists import sorted_by
from function.cel.syntax.descent import collect
from function.cel.syntax.types import BOOL, DYN
from function.cel.values import NONE, Map, Optional, Value, normal_key, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from function.cel.evaluator.build import Build
    from function.cel.syntax.nodes import Loop, OptionalMap

Walker: TypeAlias = "Callable[[Frame], Iterable[Value]]"

COUNT, RESULT = 2, 1
ALL_STEP, EXISTS_STEP = 3, 4
LIST_STEP = 1 + CREATE_LIST + 1
MAP_STEP, ENTRY_STEP = 3, 2
"""What it charges for a step besides what stands in it: the accumulator, the new element, joining them."""


def loop_code(build: Build, node: Loop) -> CodeSteps:
    """Return the code of a comprehension."""
    over, *steps = yield from collect((node.range, *node.steps))
    walker = _walker(over.run, build.checked.slots[node])
    return Code(
        BUILDERS[node.kind](walker, steps), over.cost, certain=BOOL if node.kind in PREDICATES else DYN
    )


def _walker(over: Run, slots: tuple[int, ...]) -> Walker:
    """Return what puts each element into the loop's slots, one after the other, and yields it."""
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
    if type(value) is list:
        return value
    if type(value) is Map:
        return (key for key, _ in value.entries.values())
    raise EvaluationError(f"a {type_name(value)} is nothing to iterate over")


def _pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    if type(value) is list:
        return enumerate(value)
    if type(value) is Map:
        return value.entries.values()
    raise EvaluationError(f"a {type_name(value)} is nothing to iterate over")


def _bool(value: Value) -> bool:
    if type(value) is not bool:
        raise no_overload(f"{type_name(value)} is not a bool")
    return value


def _quantifier(walker: Walker, step: Code, *, decisive: bool) -> Run:
    """Build `all` or `exists`: the first decisive element settles it, errors lose against it."""
    term = (step.run, (EXISTS_STEP if decisive else ALL_STEP) + step.cost)

    def run(frame: Frame) -> Value:
        value = decided(frame, (term for _ in walker(frame)), decisive)
        frame[BUDGET] -= RESULT
        return value

    return run


def _all(walker: Walker, steps: list[Code]) -> Run:
    return _quantifier(walker, steps[0], decisive=False)


def _exists(walker: Walker, steps: list[Code]) -> Run:
    return _quantifier(walker, steps[0], decisive=True)


def _exists_one(walker: Walker, steps: list[Code]) -> Run:
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
    """Build `map` and `transformList`, with or without a predicate."""
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


def _transform_map(walker: Walker, steps: list[Code]) -> Run:
    test, test_units = (steps[0].run, steps[0].cost) if len(steps) > 1 else (None, 0)
    make, units = steps[-1].run, MAP_STEP + steps[-1].cost

    def run(frame: Frame) -> Value:
        made: dict[Value, tuple[Value, Value]] = {}
        for key, _ in walker(frame):
            frame[BUDGET] -= test_units
            if test is None or _bool(test(frame)):
                frame[BUDGET] -= units
                _insert(made, Map({normal_key(key): (key, make(frame))}))
        frame[BUDGET] -= RESULT
        return Map(made)

    return run


def _transform_entries(walker: Walker, steps: list[Code]) -> Run:
    test, test_units = (steps[0].run, steps[0].cost) if len(steps) > 1 else (None, 0)
    make, units = steps[-1].run, ENTRY_STEP + steps[-1].cost

    def run(frame: Frame) -> Value:
        made: dict[Value, tuple[Value, Value]] = {}
        for _ in walker(frame):
            frame[BUDGET] -= test_units
            if test is None or _bool(test(frame)):
                frame[BUDGET] -= units
                _insert(made, make(frame))
        frame[BUDGET] -= RESULT
        return Map(made)

    return run


def _insert(made: dict[Value, tuple[Value, Value]], entries: Value) -> None:
    if type(entries) is not Map:
        raise no_overload(f"{type_name(entries)} is not a map of one entry")
    for normal, entry in entries.entries.items():
        if Map(made).held(entry[0]) is not None:
            raise EvaluationError(f"insert failed: key {entry[0]} already exists")
        made[normal] = entry


def _sort_by(walker: Walker, steps: list[Code]) -> Run:
    key, units = steps[0].run, LIST_STEP + steps[0].cost

    def run(frame: Frame) -> Value:
        values, keys = [], []
        for value in walker(frame):
            frame[BUDGET] -= units
            values.append(value)
            keys.append(key(frame))
        spend(frame, sorting(values))
        frame[BUDGET] -= RESULT + 2
        return sorted_by(values, keys)

    return run


BUILDERS: dict[str, Callable[[Walker, list[Code]], Run]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entries,
    "sortBy": _sort_by,
}


def optional_map_code(build: Build, node: OptionalMap) -> CodeSteps:
    """Return the code of `optMap` or `optFlatMap`."""
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
        return made if keeps else passed(made)

    return Code(run, optional.cost)
