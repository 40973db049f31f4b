"""Hostile texts: noise, mutations, deep nesting, made from the grammar; and what must hold of each."""

import random

from function.cel import CompileError, Selector, bind_device
from function.cel.checker import state
from function.cel.library.charges import LIMIT
from function.cel.selector import compiled
from tests.support.grammar import boolean, deep, grammar_made, mutated, noise

DEVICE = bind_device(
    driver="gpu.nvidia.com",
    attributes={
        "architecture": {"string": "Hopper"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "550.54.15"},
        "links": {"strings": ["nvlink", "pcie"]},
        "ports": {"ints": [1, 2, 3]},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    capacity={"memory": {"value": "80Gi"}, "multiprocessors": {"value": "132"}, "share": {"value": "0.5"}},
)
OUTCOMES = ("match", "nomatch", "error", "cost")


def case(pick: random.Random) -> str:
    kind = pick.random()
    if kind < 0.1:
        return noise(pick)
    if kind < 0.15:
        return deep(pick)
    if kind < 0.4:
        return mutated(pick, boolean(pick))
    return boolean(pick) if kind < 0.8 else grammar_made(pick, 6)


def settle(source: str) -> str:
    try:
        selector = compiled(source, state.DEVICE)
    except CompileError as error:
        refused = error
    else:
        return evaluated(selector, source)
    lines = source.split("\n")
    assert 1 <= refused.line <= len(lines), source
    assert 1 <= refused.column <= len(lines[refused.line - 1]) + 1, source
    assert refused.message, source
    assert refused.caret().endswith("^"), source
    return "compile"


def evaluated(selector: Selector, source: str) -> str:
    outcome = selector.evaluate(DEVICE)
    assert outcome.kind in OUTCOMES, source
    assert (outcome.message == "") == (outcome.kind in ("match", "nomatch")), source
    assert 0 <= (selector.estimate() or 0) < 2**64, source
    assert outcome.kind == "cost" or selector.cost(DEVICE) <= LIMIT, source
    for conjunct in selector.conjuncts:
        assert conjunct.evaluate(DEVICE).kind in OUTCOMES, source
    return outcome.kind
