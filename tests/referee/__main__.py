"""Hold decisions against a real kube-scheduler: `python -m tests.referee`, or `make referee`.

Scenarios first, then the examples, then random worlds of every mode until the time is over. A disagreement is
printed with the seed that gives the same world again, and ends it with 1:

- what is placed does not bind, at once or after all pods of the world have started again;
- a scenario has another verdict than is written down;
- in mode `exclusive`, what is refused binds when it is written by hand;
- of the refusals by devices that bind, more than one in twenty is judged wrong (`judge`);
- in mode `lost`, a new replica stands on nodes or devices that its cluster has lost;
- the API server refuses what is composed.

A refusal that binds today may still be right: counting nodes refuses it on purpose, and guarding against the
worst packing does where pods that start in another order would leave one without a place.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random, SystemRandom
from threading import Event
from typing import TYPE_CHECKING, Any

import yaml

from example.caller import ROOT
from function.cli.worlds.world import ParseMemo, plan_all, replicas_of
from tests.live.__main__ import isolate
from tests.referee import cluster, features, judge, lost, pod_groups, reshape
from tests.referee.scenarios import SCENARIOS
from tests.referee.worlds import MODES, World, deployment, edited, inputs_of, mappings, pods_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.referee.scenarios import Scenario

Plain = dict[str, Any]
PARTS = ("scenarios", "examples", "worlds")
"""What is asked where nothing else is said."""
STEPS = 5
WRONG_IN = 20
"""Of so many refusals by devices one may be wrong: for pods of many sizes the guard is a bound."""


class Referee:
    """One run: what was counted and what differs."""

    def __init__(self) -> None:
        """Look at the cluster."""
        self.seen = cluster.Seen()
        self.counted: Counter[str] = Counter()
        self.differ: list[str] = []
        self.judged: Counter[str] = Counter()
        """What is said of refusals that bind where every pool charges devices."""

    def differs(self, what: str, said: object) -> None:
        """Note a disagreement."""
        self.differ.append(f"{what}: {str(said)[:400]}")
        say(f"DIFFERS {self.differ[-1]}")

    def put(self, world: World, what: str, replicas: Sequence[Plain]) -> list[str]:
        """Apply replicas beside those that are there; return what is said of pods that do not bind."""
        refused = world.put(replicas)
        if refused:
            self.differs(f"{what}, refused by the API server", refused)
        self.counted["pods"] += pods_of(replicas)
        return self.seen.settled(world.name, pods_of([*world.replicas, *replicas]))

    # Scenarios

    def scenario(self, name: str) -> None:
        """Ask one question."""
        scenario = SCENARIOS[name]
        prefix = f"s{list(SCENARIOS).index(name):02d}"
        world = scenario.world(prefix)
        world.build(turned=scenario.turned)
        try:
            self._judge(name, scenario, world)
        finally:
            world.tear_down(self.seen)
        self.counted["scenarios"] += 1

    def _judge(self, name: str, scenario: Scenario, world: World) -> None:
        asked = scenario.deployment(f"{world.name}x")
        replicas, _ = world.decide(asked)
        if len(replicas) != scenario.placed:
            self.differs(name, f"{len(replicas)} placed, {scenario.placed} expected")
        if not replicas:
            pools = list(world.pools)
            written = [world.by_hand(asked, pools, f"{world.name}y{at}") for at in range(scenario.wanted)]
            replicas = [replica for replica in written if replica]
        unbound = self.put(world, name, replicas)
        if (not unbound) is not scenario.binds:
            self.differs(f"{name}, {scenario.reason}", unbound or "binds")

    # The examples

    def examples(self) -> None:
        """Place the examples on the example fleet, cluster by cluster."""
        folders = (
            "fleet",
            "tensor-pipeline",
            "small-model",
            "kimi-k2",
            "cpu-fallback",
            "price-aware",
        )
        files = [file for folder in folders for file in sorted((ROOT / "example" / folder).glob("*.yaml"))]
        objects = [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]
        inputs = inputs_of(objects)
        placed = [
            one for planned in plan_all(inputs.world, reuse=ParseMemo()) for one in replicas_of(planned)
        ]
        for manifest in inputs.world.clusters:
            name = manifest["metadata"]["name"]
            here = [replica for replica in placed if replica["spec"]["clusterName"] == name]
            if here and manifest["spec"].get("stack") != "KServe":
                self._example(manifest, here)

    def _example(self, manifest: Plain, replicas: list[Plain]) -> None:
        pools = manifest["status"]["gpuPools"]
        entries = {pool["name"]: [_plain(entry) for entry in pool["devices"]] for pool in pools}
        counted = {pool["name"]: (pool["nodes"], "Node", entries[pool["name"]]) for pool in pools}
        world = World(manifest["metadata"]["name"], counted, published=manifest)
        for entry in (one for listed in entries.values() for one in listed if cluster.claimable(one)):
            if entry["deviceClassName"] not in cluster.CLASSES:
                cluster.add_class(entry["deviceClassName"], f"device.driver == '{entry['driver']}'")
        world.build()
        names = [replica["metadata"]["name"] for replica in replicas]
        try:
            refused = world.put(replicas)
            unbound = [
                said
                for name, one in zip(names, replicas, strict=True)
                for said in self.seen.settled(name, pods_of([one]))
            ]
            if refused or unbound:
                self.differs(f"example on {world.name}", [*refused, *unbound])
            self.counted["pods"] += pods_of(replicas)
        finally:
            world.tear_down(self.seen)
        self.counted["clusters of the examples"] += 1

    # Random worlds

    def random(self, seed: int, mode: str) -> None:
        """Place, take away and restart in one random world."""
        draw, world = Random(f"{seed} {mode}"), World.random(seed, mode)
        world.build(turned=draw.random() < 0.5)
        try:
            for step in range(STEPS):
                self._step(draw, world, f"{mode} {seed} step {step}", mode, step)
            if world.replicas and mode != "lost":
                self._restart(world, f"{mode} {seed}")
        finally:
            world.tear_down(self.seen)
        self.counted[f"worlds {mode}"] += 1

    def _step(self, draw: Random, world: World, what: str, mode: str, step: int) -> None:
        way = draw.random() if world.replicas else 1.0
        if way < 0.15:
            world.take_away([draw.choice(world.replicas)], self.seen)
            return
        if mode == "lost":
            self._lose(draw, world, what, step)
            return
        if way < 0.4:
            self._edit(draw, world, what, mode)
            return
        asked = deployment(draw, f"{world.name}x{step}", step, mode)
        world.asked[asked["metadata"]["name"]] = asked
        new, _ = world.decide(asked)
        self.counted["replicas placed"] += len(new)
        unbound = self.put(world, what, new) if new else []
        if unbound:
            self.differs(f"{what}, placed and pending", unbound)
            world.take_away(new, self.seen)
            return
        world.replicas += new
        if len(new) < asked["spec"]["replicas"]:
            self._probe(world, what, mode, asked, step)

    def _lose(self, draw: Random, world: World, what: str, step: int) -> None:
        """Lose nodes or devices, and place on the rest. What ran there may wait; what is new may not."""
        if draw.random() < 0.7:
            done = lost.lose(draw, world)
            what = f"{what}, {done}"
            self.seen.settled(world.name, pods_of(world.replicas), grace=2.5)
            world.observed = lost.observed(world)
            self.counted[f"lost: {done.rpartition(' ')[0].partition(' of pool')[0]}"] += 1
        asked = deployment(draw, f"{world.name}x{step}", step, "lost")
        new, _ = world.decide(asked)
        self.counted["replicas placed"] += len(new)
        unbound = self.put(world, what, new) if new else []
        for one in new if unbound else ():
            waiting = self.seen.settled(one["metadata"]["name"], pods_of([one]))
            if waiting:
                self.differs(f"{what}, placed and pending", waiting)
        world.replicas += new

    def _edit(self, draw: Random, world: World, what: str, mode: str) -> None:
        """Edit a deployment that runs: retained replicas roll out, others leave or are replaced."""
        owner = _owner(draw.choice(world.replicas))
        kind, asked = edited(draw, world.asked[owner], mode)
        world.asked[owner] = asked
        wanted, _ = world.plan(asked)
        names = {replica["metadata"]["name"] for replica in wanted}
        gone = [
            one for one in world.replicas if _owner(one) == owner and one["metadata"]["name"] not in names
        ]
        world.take_away(gone, self.seen)
        world.replicas = [one for one in world.replicas if one["metadata"]["name"] not in names]
        unbound = self.put(world, f"{what}, {kind} edited", wanted)
        world.replicas += wanted
        if unbound or not self.seen.rolled(wanted):
            self.differs(f"{what}, pending after an edit of {kind}", unbound or "a rollout does not finish")
            world.take_away(wanted, self.seen)
        self.counted[f"edits of {kind}"] += 1

    def _probe(self, world: World, what: str, mode: str, asked: Plain, step: int) -> None:
        """Write one more replica by hand, on every choice of pools."""
        for at, pools in enumerate(mappings(asked, list(world.pools))):
            written = world.by_hand(asked, pools, f"{world.name}y{step}{'abcd'[at]}")
            if written is None:
                continue
            self.counted[f"refusals tried, {mode}"] += 1
            refused = world.put([written])
            expected = pods_of([written])
            name = written["metadata"]["name"]
            bound = not refused and not self.seen.settled(name, expected, grace=2.5, limit=40)
            world.take_away([written], self.seen)
            if bound:
                self.counted[f"refusals that bind, {mode}"] += 1
                if mode == "exclusive":
                    self.differs(f"{what}, refused and binds", pools)
                elif all(world.pools[pool][1] == "Device" for pool in pools):
                    self._judged(world, what, written)
                return

    def _judged(self, world: World, what: str, written: Plain) -> None:
        """Say whether a refusal by devices was needed, although it binds today."""
        pools = {name: (nodes, entries) for name, (nodes, _, entries) in world.pools.items()}
        said = judge.verdict(pools, [*world.replicas, written])
        self.judged[said] += 1
        if said == judge.WRONG:
            say(f"WRONG {what}: {written['metadata']['name']}")

    def _restart(self, world: World, what: str) -> None:
        """Start all pods again at once."""
        for pod in self.seen.of(world.name):
            cluster.delete("Pod", pod["metadata"]["name"], gracePeriodSeconds=0)
        self.seen.fresh()
        unbound = self.seen.settled(world.name, pods_of(world.replicas))
        if unbound:
            self.differs(f"{what}, pending after a restart", unbound)
        self.counted["restarts"] += 1


def say(text: str) -> None:
    """Print a line at once: who waits reads along."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _owner(replica: Plain) -> str:
    return str(replica["metadata"]["labels"]["modelplane.ai/deployment"])


