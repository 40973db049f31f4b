"""A fleet under load: many deployments that keep changing, and what that takes of the function.

`python -m tests.live.load` starts a control plane of its own, installs the Configuration as shipped, creates
100 deployments on 200 clusters, and changes something every second for ten minutes: deployments are scaled
and edited, clusters tainted and freed of their taints, replicas become Ready, fail and recover. It prints a
table of what `/metrics` of the function says, a line for each minute. The exit code is 1 when a call failed,
here or in Crossplane, when memory passes its limit, or when a pool is overcommitted once all is quiet.
"""

from __future__ import annotations

import json
import random
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from function.api.replica import DEPLOYMENT_LABEL
from tests.live import burst, day, fleet, plane
from tests.live.crowds import Nodes, crowded
from tests.live.shipped import NAMESPACE, shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.live.crowds import Pool
    from tests.live.plane import ControlPlane, Plain

METRICS = "http://127.0.0.1:28082/metrics"
LOOK = 2.0
"""Seconds between two looks of the platform at replicas and endpoints."""
QUIET = 75.0
"""Seconds without any change to a replica until a fleet is at rest: the settled ttl, and a queue."""
START, FAILED = 5.0, 20.0
"""Mean seconds until a replica is Ready, and until one that failed is again."""
MAX_REPLICAS = 4
"""Replicas of one deployment, at most: all of them together fill three quarters of the fleet."""
LIMIT = 1024.0
"""MiB that the function may have: the limit in example/operate/runtime.yaml."""
CHANGES = {"scale": 4, "edit": 2, "fail": 3, "taint": 1, "untaint": 1}
"""What happens, and how often."""


def scrape() -> Counter[str]:
    """The function's metrics; of those with labels the sum, and each by `name{labels}`."""
    with urllib.request.urlopen(METRICS, timeout=30) as page:
        lines = page.read().decode().splitlines()
    values: Counter[str] = Counter()
    for line in lines:
        named, _, value = line.rpartition(" ")
        if named and not line.startswith("#"):
            values[named] += float(value)
            if "{" in named:
                values[named.partition("{")[0]] += float(value)
    return values


@dataclass(frozen=True)
class Sample:
    """What the metrics said at a moment."""

    at: float
    values: Mapping[str, float]
    lost: int
    """Calls without an answer, by Crossplane's log."""
    changes: int


def row(before: Sample, after: Sample, label: str) -> tuple[str, ...]:
    """What happened between two samples, as a row of the table."""
    spent = Counter(after.values)
    spent.subtract(before.values)
    seconds, answers = after.at - before.at, max(1.0, spent["fleet_scheduler_request_seconds_count"])
    calls = spent["fleet_scheduler_requests_total"]
    errors = calls - spent['fleet_scheduler_requests_total{outcome="answered"}'] + after.lost - before.lost
    return (
        label,
        f"{after.changes - before.changes}",
        f"{calls:.0f}",
        f"{errors:.0f}",
        f"{spent['process_cpu_seconds_total'] / seconds:.2f}",
        f"{after.values['process_resident_memory_bytes'] / 2**20:.0f}",
        f"{1000 * spent['fleet_scheduler_request_seconds_sum'] / answers:.0f}",
        f"{slowest(spent, answers)}",
        f"{spent['fleet_scheduler_request_bytes_sum'] / 1000 / answers:.0f}",
    )


HEADINGS = ("minute", "changes", "calls", "errors", "cores", "MiB", "ms a call", "99 % within", "kB a call")


def slowest(spent: Mapping[str, float], answers: float) -> str:
    """The bucket of the histogram within which 99 of 100 answers were."""
    name = "fleet_scheduler_request_seconds_bucket"
    bounds = sorted(
        (float(key.split('"')[1]), count) for key, count in spent.items() if key.startswith(f"{name}{{")
    )
    within = next(bound for bound, count in bounds if count >= 0.99 * answers)
    return f"{1000 * within:g} ms"


