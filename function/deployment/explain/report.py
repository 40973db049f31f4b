"""The report: the whole decision as plain data, for status.placement and for `-o json`.

Why. A condition has one line. To say why a replica went where it did, or what another cluster lacks, takes
the whole decision, and a tool needs it as data. `status.placement` has it where `explain: Status` asks
for it; the command line prints the same (`why`, `plan`).

Theory of operation
1. `standing` and `leaving_row` list replicas as rows. Tables, forecasts and the report show the same rows.
2. `report` adds the clusters, hints, findings of `lint`, and digests of the input and of the decision. Equal
   digests of the input with different decisions would be a defect: that is what the two are for.
3. Where the report outgrows its limit, pools of other clusters go first, then these clusters, then the tails
   of lists. The summary says how much is left out.
4. `steady` keeps the report that a composite has while it tells the same about its own deployment.
5. `Outline` is the same decision in words, down to the selector that fails.

Sorted and bounded, without a clock: the same decision on the same input is the same report (Law 1).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field
from typing import Any

from function.api import InferenceCluster, Pool
from function.api.model import mappings
from function.api.names import desired_key
from function.api.reasons import Nature, Reason, Rejection
from function.boundary import JsonObject, frozen
from function.deployment.explain import message
from function.deployment.explain.clusters import OTHERS, ClusterVerdict, Survey, digests, held_by
from function.deployment.explain.hints import hints
from function.deployment.explain.lint import lint
from function.deployment.explain.remedies import source_of
from function.scheduler.decision import Decision
from function.scheduler.outcomes import Dropped, Kept, Placed
from function.scheduler.price import devices_of, price_of
from function.scheduler.search import OnPools

# List every replica of a deployment as one row: for reports, tables and forecasts.


@frozen
class ReplicaRow:
    """One replica, where it is, what is done with it, and why."""

    name: str
    cluster: str
    index: int | None
    """None where its key cannot be read."""
    action: str
    """Placed, Replaced, Retained or Held; Dropped for one that leaves."""
    phrase: str
    """Why, in one line."""
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The pools of each engine, in the order of its members, each once."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Nodes a new replica takes, by pool."""
    alternative: str = ""
    """The alternative a new replica is placed as; empty for the primary engines."""
    runner_up: str = ""
    key: str = ""
    """The key of a new replica among the desired resources."""
    cause: str = ""
    """The reason on record why a replica leaves."""
    cents: int | None = None
    """What it costs an hour; None where that is not known."""

    @property
    def is_new(self) -> bool:
        """Tell whether it is placed by this decision."""
        return self.action in ("Placed", "Replaced")

    @property
    def pools_phrase(self) -> str:
        """`main: h100, draft: l4+l40`."""
        return ", ".join(f"{engine}: {'+'.join(names)}" for engine, names in self.pools.items())

    @property
    def all_pools(self) -> tuple[str, ...]:
        """The pools of all engines, each once."""
        return tuple(dict.fromkeys(pool for pools in self.pools.values() for pool in pools))


def standing(decision: Decision) -> list[ReplicaRow]:
    """Every replica that has a place, by cluster and index."""
    clusters = decision.inputs.fleet.clusters
    kept = [_kept(kept, clusters.get(kept.own_replica.cluster)) for kept in decision.kept]
    rows = [*kept, *map(_placed, decision.placed)]
    return sorted(rows, key=lambda row: (row.cluster, -1 if row.index is None else row.index, row.name))


def _kept(kept: Kept, cluster: InferenceCluster | None) -> ReplicaRow:
    """The row of a replica that stays. Where its cluster is not known, neither is its price."""
    own_replica, replica = kept.own_replica, kept.own_replica.replica
    return ReplicaRow(
        replica.name,
        own_replica.cluster,
        own_replica.identity.index if own_replica.identity else None,
        "Held" if kept.outgoing else "Retained",
        message.kept_phrase(kept),
        {
            engine.name: tuple(dict.fromkeys(member.pool for member in engine.members))
            for engine in replica.engines
        },
        cents=price_of(cluster, replica.nodes, devices_of(replica)) if cluster else None,
    )


