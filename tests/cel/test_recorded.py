"""Answers of Kubernetes' own code, recorded in 1.36 and 1.37, against ours.

`classes.json` has the smallest case of each way in which this dialect once differed. `recorded.json` has the
neighbours: expressions made at random from the whole language, and texts of times, numbers, URLs, formats,
patterns, versions, quantities and addresses that are nearly right. `tests/cel/oracle` records more.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from function.cel import CompileError, Subject, bind_device, compile_device

KINDS = {"match": "match", "nomatch": "nomatch", "error": "runtime_error", "cost": "runtime_error"}
RELEASES = ["1.36", "1.37"]


def cases(name: str) -> tuple[Subject, list[dict[str, Any]]]:
    content = json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return bind_device(**content["device"]), content["cases"]


def answer(expression: str, subject: Subject, release: str) -> str:
    try:
        selector = compile_device(expression, release)
    except CompileError:
        return "compile_error"
    return KINDS[selector.evaluate(subject).kind]


def expected(case: dict[str, Any], release: str) -> str:
    return str(case["answers"][release] if "answers" in case else case["answer"])


CLASSES_DEVICE, CLASSES = cases("classes.json")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", CLASSES, ids=[case["reason"] for case in CLASSES])
def test_each_class_answers_as_kubernetes_does(case: dict[str, Any], release: str) -> None:
    assert answer(case["expression"], CLASSES_DEVICE, release) == expected(case, release)


@pytest.mark.parametrize("release", RELEASES)
def test_the_neighbours_of_the_classes_answer_as_kubernetes_does(release: str) -> None:
    subject, neighbours = cases("recorded.json")
    wrong = [
        (case["expression"], expected(case, release), answer(case["expression"], subject, release))
        for case in neighbours
        if answer(case["expression"], subject, release) != expected(case, release)
    ]
    assert wrong == []
    assert len(neighbours) > 2500
