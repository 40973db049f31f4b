"""The same scenario on a living control plane and in the simulation, and what each counts.

`python -m tests.live.likeness` starts a control plane, has eight deployments created, Ready, edited, scaled,
drained and deleted at given seconds, and then the same on `tests.support.crossplane`. It prints calls of the
function, reconciles and events of the circuit breaker for every part of the scenario, the two side by side.
The platform is played alike in both. An answer at rest holds for hours, so that nothing is by its time to
live. The exit code is 1 where calls or events are further apart than a fifth.

CROSSPLANE_VERSION=2.4.0 takes that Crossplane in both.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from tests.live import burst, day, fleet, plane
from tests.live.function_log import FunctionLog
from tests.live.shipped import NAMESPACE, change_step, shipped
from tests.simulate.swarm import ready
from tests.support import build, crossplane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.live.plane import ControlPlane

Plain = dict[str, Any]
TTL = {"settled": 20_000, "pending": 20_000, "waiting": 5}
"""Seconds that an answer holds: only what waits for the fleet is asked again by the time."""
DEPLOYMENTS, REPLICAS, CLUSTERS = 8, 2, 12
QUEUE = (0.05, 0.5)
"""Seconds that a reconcile takes in the simulation, as long as a living one on a quiet machine."""
LAG = (0.005, 0.05)
"""Seconds that a write takes there, and that a watch is behind."""
NO_COMPOSITION = 3
"""Crossplane's writes to a new replica or endpoint that has no Composition: finalizer and conditions."""
MAX_APART = 1 / 5
"""How far apart the two may be, of what the living one has."""


class World(Protocol):
    """A control plane that a scenario is played on."""

    def list(self, kind: str) -> list[Plain]:
        """Return the objects of a kind that nobody deleted."""

    def create(self, plain: Plain) -> None:
        """Create an object, with its status."""

    def patch(self, plain: Plain, **spec: Any) -> None:
        """Change fields of a spec."""

    def serve(self, plain: Plain) -> None:
        """Say that an object is Ready, of the generation that it has."""

    def delete(self, plain: Plain) -> None:
        """Delete an object."""

    def wait(self, until: float) -> None:
        """Let time pass until so many seconds from the beginning."""

    def counted(self) -> Counter[str]:
        """Return the calls, reconciles and events of deployments so far."""


class Living:
    """A control plane of processes, from an empty fleet."""

    def __init__(self, living: ControlPlane) -> None:
        """Count from now on."""
        self._living, self._log, self._began = living, FunctionLog(living), time.monotonic()
        self._calls: Counter[str] = Counter()
        self._before = self._events()

    def list(self, kind: str) -> list[Plain]:
        """Return the objects of a kind that nobody deleted."""
        within = "" if kind == "InferenceCluster" else NAMESPACE
        listed = self._living.list(kind, within)
        return [plain for plain in listed if "deletionTimestamp" not in plain["metadata"]]

    def create(self, plain: Plain) -> None:
        """Create an object, with its status."""
        metadata = plain["metadata"]
        where = plane.path(plain["kind"], namespace=metadata.get("namespace", ""))
        self._living.request("POST", where, fleet.applicable(plain))
        if "status" in plain:
            self._living.publish(plain)

    def patch(self, plain: Plain, **spec: Any) -> None:
        """Change fields of a spec."""
        self._living.request("PATCH", _where(plain), {"spec": spec}, "application/merge-patch+json")

    def serve(self, plain: Plain) -> None:
        """Say that an object is Ready, of the generation that it has."""
        self._living.publish({**plain, "status": ready(plain, serves=True)})

    def delete(self, plain: Plain) -> None:
        """Delete an object."""
        self._living.request("DELETE", _where(plain))

    def wait(self, until: float) -> None:
        """Let time pass until so many seconds from the beginning."""
        time.sleep(max(0.0, self._began + until - time.monotonic()))

    def counted(self) -> Counter[str]:
        """Return the calls, reconciles and events of deployments so far."""
        for line in self._log.answers():
            if line["kind"] == "ModelDeployment":
                self._calls["calls"] += 1
                self._calls["reconciles"] += not line.get("repeated", False)
        return self._calls + Counter({"events": self._events() - self._before})

    @staticmethod
    def _events() -> int:
        metrics = burst.metrics()
        return int(sum(number for name, number in metrics.items() if name.startswith("events ")))


