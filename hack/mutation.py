"""A pytest plugin: do the tests notice when a rule is broken? `make mutants` starts it.

pytest collects once, and every test runs once under coverage's tracer, which says the lines it reaches. For
every mutant a process is forked in which the function runs the mutant's code; in it the tests that reach the
changed line run, the fastest first, until one fails or SECONDS are over: a mutant that is found by nothing
but a long random test lacks a test that says its rule. Every memory of `function` is cleared before each
test, because a mutant that hides behind a warm cache would look as if no test minded it. What no test reaches
may have run before all tests, when it was imported: for such a mutant everything is imported again, and all
tests run.

A journal takes what became of each mutant at once, so that a run that was stopped goes on where it was. A
mutant is told there by the text of its function: what was edited since is tried again.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import pickle
import random
import re
import resource
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

from hack.mutants import broken, mutants, running, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hack.mutants import Mutant

Key = tuple[str, str]

SECONDS = 6.0
"""Processor time of the tests that may look at one mutant, measured while every line is watched."""
MEMORY = 4 * 2**30
"""Bytes a mutant may take: some never stop."""
LEFT_OUT = (
    "fail_static/test_same_bytes.py",
    "simulate/test_versions.py",
    "test_another_process",
    "test_what_would_run_for_long_stops",
)
"""They start processes, or watch which lines run."""


IMPORTED = coverage.Coverage(data_file=None, config_file=False, source_pkgs=["function"])
"""Which lines run before all tests."""
IMPORTED.start()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take what `make mutants` passes on."""
    parser.addoption("--mutants", help="of which functions: function.cel.*,function.routing.*")
    parser.addoption("--sample", type=int, default=0, help="how many, 0 for all")
    parser.addoption("--seed", type=int, default=1, help="of the sample")
    parser.addoption("--again", help="a report or a journal: only those that survived there")
    parser.addoption("--journal", help="a file of what became of mutants: go on there")
    parser.addoption("--jobs", type=int, default=2, help="processes at a time")
    parser.addoption("--seconds", type=float, default=SECONDS, help="of tests that may look at one mutant")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot be run in a forked process."""
    left_out = [item for item in items if any(part in item.nodeid for part in LEFT_OUT)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Try the mutants in place of running the tests."""
    options = session.config.option
    if not options.mutants:
        return None
    IMPORTED.stop()
    journal = Journal(Path(options.journal)) if options.journal else None
    trial = Trial(_reached(session.items, options.seconds), options.jobs, session.config.args, journal)
    gc.collect()
    gc.freeze()
    everything = 0
    for pattern in options.mutants.split(","):
        candidates = _worth_trying(mutants(pattern))
        everything += len(candidates)
        trial.run(_drawn(candidates, options))
    _say(trial.report(everything))
    return True


def _drawn(candidates: list[Mutant], options: Any) -> list[Mutant]:
    if options.again:
        report = Path(options.again).read_text(encoding="utf-8").splitlines()
        survivors = {_without_lines(line).split(": ", 1)[-1] for line in report if " killed: " not in line}
        return [mutant for mutant in candidates if _without_lines(str(mutant)) in survivors]
    if not 0 < options.sample < len(candidates):
        return candidates
    drawn = random.Random(options.seed).sample(candidates, options.sample)  # noqa: S311  # A sample, not a secret.
    return sorted(drawn, key=lambda mutant: (mutant.key, mutant.line))


def _without_lines(text: str) -> str:
    """Return what stays when the code around a mutant moves."""
    return re.sub(r", line \d+: ", ": ", text)


def _worth_trying(candidates: list[Mutant]) -> list[Mutant]:
    """Return the mutants that compile to something else, and can take the place of what runs."""
    kept = []
    for mutant in candidates:
        code, function = mutant.code(), running(mutant.key)
        if code is None or function is None or same(code, function.__code__):
            continue
        if len(code.co_freevars) == len(function.__code__.co_freevars):
            kept.append(mutant)
    return kept


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _name(mutant: Mutant) -> str:
    """Return what a journal calls a mutant, wherever its function stands."""
    return hashlib.sha256(f"{mutant.key} {mutant.source}".encode()).hexdigest()[:16]


