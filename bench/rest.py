"""What a reconcile of a deployment at rest takes, by the size of the fleet: python -m bench.rest.

Crossplane's loop over real gRPC on loopback: up to 2.3 what an answer states is fetched and the function
called again; from 2.4 on what the last reconcile stated comes with the first call. The deployment has three
replicas, Ready, on three clusters. Bytes are those of all requests of a reconcile, processor time is the
server's.
"""

from __future__ import annotations

import random
import statistics
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click
from crossplane.function.proto.v1 import run_function_pb2 as pb
from rich.console import Console
from rich.table import Table

from bench import fleets
from bench.server import server
from function.wire import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Plain = dict[str, Any]
Selectors: TypeAlias = "dict[str, pb.ResourceSelector]"
"""What is required, by the name of the requirement."""
SIZES = (10, 100, 1_000, 10_000)
POOLS, REPLICAS = 4, 3
INPUT = {
    "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
    "kind": "SchedulerConfig",
    "explain": "Status",
    "coordination": "GlobalOrder",
    "overcommit": "Yield",
    "scaleSelector": "Status",
}
"""As in the Composition that is shipped."""


class World:
    """A deployment at rest, and what its control plane holds, written once."""

    def __init__(self, clusters: int, seed: int) -> None:
        """Make a fleet with as many replicas of others as clusters."""
        self.deployment, self.observed = fleets.under_test(wanted=REPLICAS), dict[str, Plain]()
        while len(self.observed) < REPLICAS:  # A small fleet may have too few clusters that suit it.
            draw = random.Random(seed)
            listed = [fleets.cluster(draw, number, POOLS) for number in range(clusters)]
            self.observed = fleets.running_replicas(self.deployment, listed, kept=REPLICAS)
            seed += 1
        size = fleets.Size(clusters, POOLS, clusters)
        others = [fleets.stranger(draw, number, draw.choice(listed), size) for number in range(clusters)]
        self._held = {
            "InferenceCluster": listed,
            "ModelReplica": [*self.observed.values(), *others],
            "ModelDeployment": [self.deployment],
        }

    def request(self, stated: Selectors, context: bytes) -> bytes:
        """Return a request with what was stated, as Crossplane fetches it."""
        message = pb.RunFunctionRequest()
        message.meta.tag = "a reconcile"
        message.observed.composite.resource.update(self.deployment)
        message.input.update(INPUT)
        for key, manifest in self.observed.items():
            message.observed.resources[key].resource.update(manifest)
        for name, selector in stated.items():
            message.required_resources[name].SetInParent()
            for manifest in selected(selector, self._held.get(selector.kind, ())):
                struct = message.required_resources[name].items.add().resource
                struct.ParseFromString(write.struct(manifest))
        message.context.ParseFromString(context)
        return message.SerializeToString()


def selected(selector: pb.ResourceSelector, held: Iterable[Plain]) -> Iterable[Plain]:
    """Yield those objects of a kind that a selector matches."""
    labels = dict(selector.match_labels.labels)
    for manifest in held:
        metadata = manifest["metadata"]
        if selector.HasField("match_name") and metadata["name"] != selector.match_name:
            continue
        if selector.HasField("namespace") and metadata.get("namespace") != selector.namespace:
            continue
        if labels.items() <= (metadata.get("labels") or {}).items():
            yield manifest


class Reconciled(NamedTuple):
    """What a reconcile took, and its last answer."""

    calls: int
    sent: int
    """Bytes of all requests."""
    stated: Selectors
    response: pb.RunFunctionResponse


def reconcile(
    request: Callable[[Selectors, bytes], bytes], call: Callable[[bytes], bytes], seeds: Selectors
) -> Reconciled:
    """Reconcile once, as Crossplane does. `seeds`: what the last one stated, from 2.4 on."""
    given, context, sent, calls = seeds, b"", 0, 0
    before: Selectors | None = None
    while True:
        content = request(given, context)
        sent, calls = sent + len(content), calls + 1
        response = pb.RunFunctionResponse.FromString(call(content))
        now = dict(response.requirements.resources)
        if now == before or (before is None and seeds and now.keys() <= seeds.keys()):
            return Reconciled(calls, sent, now, response)
        given, before = {**seeds, **now}, now
        context = response.context.SerializeToString()


def measure(clusters: int, seed: int, times: int) -> Sequence[str]:
    """Return the row of one size."""
    world = World(clusters, seed)
    row = [f"{clusters:,}"]
    with server() as running:
        seeds = reconcile(world.request, running.call, {}).stated
        for version in ({}, seeds):
            reconcile(world.request, running.call, version)
            spent = []
            for _ in range(times):
                started = running.processor
                made = reconcile(world.request, running.call, version)
                spent.append(running.processor - started)
            row += [str(made.calls), f"{made.sent / 1000:.1f} kB", f"{statistics.median(spent):.1f} ms"]
    return row


@click.command(context_settings={"show_default": True})
@click.option("--sizes", default=len(SIZES), type=click.IntRange(1, len(SIZES)), help="How many sizes.")
@click.option("--times", default=21, type=click.IntRange(1), help="Reconciles of each.")
@click.option("--seed", default=1)
def main(sizes: int, times: int, seed: int) -> None:
    """Print what a reconcile at rest takes on fleets of several sizes."""
    columns = ("clusters", "calls, 2.3", "sent", "processor", "calls, 2.4", "sent", "processor")
    table = Table(*columns, box=None)
    for clusters in SIZES[:sizes]:
        table.add_row(*measure(clusters, seed, times))
    Console().print(table)


if __name__ == "__main__":
    main()
