"""An hour of a fleet at work, over real gRPC: python -m bench.day [--crossplane 2.3] [--minutes 60].

Every deployment is reconciled when its answer's time to live has run out and whenever it or a replica of it
changes, and what it answers is applied, as Crossplane does: up to 2.3 what an answer states is fetched and
the function called again, from 2.4 on it comes with the first call, and is watched. `--block` has the whole
fleet in every call, as a bootstrap block does. What happens: replicas restart and turn Ready again, images
are edited, clusters write their status. Time is virtual, so nothing is waited for; the CPU time is that of
our server's process. parse: what the protobuf runtime alone takes to parse the same requests.
"""

from __future__ import annotations

import heapq
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from crossplane.function.proto.v1 import run_function_pb2 as pb
from google.protobuf import json_format
from rich.console import Console
from rich.table import Table

from bench import fleets, stored
from bench.encode import Requests
from bench.fleets import Fleet, Size
from bench.rest import Reconciled, reconcile, selected
from bench.server import server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.rest import Selectors
    from bench.server import Server
    from bench.stored import Plain

HOUR = 3600.0
REPLICAS, POOLS = 3, 4
WATCHING = "2.4"
"""From this version on required resources are watched and seeded."""
STARTING = 120.0
"""Seconds from the restart of a replica to its Ready."""
FOLLOW_UP = 1.0
"""Seconds until Crossplane calls again because the last answer changed something."""
GANGS = 4
"""One deployment in so many has gangs."""
PARSED_EVERY = 20
"""One request in so many is parsed beside the call."""
HAPPENINGS = {"restart": 60, "edit": 30, "cluster": 400}
"""How often an hour a replica restarts, an image is edited, and a cluster writes its status."""


@dataclass
class World:
    """Everything that is stored, and when each deployment is called next, in virtual seconds."""

    requests: Requests
    fleets: list[Fleet]
    """One for each deployment: the same clusters and replicas, and its own observed ones."""
    draw: random.Random
    crossplane: str
    """The version, or "block": any version, with a bootstrap block."""
    stated: dict[int, Selectors] = field(default_factory=dict)
    """What the last answer about each deployment states: seeded and watched from 2.4 on."""
    due: list[tuple[float, int, str]] = field(default_factory=list)
    """Time, deployment, and why."""
    next_ttl: dict[int, float] = field(default_factory=dict)
    """When the answer that counts has run out."""

    def changed(self, document: Plain) -> None:
        """Store a document under a new version."""
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        self.requests.refresh([document])

    def reconcile(self, number: int, call: Callable[[bytes], bytes]) -> Reconciled:
        """Reconcile a deployment."""
        self.requests.fleet = fleet = self.fleets[number]
        if self.crossplane == "block":
            content = self.requests.next()
            return Reconciled(1, len(content), {}, pb.RunFunctionResponse.FromString(call(content)))
        of_kind = {"InferenceCluster": fleet.clusters, "ModelReplica": fleet.replicas}

        def request(stated: Selectors, context: bytes) -> bytes:
            required = {
                name: list(selected(selector, of_kind.get(selector.kind, ())))
                for name, selector in stated.items()
            }
            return self.requests.next(required, context)

        seeds = self.stated.get(number, {}) if self.crossplane == WATCHING else {}
        made = reconcile(request, call, seeds)
        self.stated[number] = made.stated
        return made

    def watchers(self, document: Plain) -> Iterator[int]:
        """Yield the deployments that are woken by a write to an object."""
        for number, stated in self.stated.items() if self.crossplane == WATCHING else ():
            of_kind = [one for one in stated.values() if one.kind == document["kind"]]
            if any(True for selector in of_kind for _ in selected(selector, [document])):
                yield number


def deployment(number: int) -> Plain:
    """Return one of many deployments: most have one engine on one node."""
    made = fleets.under_test(REPLICAS)
    made["metadata"] = stored.metadata(f"model-{number:03}", 100 + number, namespace=f"team-{number % 20}")
    inner = made["spec"]["template"]["spec"]
    if number % GANGS:
        inner["engines"] = inner["engines"][1:]
    return made