class Journal:
    """What became of the mutants that were tried, a line for each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.settled: dict[str, str] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            name, _, rest = line.partition(" ")
            self.settled[name] = rest.partition(":")[0]

    def note(self, mutant: Mutant, kind: str) -> None:
        """Write down what became of a mutant."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{_name(mutant)} {kind}: {mutant}\n")


@dataclass
class Reach:
    """Which tests reach which line of a function, and how long each takes."""

    items: dict[str, pytest.Item]
    tests: dict[str, dict[int, list[str]]]
    """By file and line."""
    seconds: dict[str, float]
    failed: list[str]
    limit: float

    def of(self, mutant: Mutant, first: set[str]) -> list[str]:
        """Return the tests to try, the fastest first; of the whole function if none reaches the line."""
        file, lines = _place(mutant)
        reached = self.tests.get(file, {})
        # Of an expression over several lines a test may reach one branch alone.
        lines = {*range(mutant.line, mutant.end + 1)} & reached.keys() or lines
        tests = {name for line in lines for name in reached.get(line, ())}
        spent, chosen = 0.0, list[str]()
        for name in sorted(tests, key=lambda name: (name not in first, self.seconds[name])):
            spent += self.seconds[name]
            if chosen and spent > self.limit:
                break
            chosen.append(name)
        return chosen


def _reached(items: list[pytest.Item], limit: float) -> Reach:
    """Run every test once, in a process of its own, and watch."""
    tests, seconds, failed = pickle.loads(_in_child(lambda: pickle.dumps(_watched(items))))  # noqa: S301
    for name in failed:
        _say(f"left out, because it fails by itself: {name}")
    return Reach({item.nodeid: item for item in items}, tests, seconds, failed, limit)


def _watched(
    items: list[pytest.Item],
) -> tuple[dict[str, dict[int, list[str]]], dict[str, float], list[str]]:
    seconds, failed = {}, [""]
    watch = coverage.Coverage(data_file=None, config_file=False, source_pkgs=["function"])
    watch.start()
    for item in items:
        watch.switch_context(item.nodeid)
        start = time.process_time()
        passed = _passes(item)
        seconds[item.nodeid] = time.process_time() - start
        if not passed:
            failed.append(item.nodeid)
    watch.stop()
    tests: dict[str, dict[int, list[str]]] = {}
    for file in watch.get_data().measured_files():
        reached = watch.get_data().contexts_by_lineno(file)
        left = {line: [name for name in names if name not in failed] for line, names in reached.items()}
        tests[file] = {line: names for line, names in left.items() if names}
    return tests, seconds, failed[1:]


def _place(mutant: Mutant) -> tuple[str, set[int]]:
    """Return the file of a function, and its lines without those of its head."""
    function = running(mutant.key)
    if function is None:
        raise RuntimeError(f"not there any more: {mutant}")
    return function.__code__.co_filename, _lines(function.__code__)


def _lines(code: CodeType) -> set[int]:
    lines = {line for _, _, line in code.co_lines() if line and line > code.co_firstlineno}
    return lines.union(*(_lines(const) for const in code.co_consts if isinstance(const, CodeType)))


def _passes(item: pytest.Item) -> bool:
    for memory in _memories():
        memory.cache_clear()
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def _memories() -> Iterator[Any]:
    for name, module in list(sys.modules.items()):
        if name.startswith("function."):
            yield from (value for value in vars(module).values() if hasattr(value, "cache_clear"))


def _in_child(work: Callable[[], bytes]) -> bytes:
    """Return what `work` returns in a process of its own."""
    child = Child.started(work)
    with os.fdopen(child.pipe, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child.process, 0)
    return answer


@dataclass
class Child:
    """A forked process, and the end of the pipe to read its answer from."""

    process: int
    pipe: int

    @classmethod
    def started(cls, work: Callable[[], bytes]) -> Child:
        """Fork."""
        reading, writing = os.pipe()
        process = os.fork()
        if process:
            os.close(writing)
            return cls(process, reading)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(work())
        os._exit(0)


