"""Print what `lint` found: for people, for code scanning (SARIF), as GitHub's annotations."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from function.cli.text import as_json, console, counted, escape, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.cli.worlds.problems import Linted, Problem

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
STYLES = {"error": "red", "warning": "yellow"}


def show_text(linted: Linted) -> None:
    """Print `file:line:column: level: message [code]`, which editors and terminals turn into links."""
    out = console()
    for problem in linted.problems:
        line = f"{_place(problem)}: {problem.level}: {problem.text} [{problem.code}]"
        out.print(escape(line), style=STYLES[problem.level], soft_wrap=True)
        for excerpt in problem.excerpt.splitlines():
            out.print(f"    {escape(excerpt)}", soft_wrap=True)
    errors, warnings = linted.count("error"), linted.count("warning")
    looked = f"{counted(linted.objects, 'object')} in {counted(linted.files, 'file')}"
    click.echo(f"{looked}: {counted(errors, 'error')}, {counted(warnings, 'warning')}", err=True)


def _place(problem: Problem) -> str:
    return f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file


def show_github(problems: Iterable[Problem]) -> None:
    """Print workflow commands: an annotation at the line of the change."""
    for problem in problems:
        place = f",line={problem.line},col={problem.column}" if problem.line else ""
        head = f"::{problem.level} file={_property(problem.file)}{place},title={_property(problem.code)}"
        text = f"{problem.text}\n{problem.excerpt}" if problem.excerpt else problem.text
        click.echo(f"{head}::{_data(text)}")


def _data(text: str) -> str:
    """Escape a message: a line end, or a percent sign that reads as one, would end the command."""
    lines = "\n".join(map(printable, text.split("\n")))
    return lines.replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def show_sarif(linted: Linted) -> None:
    """Print a SARIF 2.1.0 log, as code scanning takes it."""
    codes = sorted({problem.code for problem in linted.problems})
    driver = {
        "name": "fleet-scheduler",
        "version": _version(),
        "rules": [{"id": code, "shortDescription": {"text": code}} for code in codes],
    }
    results = [_result(problem, codes) for problem in linted.problems]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    click.echo(as_json({"$schema": SARIF, "version": "2.1.0", "runs": [run]}))


def _version() -> str:
    try:
        return version("function-fleet-scheduler")
    except PackageNotFoundError:
        return "0"


def _result(problem: Problem, codes: list[str]) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.file)}}
    if problem.line:
        physical["region"] = {"startLine": problem.line, "startColumn": problem.column}
    return {
        "ruleId": problem.code,
        "ruleIndex": codes.index(problem.code),
        "level": problem.level,
        "message": {"text": problem.text},
        "locations": [{"physicalLocation": physical}],
    }


def _uri(file: str) -> str:
    """A file as code scanning has it: relative to the repository, or a URI of its own."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else path.as_posix().replace("%", "%25").replace(" ", "%20")