def _placed(placed: Placed) -> ReplicaRow:
    """The row of a new replica, with the scores that decided."""
    candidate = placed.candidate
    return ReplicaRow(
        placed.name,
        placed.identity.cluster,
        placed.identity.index,
        "Replaced" if placed.replaces else "Placed",
        message.because_phrase(placed),
        {
            engine.name: tuple(dict.fromkeys(candidate.cluster.pools[at].name for at in option.pools))
            for engine, option in candidate.engines
        },
        candidate.nodes,
        candidate.shape.name,
        placed.runner_up,
        desired_key("replica", placed.identity),
        cents=candidate.cents,
    )


def leaving_row(dropped: Dropped) -> ReplicaRow:
    """The row of a replica that leaves, with the reason on record."""
    own_replica, cause = dropped.own_replica, dropped.cause
    index = own_replica.identity.index if own_replica.identity else None
    phrase = f"{cause.value}: {dropped.detail}" if dropped.detail else cause.value
    return ReplicaRow(
        own_replica.replica.name, own_replica.cluster, index, "Dropped", phrase, cause=cause.name
    )


# Keep the observed report unless something changed that a person would notice.
#
# Every write of a composite's status is an event on it: it costs two tokens of the composite's circuit
# breaker, and another reconcile. The report tells of the whole fleet, so it would change whenever any other
# deployment moves, in the free nodes of clusters that this one has nothing to do with, and in its digests.
# So the report that the composite has stays, word for word, as long as it says the same about this
# deployment. It is read out of the request like everything else: the same request still gets the same
# answer.

DIGESTS = frozenset({"inputDigest", "decisionDigest"})
"""They change with anything at all."""
_FULL = frozenset({None, *(reason.name for reason in Reason if reason.nature is Nature.CAPACITY)})
REPORT_PARTS = ("summary", "replicas", "dropped", "hints", "lint")
"""What is said of the deployment itself. Where it lacks nothing, it is all that matters."""


def steady(report: JsonObject, composite: Mapping[str, Any], *, at_rest: bool) -> JsonObject:
    """Return the report that the composite has, if it tells the same; else the new one.

    Of a deployment that is `at_rest` (nothing is missing, held or under way) the report tells the same while
    its own part is equal, and what is said of the clusters it runs on. Of any other it does while nothing but
    the digests differs: who waits for a node wants to know what is free now.
    """
    before = _observed(composite)
    if before is None or before.keys() != report.keys():
        return report
    if at_rest:
        return before if _own_part(before) == _own_part(report) else report
    differs = any(before[key] != report[key] for key in report.keys() - DIGESTS)
    return report if differs else before


def _observed(composite: Mapping[str, Any]) -> JsonObject | None:
    """Return the report that the composite has; None where something else stands there."""
    status = composite.get("status")
    placement = status.get("placement") if isinstance(status, dict) else None
    return placement if isinstance(placement, dict) else None


def _own_part(report: JsonObject) -> object:
    """Report the deployment, and the faults of its replicas' clusters, fullness aside."""
    hosts = {replica.get("cluster") for replica in mappings(report["replicas"])}
    wrong = [
        (cluster.get("name"), cluster.get("reason"))
        for cluster in mappings(report["clusters"])
        if cluster.get("name") in hosts and cluster.get("reason") not in _FULL
    ]
    return [report[key] for key in REPORT_PARTS], wrong


# The clusters of a decision in words, down to the selector that fails: what `why` prints as a tree.
#
# The report has the same facts as data, bounded for a status; this has lines, and the texts of selectors.


@frozen
class EngineOutline:
    """One engine on one pool: whether it fits, and everything that keeps it off."""

    phrase: str
    fits: bool
    failures: tuple[str, ...] = ()


@frozen
class PoolOutline:
    """One pool: what is free and who holds the rest, and every engine on it."""

    phrase: str
    engines: tuple[EngineOutline, ...]


@frozen
class ClusterOutline:
    """One cluster: what it is to the deployment, why, and its pools where they matter."""

    name: str
    verdict: ClusterVerdict
    reason: str
    """The code of what keeps another replica off; empty where none is kept off."""
    phrase: str
    """Its particulars."""
    pools: tuple[PoolOutline, ...] = ()


