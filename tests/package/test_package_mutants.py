"""The functions whose surviving mutants are explained are there, under the names that the page gives them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def defined(node: ast.AST, before: str) -> set[str]:
    """Every function below a node, as `file.Class.function`."""
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{before}.{child.name}"
            names |= {name} | defined(child, name)
    return names


def test_every_function_whose_mutants_survive_exists() -> None:
    page = (ROOT / "tests" / "MUTANTS.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in rows for name in re.findall(r"`([^`]+)`", cell)}
    names: set[str] = set()
    for path in sorted((ROOT / "function").rglob("*.py")):
        names |= defined(ast.parse(path.read_text()), path.stem)
    assert len(named) > 30, "the page has another form: nothing would be looked up"
    assert named <= names
