"""The mutants of our functions: mutmut's operators, applied to one place of one function at a time.

Every function and method is mutated, properties and memoised ones too. What is not: annotations, decorators,
default arguments, docstrings, and tables at the top of a module.
"""

from __future__ import annotations

import fnmatch
import importlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
KEPT = (cst.Annotation, cst.Decorator, cst.Parameters)
FLAGS = annotations.compiler_flag
LONGEST = 90
"""Characters of a piece of code in a report."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function."""

    module: str
    function: str
    """As `Class.method` or `function`."""
    line: int
    end: int
    """The last line of what is changed."""
    change: str
    source: str
    """The changed function, inside of its class if it has one."""

    def __str__(self) -> str:
        return f"{self.module}.{self.function}, line {self.line}: {self.change}"

    @property
    def key(self) -> tuple[str, str]:
        """The function that is changed."""
        return self.module, self.function

    def code(self) -> CodeType | None:
        """Return what runs instead, None when that cannot be compiled."""
        try:
            compiled = compile(self.source, self.module, "exec", flags=FLAGS, dont_inherit=True)
        except (SyntaxError, ValueError):
            return None
        for name in self.function.split("."):
            compiled = next(
                const for const in compiled.co_consts if isinstance(const, CodeType) and const.co_name == name
            )
        return compiled


def broken(whole: CodeType, mutant: Mutant) -> CodeType:
    """Return the code of a module with one function of it changed, for what runs while it is imported."""
    code = mutant.code()
    return whole if code is None else _with(whole, mutant.function.split("."), code)


def _with(code: CodeType, names: list[str], changed: CodeType) -> CodeType:
    name, *rest = names
    constants = tuple(
        (_with(const, rest, changed) if rest else changed)
        if isinstance(const, CodeType) and const.co_name == name
        else const
        for const in code.co_consts
    )
    return code.replace(co_consts=constants)


def mutants(pattern: str) -> list[Mutant]:
    """Return every mutant of the functions whose name, with its module, is like `pattern`."""
    results = []
    for path in sorted((ROOT / "function").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if fnmatch.fnmatch(f"{module}.", pattern) or fnmatch.fnmatch(pattern, f"{module}.*"):
            results += [
                mutant for mutant in _of_file(module, path) if fnmatch.fnmatch(".".join(mutant.key), pattern)
            ]
    return results


def _of_file(module: str, path: Path) -> Iterator[Mutant]:
    wrapper = MetadataWrapper(cst.parse_module(path.read_text(encoding="utf-8")))
    lines = wrapper.resolve(PositionProvider)
    for classes, function in _functions(wrapper.module.body, ()):
        name = ".".join([*(class_node.name.value for class_node in classes), function.name.value])
        for node in _changeable_nodes(function.body):
            for changed in _changes(node):
                source = _source(classes, function.deep_replace(node, changed))
                change = f"{_shown(node)} -> {_shown(changed)}"
                place = lines[node]
                yield Mutant(module, name, place.start.line, place.end.line, change, source)


def _functions(
    body: Any, classes: tuple[cst.ClassDef, ...]
) -> Iterator[tuple[tuple[cst.ClassDef, ...], cst.FunctionDef]]:
    for statement in body:
        if isinstance(statement, cst.FunctionDef):
            yield classes, statement
        elif isinstance(statement, cst.ClassDef):
            yield from _functions(statement.body.body, (*classes, statement))


def _changeable_nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Return what may be changed of a function."""
    if isinstance(node, KEPT) or _never_matters(node):
        return
    yield node
    for child in node.children:
        yield from _changeable_nodes(child)


def _never_matters(node: cst.CSTNode) -> bool:
    """Say whether this only informs the type checker, or fails at once whatever is changed."""
    name = node.func if isinstance(node, cst.Call) else None
    return isinstance(name, cst.Name) and name.value in ("cast", "isinstance", "len")


def _changes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            yield from operator(node)


def _source(classes: tuple[cst.ClassDef, ...], function: Any) -> str:
    made = function.with_changes(decorators=[])
    for class_node in reversed(classes):
        made = cst.ClassDef(name=class_node.name, body=cst.IndentedBlock(body=[made]))
    return cst.Module(body=[made]).code


def _shown(node: cst.CSTNode) -> str:
    code = " ".join(cst.Module(body=[]).code_for_node(node).split())
    return code if len(code) <= LONGEST else f"{code[: LONGEST - 3]}..."


def running(key: tuple[str, str]) -> FunctionType | None:
    """Return the function that runs under this name, None when there is none any more."""
    target: Any = importlib.import_module(key[0])
    for name in key[1].split("."):
        target = vars(target).get(name)
        if target is None:
            return None
    return _plain(target)


def _plain(target: Any) -> FunctionType | None:
    """Return the function under its decorators."""
    if isinstance(target, property):
        target = target.fget
    elif isinstance(target, cached_property):
        target = target.func
    elif isinstance(target, (classmethod, staticmethod)):
        target = target.__func__
    while hasattr(target, "__wrapped__"):
        target = target.__wrapped__
    return target if isinstance(target, FunctionType) else None


def same(one: CodeType, other: CodeType) -> bool:
    """Say whether the change is none: the compiler makes the same of both."""
    return _content(one) == _content(other)


def _content(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(
        _content(const) if isinstance(const, CodeType) else (type(const), const) for const in code.co_consts
    )
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars
