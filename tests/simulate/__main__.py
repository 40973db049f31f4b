"""`python -m tests.simulate --seconds 60`, or `make swarm SECONDS=60`: as many lives as there is time for.

Every simulation gets its turn, one seed after the other, in one process and from one first seed: as far as
it gets, a run is the same on any machine. A broken promise ends it with the seed that shows it, and of a day
or a burst with only the events that it needs. With `--defects` those of `defects.py` are put back, one after
the other, and it is measured how many lives and seconds each takes until it shows.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import click
import pytest

from tests.live.day import columns
from tests.simulate import episode, rollouts, swarm
from tests.simulate.burst import CHURN, SHIPPED, Burst, limited
from tests.simulate.contest import ON, Contest, Teams
from tests.simulate.defects import DEFECTS
from tests.simulate.episode import BrokenPromise
from tests.simulate.rollouts import FOG, STORM, USUAL
from tests.simulate.swarm import Day
from tests.simulate.versions import RELEASES, drawn
from tests.simulate.whole import WholeDay
from tests.support.releases import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.swarm import Lives
    from tests.support.releases import Release


def ordered(seed: int) -> dict[str, Any]:
    """Return the settings of contests: deployments see the fleet in a common order with every other seed."""
    return ON | {"coordination": ("None", "GlobalOrder")[seed % 2]}


SHRINKING: dict[str, Callable[[int, frozenset[int]], Lives]] = {
    "days": Day,
    "whole days": WholeDay,
    "bursts": lambda seed, left_out: Burst(seed, SHIPPED, CHURN, left_out),
    "bursts beyond a quota": lambda seed, left_out: Burst(seed, limited(3), CHURN, left_out),
    "contests of classes": lambda seed, left_out: Contest(seed, ordered(seed), left_out=left_out),
    "contests of teams": lambda seed, left_out: Teams(seed, ordered(seed), left_out=left_out),
}
"""The simulations of which a broken seed is made short: what is made is without the events left out."""
OTHERS: dict[str, Callable[[int], object]] = {
    "episodes": episode.live,
    "episodes with opt-in fields": episode.live_opted,
    "rollouts": partial(rollouts.live, weather=USUAL),
    "rollouts, late controllers": partial(rollouts.live, weather=STORM),
    "rollouts, late provider": partial(rollouts.live, weather=FOG),
}


def of_two(release: Callable[[str], Release]) -> dict[str, Callable[[int, frozenset[int]], Lives]]:
    """Return days of two releases; none in a shallow clone, which has this one alone."""
    try:
        for commit in RELEASES:
            release(commit)
    except LookupError:
        return {}
    return {"days of two releases": partial(drawn, release=release)}


def swarming(seconds: float, first: int, release: Callable[[str], Release]) -> str:
    """Live until the time is over, and return a table. Raises BrokenPromise."""
    shrinking = SHRINKING | of_two(release)
    lives, spent, lived, started = Counter[str](), Counter[str](), Counter[str](), time.monotonic()
    for seed in count(first):
        for name in (*shrinking, *OTHERS):
            if time.monotonic() - started >= seconds:
                rows = [
                    (
                        of,
                        str(lives[of]),
                        f"{lived[of] / 3600:.1f}" * (of in shrinking),
                        f"{spent[of] / 1e9:.1f}",
                    )
                    for of in (*shrinking, *OTHERS)
                ]
                return columns([("simulation", "lives", "simulated hours", "CPU s"), *rows])
            before = time.process_time_ns()
            try:
                life = shrinking[name](seed, frozenset()).live() if name in shrinking else OTHERS[name](seed)
            except BrokenPromise as broken:
                short = swarm.shrunk(partial(shrinking[name], seed)) if name in shrinking else str(broken)
                raise BrokenPromise(f"{name}: {short}") from None
            lives[name] += 1
            lived[name] += round(life.plane.now) if isinstance(life, Day | Burst) else 0
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
        with unpacked() as release:
            sys.stdout.write(searched() if defects else swarming(seconds, seed, release))
    except BrokenPromise as broken:
        sys.exit(str(broken))


if __name__ == "__main__":
    main()
