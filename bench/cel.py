"""Selectors beside cel-python's own evaluator, in one run: `python bench/cel.py`.

The figures that count are the ratios. cel-python gets the same text and the device as it wants it: nested
maps, with memory as a number; where a selector needs a quantity, the comparison is written with numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import celpy

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from function.cel import Evaluations, bind_device, compile_device  # noqa: E402 - after the path is known
from function.cel import environment as levels  # noqa: E402
from function.cel.selector import compiled  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

ATTRIBUTES = {
    "type": {"string": "gpu"},
    "uuid": {"string": "GPU-7a1f"},
    "productName": {"string": "NVIDIA H200"},
    "brand": {"string": "Nvidia"},
    "architecture": {"string": "Hopper"},
    "cudaComputeCapability": {"version": "9.0.0"},
    "driverVersion": {"version": "570.86.15"},
    "index": {"int": 3},
}
CAPACITY = {"memory": {"value": "143771Mi"}, "multiprocessors": {"value": "132"}}
PLAIN = {
    "driver": "gpu.nvidia.com",
    "attributes": {
        "gpu.nvidia.com": {name: next(iter(value.values())) for name, value in ATTRIBUTES.items()}
    },
    "capacity": {"gpu.nvidia.com": {"memory": 143771 * 2**20, "multiprocessors": 132}},
}
A, C = 'device.attributes["gpu.nvidia.com"]', 'device.capacity["gpu.nvidia.com"]'
SELECTORS = [
    (f'{A}.architecture == "Hopper"', None),
    (f'{C}.memory.compareTo(quantity("80Gi")) >= 0', f"{C}.memory >= 85899345920"),
    (f'{A}.productName.contains("H200")', None),
    (f'{A}.architecture in ["Hopper", "Blackwell"]', None),
    (
        f'{A}.type == "gpu" && {A}.architecture == "Hopper" && {C}.memory.compareTo(quantity("80Gi")) >= 0',
        f'{A}.type == "gpu" && {A}.architecture == "Hopper" && {C}.memory >= 85899345920',
    ),
    (f'has({A}.profile) || {A}.productName.matches("H[12]00")', None),
    ("[1, 2, 3].exists(x, x == " + A + ".index)", None),
]


def best(run: Callable[[], Any], times: int) -> float:
    """Return microseconds for one run, the best of five rounds."""
    rounds = []
    for _ in range(5):
        start = perf_counter()
        for _ in range(times):
            run()
        rounds.append((perf_counter() - start) / times)
    return min(rounds) * 1e6


def interpreter(text: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return what compiles and what evaluates with cel-python."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    activation = {"device": celpy.json_to_cel(PLAIN)}
    return (
        lambda: environment.program(environment.compile(text)),
        lambda: program.evaluate(activation),
    )


def compare() -> float:
    """Print the table and return the geometric mean of the evaluation ratios."""
    subject = bind_device(driver="gpu.nvidia.com", attributes=ATTRIBUTES, capacity=CAPACITY)
    print("| selector | compile us | cel-python | ratio | evaluate us | cel-python | ratio |")
    print("|---|---|---|---|---|---|---|")
    product, count = 1.0, 0
    for ours, theirs in SELECTORS:
        selector = compile_device(ours)
        their_compile, their_evaluate = interpreter(theirs or ours)
        assert selector.evaluate(subject).matched
        assert their_evaluate()
        compiling = best(lambda text=ours: compiled(text, levels.DEVICE), 20)  # type: ignore[misc]
        their_compiling = best(their_compile, 20)
        evaluating = best(lambda one=selector: one.evaluate(subject), 2000)  # type: ignore[misc]
        their_evaluating = best(their_evaluate, 50)
        ratio = their_evaluating / evaluating
        product, count = product * ratio, count + 1
        shown = ours.replace('"gpu.nvidia.com"', "d").replace("|", "\\|")
        print(
            f"| `{shown}` | {compiling:.0f} | {their_compiling:.0f} | {their_compiling / compiling:.1f} "
            f"| {evaluating:.2f} | {their_evaluating:.0f} | {ratio:.0f} |"
        )
    return product ** (1 / count)


def reuse(devices: int) -> None:
    """Print how many evaluations a request costs, with and without its memory."""
    evaluations, asked = Evaluations(), 0
    for index in range(devices):
        attributes = ATTRIBUTES | {"uuid": {"string": f"GPU-{index}"}}
        subject = bind_device(driver="gpu.nvidia.com", attributes=attributes, capacity=CAPACITY)
        for text, _ in SELECTORS:
            evaluations.outcome(compile_device(text), subject)
            asked += 1
    print(f"\n{devices} devices that differ in their uuid, {len(SELECTORS)} selectors: {asked} questions;")
    print(f"evaluated without reuse {asked}, with reuse {evaluations.evaluated},")
    print(f"answered from memory {evaluations.reused}.")


def exhausting() -> None:
    """Print how long a selector runs that would run for ever."""
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    text = "".join(f"{ten}.all({name}, " for name in "abcdefgh") + "a + b + c + d + e > 0" + ")" * 8
    selector = compile_device(text)
    subject = bind_device(driver="d", attributes={}, capacity={})
    start = perf_counter()
    outcome = selector.evaluate(subject)
    print(f"\nA selector of 10^8 steps ends as {outcome.kind} after {(perf_counter() - start) * 1e3:.0f} ms.")


def main() -> None:
    """Print everything."""
    mean = compare()
    subject = best(
        lambda: bind_device(driver="gpu.nvidia.com", attributes=ATTRIBUTES, capacity=CAPACITY), 500
    )
    print(
        f"\nEvaluation is {mean:.0f} times as fast (geometric mean); binding a device takes {subject:.0f} us."
    )
    reuse(1000)
    exhausting()


if __name__ == "__main__":
    main()
