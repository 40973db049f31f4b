"""What a reconcile of a deployment at rest takes, by the size of the fleet: python -m bench.rest.

Crossplane's loop over real gRPC on loopback: up to 2.3 what an answer states is fetched and the function
called again; from 2.4 on what the last reconcile stated comes with the first call. The deployment has three
replicas with their endpoints, Ready, on three clusters of four pools, every object as Crossplane stores it.
Bytes are those of all requests of a reconcile but for `status.placement`, processor time is the server's. The
second table is what the one request of 2.4 consists of. `--gang`: two engines, one of them a gang.
"""

from __future__ import annotations

import random
import statistics
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click
from crossplane.function.proto.v1 import run_function_pb2 as pb
from google.protobuf import json_format
from rich.console import Console
from rich.table import Table

from bench import fleets, stored
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


def _is_ready(cluster: Plain) -> bool:
    return all(condition["status"] == "True" for condition in cluster["status"]["conditions"])


class World:
    """A deployment at rest, and what its control plane holds, written once."""

    def __init__(
        self, clusters: int, seed: int, *, gang: bool = False, placement: Plain | None = None
    ) -> None:
        """Make a fleet with as many replicas of others as clusters."""
        self.deployment, self.observed = fleets.under_test(wanted=REPLICAS), dict[str, Plain]()
        if not gang:
            inner = self.deployment["spec"]["template"]["spec"]
            inner["engines"] = inner["engines"][1:]
        if placement is not None:
            self.deployment["spec"]["placement"] = placement
        while len(self.observed) < REPLICAS:  # A small fleet may have too few clusters that suit it.
            draw = random.Random(seed)
            listed = [fleets.cluster(draw, number, POOLS) for number in range(clusters)]
            hosts = [cluster for cluster in listed if _is_ready(cluster)]
            self.observed = fleets.running_replicas(self.deployment, hosts, kept=REPLICAS)
            seed += 1
        size = fleets.Size(clusters, POOLS, clusters)
        others = [fleets.stranger(draw, number, draw.choice(listed), size) for number in range(clusters)]
        replicas = list(self.observed.values())
        self.observed |= fleets.endpoints(self.observed)
        self._held = {
            "InferenceCluster": listed,
            "ModelReplica": [*replicas, *others],
            "ModelDeployment": [self.deployment],
        }

    def settle(self, call: Callable[[bytes], bytes]) -> Selectors:
        """Store what an answer says of the deployment; return what it states."""
        made = reconcile(self.request, call, {})
        status = json_format.MessageToDict(made.response.desired.composite.resource)["status"]
        del status["placement"]
        status["conditions"] = [
            stored.condition(row.type, row.reason, status=row.status == pb.STATUS_CONDITION_TRUE)
            for row in made.response.conditions
        ]
        self.deployment["status"] = status
        stored.managed(self.deployment, "spec", "status")
        return made.stated

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


def measure(world: World, clusters: int, times: int) -> tuple[Sequence[str], pb.RunFunctionRequest]:
    """Return the row of one size, and the request of Crossplane 2.4."""
    row, latest = [f"{clusters:,}"], b""
    with server() as running:

        def call(content: bytes) -> bytes:
            nonlocal latest
            latest = content
            return running.call(content)

        seeds = world.settle(call)
        for version in ({}, seeds):
            reconcile(world.request, call, version)
            spent = []
            for _ in range(times):
                started = running.processor
                made = reconcile(world.request, call, version)
                spent.append(running.processor - started)
            row += [str(made.calls), f"{made.sent / 1000:.1f} kB", f"{statistics.median(spent):.1f} ms"]
    return row, pb.RunFunctionRequest.FromString(latest)


def parts(request: pb.RunFunctionRequest) -> Iterable[tuple[str, str]]:
    """Yield what a request consists of, and the bytes of each."""
    observed, required = request.observed.resources, request.required_resources
    sizes = {"the deployment": request.observed.composite.ByteSize()}
    for key in observed:
        name = "its replicas" if key.startswith("replica-") else "their endpoints"
        sizes[name] = sizes.get(name, 0) + observed[key].ByteSize()
    for key in required:
        name = "its clusters" if key.startswith("cluster/") else "its replicas, as they are listed"
        sizes[name] = sizes.get(name, 0) + required[key].ByteSize()
    kept = sum(
        item.resource.fields["metadata"].struct_value.fields["managedFields"].ByteSize()
        for item in (
            request.observed.composite,
            *observed.values(),
            *(item for resources in required.values() for item in resources.items),
        )
    )
    sizes["of all of it managedFields"] = kept
    return ((name, f"{size / 1000:.1f} kB") for name, size in sizes.items())


@click.command(context_settings={"show_default": True})
@click.option("--sizes", default=len(SIZES), type=click.IntRange(1, len(SIZES)), help="How many sizes.")
@click.option("--times", default=21, type=click.IntRange(1), help="Reconciles of each.")
@click.option("--seed", default=1)
@click.option("--gang", is_flag=True, help="A gang of two nodes and a second engine beside it.")
def main(*, sizes: int, times: int, seed: int, gang: bool) -> None:
    """Print what a reconcile at rest takes on fleets of several sizes."""
    columns = ("clusters", "calls, 2.3", "sent", "processor", "calls, 2.4", "sent", "processor")
    table, pieces = Table(*columns, box=None), Table("one request, 2.4", "sent", box=None)
    for clusters in SIZES[:sizes]:
        row, request = measure(World(clusters, seed, gang=gang), clusters, times)
        table.add_row(*row)
    for piece in parts(request):
        pieces.add_row(*piece)
    Console().print(table, "", pieces)


if __name__ == "__main__":
    main()
