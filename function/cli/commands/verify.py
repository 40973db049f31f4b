"""`verify`: certify a decision, and the live state, with a checker that shares no code with the scheduler."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click

from function.api import InferenceCluster, Malformed, ModelCache, ModelDeployment, ModelReplica
from function.api.ownership import Owner
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument
from function.cli.common import FILES, FINDINGS, FINE, OUTPUT, Command, Input, console, emit, read, reassure
from function.cli.group import BAD_INPUT
from function.cli.text import escape
from function.cli.worlds.manifests import load
from function.cli.worlds.memory import Memory
from function.cli.worlds.parsing import BadInput
from function.cli.worlds.simulate import one_round
from function.verify import Decided, Finding, State, check, check_state

if TYPE_CHECKING:
    from collections.abc import Iterable

Names = tuple[str, str]
Desired = dict[Names, list[dict[str, Any]]]
"""Desired ModelReplicas by (namespace, deployment)."""


def _replica(content: dict[str, Any]) -> ModelReplica:
    return parse_replica(PlainDocument(content))


def state_of(given: Input) -> State:
    """Read the files as the checker sees them; what cannot be read was complained about already."""
    clusters: dict[str, InferenceCluster] = {}
    unreadable = set()
    for each in given.world.clusters:
        try:
            cluster = InferenceCluster.parse(each)
            clusters[cluster.name] = cluster
        except Malformed:
            unreadable.add(str(each["metadata"]["name"]))
    caches = {}
    for content in given.world.caches:
        try:
            cache = ModelCache.parse(content)
            caches[cache.metadata.namespace, cache.metadata.name] = cache
        except Malformed:
            continue
    replicas = tuple(map(_replica, given.world.replicas))
    return State(clusters, replicas, caches, frozenset(unreadable))


def _is_own(replica: ModelReplica, deployment: ModelDeployment) -> bool:
    return Owner.of(deployment).owns(replica) and not replica.deleting


def decisions(given: Input, state: State, desired: Desired) -> list[Decided]:
    """Pair every readable deployment with what is desired of it."""
    found = []
    for manifest in given.world.deployments:
        try:
            deployment = ModelDeployment.parse(manifest.content)
        except Malformed:
            continue
        own = tuple(each for each in state.replicas if _is_own(each, deployment))
        wanted = desired.get((deployment.namespace, deployment.name), [])
        found.append(Decided(deployment, own, tuple(map(_replica, wanted))))
    return found


def by_deployment(resources: Iterable[dict[str, Any]]) -> Desired:
    """Sort desired ModelReplicas by the deployment their labels name."""
    found: Desired = defaultdict(list)
    for each in resources:
        if each.get("kind") == "ModelReplica":
            read = _replica(each)
            found[read.namespace, read.deployment].append(each)
    return found


def _planned(given: Input) -> Desired:
    planned = one_round(given.world, Memory())
    return by_deployment(each.resource for one in planned for _, each in sorted(one.response.desired.items()))


def _from_file(path: str) -> Desired:
    manifests = load([path])
    return by_deployment(each.content for each in manifests["ModelReplica"])


def _section(title: str, found: list[Finding], fine: str, faults: tuple[str, ...]) -> None:
    out = console()
    out.print(title, style="bold")
    if not found:
        reassure(out, fine, faults, indent="  ")
    for each in found:
        out.print(f"  ✗ {escape(str(each))}", style="red", soft_wrap=True)


def _data(found: list[Finding]) -> list[dict[str, str]]:
    return [{"rule": each.rule, "where": each.where, "message": each.message} for each in found]


@click.command(cls=Command)
@FILES
@click.option(
    "--decision",
    metavar="FILE",
    help="Certify the desired resources in FILE (as `plan -o yaml` prints them) instead of planning here.",
)
@click.option("--live", is_flag=True, help="Only check the fleet as it stands.")
@OUTPUT
def verify(files: tuple[str, ...], decision: str | None, output: str, *, live: bool) -> None:
    r"""Certify a decision: that nothing is overcommitted and every placement follows the rules.

    The checker shares no code with the scheduler. Where a rule says "every" or "none", it tries all
    possibilities. It checks the fleet as it stands (overcommitted pools and who holds them, replicas pinned
    to pools or clusters that are not there) and the decision: every new replica on an open cluster, on
    pools that match, with claims they can give; nothing overcommitted; no replica lost or moved without a
    reason; none left out while there is room; spread before packed.

    \b
    Exit codes: 0 certified, 2 a rule is broken, 1 bad input.

    \b
    Examples:
      fleet-scheduler verify fleet.yaml
      fleet-scheduler verify fleet.yaml --live
      fleet-scheduler plan fleet.yaml -o yaml > plan.yaml
      fleet-scheduler verify fleet.yaml --decision plan.yaml
    """
    if live and decision:
        raise BadInput("--live checks no decision: leave --decision out")
    given = read(files)
    state = state_of(given)
    standing = check_state(state)
    desired = {} if live else _from_file(decision) if decision else _planned(given)
    made = [] if live else decisions(given, state, desired)
    broken = check(state, made)
    if output == "table":
        fine = f"{len(state.replicas)} replicas on {len(state.clusters)} clusters: nothing is overcommitted"
        _section("The fleet as it stands", standing, fine, given.faults)
        if not live:
            replicas = sum(len(each.desired) for each in made)
            text = f"{replicas} replicas of {len(made)} deployments: every placement follows the rules"
            _section("The decision", broken, text, given.faults)
    else:
        emit(output, {"state": _data(standing), "decision": _data(broken)})
    sys.exit(BAD_INPUT if given.faults else FINDINGS if standing or broken else FINE)