def _where(plain: Plain) -> str:
    """Return the path of an object."""
    metadata = plain["metadata"]
    return plane.path(plain["kind"], metadata["name"], metadata.get("namespace", ""))


class Simulated:
    """A control plane in memory."""

    def __init__(self, version: str, seed: int) -> None:
        """Begin with nothing."""
        steps = crossplane.shipped(["ModelDeployment"], inputs={"ModelDeployment": {"ttl": TTL}})
        how: Plain = {"elsewhere": ("ModelReplica", "ModelEndpoint"), "own_writes": NO_COMPOSITION}
        self._plane = crossplane.ControlPlane(steps, version, QUEUE, LAG, seed=seed, **how)
        self._counts: dict[int, Counter[str]] = {}
        """Those of every deployment that there ever was."""

    def list(self, kind: str) -> list[Plain]:
        """Return the objects of a kind that nobody deleted."""
        objects = sorted(self._plane.objects.items())
        of_kind = [plain for name, plain in objects if name.kind == kind]
        return [plain for plain in of_kind if "deletionTimestamp" not in plain["metadata"]]

    def create(self, plain: Plain) -> None:
        """Create an object, with its status."""
        status = {"status": plain["status"]} if "status" in plain else {}
        self._plane.write({**fleet.applicable(plain), **status})

    def patch(self, plain: Plain, **spec: Any) -> None:
        """Change fields of a spec."""
        name = crossplane.name_of(plain)
        self._plane.patch(name, spec={**self._plane.objects[name]["spec"], **spec})

    def serve(self, plain: Plain) -> None:
        """Say that an object is Ready, of the generation that it has."""
        self._plane.patch(crossplane.name_of(plain), status=ready(plain, serves=True))

    def delete(self, plain: Plain) -> None:
        """Delete an object."""
        self.counted()
        self._plane.delete(crossplane.name_of(plain))

    def wait(self, until: float) -> None:
        """Let time pass until so many seconds from the beginning."""
        self._plane.run(until - self._plane.now)

    def counted(self) -> Counter[str]:
        """Return the calls, reconciles and events of deployments so far."""
        for name, composite in self._plane.composites.items():
            if name.kind == "ModelDeployment":
                self._counts[id(composite.counts)] = composite.counts
        every = self._counts.values()
        of = {"calls": "calls", "reconciles": "reconciles", "events": "tokens"}
        return Counter({what: sum(counts[key] for counts in every) for what, key in of.items()})


class Part(NamedTuple):
    """A part of the scenario: a list of acts a second apart, and the seconds until the next part."""

    what: str
    acts: Callable[[World], list[Callable[[], None]]]
    seconds: float


def every(kind: str, act: Callable[[World, Plain], None]) -> Callable[[World], list[Callable[[], None]]]:
    """Return a part in which something is done to every object of a kind."""
    return lambda world: [lambda plain=plain: act(world, plain) for plain in world.list(kind)]


def _created(world: World) -> list[Callable[[], None]]:
    made = [burst.deployment(f"model-{number:03}", REPLICAS) for number in range(DEPLOYMENTS)]
    return [lambda plain=plain: world.create(plain) for plain in made]


def _image(world: World, deployment: Plain) -> None:
    (engine,) = deployment["spec"]["template"]["spec"]["engines"]
    (member,) = engine["members"]
    template = build.template("docker.io/vllm/vllm-openai:v0.11.0")
    inner = {
        **deployment["spec"]["template"]["spec"],
        "engines": [{**engine, "members": [{**member, "template": template}]}],
    }
    world.patch(deployment, template={"spec": inner})


