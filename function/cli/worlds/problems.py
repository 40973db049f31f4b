"""Collect everything that can be said about files without placing replicas, for `lint`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.api.fault import path_of
from function.cli.admission.finding import SELECTOR
from function.cli.bad_input import BadInput
from function.cli.worlds.advisories import advisories
from function.cli.worlds.faults import faults_of
from function.cli.worlds.manifests import collect_texts, texts
from function.cli.worlds.memo import ParseMemo
from function.cli.worlds.review import level
from function.cli.worlds.world import plan_all, world_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from function.cli.admission.finding import Path
    from function.cli.worlds.manifest import Manifest, Manifests
    from function.cli.worlds.world import World
    from function.deployment.forecast import Forecast

ERROR, WARNING = "error", "warning"
UNREADABLE, MISSING_CLASS = "Unreadable", "UnknownClass"

_LINE = re.compile(r"\bline (\d+)(?:, column (\d+))?")
_STEP = re.compile(r'([^.\[\]]+)|\[(\d+)\]|\["([^"]*)"\]')
TEMPLATE = "spec.template.spec."


@dataclass(frozen=True, slots=True, order=True)
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
        return ": ".join(part for part in (self.title, self.field, self.message) if part)

    @property
    def as_data(self) -> dict[str, Any]:
        """The problem as plain data."""
        data = {"level": self.level, "code": self.code, "file": self.file}
        place = {"line": self.line, "column": self.column} if self.line else {}
        return {**data, **place, "object": self.title, "field": self.field, "message": self.message}


@dataclass(frozen=True, slots=True)
class Linted:
    """What was looked at, and what was found."""

    files: int
    objects: int
    problems: tuple[Problem, ...]
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Objects that are not read, by kind."""

    def count(self, wanted: str) -> int:
        """How many problems have a level."""
        return sum(problem.level == wanted for problem in self.problems)


def lint(paths: Iterable[str]) -> Linted:
    """Look at files. Raises BadInput where one is not there; one that cannot be parsed is a problem."""
    problems, good, count = [], [], 0
    for name, text in texts(paths):
        count += 1
        try:
            collect_texts([(name, text)], checked=False)
        except BadInput as error:
            problems.append(_unreadable(name, error))
        else:
            good.append((name, text))
    manifests = collect_texts(good)
    problems += problems_of(manifests)
    read = sum(map(len, manifests.by_kind.values())) + len(manifests.unread)
    objects = read + len(manifests.contradictions)
    return Linted(count, objects, tuple(sorted(dict.fromkeys(problems))), manifests.ignored)


def _unreadable(name: str, error: BadInput) -> Problem:
    text = str(error)
    file, _, message = text.partition(": ") if not name else (name, "", text.removeprefix(f"{name}: "))
    lines = _LINE.findall(message)
    line, column = lines[-1] if lines else ("0", "0")
    return Problem(file, int(line), int(column or 1), ERROR, UNREADABLE, "", "", message)


def problems_of(manifests: Manifests) -> Iterator[Problem]:
    """Every problem of objects that could be read as YAML."""
    try:
        world = world_of(manifests)
    except BadInput as error:
        world = None
        yield _unreadable("", error)
    faults = {**faults_of(manifests, world), **world.faults} if world else {}
    better = {(problem.title, problem.field): problem for problem in _against_fleet(world)} if world else {}
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
    for manifest, code, path, message in advisories(manifests):
        yield _problem(manifest, path, level=WARNING, code=code, message=message)


def _problem(
    manifest: Manifest, path: Path, *, level: str, code: str, message: str, excerpt: str = ""
) -> Problem:
    position = manifest.position.locate(path) if manifest.position else None
    line, column = position or (0, 0)
    title, field = manifest.short_title, path_of(path)
    return Problem(manifest.file, line, column, level, code, title, field, message, excerpt)


def _faults(manifests: Manifests, faults: dict[tuple[str, str], str]) -> Iterator[Problem]:
    """What keeps objects from being read, but for what a schema has said."""
    explained = {place for issue in manifests.issues for place in issue.places}
    by_title = {manifest.short_title: manifest for those in manifests.by_kind.values() for manifest in those}
    for (title, path), text in faults.items():
        if (title, path) in explained:
            continue
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
    """What deployments ask and nobody in the files could ever give."""
    if not world.clusters:
        return
    for planned in plan_all(world, reuse=ParseMemo()):
        for finding in _findings(planned.forecast):
            prefix = "spec." if finding.path.startswith("placement") else TEMPLATE
            compiles = finding.code != "DoesNotCompile"
            path = steps(f"{prefix}{finding.path}{'' if compiles else '.cel'}")
            level_ = WARNING if compiles else ERROR
            yield _problem(planned.manifest, path, level=level_, code=finding.code, message=finding.message)


def _findings(forecast: Forecast) -> Iterable[Any]:
    return forecast.findings if forecast.readable else ()


def steps(path: str) -> Path:
    """Take a written path apart: `engines[0].labels["a.b"]`."""
    position = (match.groups() for match in _STEP.finditer(path))
    return tuple(int(index) if index else (name or key) for name, index, key in position)
