"""A pytest plugin: do the tests notice when a rule is broken? `make mutants` starts it.

pytest collects once. For every mutant a process is forked in which the function runs the mutant's code; in it
the tests that reach the function run, the fastest first, until one fails or SECONDS are over: a mutant that
is found by nothing but a long random test lacks a test that says its rule. Every memory of `function` is
cleared before each test, because a mutant that hides behind a warm cache would look as if no test minded it.
What no test reaches may have run before all tests, when it was imported: for such a mutant everything is
imported again, and all tests run.
"""

from __future__ import annotations

import functools
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
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from hack.mutants import broken, mutants, running, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from hack.mutants import Mutant

Key = tuple[str, str]

SECONDS = 6.0
"""Processor time of the tests that may look at one mutant, measured while every call is watched."""
MEMORY = 4 * 2**30
"""Bytes a mutant may take: some never stop."""
LEFT_OUT = (
    "fail_static/test_same_bytes.py",
    "simulate/test_race.py",
    "test_another_process",
    "test_what_would_run_for_long_stops",
)
"""They start processes, or watch which lines run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take what `make mutants` passes on."""
    parser.addoption("--mutants", help="of which functions: function.scheduler.*")
    parser.addoption("--sample", type=int, default=0, help="how many, 0 for all")
    parser.addoption("--seed", type=int, default=1, help="of the sample")
    parser.addoption("--again", help="a report: only those that survived there")
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
    candidates = _worth_trying(mutants(options.mutants))
    drawn = candidates
    if options.again:
        report = _without_lines(Path(options.again).read_text(encoding="utf-8"))
        drawn = [mutant for mutant in candidates if f": {_without_lines(str(mutant))}\n" in report]
    elif 0 < options.sample < len(candidates):
        drawn = random.Random(options.seed).sample(candidates, options.sample)  # noqa: S311  # A sample, not a secret.
    reach = _reached(session.items, {mutant.key for mutant in candidates}, options.seconds)
    trial = Trial(reach, options.jobs, session.config.args)
    trial.run(sorted(drawn, key=lambda mutant: (mutant.key, mutant.line)))
    _say(trial.report(len(candidates)))
    return True


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


@dataclass
class Reach:
    """Which tests reach which function, and how long each takes."""

    items: dict[str, pytest.Item]
    tests: dict[Key, set[str]]
    seconds: dict[str, float]
    failed: list[str]
    limit: float

    def of(self, key: Key) -> list[str]:
        """Return the tests to try, the fastest first."""
        chosen, spent = [], 0.0
        for name in sorted(self.tests.get(key, ()), key=self.seconds.__getitem__):
            spent += self.seconds[name]
            if chosen and spent > self.limit:
                break
            chosen.append(name)
        return chosen


def _reached(items: list[pytest.Item], keys: set[Key], limit: float) -> Reach:
    """Run every test once, in a process of its own, and watch."""
    tests, seconds, failed = pickle.loads(_in_child(lambda: pickle.dumps(_watched(items, keys))))  # noqa: S301
    for name in failed:
        _say(f"left out, because it fails by itself: {name}")
    return Reach({item.nodeid: item for item in items}, tests, seconds, failed, limit)


def _watched(
    items: list[pytest.Item], keys: set[Key]
) -> tuple[dict[Key, set[str]], dict[str, float], list[str]]:
    watched = {id(function.__code__): key for key in keys if (function := running(key))}
    tests: dict[Key, set[str]] = defaultdict(set)
    seconds, failed = {}, []
    for item in items:
        executed: set[int] = set()
        start = time.process_time()
        sys.settrace(lambda frame, _, __, executed=executed: executed.add(id(frame.f_code)))
        passed = _passes(item)
        sys.settrace(None)
        seconds[item.nodeid] = time.process_time() - start
        if not passed:
            failed.append(item.nodeid)
            continue
        for code in executed & watched.keys():
            tests[watched[code]].add(item.nodeid)
    return dict(tests), seconds, failed


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
    under_way: dict[int, tuple[Mutant, int]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    killers: dict[Key, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The tests that found a mutant of the function before, the latest last."""

    def run(self, drawn: list[Mutant]) -> None:
        """Try them."""
        for mutant in drawn:
            while len(self.under_way) >= self.jobs:
                self._wait()
            child = Child.started(self._work(mutant))
            self.under_way[child.process] = mutant, child.pipe
        while self.under_way:
            self._wait()

    def _work(self, mutant: Mutant) -> Callable[[], bytes]:
        items = [self.reach.items[name] for name in self._tests(mutant.key)]
        if items:
            return functools.partial(_try, mutant, items, self.reach.seconds)
        seconds = sum(self.reach.seconds.values())
        return functools.partial(_try_import, mutant, self.folders, self.reach.failed, seconds)

    def _tests(self, key: Key) -> list[str]:
        first = list(dict.fromkeys(reversed(self.killers[key])))[:5]
        return [*first, *(name for name in self.reach.of(key) if name not in first)]

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
    limit = int(10 + 3 * seconds)
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
