"""The table of condition reasons is whole: every row is used, and what is used is a row."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import function
from function.api.reasons import CONDITION_REASONS, INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = {
    "ModelDeployment": "deployment/**/*.py",
    "ModelReplica": "replica/*.py",
    "InferenceCluster": "cluster/*.py",
    "ModelService": "routing/[st]*.py",
    "ModelEndpoint": "routing/endpoint.py",
    "ModelAdapter": "adapter/*.py",
}
ROOT = Path(function.__file__).parent


def _trees(kind: str) -> Iterator[ast.AST]:
    for path in sorted(ROOT.glob(ROOMS[kind])):
        yield ast.parse(path.read_text())


@pytest.mark.parametrize("kind", CONDITION_REASONS)
def test_every_row_is_a_reason_that_the_handler_gives(kind: str) -> None:
    texts = {node.value for tree in _trees(kind) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert CONDITION_REASONS[kind].keys() - {INTERNAL_ERROR} <= texts


def _reasons(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that stand as the reason of a condition."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        given = [word.value for word in call.keywords if word.arg == "reason" and call.func.id == "Condition"]
        if call.func.id == "unmet":
            given.append(call.args[1])
        if call.func.id in {"Doubt", "MissingClass"}:
            given.append(call.args[0])
        for value in given:
            branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            yield from (branch.value for branch in branches if isinstance(branch, ast.Constant))


@pytest.mark.parametrize("kind", CONDITION_REASONS)
def test_every_reason_in_the_handler_is_a_row(kind: str) -> None:
    reasons = {reason for tree in _trees(kind) for reason in _reasons(tree)}
    assert reasons
    assert reasons <= CONDITION_REASONS[kind].keys()
