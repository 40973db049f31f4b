"""Selectors beside cel-python, in one run: `python bench/cel.py`; `--hostile 200000` times that many texts.

The figures that count are ratios of processor time. Compiling, with the check, is held against
cel-python's parsing alone, in turns. cel-python gets the same text and the device as it wants
it: nested maps, with memory as a number; where a selector needs a quantity, the comparison is with numbers.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from statistics import geometric_mean
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import celpy
from celpy.adapter import json_to_cel

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from function.cel import OutcomeMemo, bind_device, compile_device  # noqa: E402 - after the path is known
from function.cel.checker import state as levels  # noqa: E402
from function.cel.selector import compiled  # noqa: E402
from tests.cel.devices import H200  # noqa: E402
from tests.cel.hostile import case, settle  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

ATTRIBUTES, CAPACITY = H200["attributes"], H200["capacity"]
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


def best(*runs: Callable[[], Any], times: int) -> list[float]:
    """Return microseconds of processor time for one run of each, the best of five rounds taken in turn."""
    rounds: list[list[float]] = [[] for _ in runs]
    for _ in range(5):
        for run, taken in zip(runs, rounds, strict=True):
            start = process_time()
            for _ in range(times):
                run()
            taken.append((process_time() - start) / times)
    return [min(taken) * 1e6 for taken in rounds]


def interpreter(text: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return what parses and what evaluates with cel-python."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    activation = {"device": json_to_cel(PLAIN)}
    return lambda: environment.compile(text), lambda: program.evaluate(activation)


def compare() -> None:
    """Print the table and the geometric means of its ratios."""
    subject = bind_device(driver="gpu.nvidia.com", attributes=ATTRIBUTES, capacity=CAPACITY)
    print("| selector | compile us | cel-python parses | ratio | evaluate us | cel-python | ratio |")
    print("|---|---|---|---|---|---|---|")
    compile_ratios, evaluate_ratios = [], []
    for ours, theirs in SELECTORS:
        selector = compile_device(ours)
        parse, evaluate = interpreter(theirs or ours)
        assert selector.evaluate(subject).matched
        assert evaluate()
        compiling, parsing = best(lambda text=ours: compiled(text, levels.DEVICE), parse, times=30)
        (evaluating,) = best(lambda one=selector: one.evaluate(subject), times=2000)
        (their_evaluating,) = best(evaluate, times=50)
        compile_ratios.append(compiling / parsing)
        evaluate_ratios.append(their_evaluating / evaluating)
        shown = ours.replace('"gpu.nvidia.com"', "d").replace("|", "\\|")
        print(
            f"| `{shown}` | {compiling:.0f} | {parsing:.0f} | {compile_ratios[-1]:.2f} "
            f"| {evaluating:.2f} | {their_evaluating:.0f} | {evaluate_ratios[-1]:.0f} |"
        )
    print(f"\nCompiling takes {geometric_mean(compile_ratios):.2f} of cel-python's parsing;")
    print(f"evaluation is {geometric_mean(evaluate_ratios):.0f} times as fast (geometric means).")


def reuse(devices: int) -> None:
    """Print how many evaluations a request costs, with and without its memory."""
    evaluations, calls = OutcomeMemo(), 0
    for index in range(devices):
        attributes = ATTRIBUTES | {"uuid": {"string": f"GPU-{index}"}}
        subject = bind_device(driver="gpu.nvidia.com", attributes=attributes, capacity=CAPACITY)
        for text, _ in SELECTORS:
            evaluations.outcome(compile_device(text), subject)
            calls += 1
    print(f"\n{devices} devices that differ in their uuid, {len(SELECTORS)} selectors: {calls} questions;")
    print(f"evaluated without reuse {calls}, with reuse {evaluations.evaluated},")
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


def hostile(count: int) -> None:
    """Print the longest that one hostile text takes: compiling, every reading of it, and one evaluation.

    A text that seems to be the longest is taken twice more: the collector of garbage may have come by.
    """
    pick, longest, worst = random.Random(7), 0.0, ""
    for _ in range(count):
        text = case(pick)
        taken = settling(text)
        if taken > longest:
            taken = min(taken, settling(text), settling(text))
        if taken > longest:
            longest, worst = taken, text
    print(f"{count} hostile texts, none uncaught; the longest took {longest * 1e3:.1f} ms: {worst[:80]!r}")


def settling(text: str) -> float:
    """Return the seconds of processor time that a text takes."""
    start = process_time()
    settle(text)
    return process_time() - start


def main() -> None:
    """Print everything, or what one option asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hostile", type=int, default=0, metavar="COUNT")
    count = parser.parse_args().hostile
    if count:
        hostile(count)
        return
    compare()
    (binding,) = best(
        lambda: bind_device(driver="gpu.nvidia.com", attributes=ATTRIBUTES, capacity=CAPACITY), times=500
    )
    print(f"Binding a device takes {binding:.0f} us.")
    reuse(1000)
    exhausting()


if __name__ == "__main__":
    main()
