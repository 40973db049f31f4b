"""Check the CEL selectors in the files; one that does not compile is shown with a caret at the fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.cli.admission.finding import SELECTOR, FieldPath, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cel import Selector

LONGEST = 128 * 1024
"""Characters of selectors of one object that are compiled; a deployment with more is invalid as it is."""


def check_selectors(content: dict[str, Any], release: object) -> Iterator[Finding]:
    """A finding for each selector of an object that does not compile as a Kubernetes release reads it."""
    from function.cel import DIALECTS, CompileError  # noqa: PLC0415 - only imported for a selector

    supported = release if isinstance(release, str) and release in DIALECTS else next(iter(DIALECTS))
    length = 0
    visited = set()
    for path, level, source in stated(content.get("spec"), ("spec",)):
        if (level, source) in visited:
            continue
        visited.add((level, source))
        length += len(source)
        if length > LONGEST:
            return
        try:
            _compile(level, source, supported)
        except CompileError as error:
            excerpt, meant = error.caret().replace("\t", " "), _meant(level, source, supported)
            yield Finding(path, str(error), hint=meant, code=SELECTOR, excerpt=excerpt)


def _meant(level: str, source: str, release: str) -> str:
    """Suggest a text for operators and quotes of other languages, where the selector then compiles."""
    from function.cel import CompileError, respelt_operators  # noqa: PLC0415 - as above

    text, advice = respelt_operators(source)
    try:
        return advice if text and _compile(level, text, release) else ""
    except CompileError:
        return ""


def stated(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str, str]]:
    """Every selector below a value: where it stands, over what it selects, and its text."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from stated(item, (*path, index))
    elif isinstance(value, dict):
        for key, child in value.items():
            if key == "cel" and isinstance(child, str):
                yield (*path, key), _level(path), child
            elif key == "cel" and isinstance(child, list):
                texts = ((index, text) for index, text in enumerate(child) if isinstance(text, str))
                yield from (((*path, key, index), _level(path), text) for index, text in texts)
            elif key != "template" or path == ("spec",):  # Not the pods: what is there is only copied.
                yield from stated(child, (*path, key))


def _level(path: FieldPath) -> str:
    if "devices" in path:
        return "device"
    return "node" if "nodeSelector" in path else "cluster"


def _compile(level: str, source: str, release: str) -> Selector:
    """Compile a selector. Raises CompileError."""
    from function.cel import compile_cluster, compile_device, compile_node  # noqa: PLC0415 - as above

    if level == "device":
        return compile_device(source, release)
    return compile_node(source) if level == "node" else compile_cluster(source)
