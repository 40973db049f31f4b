"""Requirements of a deployment: the one table of their names, and which of them an answer states.

Rules (docs/decisions/0002-ask-for-what-the-answer-stands-on.md):

1. The *standing* set is what an answer at rest stands on: its own clusters by name, its own replicas, its
   cache, and while an own replica never was Ready and deployments give way, the replicas on its cluster.
2. The *fleet* is asked for beside it only where something is placed, replaced or explained (`needs_fleet`).
3. Within a reconcile nothing that was stated is left out. A later call that needs anything else asks for the
   fleet, which has everything: so three calls find the answer. One more takes back what is not to be watched
   (`unwatched`, docs/decisions/0012-who-is-woken.md), which is the whole fleet once all have a place.
4. The names of `ROWS[].block` only ever come from a bootstrap block, which Crossplane hands over in every
   call. What is in it is used and not stated. A name of ours is a seed of Crossplane 2.4, or was stated
   before: it is stated again, or nothing would be watched.
5. An answer to an error states what it was handed (`declared`).

A name contains what it selects: a seed comes under its old name, and must not be taken for another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from function.api import ModelDeployment
from function.api.names import API_VERSION, read_key
from function.api.replica import CLUSTER_LABEL, DEPLOYMENT_LABEL
from function.boundary import Document, Request, Requirement, Resolution, text_at
from function.scheduler.decision import Decision
from function.scheduler.ledger import may_yield
from function.scheduler.scheduling_input import Fleet, suspects

CLUSTER, OWN_REPLICAS, CACHE, HOLDERS = "cluster", "own-replicas", "cache", "holders"
"""The standing set: each is followed by a slash and what it selects."""
CLUSTERS, REPLICAS = "fleet-clusters", "fleet-replicas"
DEPLOYMENTS, CACHES = "fleet-deployments", "fleet-caches"
"""The fleet: all of a kind. `fleet-replicas/<name>` has those of deployments of a name, in all namespaces:
one of another namespace may have the object name that a new one of ours would get on its cluster."""


READ_ONLY = frozenset({DEPLOYMENTS, CACHES, HOLDERS})
"""Read and not watched: nothing that is written to them makes room."""
STARTING = 5
"""Others' replicas on their way to Ready, at most, in a quiet fleet: each takes a dozen tokens until then."""


class RequirementRow(NamedTuple):
    """One requirement: what it selects, and the other names that deliver its objects."""

    kind: str
    label: str = ""
    """The label that has what the name selects; else it is the object's name. All of the kind without one."""
    namespaced: bool = False
    within: str = ""
    """The requirement of the fleet that has the same objects among others."""
    block: tuple[str, ...] = ()
    """Names of a bootstrap block, and of earlier versions, that have them."""


ROWS = {
    CLUSTER: RequirementRow("InferenceCluster", within=CLUSTERS, block=("clusters",)),
    OWN_REPLICAS: RequirementRow(
        "ModelReplica",
        DEPLOYMENT_LABEL,
        namespaced=True,
        within=REPLICAS,
        block=("all-replicas", "own-replicas"),
    ),
    CACHE: RequirementRow("ModelCache", namespaced=True, within=CACHES, block=("cache", "all-caches")),
    HOLDERS: RequirementRow("ModelReplica", CLUSTER_LABEL, within=REPLICAS, block=("all-replicas",)),
    CLUSTERS: RequirementRow("InferenceCluster", block=("clusters",)),
    REPLICAS: RequirementRow("ModelReplica", DEPLOYMENT_LABEL, block=("all-replicas",)),
    DEPLOYMENTS: RequirementRow("ModelDeployment", block=("all-deployments",)),
    CACHES: RequirementRow("ModelCache", block=("all-caches",)),
}
BLOCK = frozenset(name for row in ROWS.values() for name in row.block)
ALL_CACHES = (CACHES, *ROWS[CACHES].block)


def named(prefix: str, selected: str) -> str:
    """Return the name of a requirement that selects something."""
    return f"{prefix}/{selected}"


def row_of(name: str) -> RequirementRow | None:
    """Return the row of a requirement's name; None for a name that is not ours."""
    prefix, slash, selected = name.partition("/")
    row = ROWS.get(prefix)
    may_select = row is not None and bool(row.within or row.label)
    must_select = row is not None and bool(row.within)
    return row if (selected and may_select) or not (slash or must_select) else None


def kind_of(name: str) -> str | None:
    """Return the kind of the objects under a name of ours or of a block; None for any other name."""
    row = row_of(name)
    if row is not None:
        return row.kind
    return next((row.kind for row in ROWS.values() if name in row.block), None)


def _requirement(request: Request, name: str, unwatched: Collection[str] = READ_ONLY) -> Requirement:
    """Return what a name of the table stands for."""
    prefix, _, selected = name.partition("/")
    row = ROWS[prefix]
    return Requirement(
        name,
        API_VERSION,
        row.kind,
        match_name=selected if selected and not row.label else None,
        namespace=text_at(request.composite, "metadata", "namespace") if row.namespaced else None,
        match_labels=((row.label, selected),) if selected and row.label else (),
        watched=prefix not in unwatched,
    )