def world(clusters: int, deployments: int, seed: int, crossplane: str) -> World:
    """Return a fleet on which every deployment has its replicas, Ready."""
    draw = random.Random(seed)
    listed = [fleets.cluster(draw, number, POOLS) for number in range(clusters)]
    made = [deployment(number) for number in range(deployments)]
    observed = []
    for one in made:
        order = draw.sample(listed, len(listed))
        observed.append(fleets.running_replicas(one, order, kept=REPLICAS))
    replicas = [item for of_one in observed for item in of_one.values()]
    own_fleets = [Fleet(one, listed, replicas, mine) for one, mine in zip(made, observed, strict=True)]
    requests = Requests(own_fleets[0], seed)
    requests.refresh(made)
    return World(requests, own_fleets, draw, crossplane)


def happenings(draw: random.Random, minutes: float) -> Iterator[tuple[float, str]]:
    """Yield what happens, and when, in no order."""
    for what, often in HAPPENINGS.items():
        for _ in range(round(often * minutes / 60)):
            yield draw.uniform(0, minutes * 60), what


def happen(made: World, what: str, now: float) -> None:
    """Let something happen; whoever watches it is called."""
    number = made.draw.randrange(len(made.fleets))
    own_fleet = made.fleets[number]
    if what == "cluster":
        cluster = made.draw.choice(own_fleet.clusters)
        made.changed(cluster)
        for watcher in made.watchers(cluster):
            heapq.heappush(made.due, (now, watcher, "change"))
        return
    if what == "edit":
        for engine in own_fleet.deployment["spec"]["template"]["spec"]["engines"]:
            for member in engine["members"]:
                member["template"]["spec"]["containers"][0]["image"] = f"vllm/vllm-openai:v0.23.{int(now)}"
        made.changed(own_fleet.deployment)
    elif own_fleet.observed:
        restarted = made.draw.choice(list(own_fleet.observed.values()))
        _set_ready(made, restarted, ready=False)
        heapq.heappush(made.due, (now + STARTING, number, "ready"))
    heapq.heappush(made.due, (now, number, "change"))


