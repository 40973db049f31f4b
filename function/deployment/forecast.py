"""Forecast the answer to a request, and ask about it: the door of the command line to the core.

Crossplane gets a response; people want to know why, what would help, and how much more would fit. Who asks
for them uses a `Forecast`, and nothing of the rooms below: an import contract holds the command line to it.

Theory of operation. A forecast is the answer that the function gives to the same request, with the decision
behind it. It runs `handler.answer`, and no code of its own that could decide otherwise. What is asked about
it is computed when it is first read, on copies of the decision, so a forecast never changes. Over many
deployments of one fleet, `Shared` reads and charges the fleet once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from function.api import InferenceCluster
from function.api.inputs import Quota
from function.api.reasons import Rejection
from function.boundary import NO_REUSE, Condition, Request, Response, Reuse
from function.deployment.compose.conditions import SCHEDULED, UPDATED
from function.deployment.explain import report as report_room
from function.deployment.explain.clusters import ClusterVerdict, Survey, pools_of
from function.deployment.explain.hints import Hint, hints
from function.deployment.explain.lint import Unmet, lint
from function.deployment.explain.message import placed_of, rejection_phrase
from function.deployment.explain.report import ClusterOutline, EngineOutline, Outline, PoolOutline, ReplicaRow
from function.deployment.handler import answer
from function.deployment.requirements import everything
from function.deployment.snapshot.charges import read_cluster
from function.scheduler import headroom
from function.scheduler.decision import Decision
from function.scheduler.disruption import is_outdated
from function.scheduler.headroom import FittingPool, PartlyHeld, Question, Room
from function.scheduler.ledger import Overcommitted
from function.scheduler.memo import Shared
from function.scheduler.outcomes import Update
from function.scheduler.price import NO_PRICE, Price, amount
from function.scheduler.quota import QuotaUsage
from function.scheduler.schedule import may_place

__all__ = [
    "NO_PRICE",
    "NO_REUSE",
    "ClusterOutline",
    "ClusterVerdict",
    "EngineOutline",
    "FittingPool",
    "Forecast",
    "Hint",
    "Overcommitted",
    "PartlyHeld",
    "PoolOutline",
    "Price",
    "Question",
    "ReplicaRow",
    "Room",
    "Shared",
    "amount",
    "everything",
    "forecast",
    "over_guaranteed",
    "read_cluster",
    "rejection_phrase",
]


MAX_PARTLY_HELD = 3


class Forecast:
    """The response to a request, and the decision behind it where the deployment could be read.

    Without a decision nothing is wanted, placed or explained; what is wrong stands in the response.
    """

    def __init__(self, response: Response, decision: Decision | None) -> None:
        self.response = response
        self._decision = decision
        self.readable = decision is not None
        """Whether the deployment could be read."""
        self.wanted, self.total, self.held = 0, 0, 0
        """Replicas that are wanted, that have a place, and that wait for another place."""
        self.complete = True
        """Whether as many are placed as are wanted, and none waits for another place."""
        self.alternatives: list[str] = []
        """The ways to run a replica, the most wanted first; the primary engines have no name."""
        self.unreadable_clusters: list[str] = []
        self.staged = False
        """Whether an edit of the template goes replica by replica."""
        self.open = False
        """Whether anything new may be placed: everything is delivered and valid."""
        self.summary = ""
        """`Scheduled 2 of 3 replicas`."""
        self.leaving: list[ReplicaRow] = []
        """Every replica that leaves, in the order in which that was decided."""
        if decision is not None:
            inputs = decision.inputs
            self.open, self.summary = may_place(inputs), placed_of(decision)
            self.leaving = [*map(report_room.leaving_row, decision.dropped)]
            self.wanted, self.total, self.held = decision.wanted, decision.total, len(decision.held)
            self.complete = self.total >= self.wanted and not self.held
            self.alternatives = [shape.name for shape in inputs.deployment.shapes]
            self.unreadable_clusters = list(inputs.fleet.unreadable)
            self.staged = inputs.policy.rollout is not None
        by_type = {condition.type: condition for condition in response.conditions}
        self.scheduled, self.updated = by_type.get(SCHEDULED), by_type.get(UPDATED)
        """The conditions that say what became of the replicas, and how far a staged rollout is."""

    @property
    def valid(self) -> bool:
        """Tell whether it could be read with all its selectors, and the function's input too."""
        inputs = self._decision.inputs if self._decision else None
        return inputs is not None and not (inputs.selectors.invalid or inputs.config_fault)

    @cached_property
    def standing(self) -> list[ReplicaRow]:
        """Every replica with a place, by cluster and index."""
        return report_room.standing(self._decision) if self._decision else []

    @cached_property
    def price(self) -> Price:
        """The price of its replicas together, once all is done that was decided."""
        return Price.of(row.cents for row in self.standing)

    @cached_property
    def updating(self) -> list[str]:
        """The names of the replicas that get another template now."""
        if self._decision is None:
            return []
        inputs, kept = self._decision.inputs, self._decision.kept
        return [
            replica.own_replica.replica.name
            for replica in kept
            if (replica.update is Update.Now if self.staged else is_outdated(inputs, replica))
        ]

    @property
    def awaiting(self) -> list[str]:
        """The names of the replicas whose template is outdated and that have to wait."""
        kept = self._decision.kept if self._decision else ()
        return [
            replica.own_replica.replica.name for replica in kept if replica.update not in (None, Update.Now)
        ]

    @property
    def amiss(self) -> list[Condition]:
        """The conditions that are False, but for the one of the placement."""
        conditions = self.response.conditions
        return [condition for condition in conditions if not condition.status and condition.type != SCHEDULED]

    @property
    def placed(self) -> list[ReplicaRow]:
        """The replicas that are placed now."""
        return [row for row in self.standing if row.is_new]

    @property
    def clusters(self) -> Mapping[str, tuple[str, ...]]:
        """Every cluster that can be read, with the names of its pools."""
        clusters = self._decision.inputs.fleet.clusters if self._decision else {}
        return {name: tuple(pool.name for pool in cluster.pools) for name, cluster in clusters.items()}

    @property
    def rejections(self) -> Mapping[str, Rejection]:
        """Why clusters take no other replica, by name; empty where none is missing."""
        return self._decision.rejections if self._decision else {}

    @cached_property
    def rejections_of_another(self) -> Mapping[str, Rejection]:
        """The same, whether or not one is missing; empty where nothing may be placed."""
        return headroom.rejections_of_another(self._decision) if self._decision else {}

    @property
    def question(self) -> Question | None:
        """A key of the facts: equal keys have equal rejections; None without a decision."""
        return Question.of(self._decision) if self._decision else None

    @property
    def overcommitted(self) -> Mapping[tuple[str, str], Overcommitted]:
        """Every pool of the fleet that holds more than it has, as observed, by its cluster and name."""
        if self._decision is None:
            return {}
        ledger = self._decision.ledger
        return {key: ledger.overcommitment(*key) for key in ledger.overcommitted_pools()}

    def holders(self, cluster: str, pool: str) -> Mapping[str, int]:
        """Nodes of a pool held by existing replicas, by `namespace/deployment`, most first."""
        return self._decision.ledger.holders(cluster, pool) if self._decision else {}

    @property
    def findings(self) -> list[Unmet]:
        """Findings about the deployment itself, whether or not it has a place."""
        return lint(self._decision.inputs) if self._decision else []

    def hints(self, cluster: str | None = None) -> list[Hint]:
        """Hints, each tried out; with `cluster`, the hints for that cluster."""
        if self._decision is None:
            return []
        rejections = self._survey.rejections
        if cluster is not None:
            rejections = {name: rejection for name, rejection in rejections.items() if name == cluster}
        return hints(self._decision, rejections)

    @cached_property
    def outline(self) -> Outline:
        """Every cluster in words. Raises ValueError without a decision."""
        return Outline(self._survey)

    def report(self) -> dict[str, Any]:
        """The decision as data, as bounded as in a status; empty where there is none."""
        return report_room.report(self._decision) if self._decision else {}

    def full_report(self, cluster: str | None) -> dict[str, Any]:
        """The decision as data, unbounded: of all clusters, or of one with all its pools. As `outline`."""
        everything = report_room.report(self._decided, others=len(self.clusters), limit=None)
        if cluster is not None:
            everything["clusters"] = [entry for entry in everything["clusters"] if entry["name"] == cluster]
            inference_cluster = self._decided.inputs.fleet.clusters.get(cluster)
            if inference_cluster is not None:
                everything["clusters"][0]["pools"] = pools_of(self._decided, inference_cluster)
        return everything

    def more(self, limit: int) -> int:
        """How many more replicas fit on the whole fleet, counted up to a limit. As `outline`."""
        return headroom.count_more(self._decided, limit)

    def rooms(self, limit: int) -> Iterator[Room]:
        """How many more replicas fit on each cluster alone, counted up to a limit. As `outline`."""
        return headroom.room_by_cluster(self._decided, limit)

    @cached_property
    def partly_held(self) -> list[PartlyHeld]:
        """Some pools where charging devices would let more such replicas fit, the most held first."""
        return list(islice(headroom.partly_held(self._decision), MAX_PARTLY_HELD)) if self._decision else []

    def fitting_pools(self) -> list[FittingPool]:
        """The pools that the first engine fits, capacity aside; none while a selector does not compile."""
        return list(headroom.fitting_pools(self._decision)) if self._decision and self.valid else []

    @cached_property
    def _survey(self) -> Survey:
        """The clusters of the decision, looked at once for the outline and all hints."""
        return Survey.of(self._decided)

    @property
    def _decided(self) -> Decision:
        """The decision; raises ValueError without one."""
        if self._decision is None:
            raise ValueError("the deployment could not be read, so nothing was decided")
        return self._decision