def scaled(replicas: int) -> Callable[[World], list[Callable[[], None]]]:
    """Return a part in which every deployment wants another number of replicas."""
    return every("ModelDeployment", lambda world, plain: world.patch(plain, replicas=replicas))


def _drained(world: World) -> list[Callable[[], None]]:
    used = sorted({replica["spec"]["clusterName"] for replica in world.list("ModelReplica")})
    cluster = next(one for one in world.list("InferenceCluster") if plane.name_of(one) == used[0])
    return [lambda: world.patch(cluster, taints=[{"key": "maintenance", "effect": "NoExecute"}])]


SERVE = every("ModelReplica", lambda world, plain: world.serve(plain))
ROUTE = every("ModelEndpoint", lambda world, plain: world.serve(plain))
SCENARIO = (
    Part("created", _created, 20.0),
    Part("replicas Ready", SERVE, 10.0),
    Part("endpoints Ready", ROUTE, 10.0),
    Part("another image", every("ModelDeployment", _image), 10.0),
    Part("replicas Ready again", SERVE, 10.0),
    Part("three replicas", scaled(3), 10.0),
    Part("two replicas", scaled(2), 15.0),
    Part("a cluster drained", _drained, 20.0),
    Part("replicas Ready once more", SERVE, 10.0),
    Part("endpoints Ready once more", ROUTE, 20.0),
    Part("deleted", every("ModelDeployment", lambda world, plain: world.delete(plain)), 20.0),
)
COUNTED = ("reconciles", "calls", "events")


def played(world: World) -> Iterator[Counter[str]]:
    """Play the scenario, and yield what each part of it took."""
    at, before = 0.0, world.counted()
    for part in SCENARIO:
        for act in part.acts(world):
            act()
            at += 1.0
            world.wait(at)
        at += part.seconds
        world.wait(at)
        now = world.counted()
        yield now - before
        before = now


def publish(world: World) -> None:
    """Create the fleet."""
    for number in range(CLUSTERS):
        world.create(build.cluster(f"c-{number:03}", [build.pool(burst.POOL, 2)], labels=burst.FLEET))


def table(worlds: dict[str, list[Counter[str]]]) -> str:
    """Show what was counted in every world, a row for each part and one for all."""
    parts = [*zip((part.what for part in SCENARIO), *worlds.values(), strict=True)]
    parts.append(("all", *map(_sum, worlds.values())))
    heads = [f"{what}, {where}" for what in COUNTED for where in worlds]
    rows = [(what, *(str(counted[key]) for key in COUNTED for counted in counts)) for what, *counts in parts]
    return day.columns([("part", *heads), *rows])


def _sum(counted: list[Counter[str]]) -> Counter[str]:
    return sum(counted, Counter())


@click.command()
@click.option("--seed", default=1, help="Of the simulation.")
@click.option("--simulated", "only", is_flag=True, help="Play the simulation alone.")
def main(seed: int, *, only: bool) -> None:
    """Print what was counted as a table."""
    version = ".".join(plane.version().split(".")[:2])
    played_here = Simulated(version, seed)
    publish(played_here)
    simulated = list(played(played_here))
    if only:
        sys.stdout.write(table({"simulated": simulated}))
        return
    with shipped() as running:
        change_step(running, lambda step: step["input"].update(ttl=TTL))
        publish(Living(running))
        living = list(played(Living(running)))
    sys.stdout.write(table({"living": living, "simulated": simulated}))
    both = _sum(living), _sum(simulated)
    apart = {key: abs(both[0][key] - both[1][key]) / max(1, both[0][key]) for key in ("calls", "events")}
    sys.stdout.write(", ".join(f"{key} {of:.0%} apart" for key, of in apart.items()) + "\n")
    sys.exit(any(of > MAX_APART for of in apart.values()))


if __name__ == "__main__":
    main()