@frozen
class Outline:
    """A decision seen from its clusters, the nearest miss first."""

    survey: Survey

    def names(self, pool: str | None = None) -> list[str]:
        """Every cluster; with `pool`, those that have a pool of that name."""
        names, clusters = self.survey.names(), self.survey.decision.inputs.fleet.clusters
        if pool is None:
            return names
        return [name for name in names if name in clusters and pool in clusters[name].by_name]

    def phrase(self, name: str) -> str:
        """The verdict on a cluster in one line of its own."""
        rejection, verdict = self.survey.rejections.get(name), self.survey.verdict(name)
        if rejection is None:
            return f"cluster {name}: {verdict.name}, {verdict.value}"
        phrase = message.rejection_phrase(rejection)
        why = f"{rejection.reason.value}, {phrase}" if phrase else rejection.reason.value
        return f"cluster {name} takes no other replica: {why}"

    def cluster(self, name: str, *, pool: str | None = None, pools: bool | None = None) -> ClusterOutline:
        """One cluster, with its pools (those named `pool`): always, never, or (None) where they matter."""
        rejection, verdict = self.survey.rejections.get(name), self.survey.verdict(name)
        cluster = self.survey.decision.inputs.fleet.clusters.get(name)
        gated = rejection is not None and not rejection.parts
        shown = not gated if pools is None else pools
        return ClusterOutline(
            name,
            verdict,
            rejection.reason.name if rejection else "",
            message.rejection_phrase(rejection) if rejection else "",
            tuple(self._pools(cluster, pool)) if cluster is not None and shown else (),
        )

    def _pools(self, cluster: InferenceCluster, wanted: str | None) -> Iterator[PoolOutline]:
        """Yield the pools of a cluster, or the wanted one, with the engines that were tried on each."""
        placer = self.survey.decision.placer
        fitted = list(placer.on_pools(cluster)) if placer else []
        for pool in cluster.pools:
            if wanted in (None, pool.name):
                engines = (
                    self._engine(verdict, shape.name)
                    for shape, verdict in fitted
                    if verdict.pools == (pool.name,)
                )
                yield PoolOutline(self._pool_phrase(cluster, pool), tuple(engines))

    def _pool_phrase(self, cluster: InferenceCluster, pool: Pool) -> str:
        """`pool frontier: 1 free of 4 nodes, held by ml/chat (3)`."""
        free = max(0, self.survey.decision.ledger.capacity(cluster.name, pool.name).free_nodes)
        holders = held_by(self.survey.decision, cluster.name, pool)
        held = ", ".join(
            f"{holder['deployment']} ({holder['pods']} pods)"
            if "pods" in holder
            else f"{holder['deployment']} ({holder['nodes']})"
            for holder in holders
        )
        return f"pool {pool.name}: {free} free of {pool.nodes} nodes" + "".join(
            (
                f", {pool.unusable} of them unusable" if pool.unusable else "",
                f", {pool.to_come} of them still to come" if pool.to_come else "",
                f", held by {held}" if held else "",
            )
        )

    def _engine(self, verdict: OnPools, alternative: str) -> EngineOutline:
        """One engine on one pool. Where it would fit with more nodes only the numbers are said."""
        name = f"{verdict.engine} ({alternative})" if alternative else verdict.engine
        rejection = verdict.rejection
        if rejection is None:
            return EngineOutline(f"engine {name}: needs {verdict.nodes}", fits=True)
        phrase = f"engine {name}: {rejection.reason.value}"
        if verdict.nodes is None:
            failures = dict.fromkeys(self._failures(rejection.leaves))
            return EngineOutline(phrase, fits=False, failures=tuple(failures))
        shortage = message.numbers(rejection)
        return EngineOutline(f"{phrase}, {shortage}" if shortage else phrase, fits=False)

    def _failures(self, leaves: Iterable[Rejection]) -> Iterator[str]:
        """Yield the reasons that keep members off, members with the same reason together."""
        roles: dict[str, list[str]] = {}
        for leaf in leaves:
            roles.setdefault(self._failure(leaf), []).append(leaf.member)
        for phrase, members in roles.items():
            named = [member for member in members if member not in ("", "Standalone")]
            yield f"{', '.join(dict.fromkeys(named))}: {phrase}" if named else phrase

    def _failure(self, leaf: Rejection) -> str:
        """`request gpu: selector 1 fails on device gpu (architecture Ada Lovelace): device.attributes...`."""
        request = f"request {leaf.request}: " if leaf.request else ""
        failed = leaf.reason.value if leaf.selector is None else f"selector {leaf.selector} fails"
        compared = f"has {leaf.has}" if leaf.has else ""  # What it wants is the selector that follows.
        particular = (compared if leaf.wants else leaf.has) or message.numbers(leaf)
        on = f" on device {leaf.device}" if leaf.device and leaf.selector is not None else ""
        source = source_of(self.survey.decision.inputs, leaf)
        detail = f" ({particular})" if particular else ""
        return f"{request}{failed}{on}{detail}{f': {source}' if source else ''}"