def _plain(entry: Plain) -> Plain:
    """A device entry with all that a slice has."""
    kinds = {"string", "int", "bool", "version"}
    attributes = {key: value for key, value in entry.get("attributes", {}).items() if set(value) <= kinds}
    return entry | {
        "attributes": attributes,
        "capacity": entry.get("capacity", {}),
        "count": entry.get("count", 1),
    }


def main() -> int:
    """Run, print what was counted, and return 1 where something differs. Nothing to run on is no failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.referee")
    parser.add_argument("--minutes", type=float, default=10, help="time for random worlds")
    parser.add_argument("--worlds", type=int, default=600, help="random worlds at most")
    parser.add_argument("--parallel", type=int, default=8, help="worlds at a time: most of it is waiting")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(100_000))
    parser.add_argument("--mode", choices=MODES, action="append", help="modes of random worlds; all of them")
    parser.add_argument("--only", choices=[*PARTS, "features", "gangs", "groups"], action="append")
    given = parser.parse_args()
    reason = cluster.missing() or ("" if isolate() else "this container may not make namespaces")
    if reason:
        say(f"make referee is skipped: {reason}")
        return 0
    began = time.monotonic()
    parts = given.only or PARTS
    with cluster.started():
        referee = Referee()
        version = cluster.call("GET", "/version")["gitVersion"]
        say(f"seed {given.seed}; Kubernetes {version} is up after {time.monotonic() - began:.0f} s")
        if "features" in parts:
            features.report(referee.seen, say)
        of_gangs = {"gangs": reshape.report, "groups": pod_groups.report}
        referee.differ += [said for part in of_gangs if part in parts for said in of_gangs[part](say)]
        if "scenarios" in parts:
            _all(referee, referee.scenario, list(SCENARIOS), given.parallel)
        if "examples" in parts:
            referee.examples()
        if "worlds" in parts:
            _worlds(referee, given)
    if referee.judged[judge.WRONG] * WRONG_IN > referee.judged.total():
        referee.differs("refusals by devices", f"more than 1 in {WRONG_IN} is wrong")
    say(f"{time.monotonic() - began:.0f} s, {len(referee.differ)} disagreements")
    for what, number in sorted(referee.counted.items()):
        say(f"{number:8d}  {what}")
    for said, number in sorted(referee.judged.items()):
        say(f"{number:8d}  refusals by devices that bind: {said}")
    return 1 if referee.differ else 0


def _worlds(referee: Referee, given: argparse.Namespace) -> None:
    """Ask random worlds of every mode until the time is over, or somebody ends it."""
    modes, end = given.mode or MODES, time.monotonic() + 60 * given.minutes
    seeds = [(given.seed + at // len(modes), modes[at % len(modes)]) for at in range(given.worlds)]
    stopped = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())

    def one(pair: tuple[int, str]) -> None:
        if time.monotonic() < end and not stopped.is_set():
            referee.random(*pair)

    _all(referee, one, seeds, given.parallel)


def _all(referee: Referee, ask: Callable[[Any], None], questions: Sequence[Any], parallel: int) -> None:
    """Ask everything, several at a time; an error of ours is a disagreement."""

    def safely(question: Any) -> None:
        try:
            ask(question)
        except Exception as error:  # noqa: BLE001 - one world says nothing about the others
            referee.differs(f"{question} broke", repr(error))

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(safely, questions))


if __name__ == "__main__":
    sys.exit(main())
