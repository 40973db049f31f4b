"""Draw the map of a fleet, as one HTML page or one SVG picture.

First its data: regions of clusters, clusters of pools, pools of nodes and who holds them. Then the two
renderings, by templates beside this file (`fleet.html.j2`, `fleet.svg.j2`), which only arrange what the
data says. The page holds its style, its script and all verdicts, and reads nothing from the network.

Colours come from a palette of six, told apart by the colour-blind; with patterns that is two dozen
deployments. A pool of many nodes is drawn to scale.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from function.api import InferenceCluster, ModelReplica, Pool
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument, frozen
from function.cli.text import counted, printable, track
from function.cli.worlds.derive import folded
from function.cli.worlds.world import Planned, Simulation, World, identity_of
from function.deployment.forecast import NO_PRICE, Forecast, Price, Question, read_cluster, rejection_phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from function.cli.worlds.world import PlannedAdapter


REGION_LABELS = ("modelplane.ai/region", "topology.kubernetes.io/region")
ELSEWHERE, NO_CLASS = "no region", "no class"
STATES = ("running", "new", "leaving")
COLOURS, PATTERNS = 6, 4
"""Colours of the palette in fleet.css: told apart by the colour-blind, none of them a traffic light.

The seventh deployment has the first colour again, in another pattern.
"""

NodeHolder = tuple[str, str, int]
"""Who holds nodes, in which state, and how many."""


class Prospect(NamedTuple):
    """One deployment's chances on one cluster."""

    code: str
    """A reason code; empty where one more replica would fit."""
    line: str


@frozen
class PoolRow:
    """One pool as a row of nodes."""

    name: str
    kind: str
    """Its class."""
    nodes: int
    shares: tuple[NodeHolder, ...]
    gpus: str
    """GPUs of each node, `8 GPUs` or `14 GPU parts`; empty for none."""
    unusable: int
    """Of its nodes, those that new replicas cannot count on."""
    settled: int
    """Nodes held once all has settled."""
    free: int
    """Nodes that nobody holds, now or later, and that can be used."""
    over: int
    """Nodes held that are not there, now or once all has settled: what leaves makes room."""
    width: int
    """Squares of the row: its nodes, or more where more are held."""

    @property
    def text(self) -> str:
        """The row in words: `4 nodes: 2 ml/chat, 1 ml/search (new), 1 free`."""
        parts = [
            f"{nodes} {who}{'' if state == 'running' else f' ({state})'}" for who, state, nodes in self.shares
        ]
        parts.append(f"{self.free} free")
        if self.unusable:
            parts.append(f"{self.unusable} unusable")
        if self.over:
            parts.append(f"overcommitted by {self.over}")
        return f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}: {', '.join(parts)}"


class Note(NamedTuple):
    """The reason that keeps new replicas away from a cluster."""

    code: str
    text: str