LIMIT = 64 * 1024
"""Bytes of a report in a status."""
SUMMARY_RESERVE = 200
"""Bytes kept for what the summary adds when lists are cut."""


def report(
    decision: Decision, summary: str = "", *, others: int = OTHERS, limit: int | None = LIMIT
) -> JsonObject:
    """Everything about a decision. `others` and `limit` (None: no limit) bound what is listed.

    One that needed no fleet tells of the clusters of its replicas, and nothing of what others have or hold.
    """
    survey, whole = Survey.of(decision), decision.inputs.fleet.whole
    placed = message.placed_of(decision)
    line = message.around(placed, decision) if decision.rejections and not summary else placed
    placement: JsonObject = {
        "summary": summary or line,
        "replicas": replicas(decision),
        "dropped": dropped(decision),
        "hints": [hint.plain for hint in hints(decision, survey.rejections)] if whole else [],
        "lint": [*map(asdict, lint(decision.inputs))] if whole else [],
        **digests(decision),
    }
    for size, pools in ((others, True), (others, False), (0, False)):
        names = survey.shown(size)
        placement["clusters"] = [survey.entry(name, pools=pools) for name in names]
        placement["clustersOmitted"] = len(survey.names()) - len(names)
        if limit is None or len(json.dumps(placement)) <= limit:  # JSON is ASCII here: a byte a character.
            return dict(sorted(placement.items()))
    _cut(placement, limit or LIMIT)
    return dict(sorted(placement.items()))


def _cut(placement: JsonObject, limit: int) -> None:
    """Leave out the last entries of the longest list until the report fits; the summary says how many."""
    left_out = dict.fromkeys(("clusters", "replicas", "dropped"), 0)
    summary, target = placement["summary"], limit - SUMMARY_RESERVE
    while len(json.dumps(placement)) > target:
        longest = max(left_out, key=lambda key: len(json.dumps(placement[key])))
        tenth = max(1, len(placement[longest]) // 10)
        left_out[longest] += tenth
        placement[longest] = placement[longest][:-tenth]
    placement["clustersOmitted"] += left_out.pop("clusters")
    omitted = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
    placement["summary"] = f"{summary} (not listed: {omitted})" if omitted else summary


def replicas(decision: Decision) -> list[JsonObject]:
    """Every replica that is placed, by cluster and index: what was done with it, its pools, and why."""
    entries = []
    for row in standing(decision):
        entry: JsonObject = {"name": row.name, "cluster": row.cluster}
        if row.index is not None:
            entry["index"] = row.index
        pools = {engine: "+".join(names) for engine, names in row.pools.items()}
        entry |= {"action": row.action, "pools": pools, "because": row.phrase}
        if row.runner_up:
            entry["runnerUp"] = row.runner_up
        entries.append(entry)
    return entries


def dropped(decision: Decision) -> list[JsonObject]:
    """Every replica that leaves, with the reason on record."""
    entries = [
        {"name": row.name, "cluster": row.cluster, "reason": row.cause, "message": row.phrase}
        for row in map(leaving_row, decision.dropped)
    ]
    return sorted(entries, key=lambda entry: (entry["cluster"], entry["name"]))
