"""The steps of the day with their times, as the table in docs/operations.md."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from example.caller import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

RESULTS = ROOT / "dist" / "live.json"
HEADINGS = ("step", "seen", "seconds")


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

    def write(self, path: Path = RESULTS) -> None:
        """Keep the steps for the documentation."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(step) for step in self.steps], indent=2))


def read(path: Path = RESULTS) -> list[Step]:
    """The steps that were kept."""
    return [Step(**step) for step in json.loads(path.read_text())]


def table(steps: list[Step]) -> str:
    """The steps as a table of text."""
    return columns([HEADINGS, *((step.action, step.seen, f"{step.seconds:.1f}") for step in steps)])


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)
