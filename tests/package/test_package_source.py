"""The source as a whole: no cycle between modules, no name for two types, nouns for names, short prose."""

from __future__ import annotations

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import grimp
import pytest

import function
from tests.package.prose import PAGES, too_long

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(function.__file__).parent
TREE = Path(__file__).parents[2]


WORDS = frozenset({"alike", "each", "found", "known", "own", "told"})
"""Names that say how a value came about, or which of several it is, instead of what it is."""


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the modules of a cycle, the first once more at the end; none if there is no cycle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def types_of(source: str) -> Iterator[str]:
    """Yield the public classes and type aliases that a module defines. A type variable is none."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in _statements(tree.body):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            yield ast.unparse(node.target)
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            yield from (name for name in map(ast.unparse, node.targets) if not name.isupper())


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those for type checkers included."""
    for node in body:
        yield from _statements(node.body) if isinstance(node, ast.If) else [node]


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


def shared(modules: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the types that more than one module defines, with those modules."""
    owners = defaultdict(list)
    for name, source in modules.items():
        for defined in sorted(set(types_of(source))):
            if defined[0].isupper():
                owners[defined].append(name)
    return {defined: names for defined, names in owners.items() if len(names) > 1}


def names_of(source: str) -> set[str]:
    """Return the names that a module gives: to variables, arguments, attributes, functions and classes."""
    nodes = list(ast.walk(ast.parse(source)))
    return {
        *(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)),
        *(node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)),
        *(node.arg for node in nodes if isinstance(node, ast.arg)),
        *(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)),
    }


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside functions count, and those that only type checkers see."""
    graph = grimp.build_graph("function", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 200, "the graph is not the whole package"
    assert cycle(imports) == []


def test_one_name_is_one_type() -> None:
    modules = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    assert shared(modules) == {}


def test_a_name_is_a_noun() -> None:
    given = {
        (str(path.relative_to(TREE)), name.strip("_").lower())
        for folder in (ROOT, TREE / "bench", TREE / "hack", TREE / "tests")
        for path in folder.rglob("*.py")
        for name in names_of(path.read_text())
    }
    assert [pair for pair in sorted(given) if pair[1] in WORDS] == []


def test_no_page_has_a_sentence_that_is_too_long() -> None:
    long = {page.name: sentences for page in PAGES if (sentences := too_long(page.read_text()))}
    assert long == {}, "split them: at most 35 words, and 1,000 characters a line"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("found = 1", "a variable"),
        ("for found in (): ...", "of a loop"),
        ("[found for found in ()]", "of a comprehension"),
        ("def f(*, found): ...", "an argument"),
        ("def found(): ...", "a function"),
        ("class A:\n    found: int", "a field"),
        ("self.found = 1", "an attribute"),
    ],
)
def test_every_name_is_seen(source: str, reason: str) -> None:
    assert "found" in names_of(source), reason


@pytest.mark.parametrize(
    ("imports", "expected", "reason"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set(), "a chain"),
        ({"a": {"b"}, "b": {"a"}}, {"a", "b"}, "two that import each other"),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, {"b", "c"}, "one that leads into a cycle is not in it"),
    ],
)
def test_a_cycle_is_seen(imports: dict[str, set[str]], expected: set[str], reason: str) -> None:
    assert set(cycle(imports)) == expected, reason


@pytest.mark.parametrize(
    ("first", "second", "expected", "reason"),
    [
        ("class Pool: ...", "class Pool: ...", ["Pool"], "two classes"),
        ("class Pool: ...", "class Cluster: ...", [], "two names"),
        ("class Pool: ...", "Pool: TypeAlias = 'int'", ["Pool"], "a class and an alias"),
        ("Pool = int", "Pool = dict[str, int]", ["Pool"], "two plain aliases"),
        ("class Pool: ...", "from first import Pool", [], "an import is no definition"),
        ("T = TypeVar('T')", "T = TypeVar('T')", [], "type variables belong to where they stand"),
        ("LIMIT = 1", "LIMIT = 2", [], "nor are constants types"),
        ("class _Pool: ...", "class _Pool: ...", [], "what is private is not met elsewhere"),
        ("if TYPE_CHECKING:\n    Pool: TypeAlias = 'int'", "class Pool: ...", ["Pool"], "for type checkers"),
        ("def f():\n    class Pool: ...", "class Pool: ...", ["Pool"], "a class within a function"),
    ],
)
def test_a_shared_name_is_seen(first: str, second: str, expected: list[str], reason: str) -> None:
    assert list(shared({"first": first, "second": second})) == expected, reason
