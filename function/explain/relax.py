"""Relax: rewrite the constant of one selector so that it accepts a value that a device really has."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from function.cel import CompileError, compile_device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cel import Reference, Selector, Subject

_TEXT = re.compile(r"""(?<![\[\w])("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_NUMBER = re.compile(r"(?<![\w.\"'\]])-?\d+(?![\w.\"'])")
_FIELDS = {"attribute": "attributes", "capacity": "capacity"}


def relaxed(selector: Selector, subject: Subject) -> str:
    """A selector that differs in one constant and matches the subject; empty when there is none.

    The constant is the last one of the first term that fails, and the term must read one named value only.
    """
    failing = next((each for each in selector.conjuncts() if not each.evaluate(subject).matched), None)
    if failing is None or len(failing.reads) != 1:
        return ""
    for written in _constants(subject, next(iter(failing.reads))):
        for term in _rewritten(failing.source, written):
            source = selector.source.replace(failing.source, term, 1)
            if _matches(source, subject):
                return source
    return ""


def _constants(subject: Subject, read: Reference) -> Iterator[str]:
    """The value the subject has, as it is written in a selector."""
    path = (_FIELDS.get(read.kind, ""), read.domain or "", read.id or "")
    content = subject.content.get(path)
    if isinstance(content, tuple):
        kind, value = content
        if kind in ("string", "version", "int"):
            yield json.dumps(value, ensure_ascii=False)
    elif isinstance(content, str):
        yield json.dumps(content)


def _rewritten(source: str, constant: str) -> Iterator[str]:
    """The term with its last constant of the same form exchanged; keys in brackets are no constants."""
    form = _TEXT if constant.startswith('"') else _NUMBER
    found = list(form.finditer(source))
    for last in reversed(found):
        yield f"{source[: last.start()]}{constant}{source[last.end() :]}"


def _matches(source: str, subject: Subject) -> bool:
    try:
        return compile_device(source).evaluate(subject).matched
    except CompileError:
        return False
