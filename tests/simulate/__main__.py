"""`python -m tests.simulate --seconds 60`, or `make swarm SECONDS=60`: as many lives as there is time for.

Every simulation gets its turn, one seed after the other, in one process and from one first seed: as far as
it gets, a run is the same on any machine. A broken promise ends it with the seed that shows it, and of a day
with only the events that it needs. With `--defects` those of `defects.py` are put back, one after the other,
and it is measured how many lives and seconds each takes until it shows.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import click
import pytest

from tests.live.day import columns
from tests.simulate import episode, rollouts, swarm
from tests.simulate.defects import DEFECTS
from tests.simulate.episode import BrokenPromise
from tests.simulate.rollouts import FOG, STORM, USUAL
from tests.simulate.swarm import Day
from tests.simulate.whole import WholeDay

if TYPE_CHECKING:
    from collections.abc import Callable

SIMULATIONS: dict[str, Callable[[int], object]] = {
    "days": lambda seed: Day(seed).live(),
    "whole days": lambda seed: WholeDay(seed).live(),
    "episodes": episode.live,
    "episodes with opt-in fields": episode.live_opted,
    "rollouts": partial(rollouts.live, weather=USUAL),
    "rollouts, late controllers": partial(rollouts.live, weather=STORM),
    "rollouts, late provider": partial(rollouts.live, weather=FOG),
}

DAYS = {"days": Day, "whole days": WholeDay}
"""The simulations of which a broken seed is made short."""


def swarming(seconds: float, first: int) -> str:
    """Live until the time is over, and return a table. Raises BrokenPromise."""
    lives, spent, lived, started = Counter[str](), Counter[str](), Counter[str](), time.monotonic()
    for seed in count(first):
        for name, live in SIMULATIONS.items():
            if time.monotonic() - started >= seconds:
                hours = {name: f"{lived[name] / 3600:.1f}" for name in DAYS}
                rows = [
                    (name, str(lives[name]), hours.get(name, ""), f"{spent[name] / 1e9:.1f}")
                    for name in SIMULATIONS
                ]
                return columns([("simulation", "lives", "simulated hours", "CPU s"), *rows])
            before = time.process_time_ns()
            try:
                life = live(seed)
            except BrokenPromise as broken:
                kind = DAYS.get(name)
                raise BrokenPromise(swarm.shrunk(seed, kind) if kind else f"{name}: {broken}") from None
            lives[name] += 1
            lived[name] += round(life.plane.now) if isinstance(life, Day) else 0
            spent[name] += time.process_time_ns() - before
    raise AssertionError("not reached")


def searched() -> str:
    """Put every defect back until it shows, and return a table."""
    rows = []
    for name, defect in DEFECTS.items():
        before = time.process_time()
        with pytest.MonkeyPatch.context() as patch:
            defect.put_back(patch)
            seed = next((seed for seed in defect.seeds if defect.shows(seed)), None)
        lives = "not found" if seed is None else str(seed + 1 - defect.first)
        rows.append((name, lives, f"{time.process_time() - before:.1f}"))
    return columns([("defect", "lives", "CPU s"), *rows])


@click.command()
@click.option("--seconds", default=60.0, help="How long.")
@click.option("--seed", default=0, help="The first.")
@click.option("--defects", is_flag=True, help="Put known defects back, and look for them.")
def main(seconds: float, seed: int, *, defects: bool) -> None:
    """Print what was lived, or what was found."""
    try:
        sys.stdout.write(searched() if defects else swarming(seconds, seed))
    except BrokenPromise as broken:
        sys.exit(str(broken))


if __name__ == "__main__":
    main()
