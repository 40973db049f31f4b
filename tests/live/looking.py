"""The cost of looking at nodes: what `capacity: Usable` keeps and writes in a control plane.

`python -m tests.live.looking --nodes 10 --nodes 200` starts a control plane of its own with
provider-kubernetes, writes nodes and ResourceSlices as kubelets and drivers would, and has a cluster publish
what can be used. Then it counts Objects and their bytes; and for a while, in which kubelets only say that
they live, the writes to Objects and the calls of the function. The provider looks each minute here, and each
ten minutes as it is shipped: the columns for an hour are for that.

Of the cluster's circuit breaker it says the tokens that were asked for until all nodes are counted, how many
of the events were dropped for want of one, and how often it opened. CORE_FLAGS gives another breaker.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import click
import yaml

from tests.live import burst, day, fleet, plane, workload
from tests.live.function_log import FunctionLog
from tests.live.plane import until
from tests.live.shipped import shipped
from tests.live.workload import IMAGES, add_nodes, members, turn

if TYPE_CHECKING:
    from tests.live.plane import ControlPlane

CLUSTER, GROUP, COMPOSITION = "looked-at", "looking", "inferenceclusters-looking"
PATIENCE = 1_200.0
AN_HOUR = 6
"""Looks of a provider as it is shipped."""
OBSERVER = "looks-only"
CONTROLLER = "composite/inferenceclusters.modelplane.ai"
HEADINGS = (
    *("nodes", "Objects", "kB stored", "kB an Object", "usable after s"),
    *("calls", "MB received", "tokens", "dropped", "opened"),
    *("looks", "writes", "kB written", "calls", "writes an hour", "MB an hour"),
)


def compose(living: ControlPlane) -> None:
    """Make a Composition that looks."""
    words = ("get", "composition", "inferenceclusters.modelplane.ai", "-o", "json")
    shipped_one = json.loads(until(lambda: living.kubectl(*words, "--ignore-not-found"), "the Composition"))
    spec = shipped_one["spec"]
    spec["pipeline"][0]["input"] |= {"capacity": "Usable"}
    head = {"apiVersion": shipped_one["apiVersion"], "kind": "Composition"}
    manifest = {**head, "metadata": {"name": COMPOSITION}, "spec": spec}
    living.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))


def usable(living: ControlPlane) -> object:
    """Return how many nodes the cluster says can be used."""
    pools = (living.get("InferenceCluster", CLUSTER) or {}).get("status", {}).get("gpuPools") or [{}]
    return pools[0].get("usable", {}).get("nodes")


def measured(living: ControlPlane, before: int, nodes: int, looks: int, *, apart: bool) -> tuple[str, ...]:
    """Measure a cluster that grows to so many nodes."""
    # What looks already makes Objects of nodes as they come.
    before_it, log = burst.metrics(CONTROLLER), FunctionLog(living)
    add_nodes(living, before, nodes)
    cluster = workload.declared_cluster(CLUSTER, GROUP, nodes)
    cluster["spec"]["crossplane"] = {"compositionRef": {"name": COMPOSITION}}
    if apart:
        cluster["spec"]["cluster"]["existing"]["observerConfigRef"] = {"name": OBSERVER}
    began = time.monotonic()
    living.apply(cluster)
    until(lambda: usable(living) == nodes, "all nodes can be used", PATIENCE)
    # A node of which nothing is known counts: so all of them, with their slices, have to be looked at.
    until(lambda: len(members(living)) == 2 * nodes, "everything is looked at", PATIENCE)
    took = time.monotonic() - began
    spent = Counter(burst.metrics(CONTROLLER))
    spent.subtract(before_it)
    tokens = sum(number for name, number in spent.items() if name.startswith("events "))
    calls = [answer for answer in log.answers() if answer.get("name") == CLUSTER]
    received = sum(answer.get("received", 0) for answer in calls) / 1e6
    counts = (len(calls), received, tokens, spent["events Dropped"], spent["circuit_breaker_opens_total"])
    objects = members(living)
    stored = sum(len(json.dumps(one, separators=(",", ":"))) for one in objects)
    writes, written, woken = watched(living, nodes, looks)
    return (
        *(str(nodes), str(len(objects)), f"{stored / 1e3:.0f}", f"{stored / 1e3 / len(objects):.1f}"),
        *(f"{took:.0f}", *(f"{number:.0f}" for number in counts)),
        *(str(looks), str(writes), f"{written / 1e3:.0f}", str(woken)),
        *(f"{writes / looks * AN_HOUR:.0f}", f"{written / looks * AN_HOUR / 1e6:.1f}"),
    )


def watched(living: ControlPlane, nodes: int, looks: int) -> tuple[int, int, int]:
    """Return the writes to Objects in some looks of the provider, their bytes, and the cluster's calls."""
    log, where = FunctionLog(living), plane.path("Object", "", workload.SYSTEM)
    writes = written = 0
    for _ in range(looks):
        listed = living.request("GET", f"{where}?limit=1") or {}
        for at in range(nodes):
            turn(
                living,
                f"seen-{at}",
                "True",
                images=IMAGES,
                beat=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            )
        version = listed["metadata"]["resourceVersion"]
        query = f"watch=true&timeoutSeconds=60&resourceVersion={version}"
        events = [
            line
            for line in living.kubectl("get", "--raw", f"{where}?{query}").splitlines()
            if '"object"' in line
        ]
        writes += len(events)
        written += sum(map(len, events))
    return writes, written, sum(answer.get("name") == CLUSTER for answer in log.answers())


@click.command()
@click.option(
    "--nodes", multiple=True, default=(10, 200), help="Nodes of a cluster; several times for several."
)
@click.option("--apart", is_flag=True, help="Look through a ClusterProviderConfig that nobody composes.")
@click.option("--looks", default=3, help="Looks of the provider that are counted, a minute each.")
def main(nodes: tuple[int, ...], looks: int, *, apart: bool) -> None:
    """Print what was counted as a table."""
    if reason := workload.missing():
        sys.exit(reason)
    with shipped() as living, workload.running(living):
        workload.give_the_platforms_part_back(living)
        compose(living)
        living.apply(fleet.applicable(workload.declared_class()))
        if apart:
            secret = {"name": workload.KUBECONFIG, "namespace": workload.SYSTEM, "key": "kubeconfig"}
            config = {"apiVersion": plane.GROUPS["ClusterProviderConfig"], "kind": "ClusterProviderConfig"}
            spec = {"credentials": {"source": "Secret", "secretRef": secret}}
            living.apply({**config, "metadata": {"name": OBSERVER}, "spec": spec})
        rows: list[tuple[str, ...]] = []
        for before, number in zip((0, *sorted(nodes)), sorted(nodes), strict=False):
            rows.append(measured(living, before, number, looks, apart=apart))
            # What is measured is said at once: the next size takes longer.
            sys.stdout.write(day.columns([HEADINGS, *rows]))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