def _set_ready(made: World, replica: Plain, *, ready: bool) -> None:
    for condition in replica["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition["status"] = str(ready)
    made.changed(replica)


def apply(made: World, own_fleet: Fleet, response: pb.RunFunctionResponse) -> tuple[float, bool]:
    """Store what an answer desires; return its time to live, and whether anything changed."""
    changed = False
    for key, resource in response.desired.resources.items():
        desired = json_format.MessageToDict(resource.resource)
        held = own_fleet.observed.get(key)
        if held is not None and held["spec"]["engines"] != desired["spec"]["engines"]:
            held["spec"]["engines"] = desired["spec"]["engines"]
            made.changed(held)
            changed = True
    status = json_format.MessageToDict(response.desired.composite.resource).get("status", {})
    status["conditions"] = [
        {"type": item.type, "status": "True" if item.status == pb.STATUS_CONDITION_TRUE else "False"}
        | {"reason": item.reason, "message": item.message, "lastTransitionTime": stored.TIME}
        for item in response.conditions
    ]
    if own_fleet.deployment.get("status") != status:
        own_fleet.deployment["status"] = status
        made.changed(own_fleet.deployment)
        changed = True
    return response.meta.ttl.ToTimedelta().total_seconds(), changed


@dataclass
class Spent:
    """What an hour took."""

    reconciles: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    received: int = 0
    processor: float = 0.0
    """CPU seconds of the server."""
    parse: float = 0.0
    """CPU seconds that parsing the same requests takes."""
    peak: float = 0.0


def processor_seconds(process: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(made: World, running: Server, minutes: float) -> Spent:
    """Play the time, and return what it took."""
    spent, end = Spent(), minutes * 60
    agenda = sorted(happenings(made.draw, minutes))
    for number in range(len(made.fleets)):
        heapq.heappush(made.due, (made.next_ttl[number], number, "ttl"))
    before = processor_seconds(running.process.pid)
    while made.due[0][0] < end or agenda:
        if agenda and agenda[0][0] <= made.due[0][0]:
            now, what = agenda.pop(0)
            happen(made, what, now)
            continue
        now, number, why = heapq.heappop(made.due)
        if why == "ttl" and now != made.next_ttl[number]:
            continue  # A later answer holds longer.
        own_fleet = made.fleets[number]
        if why == "ready":
            for replica in own_fleet.observed.values():
                _set_ready(made, replica, ready=True)
        call(made, running, number, why, now, spent)
    spent.processor = processor_seconds(running.process.pid) - before
    spent.peak = running.peak
    return spent


def call(made: World, running: Server, number: int, why: str, now: float, spent: Spent) -> None:
    """Call for one deployment, and note when it is due again."""

    def sent(content: bytes) -> bytes:
        spent.calls += 1
        if spent.calls % PARSED_EVERY == 0:
            started = time.process_time()
            pb.RunFunctionRequest.FromString(content)
            spent.parse += (time.process_time() - started) * PARSED_EVERY
        return running.call(content)

    reconciled = made.reconcile(number, sent)
    ttl, changed = apply(made, made.fleets[number], reconciled.response)
    spent.reconciles["ttl" if why == "ttl" else "change"] += 1
    spent.received += reconciled.sent
    if changed:
        heapq.heappush(made.due, (now + FOLLOW_UP, number, "change"))
    made.next_ttl[number] = now + ttl * made.draw.uniform(0.9, 1.1)
    heapq.heappush(made.due, (made.next_ttl[number], number, "ttl"))


def table(spent: Spent, minutes: float, what: str) -> Table:
    """Return the figures for an hour."""
    made = Table(title=f"an hour of {what}")
    hours, calls = minutes * 60 / HOUR, spent.calls
    rows = {
        "reconciles, because the time to live had run out": f"{spent.reconciles['ttl'] / hours:,.0f}",
        "reconciles, because something had changed": f"{spent.reconciles['change'] / hours:,.0f}",
        "calls": f"{calls / hours:,.0f}",
        "received": f"{spent.received / hours / 1e9:.1f} GB, {spent.received / calls / 1e6:.2f} MB a call",
        "CPU seconds of the server": (
            f"{spent.processor / hours:.0f}, {spent.processor / calls * 1000:.1f} ms a call"
        ),
        "the same in parses in C of the requests": f"{spent.processor / spent.parse:.1f}",
        "share of one core": f"{spent.processor / hours / HOUR:.1%}",
        "most memory": f"{spent.peak:.0f} MB",
    }
    made.add_column("")
    made.add_column("", justify="right", no_wrap=True)
    for name, figure in rows.items():
        made.add_row(name, figure)
    return made


@click.command(help=__doc__)
@click.option("--clusters", default=200, show_default=True, help="Clusters of four pools.")
@click.option("--deployments", default=200, show_default=True, help="Deployments of three replicas.")
@click.option("--minutes", default=60.0, show_default=True, help="How long; figures are for an hour.")
@click.option("--seed", default=1, show_default=True, help="Seed of the fleet and of what happens.")
@click.option("--crossplane", default=WATCHING, show_default=True, type=click.Choice(["2.3", WATCHING]))
@click.option("--block", is_flag=True, help="A bootstrap block hands over the whole fleet in every call.")
def main(*, clusters: int, deployments: int, minutes: float, seed: int, crossplane: str, block: bool) -> None:
    """Play it, and print the table."""
    made = world(clusters, deployments, seed, "block" if block else crossplane)
    with server() as running:
        for _ in range(2):  # A server that has just started is another matter: bench has it as cold.
            for number, fleet in enumerate(made.fleets):
                ttl, _ = apply(made, fleet, made.reconcile(number, running.call).response)
                made.next_ttl[number] = made.draw.uniform(0, ttl)
        spent = play(made, running, minutes)
    size = Size(clusters, POOLS, sum(len(fleet.observed) for fleet in made.fleets))
    Console(width=120).print(table(spent, minutes, f"{size}, {deployments} deployments"))


if __name__ == "__main__":
    main()
