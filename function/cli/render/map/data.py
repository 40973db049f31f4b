"""What the map shows: regions of clusters, clusters of pools, pools of nodes and who holds them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument
from function.cli.commands.headroom import going_on
from function.cli.progress import track
from function.cli.worlds.compare import title
from function.deployment.explain.line import rejection_line
from function.deployment.snapshot.fleet import read_cluster
from function.scheduler.fleet import UnreadableCluster
from function.scheduler.schedule import may_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.api import InferenceCluster
    from function.cli.worlds.world import Planned, World

REGION_LABELS = ("modelplane.ai/region", "topology.kubernetes.io/region")
ELSEWHERE = "no region"
STATES = ("running", "new", "leaving")
GOLDEN_ANGLE = 137.508
"""Degrees between the hues of two deployments: neighbours in the list never look alike."""

Share = tuple[str, str, int]
"""Who holds nodes, in which state, and how many."""


class Verdict(NamedTuple):
    """What one deployment would find on one cluster."""

    code: str
    """A reason code; empty where one more replica would fit."""
    line: str


@dataclass(frozen=True, slots=True)
class PoolRow:
    """One pool as a row of nodes."""

    name: str
    kind: str
    """Its class."""
    nodes: int
    shares: tuple[Share, ...]

    @property
    def held(self) -> int:
        """Nodes held, by whomever."""
        return sum(nodes for _, _, nodes in self.shares)

    @property
    def free(self) -> int:
        """Nodes nobody holds."""
        return max(0, self.nodes - self.held)

    @property
    def over(self) -> int:
        """Nodes held that are not there."""
        return max(0, self.held - self.nodes)

    @property
    def text(self) -> str:
        """The row in words: `4 nodes: 2 ml/chat, 1 ml/search (new), 1 free`."""
        parts = [
            f"{nodes} {who}{'' if state == 'running' else f' ({state})'}" for who, state, nodes in self.shares
        ]
        parts.append(f"{self.free} free")
        if self.over:
            parts.append(f"overcommitted by {self.over}")
        return f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class ClusterCard:
    """One cluster."""

    name: str
    notes: tuple[str, ...]
    """What keeps new replicas away from it."""
    pools: tuple[PoolRow, ...]

    @property
    def holders(self) -> set[str]:
        """Deployments with nodes here."""
        return {who for pool in self.pools for who, _, _ in pool.shares}


@dataclass(frozen=True, slots=True)
class Model:
    """One deployment."""

    name: str
    hue: int
    placed: int
    wanted: int
    reason: str
    message: str
    verdicts: dict[str, Verdict]
    """By cluster."""

    @property
    def short(self) -> int:
        """How many replicas are missing."""
        return max(0, self.wanted - self.placed)


@dataclass(frozen=True, slots=True)
class FleetMap:
    """The whole picture."""

    regions: tuple[tuple[str, tuple[ClusterCard, ...]], ...]
    models: tuple[Model, ...]
    strangers: tuple[tuple[str, int], ...]
    """Holders whose deployment is not in the files, with their hues."""
    notes: tuple[str, ...]

    @property
    def hues(self) -> dict[str, int]:
        """The hue of everybody who holds nodes."""
        return {each.name: each.hue for each in self.models} | dict(self.strangers)

    @property
    def cards(self) -> list[ClusterCard]:
        """Every cluster."""
        return [card for _, cards in self.regions for card in cards]


def _shares(world: World, planned: tuple[Planned, ...]) -> dict[tuple[str, str], Counter[tuple[str, str]]]:
    """Nodes by (cluster, pool) and (holder, state)."""
    found: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    leaving = {
        (each.manifest.namespace, dropped.own.replica.name)
        for each in planned
        for dropped in (each.decision.dropped if each.decision else ())
    }
    for content in world.replicas:
        replica = parse_replica(PlainDocument(content))
        going = replica.deleting or (replica.namespace, replica.name) in leaving
        who = f"{replica.namespace}/{replica.deployment or replica.name}"
        for pool, nodes in replica.nodes.items():
            found[replica.cluster, pool][who, "leaving" if going else "running"] += nodes
    for each in planned:
        for placed in each.decision.placed if each.decision else ():
            for pool, nodes in placed.candidate.nodes.items():
                found[placed.identity.cluster, pool][title(each), "new"] += nodes
    return found


def _notes(cluster: InferenceCluster) -> Iterator[str]:
    if cluster.deleting:
        yield "being deleted"
    if cluster.ready is not True:
        yield "not Ready"
    if not cluster.gateway:
        yield "no gateway"
    for taint in cluster.spec.taints:
        yield f"taint {taint}"


def _card(cluster: InferenceCluster, shares: dict[tuple[str, str], Counter[tuple[str, str]]]) -> ClusterCard:
    rows = []
    for pool in cluster.pools:
        held = shares.get((cluster.name, pool.name), Counter())
        order = sorted(held.items(), key=lambda item: (item[0][0], STATES.index(item[0][1])))
        listed = tuple((who, state, nodes) for (who, state), nodes in order)
        rows.append(PoolRow(pool.name, pool.class_name, pool.nodes, listed))
    return ClusterCard(cluster.name, tuple(_notes(cluster)), tuple(rows))


def _region(labels: dict[str, str]) -> str:
    return next((labels[key] for key in REGION_LABELS if labels.get(key)), ELSEWHERE)


def _regions(
    world: World, shares: dict[tuple[str, str], Counter[tuple[str, str]]]
) -> Iterator[tuple[str, ClusterCard]]:
    for content in world.clusters:
        read = read_cluster(PlainDocument(content))
        if isinstance(read, UnreadableCluster):
            yield ELSEWHERE, ClusterCard(read.name, (f"unreadable: {read.fault}",), ())
        else:
            yield _region(read.labels), _card(read, shares)


def _verdicts(planned: Planned) -> dict[str, Verdict]:
    """What the deployment would find on every cluster; empty where nothing may be placed."""
    decision = planned.decision
    if decision is None or not may_place(decision.inputs):
        return {}
    clusters = decision.inputs.fleet.clusters
    rejections = going_on(decision, clusters).places.rejections()
    return {
        name: Verdict(rejections[name].reason.name, rejection_line(rejections[name]))
        if name in rejections
        else Verdict("", "one more replica fits")
        for name in sorted({*clusters, *rejections})
    }


def _model(number: int, planned: Planned) -> Model:
    decision = planned.decision
    told = next((each for each in planned.response.conditions if each.type == "ReplicasScheduled"), None)
    return Model(
        title(planned),
        round(number * GOLDEN_ANGLE) % 360,
        decision.total if decision else 0,
        decision.wanted if decision else 0,
        told.reason if told else "Unknown",
        told.message if told else "",
        _verdicts(planned),
    )


def _by_region(found: Iterable[tuple[str, ClusterCard]]) -> tuple[tuple[str, tuple[ClusterCard, ...]], ...]:
    grouped: dict[str, list[ClusterCard]] = defaultdict(list)
    for region, card in found:
        grouped[region].append(card)
    order = sorted(grouped, key=lambda region: (region == ELSEWHERE, region))
    return tuple((region, tuple(sorted(grouped[region], key=lambda card: card.name))) for region in order)


def draw(world: World, planned: tuple[Planned, ...]) -> FleetMap:
    """Put the picture together from a world and the plan made of it."""
    ordered = sorted(planned, key=title)
    models = [_model(*each) for each in track(enumerate(ordered), "Drawing", total=len(ordered))]
    regions = _by_region(_regions(world, _shares(world, planned)))
    known = {each.name for each in models}
    holders = {who for _, cards in regions for card in cards for who in card.holders}
    hues = {
        who: round((len(models) + at) * GOLDEN_ANGLE) % 360 for at, who in enumerate(sorted(holders - known))
    }
    return FleetMap(regions, tuple(models), tuple(hues.items()), tuple(world.notes))
