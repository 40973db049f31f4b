"""`lint`: what is wrong with the files, each with its line, before anybody applies them.

Errors are what an API server would refuse or drop, and what cannot be read. Warnings are what is allowed
and will not work. The sources, in order: the parser, the schemas that are shipped (`admission`), the
parsers of the API, a plan on the fleet of the files, and rules of the documentation (`advisories`, `pods`).
A code for each is listed in docs/ci.md.

A file that cannot be parsed costs only itself: the others are looked at. Where the schema and the plan
have something to say of one selector, the plan's sentence stands with the schema's place and excerpt.
"""

from __future__ import annotations

import re
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from function.api.fault import path_of
from function.api.text import joined
from function.boundary import frozen
from function.cli.admission import SELECTOR, FieldPath
from function.cli.bad_input import BadInput
from function.cli.group import BAD_INPUT
from function.cli.options import FILES, FINDINGS, FINE, Command, lenient, output_option
from function.cli.sizing.manifest import misfits
from function.cli.text import answered, as_json, complain, console, counted, emit, escape, printable, track
from function.cli.worlds.advisories import advisories, mistakes_of
from function.cli.worlds.inputs import faults_of, ignored_note, level
from function.cli.worlds.manifests import SLOW, collect, objects_of, texts
from function.cli.worlds.world import World, plan_all, world_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from function.cli.worlds.manifest import Manifest, Manifests


# Collect everything that can be said about files without placing replicas, for `lint`.

ERROR, WARNING = "error", "warning"
UNREADABLE, MISSING_CLASS = "Unreadable", "UnknownClass"

_LINE = re.compile(r"\bline (\d+)(?:, column (\d+))?")
_STEP = re.compile(r'([^.\[\]]+)|\[(\d+)\]|\["([^"]*)"\]')
TEMPLATE = "spec.template.spec."


@frozen(order=True)
class Problem:
    """One thing that is wrong, and where it is written."""

    file: str
    line: int
    """From 1; 0 where no line can be told."""
    column: int
    level: str
    code: str
    title: str
    """`ModelDeployment ml/chat`; empty for what is wrong with a whole file."""
    field: str
    message: str
    excerpt: str = ""

    @property
    def text(self) -> str:
        """The message with the object and the field."""
        return joined(self.title, self.field, self.message, by=": ")

    @property
    def as_data(self) -> dict[str, Any]:
        """The problem as plain data."""
        data = {"level": self.level, "code": self.code, "file": self.file}
        place = {"line": self.line, "column": self.column} if self.line else {}
        return {**data, **place, "object": self.title, "field": self.field, "message": self.message}


