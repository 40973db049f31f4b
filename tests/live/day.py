"""The steps of the day with their times, as the table in docs/operations.md."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from example.caller import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

FOLDER = ROOT / "dist" / "live"
"""Where the steps are kept, by the version of Crossplane."""


@dataclass(frozen=True)
class Step:
    """What was done, what was then seen, and how many seconds lie between the two."""

    action: str
    seen: str
    seconds: float


@dataclass
class Day:
    """The steps so far."""

    steps: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, action: str, seen: str) -> Iterator[None]:
        """Time a step: do it and wait for what must be seen inside. One that fails is not recorded."""
        started = time.perf_counter()
        yield
        self.record(action, seen, time.perf_counter() - started)

    def record(self, action: str, seen: str, seconds: float) -> None:
        """Note a step that was timed elsewhere."""
        self.steps.append(Step(action, seen, seconds))

    def write(self, path: Path) -> None:
        """Keep the steps for the table."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(step) for step in self.steps], indent=2))


def read(path: Path) -> list[Step]:
    """The steps that were kept."""
    return [Step(**step) for step in json.loads(path.read_text())]


def table(days: Mapping[str, list[Step]]) -> str:
    """The steps of one or several versions as a table of text: a column of seconds for each version.

    A step that a version did not take has no seconds there. One that is taken twice is two rows.
    """
    seconds = {version: dict(_numbered(steps)) for version, steps in days.items()}
    keys = dict.fromkeys(key for of_one in seconds.values() for key in of_one)
    rows = [
        (*key[:2], *(f"{of_one[key]:.1f}" if key in of_one else "" for of_one in seconds.values()))
        for key in keys
    ]
    return columns([("step", "seen", *(f"s, {version}" for version in days)), *rows])


def _numbered(steps: list[Step]) -> Iterator[tuple[tuple[str, str, int], float]]:
    """Yield the seconds of each step, under a key that tells equal steps apart by their turn."""
    turns: Counter[tuple[str, str]] = Counter()
    for step in steps:
        turns[step.action, step.seen] += 1
        yield (step.action, step.seen, turns[step.action, step.seen]), step.seconds


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)