# What was delivered


def sources(name: str) -> tuple[str, ...]:
    """Return under which names the objects of a requirement may have come, the one to be read first."""
    prefix, _, selected = name.partition("/")
    row = ROWS[prefix]
    if prefix == REPLICAS and selected:
        return (name, REPLICAS, *ROWS[OWN_REPLICAS].block)
    part = (named(row.within, selected),) if row.within == REPLICAS and row.label == DEPLOYMENT_LABEL else ()
    return (*((row.within,) if row.within else ()), *part, name, *row.block)


def source_of(request: Request, name: str) -> str | None:
    """Return under which name the objects of a requirement came; None where it is unresolved."""
    return next((source for source in sources(name) if source in request.required), None)


def delivered(request: Request, name: str) -> tuple[Document, ...] | None:
    """Return what was delivered for a requirement, perhaps among others; None where it is unresolved."""
    source = source_of(request, name)
    return None if source is None else request.required[source]


def resolution(request: Request, name: str) -> Resolution:
    """Return whether a requirement was delivered, and with anything in it."""
    documents = delivered(request, name)
    if documents is None:
        return Resolution.UNRESOLVED
    return Resolution.DELIVERED if documents else Resolution.ABSENT


def undelivered(request: Request, names: Iterable[str]) -> tuple[str, ...]:
    """Return those requirements of which nothing was delivered."""
    return tuple(name for name in names if source_of(request, name) is None)


def without_empty_block(request: Request) -> Request:
    """Return the request without a bootstrap block of which nothing came, where something else did.

    Crossplane up to 2.2.0 drops empty matchLabels, and `crossplane render` of those versions then delivers
    every requirement of a block as an empty list.
    """
    came = BLOCK.intersection(request.required)
    if not came or _handed_over(request) or BLOCK.issuperset(request.required):
        return request
    return replace(
        request, required={name: items for name, items in request.required.items() if name not in BLOCK}
    )


def _handed_over(request: Request) -> frozenset[str]:
    """Return the names of a bootstrap block that came: it comes with every call, so it is not stated.

    None where nothing came under any of them: such a block may not be one (`without_empty_block`).
    """
    filled = any(request.required.get(name) for name in BLOCK)
    return BLOCK.intersection(request.required) if filled else frozenset()


# What is needed


def coordinated(request: Request) -> bool:
    """Tell whether the input asks for coordination. Read by itself: the rest of the input may be invalid.

    It takes all replicas, which are not listed where the clusters publish what is charged to them.
    """
    return request.asks("coordination", "GlobalOrder") and not published(request)


def published(request: Request) -> bool:
    """Tell if the input asks for published charges, in the place of all replicas. Read by itself, too."""
    return request.asks("capacity", "Published")


def referenced_cache(request: Request) -> tuple[str, str]:
    """Return the name and namespace of the ModelCache the composite references, as far as readable."""
    cache = text_at(request.composite, "spec", "template", "spec", "modelCacheRef", "name")
    return cache, text_at(request.composite, "metadata", "namespace") if cache else ""


def own_replicas(request: Request) -> str:
    """Return the requirement of the deployment's own replicas; "" where it has no name."""
    name = text_at(request.composite, "metadata", "name")
    return named(OWN_REPLICAS, name) if name else ""


def all_replicas(request: Request) -> str:
    """Return the requirement of all replicas that placing reads."""
    name = text_at(request.composite, "metadata", "name")
    return named(REPLICAS, name) if published(request) and name else REPLICAS