@dataclass
class Load:
    """The deployments, and all that keeps happening to them."""

    living: ControlPlane
    draw: random.Random
    deployments: list[Plain]
    due: dict[str, float] = field(default_factory=dict)
    """When a replica that is not Ready will be, by name."""
    nodes: Nodes = field(default_factory=Nodes)
    tainted: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)

    def change(self) -> None:
        """Change something."""
        kinds: Mapping[str, Callable[[], None]] = {
            "scale": self._scale,
            "edit": self._edit,
            "fail": self._fail,
            "taint": self._taint,
            "untaint": self._untaint,
        }
        (name,) = self.draw.choices(list(CHANGES), list(CHANGES.values()))
        kinds[name]()
        self.done[name] += 1

    def _patch(self, deployment: Plain, spec: Plain) -> None:
        where = plane.path("ModelDeployment", plane.name_of(deployment), NAMESPACE)
        self.living.request("PATCH", where, {"spec": spec}, "application/merge-patch+json")

    def _scale(self) -> None:
        self._patch(self.draw.choice(self.deployments), {"replicas": self.draw.randint(1, MAX_REPLICAS)})

    def _edit(self) -> None:
        """Give the engine another image; its replicas are updated in place."""
        deployment = self.draw.choice(self.deployments)
        (engine,) = deployment["spec"]["template"]["spec"]["engines"]
        (container,) = engine["members"][0]["template"]["spec"]["containers"]
        container["image"] = f"docker.io/vllm/vllm-openai:v0.{self.draw.randrange(100)}.0"
        self._patch(deployment, {"template": {"spec": {"engines": [engine]}}})

    def _fail(self) -> None:
        ready = [replica for replica in self._replicas() if burst.is_ready(replica)]
        if ready:
            replica = self.draw.choice(ready)
            fleet.make_ready(self.living, [replica], ready=False)
            self.due[plane.name_of(replica)] = time.monotonic() + self.draw.expovariate(1 / FAILED)

    def _taint(self) -> None:
        clusters = self.living.list("InferenceCluster", labels="fleet=burst")
        name = plane.name_of(self.draw.choice(clusters))
        fleet.taint(self.living, name, {"key": "maintenance", "effect": "NoExecute"})
        self.tainted.add(name)

    def _untaint(self) -> None:
        if self.tainted:
            fleet.taint(self.living, self.tainted.pop())

    def _replicas(self) -> list[Plain]:
        replicas = self.living.list("ModelReplica", NAMESPACE)
        return [replica for replica in replicas if "deletionTimestamp" not in replica["metadata"]]

    def look(self) -> None:
        """Take the platform's part: what has a node becomes Ready after a while, endpoints at once."""
        now, replicas = time.monotonic(), self._replicas()
        self.nodes.free(replicas)
        for replica in replicas:
            name = plane.name_of(replica)
            if burst.is_ready(replica):
                self.due.pop(name, None)
                continue
            due = self.due.setdefault(name, now + self.draw.expovariate(1 / START))
            if now >= due and self.nodes.take(replica):
                fleet.make_ready(self.living, [replica])
        endpoints = self.living.list("ModelEndpoint", NAMESPACE)
        fleet.make_ready(self.living, [manifest for manifest in endpoints if not burst.is_ready(manifest)])

    def sample(self) -> Sample:
        """What the metrics say now."""
        lost = burst.lost_calls(self.living.state)
        return Sample(time.monotonic(), scrape(), lost, sum(self.done.values()))

    def run(self, seconds: float, pause: float) -> list[Sample]:
        """Change something every `pause` seconds, and return a sample of each minute."""
        started = looked = time.monotonic()
        samples = [self.sample()]
        turn = 0
        while (now := time.monotonic()) - started < seconds:
            if now - looked >= LOOK:
                looked = now
                self.look()
            if now - started >= turn * pause:
                turn = int((now - started) / pause) + 1
                self.change()
            if now - samples[-1].at >= 60:
                samples.append(self.sample())
                sys.stderr.write("  ".join(row(samples[-2], samples[-1], str(len(samples) - 1))) + "\n")
            time.sleep(0.05)
        return [*samples, self.sample()] if time.monotonic() - samples[-1].at > 1 else samples

    def rest(self, patience: float = 400.0) -> list[Pool]:
        """Wait until no replica has come or gone for a while, and return what is overcommitted then."""
        started = last = time.monotonic()
        before: set[str] = set()
        while time.monotonic() - last < QUIET and time.monotonic() - started < patience:
            self.look()
            names = {plane.name_of(replica) for replica in self._replicas()}
            if names != before:
                last, before = time.monotonic(), names
            time.sleep(LOOK)
        return sorted(crowded(self._replicas()))


def started_load(living: ControlPlane, deployments: int, clusters: int, seed: int) -> Load:
    """Create the fleet and the deployments, and wait until every replica has a place."""
    burst.publish_fleet(living, clusters)
    draw = random.Random(seed)
    made = [
        burst.deployment(f"model-{number:03}", draw.randint(1, MAX_REPLICAS)) for number in range(deployments)
    ]
    for at in range(0, deployments, 10):  # A burst is another measurement.
        living.apply(*made[at : at + 10])
        time.sleep(LOOK)
    load = Load(living, draw, made)
    names = set(map(plane.name_of, made))
    wanted = sum(deployment["spec"]["replicas"] for deployment in made)

    def serving() -> bool:
        load.look()
        time.sleep(LOOK)
        endpoints = living.list("ModelEndpoint", NAMESPACE)
        theirs = [one for one in endpoints if one["metadata"]["labels"][DEPLOYMENT_LABEL] in names]
        return sum(map(burst.is_ready, theirs)) == wanted

    plane.until(serving, f"{wanted} endpoints Ready", 1200)
    return load


@click.command()
@click.option("--deployments", default=100, help="How many.")
@click.option("--clusters", default=200, help="Clusters of one pool with two nodes.")
@click.option("--minutes", default=10.0, help="How long.")
@click.option("--pause", default=1.0, help="Seconds between two changes.")
@click.option("--seed", default=1, help="What is changed, and when.")
def main(deployments: int, clusters: int, minutes: float, pause: float, seed: int) -> None:
    """Keep a fleet changing, and print what that took."""
    with shipped() as living:
        load = started_load(living, deployments, clusters, seed)
        samples = load.run(60 * minutes, pause)
        overcommitted = load.rest()
    rows = [row(*pair, str(number)) for number, pair in enumerate(pairwise(samples), 1)]
    rows.append(row(samples[0], samples[-1], "all"))
    sys.stdout.write(day.columns([HEADINGS, *rows]))
    sys.stdout.write(json.dumps({"changes": dict(load.done), "overcommitted": overcommitted}) + "\n")
    largest = max(float(line[5]) for line in rows)
    sys.exit(bool(overcommitted) or rows[-1][3] != "0" or largest > LIMIT)


if __name__ == "__main__":
    main()