@frozen
class Linted:
    """The manifests that were checked, and the findings."""

    files: int
    objects: int
    problems: tuple[Problem, ...]
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Objects that are not read, by kind."""


def lint(paths: Iterable[str]) -> Linted:
    """Look at files, and at what is planned on them. Raises BadInput where one is not there.

    One that cannot be parsed is a problem.
    """
    problems, count = [], 0
    objects: list[Manifest] = []
    undecoded: list[BadInput] = []
    for name, text in texts(paths, undecoded):
        count += 1
        try:
            written = list(track(objects_of([(name, text)]), "Reading", at_once=len(text) > SLOW))
            collect(written, checked=False)
        except BadInput as error:
            problems.append(_unreadable(name, error))
        else:
            objects += written
    count += len(undecoded)
    problems += [_unreadable("", error) for error in undecoded]
    if not count:
        raise BadInput("there is no manifest to look at in what was given")
    manifests = collect(objects)
    problems += problems_of(manifests)
    read = sum(map(len, manifests.by_kind.values())) + len(manifests.unread)
    looked_at = read + len(manifests.contradictions)
    if not (looked_at or problems):
        raise BadInput("there is no object in what was given that is read here: nothing was looked at")
    # Errors come first: a warning may be about what one of them has taken away.
    in_order = sorted(dict.fromkeys(problems), key=lambda problem: (problem.level != ERROR, problem))
    return Linted(count, looked_at, tuple(in_order), manifests.ignored)


def _unreadable(name: str, error: BadInput) -> Problem:
    """A problem of a whole file, at the line that the message names.

    Parsers give the place in words only. `name` is the file, or "" where the message begins with it.
    """
    text = str(error)
    file, _, message = text.partition(": ") if not name else (name, "", text.removeprefix(f"{name}: "))
    lines = _LINE.findall(message)
    line, column = lines[-1] if lines else ("0", "0")
    return Problem(file, int(line), int(column or 1), ERROR, UNREADABLE, "", "", message)


def problems_of(manifests: Manifests) -> Iterator[Problem]:
    """Every problem of objects that could be read as YAML.

    Each source is asked in turn: schemas, the plan, the parsers, other files, advisories, pods. Where two
    of them have something to say of one selector, the sentence of the plan stands in the place of the
    schema.
    """
    try:
        world = world_of(manifests)
    except BadInput as error:
        world = None
        yield _unreadable("", error)
    faults = {**dict(faults_of(manifests, world)), **world.faults} if world else {}
    against_fleet = _against_fleet(world) if world else ()
    better = {(problem.title, problem.field): problem for problem in against_fleet}
    for issue in manifests.issues:
        finding = issue.finding
        value, hint = (f", found {finding.value}" if finding.value else ""), finding.hint
        message = f"{finding.message}{value}{f'; {hint}' if hint else ''}"
        where = issue.manifest.short_title, finding.field
        mended = better.pop(where, None) if finding.code == SELECTOR else None
        yield _problem(
            issue.manifest,
            finding.path,
            level=level(issue, faults),
            code=finding.code,
            message=mended.message if mended else message,
            excerpt=finding.excerpt,
        )
    yield from better.values()
    yield from _faults(manifests, faults)
    for contradiction in manifests.contradictions:
        yield _problem(
            contradiction.manifest, (), level=ERROR, code=UNREADABLE, message=contradiction.message
        )
    steps_before: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests.step_inputs:
        composition = manifest.holder.rpartition(", step ")[0]
        if steps_before.setdefault((manifest.file, composition), manifest) is not manifest:
            message = "an earlier step of the Composition is of this function too, and each composes all"
            yield _problem(manifest, (), level=WARNING, code="StepTwice", message=message)
    for manifest, code, path, message in advisories(manifests):
        yield _problem(manifest, path, level=WARNING, code=code, message=message)
    for manifest in manifests["ModelDeployment"]:
        pods_level = WARNING if manifest.stored else ERROR
        for path, code, message in mistakes_of(manifest):
            yield _problem(manifest, path, level=pods_level, code=code, message=message)


def _problem(
    manifest: Manifest, path: FieldPath, *, level: str, code: str, message: str, excerpt: str = ""
) -> Problem:
    """A problem of one field, with the line and the column where it is written."""
    position = manifest.position.locate(path) if manifest.position else None
    line, column = position or (0, 0)
    title, field = manifest.short_title, path_of(path)
    return Problem(manifest.file, line, column, level, code, title, field, message, excerpt)


def _faults(manifests: Manifests, faults: dict[tuple[str, str], str]) -> Iterator[Problem]:
    """Yield the faults that keep objects from being read, except those that a schema has reported.

    A class that is not in the files is only a warning where they have no class at all: classes may well be
    kept in another repository.
    """
    explained = {place for issue in manifests.issues for place in issue.places}
    read = chain(manifests.step_inputs, *manifests.by_kind.values())
    by_title = {manifest.short_title: manifest for manifest in read}
    for (title, path), text in faults.items():
        fields = (field for other, field in explained if other == title)
        if any(field == path or field.startswith((f"{path}.", f"{path}[")) for field in fields):
            continue  # A schema named the field, or one below it.
        manifest = by_title[title]
        message = text.removeprefix(f"{manifest.title}: ").removeprefix(f"{path}: ")
        unknown = path.endswith("className")
        yield _problem(
            manifest,
            steps(path),
            level=WARNING if unknown and not manifests["InferenceClass"] else ERROR,
            code=MISSING_CLASS if unknown else UNREADABLE,
            message=message,
        )


def _against_fleet(world: World) -> Iterator[Problem]:
    """Yield requests of deployments that no device in the files could ever satisfy.

    Such a deployment is valid, and would wait for ever. Without a cluster in the files nothing is known of
    devices, so nothing is said.
    """
    if not world.clusters:
        return
    planning = plan_all(world)
    for planned in track(planning, "Planning", total=len(world.deployments)):
        for finding in planned.forecast.findings if planned.forecast.readable else ():
            prefix = "spec." if finding.path.startswith("placement") else TEMPLATE
            compiles = finding.code != "DoesNotCompile"
            path = steps(f"{prefix}{finding.path}{'' if compiles else '.cel'}")
            level_ = WARNING if compiles else ERROR
            yield _problem(planned.manifest, path, level=level_, code=finding.code, message=finding.message)
        for manifest, code, path_, message in misfits(planned):
            yield _problem(manifest, path_, level=WARNING, code=code, message=message)


def steps(path: str) -> FieldPath:
    """Take a written path apart: `engines[0].labels["a.b"]`."""
    position = (match.groups() for match in _STEP.finditer(path))
    return tuple(int(index) if index else (name or key) for name, index, key in position)


# Print what `lint` found: for people, for code scanning (SARIF), as GitHub's annotations.

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
STYLES = {"error": "red", "warning": "yellow"}


def show_text(linted: Linted) -> None:
    """Print `file:line:column: level: message [code]`, which editors and terminals turn into links."""
    out = console()
    for problem in linted.problems:
        place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
        line = f"{place}: {problem.level}: {problem.text} [{problem.code}]"
        out.print(escape(line), style=STYLES[problem.level], soft_wrap=True)
        for excerpt in problem.excerpt.splitlines():
            out.print(f"    {escape(excerpt)}", soft_wrap=True)
    errors = sum(problem.level == ERROR for problem in linted.problems)
    warnings = len(linted.problems) - errors
    looked = f"{counted(linted.objects, 'object')} in {counted(linted.files, 'file')}"
    console(stderr=True).say(f"{looked}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")


def show_github(problems: Iterable[Problem]) -> None:
    """Print workflow commands: an annotation at the line of the change."""
    for problem in problems:
        place = f",line={problem.line},col={problem.column}" if problem.line else ""
        # The value of a property ends at a colon or a comma.
        properties = (problem.file, problem.code)
        file, code = (_data(text).replace(":", "%3A").replace(",", "%2C") for text in properties)
        text = f"{problem.text}\n{problem.excerpt}" if problem.excerpt else problem.text
        click.echo(f"::{problem.level} file={file}{place},title={code}::{_data(text)}")


def _data(text: str) -> str:
    """Escape a message: a line end, or a percent sign that reads as one, would end the command."""
    lines = "\n".join(map(printable, text.split("\n")))
    return lines.replace("%", "%25").replace("\n", "%0A")


def show_sarif(linted: Linted) -> None:
    """Print a SARIF 2.1.0 log, as code scanning takes it.

    Columns are counted in characters and paths are relative to the repository: without either, code
    scanning marks another place than the one that is meant.
    """
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - reads mail headers

    codes = sorted({problem.code for problem in linted.problems})
    try:
        number = version("function-fleet-scheduler")
    except PackageNotFoundError:
        number = "0"
    driver = {
        "name": "fleet-scheduler",
        "version": number,
        "rules": [{"id": code, "shortDescription": {"text": code}} for code in codes],
    }
    results = [_result(problem, codes) for problem in linted.problems]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    click.echo(as_json({"$schema": SARIF, "version": "2.1.0", "runs": [run]}))


def _result(problem: Problem, codes: list[str]) -> dict[str, Any]:
    """A problem as a result of SARIF, which refers to its rule by number and by name."""
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


FORMS = "text for people; json for programs; sarif for code scanning; github for annotations of a workflow."


@click.command("lint", cls=Command)
@FILES
@lenient
@output_option("text", "json", "sarif", "github", text=FORMS)
@click.pass_context
def lint_files(context: click.Context, files: tuple[str, ...], output: str) -> None:
    r"""Look at FILEs as the API server and the scheduler would, and say what is wrong, with file and line.

    Errors are what an API server would refuse or drop: unknown fields and kinds (with what was probably
    meant), wrong types, values and names, rules of the XRDs, selectors that do not compile, and what cannot
    be read. Warnings are what is allowed and will not work: selectors that no device, label or cluster in
    the files satisfies, names of objects that are not there, rules of the documentation. The schemas are
    the XRDs of this version; no cluster is asked.

    Exit codes: 0 nothing is wrong, 2 only warnings, 1 errors.

    \b
    Examples:
      fleet-scheduler lint fleet/ deployments/
      fleet-scheduler lint -o sarif . > lint.sarif
      kustomize build | fleet-scheduler lint -
    """
    linted = lint(files)
    if output == "text":
        show_text(linted)
    elif output == "github":
        show_github(linted.problems)
    elif output == "sarif":
        show_sarif(linted)
    else:
        problems = [problem.as_data for problem in linted.problems]
        data = {"files": linted.files, "objects": linted.objects, "problems": problems}
        emit(output, answered("Lint", data))
    if linted.ignored:
        complain([ignored_note(linted.ignored)], "note")
    levels = {problem.level for problem in linted.problems}
    context.exit(BAD_INPUT if ERROR in levels else FINDINGS if levels else FINE)