@dataclass
class Trial:
    """The mutants that are being tried, and what became of the others."""

    reach: Reach
    jobs: int
    folders: list[str]
    journal: Journal | None = None
    under_way: dict[int, tuple[Mutant, int]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    killers: dict[Key, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The tests that found a mutant of the function before, the latest last."""

    def run(self, drawn: list[Mutant]) -> None:
        """Try those that the journal does not tell of."""
        for mutant in drawn:
            if self.journal and (kind := self.journal.settled.get(_name(mutant))):
                self.kinds[kind] += 1
                continue
            while len(self.under_way) >= self.jobs:
                self._wait()
            child = Child.started(self._work(mutant))
            self.under_way[child.process] = mutant, child.pipe
        while self.under_way:
            self._wait()

    def _work(self, mutant: Mutant) -> Callable[[], bytes]:
        killers = set(list(dict.fromkeys(reversed(self.killers[mutant.key])))[:5])
        items = [self.reach.items[name] for name in self.reach.of(mutant, killers)]
        if items:
            return functools.partial(_try, mutant, items, self.reach.seconds)
        file, lines = _place(mutant)
        if lines.isdisjoint(IMPORTED.get_data().lines(file) or ()):
            return lambda: b"reached by no test"
        seconds = sum(self.reach.seconds.values())
        return functools.partial(_try_import, mutant, self.folders, self.reach.failed, seconds)

    def _wait(self) -> None:
        process, _ = os.wait()
        mutant, pipe = self.under_way.pop(process)
        with os.fdopen(pipe, "rb") as answer:
            killer = answer.read().decode()
        if killer in self.reach.items:
            self.killers[mutant.key].append(killer)
            killer = "killed"
        self._settle(mutant, killer or "did not end")

    def _settle(self, mutant: Mutant, kind: str) -> None:
        self.kinds[kind] += 1
        if self.journal:
            self.journal.note(mutant, kind)
        if kind not in ("killed", "did not end"):
            _say(f"{kind}: {mutant}")

    def report(self, everything: int) -> str:
        """Say how many were killed."""
        count = self.kinds.total()
        killed = self.kinds["killed"] + self.kinds["did not end"]
        summary = ", ".join(f"{number} {kind}" for kind, number in self.kinds.most_common())
        return f"{count} of {everything} mutants: {summary}: {100 * killed / max(count, 1):.1f} % killed"


def _try(mutant: Mutant, items: list[pytest.Item], seconds: dict[str, float]) -> bytes:
    """Return the test that fails under a mutant, or that it survived."""
    function, code = running(mutant.key), mutant.code()
    if function is None or code is None:
        raise RuntimeError(f"not there any more: {mutant}")
    function.__code__ = code
    _limit(sum(seconds[item.nodeid] for item in items))
    failing = next((item.nodeid for item in items if not _passes(item)), "survived")
    return failing.encode()


def _limit(seconds: float) -> None:
    limit = int(4 + 3 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _try_import(mutant: Mutant, folders: list[str], failed: list[str], seconds: float) -> bytes:
    """Import everything under a mutant, and run all tests that pass without it."""
    _limit(seconds)
    for name in [
        module_name for module_name in sys.modules if module_name.split(".")[0] in ("function", "tests")
    ]:
        del sys.modules[name]
    original = SourceFileLoader.get_code

    def code(loader: SourceFileLoader, name: str) -> CodeType | None:
        loaded = original(loader, name)
        return broken(loaded, mutant) if name == mutant.module and loaded else loaded

    SourceFileLoader.get_code = code  # type: ignore[assignment, method-assign]
    left_out = [f"--deselect={name}" for name in failed]
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no"]
    ended = pytest.main(["-x", *plugins, *left_out, *folders], [sys.modules[__name__]])
    return b"reached by no test" if ended is pytest.ExitCode.OK else b"killed"