class Total(NamedTuple):
    """Nodes of one class in one region, or of all."""

    nodes: int = 0
    held: int = 0
    """Once all has settled."""

    @property
    def level(self) -> int:
        """How full they are, in five steps: 0 is empty, 4 is full; -1 where there are none."""
        if not self.nodes:
            return -1
        return (
            0 if not self.held else 4 if self.held >= self.nodes else 1 + min(2, 3 * self.held // self.nodes)
        )


class ClusterCard:
    """One cluster."""

    def __init__(
        self, name: str, notes: Iterable[Note], pools: Iterable[PoolRow], region: str = ELSEWHERE
    ) -> None:
        self.name, self.notes, self.pools, self.region = name, tuple(notes), tuple(pools), region
        """The notes are what keeps new replicas away from it."""
        self.total = Total(sum(pool.nodes for pool in self.pools), sum(pool.settled for pool in self.pools))
        over = ["Overcommitted"] if any(pool.over for pool in self.pools) else []
        self.problems = list(dict.fromkeys([note.code for note in self.notes] + over))
        """Codes of what is not as it should be, each once."""
        self.holders = {who for pool in self.pools for who, _, _ in pool.shares}
        """Deployments with nodes here."""


@frozen
class DeploymentCard:
    """One deployment."""

    name: str
    colour: int
    placed: int
    wanted: int
    reason: str
    message: str
    prospects: dict[str, Prospect]
    """By cluster."""
    price: Price = NO_PRICE


class FleetMap:
    """The whole picture. What is made of its parts is made once: every node that is drawn asks for it."""

    def __init__(
        self,
        regions: Sequence[tuple[str, Sequence[ClusterCard]]],
        models: Sequence[DeploymentCard],
        strangers: Iterable[tuple[str, int, str]],
        notes: Sequence[str],
        adapters: Sequence[PlannedAdapter] = (),
    ) -> None:
        """`strangers`: holders whose deployment was not given, their colours and why they are no more."""
        self.regions, self.models, self.notes, self.adapters = regions, models, notes, adapters
        self.strangers = tuple(strangers)
        self.cards = [card for _, cards in regions for card in cards]
        self.colours = {model.name: model.colour for model in models} | {
            who: colour for who, colour, _ in self.strangers
        }
        """The colour of everybody who holds nodes: its place in the palette."""
        self.loaded: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        """Adapters by cluster and replica."""
        for adapter in adapters:
            for name, cluster, _ in adapter.places:
                self.loaded[cluster][f"{adapter.manifest.namespace}/{name}"].append(adapter.title)
        codes = Counter(code for card in self.cards for code in card.problems)
        self.problems = dict(codes.most_common())
        """Clusters by what is wrong with them, the most frequent first."""
        self.longest = max((pool.width for card in self.cards for pool in card.pools), default=0)
        """Squares of the longest row."""
        prices = [model.price for model in models]
        self.price = str(Price(*map(sum, zip(*prices, strict=True)))) if prices else ""
        """The price of the replicas of all deployments together; empty where no price is known."""

    @cached_property
    def totals(self) -> dict[str, dict[str, Total]]:
        """Nodes by class and by region; "" stands for all classes, and for all regions."""
        totals: dict[str, dict[str, Total]] = defaultdict(lambda: defaultdict(Total))
        for card in self.cards:
            for pool in card.pools:
                for kind in (pool.kind or NO_CLASS, ""):
                    for region in (card.region, ""):
                        nodes, held = totals[kind][region]
                        totals[kind][region] = Total(nodes + pool.nodes, held + pool.settled)
        order = sorted(totals, key=lambda kind: (kind == "", kind == NO_CLASS, kind))
        return {kind: dict(totals[kind]) for kind in order}


Shares = dict[tuple[str, str], Counter[tuple[str, str]]]
"""Nodes by (cluster, pool) and (holder, state)."""


def tracked_replicas(before: World, after: World) -> Iterator[tuple[ModelReplica, str]]:
    """Every replica with its state: those that stay, that leave, and that are new once all has settled."""
    now, then = ({identity_of(content): content for content in world.replicas} for world in (before, after))
    for identity, content in {**now, **then}.items():
        replica = before.memo.parsed(PlainDocument(content), parse_replica)
        stays = identity in then and not replica.deleting
        yield replica, "leaving" if not stays else "running" if identity in now else "new"


def _shares(before: World, after: World) -> Shares:
    """Who holds which nodes, now or once all has settled."""
    shares: Shares = defaultdict(Counter)
    for replica, state in tracked_replicas(before, after):
        for pool, nodes in replica.nodes.items():
            shares[replica.cluster, pool][replica.holder, state] += nodes
    return shares


def _notes(cluster: InferenceCluster) -> Iterator[Note]:
    """Yield what keeps new replicas away from a cluster as a whole."""
    if cluster.deleting:
        yield Note("Deleting", "being deleted")
    if cluster.ready is not True:
        yield Note("NotReady", "not Ready")
    if not cluster.gateway:
        yield Note("NoGateway", "no gateway")
    for taint in cluster.spec.taints:
        yield Note("Tainted", f"taint {taint}")


def _card(cluster: InferenceCluster, shares: Shares) -> ClusterCard:
    """Put one cluster together: who holds how many nodes of each pool, now and once all has settled."""
    rows = []
    for pool in cluster.pools:
        held = shares.get((cluster.name, pool.name), Counter())
        order = sorted(held.items(), key=lambda item: (item[0][0], STATES.index(item[0][1])))
        listed = tuple((who, state, nodes) for (who, state), nodes in order)
        by_state: Counter[str] = Counter()
        for _, state, nodes in listed:
            by_state[state] += nodes
        now, settled = by_state["running"] + by_state["leaving"], by_state["running"] + by_state["new"]
        free = max(0, pool.nodes - pool.unusable - by_state.total())
        over = max(0, max(now, settled) - pool.nodes)
        facts = (pool.name, pool.class_name, pool.nodes, listed, _gpus(pool), pool.unusable)
        width = max(pool.nodes, by_state.total())
        rows.append(PoolRow(*facts, settled, free, over, width))
    region = next((cluster.labels[key] for key in REGION_LABELS if cluster.labels.get(key)), ELSEWHERE)
    return ClusterCard(cluster.name, _notes(cluster), rows, region)


def _gpus(pool: Pool) -> str:
    """GPUs of each node of a pool, in words: devices that a pod claims, and that have memory."""
    counts = {"GPU": 0, "GPU part": 0}
    for device in pool.devices or ():
        if device.claimable and any(name.rpartition("/")[2] == "memory" for name in device.capacity):
            kind = device.subject.content.get(("attributes", device.driver, "type"))
            counts["GPU part" if kind == ("string", "mig") else "GPU"] += device.count
    return " and ".join(counted(count, noun) for noun, count in counts.items() if count)


Answered = dict["Question | None", dict[str, Prospect]]
"""Chances by cluster of deployments with equal needs, which are computed once."""


def _prospects(forecast: Forecast, answered: Answered) -> dict[str, Prospect]:
    """The chances of a deployment by cluster; empty where nothing may be placed."""
    if not forecast.open:
        return {}
    question = forecast.question
    if question not in answered:
        rejections = forecast.rejections_of_another
        answered[question] = {
            name: Prospect(rejections[name].reason.name, rejection_phrase(rejections[name]))
            if name in rejections
            else Prospect("", "one more replica fits")
            for name in sorted({*forecast.clusters, *rejections})
        }
    return answered[question]


def _model(number: int, planned: Planned, answered: Answered) -> DeploymentCard:
    """Put one deployment together, with its chances on every cluster.

    Its number in the order of titles gives it a colour, so a picture is the same every time.
    """
    forecast, scheduled = planned.forecast, planned.forecast.scheduled
    return DeploymentCard(
        planned.title,
        number % (COLOURS * PATTERNS),
        forecast.total,
        forecast.wanted,
        scheduled.reason if scheduled else "Unknown",
        scheduled.message if scheduled else "",
        _prospects(forecast, answered),
        forecast.price,
    )


def _regions(world: World, shares: Shares) -> tuple[tuple[str, tuple[ClusterCard, ...]], ...]:
    """The clusters of every region by name; those without a region come last."""
    grouped: dict[str, list[ClusterCard]] = defaultdict(list)
    for content in world.clusters:
        read = world.memo.parsed(PlainDocument(content), read_cluster)
        if isinstance(read, InferenceCluster):
            card = _card(read, shares)
        else:
            note = Note("Unreadable", f"unreadable: {read.fault}")
            card = ClusterCard(str(content["metadata"]["name"]), (note,), ())
        grouped[card.region].append(card)
    order = sorted(grouped, key=lambda region: (region == ELSEWHERE, region))
    return tuple((region, tuple(sorted(grouped[region], key=lambda card: card.name))) for region in order)


def draw(
    world: World,
    settled: Simulation,
    chosen: Collection[str] = (),
    adapters: Sequence[PlannedAdapter] = (),
) -> FleetMap:
    """Put the picture together from a world as it stands, and as it will stand once it has settled.

    Of the deployments, only those chosen are listed with their verdicts; without any, all of them.

    A verdict is that of the settled fleet: what a deployment would find after all others have taken theirs,
    not what it found when its turn came.
    """
    listed = (plan for plan in settled.last if not chosen or plan.title in chosen)
    ordered = sorted(listed, key=lambda plan: plan.title)
    answered: Answered = {}
    tracked = track(enumerate(ordered), "Drawing", total=len(ordered))
    models = [_model(number, plan, answered) for number, plan in tracked]
    regions = _regions(world, _shares(world, settled.world))
    model_names = {model.name for model in models}
    holders = {who for _, cards in regions for card in cards for who in card.holders}
    given = {plan.title for plan in settled.last}
    strangers = tuple(
        (
            who,
            number % (COLOURS * PATTERNS),
            "of another namespace" if who in given else "its deployment was not given",
        )
        for number, who in enumerate(sorted(holders - model_names), start=len(models))
    )
    notes = list(folded(world.assumptions))
    if not settled.settled:
        notes.append(f"the fleet does not settle: this is the state after {len(settled.rounds)} passes")
    return FleetMap(regions, models, strangers, notes, adapters)


# Render the map: one self-contained page, or one picture. No network, no clock.

CELL = 14
"""Pixels of one node."""
MANY = 24
"""A fleet of so many clusters opens with the overview: fewer are seen at a glance as they are."""
SCALED = 12
"""A pool with more nodes than this is drawn to scale instead of node by node."""


def _environment() -> Environment:
    """The templates' settings: everything is escaped, and a name that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("function.cli.render", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        # Texts of files in a printable form: XML has no other, and readers see what is there.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {"counted": counted, "grouped": "{:,}".format}
    return environment


def _as_script(data: object) -> str:
    """JSON that can stand in a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _embedded(fleet: FleetMap) -> dict[str, Any]:
    """Verdicts for the script, every text once: of each deployment, one for each cluster, -1 for none."""
    texts: dict[tuple[str, str], int] = {}
    names = [card.name for card in fleet.cards]

    def number(prospect: Prospect | None) -> int:
        if prospect is None:
            return -1
        return texts.setdefault((prospect.code, printable(prospect.line)), len(texts))

    verdicts = {
        printable(model.name): [number(model.prospects.get(name)) for name in names] for model in fleet.models
    }
    return {"texts": [list(text) for text in texts], "verdicts": verdicts}


def html(fleet: FleetMap, docs: str) -> str:
    """One page. `docs` is the address that a reason code is appended to.

    Style and script stand in the page, so it can be mailed, and opened without a server.
    """
    environment = _environment()
    loader = environment.loader
    assert loader is not None  # noqa: S101 - set above
    style, script = (loader.get_source(environment, name)[0] for name in ("fleet.css", "fleet.js"))
    return environment.get_template("fleet.html.j2").render(
        fleet=fleet,
        style=style,
        script=script,
        embedded=_as_script(_embedded(fleet)),
        docs=docs,
        scaled=SCALED,
        many=MANY,
    )


@frozen
class PlacedCard:
    """A cluster's card and where it stands in the picture."""

    card: ClusterCard
    x: int
    y: int
    adapters: tuple[str, ...]
    """A line for each replica with adapters: `chat-8aeb6: support, legal`."""

    @property
    def height(self) -> int:
        """Pixels of the card."""
        rows = ROW * len(self.card.pools) + LINE * len(self.adapters)
        return TOP + rows + (18 if self.card.notes else 0)


@frozen
class Heading:
    """A region's name and where it stands."""

    text: str
    x: int
    y: int


COLUMN, ROW, LINE, TOP, GAP = 280, 34, 16, 30, 14
COLUMNS = 3


def _laid_out(fleet: FleetMap) -> tuple[list[Heading], list[PlacedCard], int]:
    """Lay cards out in columns, each region on the column that is shortest so far."""
    bottoms = [GAP] * COLUMNS
    headings, placed = [], []
    for region, cards in fleet.regions:
        column = bottoms.index(min(bottoms))
        x = GAP + column * COLUMN
        headings.append(Heading(region, x, bottoms[column] + 14))
        bottoms[column] += 24
        for card in cards:
            # A replica and its adapters are of one namespace, which the legend has.
            loaded = tuple(
                f"{replica.partition('/')[2]}: {', '.join(name.partition('/')[2] for name in names)}"
                for replica, names in fleet.loaded.get(card.name, {}).items()
            )
            placed.append(PlacedCard(card, x, bottoms[column], loaded))
            bottoms[column] += placed[-1].height + GAP
    return headings, placed, max(bottoms)


def svg(fleet: FleetMap) -> str:
    """One picture.

    Nothing in it is interactive, since pages that show a picture run none of its scripts.
    """
    headings, placed, bottom = _laid_out(fleet)
    legend: list[tuple[str, int | None, DeploymentCard | PlannedAdapter | None]] = [
        *((model.name, model.colour, model) for model in fleet.models),
        *((who, colour, None) for who, colour, _ in fleet.strangers),
        *((adapter.title, None, adapter) for adapter in fleet.adapters),
    ]
    return (
        _environment()
        .get_template("fleet.svg.j2")
        .render(
            fleet=fleet,
            headings=headings,
            placed=placed,
            legend=legend,
            bottom=bottom,
            width=GAP + COLUMNS * COLUMN,
            height=bottom + 22 * ((len(legend) + 2) // 3) + 56,
            card_width=COLUMN - GAP,
            row=ROW,
            line=LINE,
            top=TOP,
            cell=CELL,
        )
    )
