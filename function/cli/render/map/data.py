"""What the map shows: regions of clusters, clusters of pools, pools of nodes and who holds them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from function.api import InferenceCluster, Malformed
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument
from function.cli.progress import track
from function.deployment.forecast import rejection_phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.cli.worlds.world import Planned, World
    from function.deployment.forecast import Forecast

REGION_LABELS = ("modelplane.ai/region", "topology.kubernetes.io/region")
ELSEWHERE = "no region"
STATES = ("running", "new", "leaving")
GOLDEN_ANGLE = 137.508
"""Degrees between the hues of two deployments: neighbours in the list never look alike."""

Share = tuple[str, str, int]
"""Who holds nodes, in which state, and how many."""


class Prospect(NamedTuple):
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
    prospects: dict[str, Prospect]
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
        return {model.name: model.hue for model in self.models} | dict(self.strangers)

    @property
    def cards(self) -> list[ClusterCard]:
        """Every cluster."""
        return [card for _, cards in self.regions for card in cards]


Shares = dict[tuple[str, str], Counter[tuple[str, str]]]
"""Nodes by (cluster, pool) and (holder, state)."""


def _shares(world: World, planned: tuple[Planned, ...]) -> Shares:
    """Who holds which nodes, as the world stands and with what the plan places."""
    shares: Shares = defaultdict(Counter)
    leaving = {(plan.manifest.namespace, row.name) for plan in planned for row in plan.forecast.leaving}
    for content in world.replicas:
        replica = parse_replica(PlainDocument(content))
        going = replica.deleting or (replica.namespace, replica.name) in leaving
        for pool, nodes in replica.nodes.items():
            shares[replica.cluster, pool][replica.holder, "leaving" if going else "running"] += nodes
    for plan in planned:
        for row in plan.forecast.placed:
            for pool, nodes in row.nodes.items():
                shares[row.cluster, pool][plan.title, "new"] += nodes
    return shares


def _notes(cluster: InferenceCluster) -> Iterator[str]:
    if cluster.deleting:
        yield "being deleted"
    if cluster.ready is not True:
        yield "not Ready"
    if not cluster.gateway:
        yield "no gateway"
    for taint in cluster.spec.taints:
        yield f"taint {taint}"


def _card(cluster: InferenceCluster, shares: Shares) -> ClusterCard:
    rows = []
    for pool in cluster.pools:
        held = shares.get((cluster.name, pool.name), Counter())
        order = sorted(held.items(), key=lambda item: (item[0][0], STATES.index(item[0][1])))
        listed = tuple((who, state, nodes) for (who, state), nodes in order)
        rows.append(PoolRow(pool.name, pool.class_name, pool.nodes, listed))
    return ClusterCard(cluster.name, tuple(_notes(cluster)), tuple(rows))


def _region(labels: dict[str, str]) -> str:
    return next((labels[key] for key in REGION_LABELS if labels.get(key)), ELSEWHERE)


def _regions(world: World, shares: Shares) -> Iterator[tuple[str, ClusterCard]]:
    for content in world.clusters:
        try:
            cluster = InferenceCluster.parse(content)
        except Malformed as error:
            yield ELSEWHERE, ClusterCard(str(content["metadata"]["name"]), (f"unreadable: {error}",), ())
        else:
            yield _region(cluster.labels), _card(cluster, shares)


def _prospects(forecast: Forecast) -> dict[str, Prospect]:
    """What the deployment would find on every cluster; empty where nothing may be placed."""
    if not forecast.open:
        return {}
    rejections = forecast.rejections_of_another
    return {
        name: Prospect(rejections[name].reason.name, rejection_phrase(rejections[name]))
        if name in rejections
        else Prospect("", "one more replica fits")
        for name in sorted({*forecast.clusters, *rejections})
    }


def _model(number: int, planned: Planned) -> Model:
    forecast, scheduled = planned.forecast, planned.forecast.scheduled
    return Model(
        planned.title,
        round(number * GOLDEN_ANGLE) % 360,
        forecast.total,
        forecast.wanted,
        scheduled.reason if scheduled else "Unknown",
        scheduled.message if scheduled else "",
        _prospects(forecast),
    )


def _by_region(cards: Iterable[tuple[str, ClusterCard]]) -> tuple[tuple[str, tuple[ClusterCard, ...]], ...]:
    grouped: dict[str, list[ClusterCard]] = defaultdict(list)
    for region, card in cards:
        grouped[region].append(card)
    order = sorted(grouped, key=lambda region: (region == ELSEWHERE, region))
    return tuple((region, tuple(sorted(grouped[region], key=lambda card: card.name))) for region in order)


def draw(world: World, planned: tuple[Planned, ...]) -> FleetMap:
    """Put the picture together from a world and the plan made of it."""
    ordered = sorted(planned, key=lambda plan: plan.title)
    models = [_model(*pair) for pair in track(enumerate(ordered), "Drawing", total=len(ordered))]
    regions = _by_region(_regions(world, _shares(world, planned)))
    model_names = {model.name for model in models}
    holders = {who for _, cards in regions for card in cards for who in card.holders}
    hues = {
        who: round((len(models) + at) * GOLDEN_ANGLE) % 360
        for at, who in enumerate(sorted(holders - model_names))
    }
    return FleetMap(regions, tuple(models), tuple(hues.items()), tuple(world.notes))