def forecast(request: Request, *, reuse: Reuse = NO_REUSE, shared: Shared | None = None) -> Forecast:
    """Answer a request as Crossplane would be answered, and keep what the answer rests on.

    With `shared`, deployments that ask for the same find out once what fits.
    """
    answered = answer(request, reuse=reuse, shared=shared)
    return Forecast(answered.response, answered.decision)


def over_guaranteed(
    quotas: Sequence[Quota], clusters: Sequence[InferenceCluster]
) -> Iterator[tuple[int, str]]:
    """Yield every quota, by its place, of whose pools more nodes are guaranteed than they have, and how many.

    For each quota, those count that guarantee nodes on no other pools than it does.
    """
    usage = QuotaUsage((), {cluster.name: cluster for cluster in clusters})
    sizes = {key: nodes for cluster in clusters for key, nodes in cluster.node_counts.items()}
    covered = {
        at: {key for key in sizes if key[1] in usage.pools(quota, key[0])}
        for at, quota in enumerate(quotas)
        if usage.limits(quota).get("nodes")
    }
    for at, pools in covered.items():
        inside = [quotas[other] for other, theirs in covered.items() if theirs <= pools]
        total = sum(usage.limits(quota)["nodes"] for quota in inside)
        there = sum(sizes[pool] for pool in pools)
        if total > there:
            names = ", ".join(quota.name for quota in inside)
            yield at, f"{total} nodes are guaranteed ({names}), and the pools have {there}"
