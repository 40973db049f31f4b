"""Place the adapters of the files on the replicas that a plan desires, as their handler would.

    standing_replicas ▶ placed: a request for each ModelAdapter ▶ settled, compared: for `whatif` and the map

The oldest adapter comes first, once all deployments are planned, and each sees the slots that the earlier
ones took. The handler is asked as a server would ask it. A replica that is only planned takes adapters too,
so that a whole folder can be planned before anything runs. One that the plan drops is on its way out: its
adapters go elsewhere first where there is room.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from function.adapter.forecast import forecast
from function.adapter.snapshot import PLACEMENT_KEY, fleet, standing
from function.api.adapter import PLACEMENT_KIND
from function.api.model import mapping
from function.api.ownership import turn
from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import JsonObject, PlainDocument, Request, Requirement
from function.cli.worlds.world import (
    Planned,
    PlannedAdapter,
    Simulation,
    identity_of,
    replicas_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from function.cli.worlds.manifest import Manifest, Manifests

ADAPTER_KIND = "ModelAdapter"
ROUNDS = 20
"""Adapters that have not settled after so many rounds are taken as they are then."""
SINCE = "1970-01-01T00:00:00Z"
"""When a replica that a plan drops is said to leave: any time will do."""


def adapters_of(
    manifests: Manifests, endpoints: Iterable[JsonObject], plans: Iterable[Planned], only: str
) -> list[PlannedAdapter]:
    """Ask about every adapter of the files, the oldest first; with `only`, of one namespace."""
    if not manifests[ADAPTER_KIND]:
        return []
    planned = list(plans)
    desired = [replica for one in planned for replica in replicas_of(one)]
    replicas = standing_replicas(manifests, {one.title for one in planned}, desired)
    answers = placed(manifests, replicas, endpoints)
    return [answer for answer in answers if only in ("", answer.manifest.namespace)]


def standing_replicas(
    manifests: Manifests, titles: Collection[str], desired: Iterable[JsonObject]
) -> list[JsonObject]:
    """Return the replicas as adapters meet them next: those desired, and those that stand besides.

    `titles`: the deployments that were planned. A replica of one of them that is not desired leaves.
    """
    replicas = list(desired)
    names = {identity_of(replica) for replica in replicas}
    for manifest in manifests["ModelReplica"]:
        content = manifest.content
        if manifest.identity in names:
            continue
        owner = mapping(manifest.metadata.get("labels")).get(DEPLOYMENT_LABEL)
        if f"{manifest.namespace}/{owner}" in titles and not manifest.metadata.get("deletionTimestamp"):
            content = {**content, "metadata": {**manifest.metadata, "deletionTimestamp": SINCE}}
        replicas.append(content)
    return replicas


def placed(
    manifests: Manifests,
    replicas: Iterable[JsonObject],
    endpoints: Iterable[JsonObject],
    placements: Iterable[JsonObject] | None = None,
) -> list[PlannedAdapter]:
    """Ask about every adapter in turn, on these replicas. `placements`: others than the files have.

    A placement that was decided is seen by the adapters after it, so the slots of a replica are given out
    once.
    """
    if placements is None:
        placements = (manifest.content for manifest in manifests[PLACEMENT_KIND])
    clusters: dict[tuple[str, str], str] = {}
    held: dict[tuple[str, str], list[JsonObject]] = defaultdict(list)
    for replica in replicas:
        clusters[identity_of(replica)] = str(mapping(replica.get("spec")).get("clusterName"))
        held["ModelReplica", identity_of(replica)[0]].append(replica)
    for kind, listed in (("ModelEndpoint", endpoints), (PLACEMENT_KIND, placements)):
        for item in listed:
            held[kind, identity_of(item)[0]].append(item)

    def deliver(requirement: Requirement) -> tuple[PlainDocument, ...]:
        wanted = dict(requirement.match_labels)
        return tuple(
            PlainDocument(item)
            for item in held[requirement.kind, requirement.namespace or ""]
            if requirement.match_name in (None, item["metadata"].get("name"))
            and wanted.items() <= mapping(item["metadata"].get("labels")).items()
        )

    answers = []
    for manifest in in_turn(manifests):
        observed = {
            f"{PLACEMENT_KEY}{item['spec'].get('replica')}": PlainDocument(item)
            for item in held[PLACEMENT_KIND, manifest.namespace]
            if mapping(item.get("spec")).get("adapter") == manifest.name
        }
        first = Request(PlainDocument(manifest.content), observed)
        required = {item.name: deliver(item) for item in (*standing(first), *fleet(first))}
        made = forecast(Request(first.composite, observed, required))
        places, placements = [], []
        for key, desired in sorted(made.response.desired.items()):
            if key.startswith(PLACEMENT_KEY):
                name = key.removeprefix(PLACEMENT_KEY)
                cluster = clusters.get((manifest.namespace, name), "")
                places.append((name, cluster, "retained" if key in observed else "new"))
                placements.append(desired.resource)
                if key not in observed:
                    held[PLACEMENT_KIND, manifest.namespace].append(desired.resource)
        answers.append(PlannedAdapter(manifest, made, placements, places))
    return answers


def in_turn(manifests: Manifests) -> list[Manifest]:
    """Return the adapters, the oldest first."""

    def age(manifest: Manifest) -> tuple[str, str, str]:
        created = str(manifest.metadata.get("creationTimestamp") or "")
        return turn(created, manifest.namespace, manifest.name)

    return sorted(manifests[ADAPTER_KIND], key=age)


def settled(manifests: Manifests, simulation: Simulation) -> list[PlannedAdapter]:
    """Let the adapters settle on a settled fleet: round after round, what is placed becomes configured.

    An adapter counts as configured in the round after it was placed. Placements of adapters that are not in
    the files stay as they are: nobody is there to change them.
    """
    if not manifests[ADAPTER_KIND]:
        return []
    world = simulation.world
    given = {manifest.identity for manifest in manifests[ADAPTER_KIND]}
    placements = [manifest.content for manifest in manifests[PLACEMENT_KIND]]
    strangers = [
        item
        for item in placements
        if (identity_of(item)[0], mapping(item.get("spec")).get("adapter")) not in given
    ]
    replicas = world.replicas
    answers: list[PlannedAdapter] = []
    for _ in range(ROUNDS):
        answers = placed(manifests, replicas, world.endpoints, placements)
        existing = {identity_of(item): item for item in placements}
        desired = [item for answer in answers for item in answer.placements]
        following = [*strangers, *(existing.get(identity_of(item), item) for item in desired)]
        served = _configured(world.replicas, following)
        if (following, served) == (placements, replicas):
            break
        placements, replicas = following, served
    return answers


def _configured(replicas: Iterable[JsonObject], placements: Iterable[JsonObject]) -> list[JsonObject]:
    """Return replicas whose status names the adapters that are placed on them.

    The handler of replicas would say so once the engine has loaded them; here nothing is ever loaded late.
    """
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in placements:
        spec = mapping(item.get("spec"))
        names[identity_of(item)[0], str(spec.get("replica"))].append(str(spec.get("adapter")))
    return [
        {
            **replica,
            "status": {
                **mapping(replica.get("status")),
                "adapters": [{"name": name} for name in sorted(names[identity_of(replica)])],
            },
        }
        for replica in replicas
    ]


class AdapterDifference:
    """One adapter before and after a change; None where it is not there."""

    def __init__(self, name: str, before: PlannedAdapter | None, after: PlannedAdapter | None) -> None:
        self.name, self.before, self.after = name, before, after
        here, there = (
            {replica: cluster for replica, cluster, _ in end.places} if end else {} for end in (before, after)
        )
        self.leaving = [(replica, cluster) for replica, cluster in here.items() if replica not in there]
        self.arriving = [(replica, cluster) for replica, cluster in there.items() if replica not in here]
        """Replica and cluster of the places that it loses, and of those that it gets."""
        was, now = ((end.placed, end.wanted) if end else (0, 0) for end in (before, after))
        self.counts = was, now
        """Places and how many are wanted, before and after."""
        self.changed = was != now or bool(self.leaving or self.arriving)
        """Whether the change concerns it at all."""
        self.worse = now[0] < min(was[0], now[1]) or now[1] - now[0] > max(0, was[1] - was[0])
        """Whether more of its places are missing than without the change."""

    @property
    def as_data(self) -> dict[str, Any]:
        """The difference as plain data."""
        nowhere = {"wanted": 0, "placed": 0, "reason": "Absent", "message": "", "replicas": []}
        before, after = (end.outcome if end else nowhere for end in (self.before, self.after))
        moves = {
            field: [{"name": name, "cluster": cluster} for name, cluster in places]
            for field, places in (("leaving", self.leaving), ("arriving", self.arriving))
        }
        head = {"adapter": self.name, "changed": self.changed, "worse": self.worse}
        return {**head, "before": before, "after": after, **moves}


def compared(
    before: Iterable[PlannedAdapter], after: Iterable[PlannedAdapter]
) -> Iterator[AdapterDifference]:
    """Yield every adapter before and after, in the order of their names."""
    was, now = ({answer.title: answer for answer in answers} for answers in (before, after))
    for name in sorted({*was, *now}):
        yield AdapterDifference(name, was.get(name), now.get(name))