def standing(request: Request, clusters: Iterable[str], holders: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the standing set of a deployment with replicas on some clusters.

    `holders`: the clusters of which all replicas are read.
    """
    cache, _ = referenced_cache(request)
    return (
        *(named(CLUSTER, name) for name in clusters),
        *filter(None, (own_replicas(request),)),
        *((named(CACHE, cache),) if cache else ()),
        *(named(HOLDERS, name) for name in holders),
    )


def fleet(request: Request) -> tuple[str, ...]:
    """Return what is asked for beside the standing set where something is placed, replaced or explained."""
    return (CLUSTERS, all_replicas(request), *((DEPLOYMENTS, CACHES) if coordinated(request) else ()))


def falls_short(deployment: ModelDeployment, standing: Fleet) -> bool:
    """Tell whether fewer replicas live than are wanted: the fleet is needed whatever a pass finds."""
    living = sum(not own_replica.terminating for own_replica in standing.own_replicas)
    return living < deployment.wanted


def needs_fleet(decision: Decision) -> bool:
    """Tell whether a pass on the standing set alone leaves something that only the fleet answers."""
    inputs = decision.inputs
    living = [replica for replica in inputs.fleet.own_replicas if not replica.terminating]
    # What of it is borrowed is seen of everything that its team holds.
    guaranteed = any(
        quota.guaranteed is not None and inputs.deployment.namespace in quota.namespaces
        for quota in inputs.config.quotas
    )
    return (guaranteed and bool(living)) or _is_open(decision, {replica.cluster for replica in living})


def _is_open(decision: Decision, hosts: set[str]) -> bool:
    """Tell whether the fleet has a say, where `hosts` have replicas of ours."""
    inputs = decision.inputs
    return (
        # Fewer are kept than wanted: one leaves, gives way or never was.
        decision.total < decision.wanted
        # One must be replaced (mismatch, drain, surge), or costs more than it is stamped with.
        or any(kept.outgoing or kept.grows for kept in decision.kept)
        # A cluster asked for by name is absent: it is deleted, or the whole kind is, which is doubt (Law 2).
        or bool(hosts - {"", *inputs.fleet.clusters, *inputs.fleet.unreadable})
        # What time it is, most heartbeats say.
        or suspects(inputs)
        # Two deployments may pass a quota at once: that is seen of all that are under it.
        or _may_pass_a_quota(decision)
    )


def _may_pass_a_quota(decision: Decision) -> bool:
    """Tell whether replicas that never were Ready are under a quota, where such give way."""
    inputs = decision.inputs
    if inputs.config.overcommit != "Yield":
        return False
    namespace = inputs.deployment.namespace
    limited = any(namespace in quota.namespaces for quota in inputs.config.quotas)
    return limited and any(may_yield(kept.own_replica.replica) for kept in decision.kept)


# What is stated


def stated(
    request: Request, standing_set: Sequence[str], decision: Decision, *, needs: bool
) -> tuple[Requirement, ...]:
    """Return what an answer states. `needs`: whether the fleet is needed beside the standing set."""
    before = [name for name in request.stated if row_of(name)]
    names = _missing(request, (*standing_set, *(fleet(request) if needs else ())), before)
    if before and names:  # Rule 3.
        names = _missing(request, (*standing_set, *fleet(request)), before)
    names = [*before, *names]
    if needs and _is_met(decision):
        return _standing_after(request, decision, names)
    left_out = unwatched(decision)
    return tuple(_requirement(request, name, left_out) for name in names)


def _is_met(decision: Decision) -> bool:
    """Tell whether the next reconcile needs no fleet, once what was decided on the whole of it is applied."""
    seen = decision.inputs.fleet
    hosts = {kept.own_replica.cluster for kept in decision.kept}
    return seen.whole and not seen.undelivered and not _is_open(decision, hosts)


def _standing_after(request: Request, decision: Decision, names: Sequence[str]) -> tuple[Requirement, ...]:
    """Return what was stated, and as watched what the deployment stands on from now on.

    So the last call is sent no fleet, and the next reconcile begins with what it stands on.
    """
    hosts = {kept.own_replica.cluster for kept in decision.kept}
    hosts |= {placed.identity.cluster for placed in decision.placed}
    watched = standing(request, sorted(hosts - {""}))
    new = [name for name in watched if CLUSTERS in names and name not in names]
    return (
        *(replace(_requirement(request, name), watched=name in watched) for name in names),
        *(replace(_requirement(request, name), served_by=CLUSTERS) for name in new),
    )


def unwatched(decision: Decision) -> frozenset[str]:
    """Return what is read without being woken by it, by what stands before the slash of a name.

    Of all that is written to a replica only its end makes room, and that cannot be watched for alone. So
    others' replicas are watched by who waits for room, and while few of them start.
    """
    starting = sum(map(may_yield, decision.inputs.fleet.other_replicas))
    waits = decision.total < decision.wanted and starting <= STARTING
    return READ_ONLY if waits else READ_ONLY | {REPLICAS}


def watched_for_room(requirements: Iterable[Requirement]) -> bool:
    """Tell if all that makes room is watched: every cluster, and the replicas that placing reads."""
    prefixes = {item.name.partition("/")[0] for item in requirements if item.watched}
    return prefixes >= {CLUSTERS, REPLICAS}


def _missing(request: Request, names: Sequence[str], before: Sequence[str]) -> list[str]:
    """Return what is needed, was not stated before, alone or with the fleet, and did not come unasked."""
    unasked = _handed_over(request)
    return [
        name
        for name in names
        if not any(source in unasked or source in before for source in sources(name))
        and not (REPLICAS in names and name.startswith(named(HOLDERS, "")))  # They are among all replicas.
    ]


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what an answer to an error states: what it was handed, else the standing set as far as seen."""
    handed = [name for name in request.required if row_of(name)]
    keys = [read_key(key) for key in request.observed if key not in request.desired]
    clusters = {key[1].cluster for key in keys if key is not None and key[0] == "replica"}
    unasked = _handed_over(request)
    names = handed or [
        name for name in standing(request, sorted(clusters)) if unasked.isdisjoint(sources(name))
    ]
    return tuple(_requirement(request, name) for name in names)


def everything(request: Request) -> tuple[Requirement, ...]:
    """Return what answers every question about a deployment: the fleet, and its cache."""
    names = (*fleet(request), *standing(request, ()))
    return tuple(_requirement(request, name) for name in dict.fromkeys(names))
