"""Desired replicas and endpoints: new ones, retained ones updated in place, and those exactly as observed.

Why. Crossplane deletes what an answer leaves out, and writes what differs from what is observed. So every
replica that is kept has to be written down again, and written so that nothing changes by accident.

Theory of operation
1. A new replica is made of its deployment's template and of what its place stamps on it: pools, requests.
2. A retained replica keeps what is stamped and takes the rest from the template (`scheduler.stamp`). While a
   staged rollout makes it wait, it keeps the template too.
3. Doubt (Law 2): where the shape is unknown or its document cannot be read, the replica is desired as it is
   observed, field for field. One that is only listed, and cannot be read, is left to Crossplane.
   One that leaves is desired as it is once more where Crossplane has lost sight of it (`unreferenced`).
4. An endpoint is withdrawn only when its replica is observed not Ready, or leaves.

Limits. Filling stops before the answer outgrows what Crossplane receives (`LIMIT`). Nothing that is kept is
ever dropped for size. Only fields that are set are emitted: a field that is emitted is owned.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from function.api import Engine, Member, ModelDeployment, replica as replica_api
from function.api.deployment import ReplicaShape
from function.api.model import Reader
from function.api.names import API_VERSION, Identity, bracketed, desired_key, read_key
from function.api.replica import PriorityNotes
from function.boundary import Desired, Document, Extent, JsonObject, Plain, Shape, Unreadable, text_at
from function.fail_static import as_observed
from function.scheduler import stamp
from function.scheduler.decision import Decision
from function.scheduler.device_matching import Match
from function.scheduler.disruption import spare, surge
from function.scheduler.engine_options import Candidate, EngineOption
from function.scheduler.ledger import may_yield
from function.scheduler.outcomes import OUTDATED, Kept, Placed, Update
from function.scheduler.scheduling_input import Fleet

# Bound the new replicas of an answer: Crossplane receives at most 4 MiB.

LIMIT = 3 * 1024 * 1024
"""Bytes of desired replicas at which filling stops. Nothing kept is ever dropped for size."""
OVERHEAD = 2_000
"""Bytes of a replica and its endpoint besides the templates: names, labels, requests, status."""


def largest(deployment: ModelDeployment) -> int:
    """Bytes of the largest shape's replica, JSON standing in for the wire (which is never longer)."""
    composed_replicas = deployment.memo_of(ComposedReplicas)
    if composed_replicas.largest is None:
        sizes: Counter[str] = Counter()
        for member in deployment.members:
            sizes[member.shape.name] += len(json.dumps(member.member.template).encode())
        for request in deployment.requests:
            sources = (len(source.encode()) + 100 for source in request.sub.claimed_by)
            sizes[request.of.shape.name] += sum(sources)
        composed_replicas.largest = max(sizes.values()) + OVERHEAD
    return composed_replicas.largest


def room_for(deployment: ModelDeployment, fleet: Fleet) -> int:
    """How many replicas can be added before the answer grows past the limit."""
    return max(0, LIMIT // largest(deployment) - len(fleet.own_replicas))


# Memory beside composing: what this answer shares, and the replicas that earlier ones desired.
#
# Nothing here changes an answer; without it the same replica is composed, and written, again.

T = TypeVar("T", bound="Desired | None")

BOUND = 512 * 1024
"""Bytes of composed replicas, about, that a deployment holds from answer to answer."""
AS_OBSERVED, MAX_AS_OBSERVED = 7, 4 * 1024 * 1024
"""Bytes that a replica which is desired as it is observed takes for each byte of its document, and the most
that all those of a deployment may take. They share no template with it."""


class PlacedFrom(NamedTuple):
    """The facts that a new replica is composed of, besides its deployment and its key."""

    name: str
    shape: ReplicaShape
    options: tuple[EngineOption, ...]
    pools: tuple[str, ...]
    preempts: bool
    notes: PriorityNotes | None


class KeptFrom(NamedTuple):
    """The facts that a kept replica is composed of, besides its deployment and its key."""

    version: Hashable
    """The identity of its document: equal ones mean equal content."""
    shape: ReplicaShape | None
    observed: bool
    noted: bool
    waits: bool
    notes: PriorityNotes | None
    leaving: str


ComposedFrom: TypeAlias = PlacedFrom | KeptFrom


class ComposedReplicas:
    """The desired replicas of earlier answers, by key, each with what it was composed of.

    Law: a replica depends on its deployment, which owns this cache, and on its source, which is compared by
    value. Buys: a settled deployment, which is what most calls are about, composes and writes nothing anew.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.largest: int | None = None
        """Bytes of the deployment's largest replica, see `largest`."""
        self._by_key: dict[str, tuple[ComposedFrom, Desired]] = {}
        self._as_observed: dict[str, int] = {}
        """Bytes that those take which are desired as they are observed."""

    @property
    def extent(self) -> Extent:
        """The memory that it takes besides `BOUND`."""
        return Extent(self, sum(self._as_observed.values()))

    def get(self, key: str, source: ComposedFrom) -> Desired | None:
        """Return what was desired under a key, if it was composed of the same."""
        earlier, desired = self._by_key.get(key, (None, None))
        return desired if earlier == source else None

    def put(self, key: str, source: ComposedFrom, desired: Desired, *, most: int, observed: int = 0) -> None:
        """Hold a composed replica in the place of the earlier one, or beside at `most` so many.

        `observed`: the bytes of its document, where it is desired as that is observed.
        """
        self._as_observed.pop(key, None)
        size = AS_OBSERVED * observed
        if size and sum(self._as_observed.values()) + size > MAX_AS_OBSERVED:
            self._by_key.pop(key, None)
        elif key in self._by_key or len(self._by_key) < most:
            self._by_key[key] = source, desired
            if size:
                self._as_observed[key] = size


def composed_once(
    deployment: ModelDeployment,
    key: str,
    source: ComposedFrom,
    compose: Callable[[], T],
    *,
    observed: int = 0,
) -> Desired | T:
    """Return what was desired under a key for an earlier answer if its source is equal, or compose it.

    `observed`: the bytes of the document that it is composed of as it stands, if it is.
    """
    cache = deployment.memo_of(ComposedReplicas)
    earlier = cache.get(key, source)
    if earlier is not None:
        return earlier
    desired = compose()
    if desired is not None:
        cache.put(key, source, desired, most=BOUND // largest(deployment), observed=observed)
    return desired


RankedClaims: TypeAlias = tuple[tuple[str, int, str], ...]
"""Request, rank and device class of each claim of a member."""


class EngineFrom(NamedTuple):
    """The facts that an engine of a new replica is composed of, besides its deployment."""

    shape: str
    engine: str
    pools: tuple[str, ...]
    """The pool of each member."""
    claims: tuple[RankedClaims, ...]
    """What each member claims there."""


EmittedEngines: TypeAlias = "dict[EngineFrom, JsonObject]"
"""The engines of the new replicas of one answer.

Law: an engine depends on its source, which is compared by value. Buys: most replicas of an answer share their
engines, and what is shared is composed and written once."""


# Build desired objects: apiVersion, kind, name, namespace and labels, which all kinds share.


def labels(deployment: ModelDeployment, identity: Identity, alternative: str = "") -> dict[str, str]:
    """Labels of a replica and its endpoint: the template's, then (winning) ours."""
    ours = {
        replica_api.DEPLOYMENT_LABEL: deployment.name,
        replica_api.CLUSTER_LABEL: identity.cluster,
        replica_api.INDEX_LABEL: str(identity.index),
    }
    if alternative:
        ours[replica_api.ALTERNATIVE_LABEL] = alternative
    return {**deployment.spec.template.metadata.labels, **ours}


def composed(
    kind: str, name: str, namespace: str, labelled: Mapping[str, str], spec: Mapping[str, Plain]
) -> dict[str, Any]:
    """A composed object. Only fields that are set: what is emitted is owned."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labelled)},
        "spec": dict(spec),
    }


# Desired ModelEndpoints: traffic goes to a Ready replica behind a known gateway, and to nothing else.
#
# Fail static: an endpoint is withdrawn only when its replica is observed not Ready, or leaves. While the
# cluster is undelivered, unreadable or without a gateway, the observed endpoint is emitted unchanged.

ENDPOINT_KIND = "ModelEndpoint"
_CONDITIONS: Shape = {"status": {"conditions": {"type": None, "status": None}}}


def _observed_ready(document: Document | None) -> bool:
    """Tell whether an endpoint is observed Ready; not where it cannot be read."""
    if document is None:
        return False
    try:
        return Reader().ready(document.project(_CONDITIONS)) is True
    except ValueError:
        return False


def _endpoint(decision: Decision, kept: Kept) -> tuple[str, Desired] | None:
    """The endpoint of one kept replica, if it has one."""
    deployment, fleet = decision.inputs.deployment, decision.inputs.fleet
    own_replica = kept.own_replica
    # Only an observed `False` withdraws an endpoint: a replica that says nothing may serve (Law 2).
    if own_replica.identity is None or own_replica.replica.ready is False:
        return None
    key = desired_key("endpoint", own_replica.identity)
    observed = fleet.endpoints.get(key)
    ready = _observed_ready(observed)
    cluster, name = fleet.clusters.get(own_replica.cluster), own_replica.replica.name
    address = cluster.gateway if cluster else ""
    if own_replica.replica.ready is True and address and own_replica.readable and name:
        labelled = labels(deployment, own_replica.identity)
        path = f"/{deployment.namespace}/{name}/"
        spec = {"url": f"http://{bracketed(address)}{path}v1", "rewritePath": path}
        return key, Desired(composed(ENDPOINT_KIND, name, deployment.namespace, labelled, spec), ready)
    if observed is None:
        return None
    # Doubt about the cluster: the endpoint that is there goes on serving, unchanged (Law 2).
    return key, Desired(as_observed(observed, kind=ENDPOINT_KIND, namespace=deployment.namespace), ready)


def endpoints(decision: Decision) -> Mapping[str, Desired]:
    """The endpoints of all kept replicas.

    Law 2: one whose key cannot be read is emitted as observed, and so is one of no replica of ours that is
    known while the lists are undelivered.
    """
    desired = dict(filter(None, (_endpoint(decision, kept) for kept in decision.kept)))
    fleet, namespace = decision.inputs.fleet, decision.inputs.deployment.namespace
    ours = {
        desired_key("endpoint", own_replica.identity)
        for own_replica in fleet.own_replicas
        if own_replica.identity
    }
    for key, observed in fleet.endpoints.items():
        if read_key(key) is None or not (key in ours or fleet.inputs_delivered):
            resource = as_observed(observed, kind=ENDPOINT_KIND, namespace=namespace)
            desired[key] = Desired(resource, _observed_ready(observed))
    return {key: endpoint for key, endpoint in desired.items() if key not in fleet.theirs}


KIND = "ModelReplica"
AT_ONCE = (None, Update.Now)
"""Replicas that are not in a staged rollout, and those whose turn it is, are updated now."""


def _requests(member: Member, match: Match) -> list[dict[str, Any]]:
    """The DRA claim of a member's pods: what was resolved to claimable devices, and nothing else."""
    ways = {request.name: request.ranked for request in member.requests}
    return [
        {
            "name": claim.request,
            "deviceClassName": claim.device.device_class_name,
            "count": claim.count,
            **({"selectors": [{"cel": source} for source in claim.selectors]} if claim.selectors else {}),
            **({"tolerations": [one.as_written() for one in tolerations]} if tolerations else {}),
        }
        for claim in match.claimed
        for tolerations in (ways[claim.request][claim.rank].tolerations,)
    ]


def _constraints(member: Member, match: Match) -> list[dict[str, Any]]:
    """The member's constraints on what its claim holds; one about nothing claimed is left out."""
    claimed = {claim.request for claim in match.claimed}
    emitted: list[dict[str, Any]] = []
    for constraint in member.constraints:
        named = [name for name in constraint.requests if name in claimed]
        if named:
            emitted.append({"requests": named, "matchAttribute": constraint.match_attribute})
        elif claimed and not constraint.requests:
            emitted.append({"matchAttribute": constraint.match_attribute})
    return emitted


def _placed_engine(
    candidate: Candidate, engine: Engine, option: EngineOption, emitted: EmittedEngines
) -> dict[str, Any]:
    """One engine of a new replica, which shares it with all others of this answer that are placed alike."""
    pools = tuple(candidate.cluster.pools[at].name for at in option.pools)
    claims = tuple(
        tuple((claim.request, claim.rank, claim.device.device_class_name) for claim in match.claimed)
        for match in option.matches
    )
    source = EngineFrom(candidate.shape.name, engine.name, pools, claims)
    if source not in emitted:
        members = [
            stamp.member_spec(member, pool, _requests(member, match), _constraints(member, match))
            for member, match, pool in zip(engine.members, option.matches, pools, strict=True)
        ]
        emitted[source] = stamp.engine_spec(engine, members)
    return emitted[source]


SPARE_LIMIT = 8
"""The most that is noted where a budget limits it: each change of the number is a write to every replica."""


def notes_of(decision: Decision) -> PriorityNotes | None:
    """The notes of a deployment's priority on its replicas: class, value, how many it can spare now.

    None where no class preempts. While a rollout is under way nothing is spared.
    """
    inputs = decision.inputs
    if not inputs.config.preempts:
        return None
    rolling = any(kept.update is not None for kept in decision.kept)
    number = 0 if rolling else spare(inputs, (kept.own_replica for kept in decision.kept))
    noted = replica_api.SPARE_ALL if number == replica_api.MANY else str(min(number, SPARE_LIMIT))
    priority = inputs.priority
    counts = priority.exists and priority.allowed
    return PriorityNotes(priority.name if counts else "", str(priority.value), noted)


def standing_of(decision: Decision, kept: Kept) -> str:
    """The note of a kept replica on its standing to guarantees; as observed while that is not known."""
    replica, priority = kept.own_replica.replica, decision.inputs.priority
    if not decision.inputs.config.guarantees:
        return ""
    if decision.shares is None:
        return replica.notes.guarantee if replica.notes else ""
    share = decision.shares.get((replica.namespace, replica.name))
    reclaims = replica.preempting and may_yield(replica) and not priority.preempts
    return str(share._replace(reclaims=reclaims)) if share is not None else ""


def leaving_of(decision: Decision, kept: Kept) -> str:
    """The note that a replica with room for adapters is the next to leave; empty for any other.

    Its adapters are placed elsewhere from then on, and nobody waits for them. With surge it is next when its
    replacement stands beside it, else while a budget holds it back. Those behind it are left alone: all
    adapters would move to the first replacement. While that cannot be judged the note stays as observed.
    """
    deployment = decision.inputs.deployment
    if not any(engine.adapters for shape in deployment.shapes for engine in shape.engines):
        return ""
    if kept.doubt or (kept.outgoing and decision.placer is None):
        return text_at(kept.own_replica.document, "metadata", "annotations", replica_api.LEAVING_ANNOTATION)
    if not (kept.covered if surge(decision.inputs) else kept.waits):
        return ""
    return kept.mismatch.value if kept.mismatch else kept.waits or OUTDATED


def placed_replica(
    deployment: ModelDeployment, placed: Placed, emitted: EmittedEngines, notes: PriorityNotes | None = None
) -> Desired:
    """A new replica; as it was made for an earlier answer where it is placed again before it is there."""
    candidate = placed.candidate
    pools = tuple(candidate.cluster.pools[at].name for option in candidate.options for at in option.pools)
    preempts = placed.preempts is not None
    source = PlacedFrom(placed.name, candidate.shape, candidate.options, pools, preempts, notes)
    key = desired_key("replica", placed.identity)
    return composed_once(deployment, key, source, lambda: _placed(deployment, placed, emitted, notes))


def _placed(
    deployment: ModelDeployment, placed: Placed, emitted: EmittedEngines, notes: PriorityNotes | None
) -> Desired:
    """Compose a new replica. One for which others are to give way says so by a label: clusters read it."""
    candidate = placed.candidate
    engines = [_placed_engine(candidate, engine, option, emitted) for engine, option in candidate.engines]
    labelled = labels(deployment, placed.identity, candidate.shape.name)
    if placed.preempts is not None:
        labelled[replica_api.PREEMPTING_LABEL] = "true"
    spec = stamp.replica_spec(deployment, placed.identity.cluster, engines)
    resource = composed(KIND, placed.name, deployment.namespace, labelled, spec)
    if notes is not None:
        resource["metadata"]["annotations"] = notes.annotations
    return Desired(resource)


def _updated(deployment: ModelDeployment, kept: Kept) -> dict[str, Any]:
    """Compose a retained replica anew: stamped pools and claims stay, the template follows its rollout.

    Raises Unreadable. The label of one that makes others give way is left off once it was Ready.
    """
    own_replica, shape = kept.own_replica, kept.shape
    assert own_replica.identity is not None  # noqa: S101 - only a replica with an identity is updated
    assert shape is not None  # noqa: S101 - see kept_replica
    if kept.update in AT_ONCE:
        stamped = own_replica.document.project(stamp.STAMPED)["spec"]
        spec = stamp.updated_spec(deployment, own_replica.cluster, shape, stamped)
    else:
        spec = stamp.paused_spec(shape, own_replica.document.project(stamp.RUNNING)["spec"])
    labelled = labels(deployment, own_replica.identity, shape.name)
    if own_replica.replica.preempting and may_yield(own_replica.replica):
        labelled[replica_api.PREEMPTING_LABEL] = "true"
    return composed(KIND, own_replica.replica.name, deployment.namespace, labelled, spec)


def _resource(deployment: ModelDeployment, kept: Kept) -> dict[str, Any] | None:
    """Return the object of a retained replica (2 and 3 above); None where it is left to Crossplane."""
    document = kept.own_replica.document
    try:
        if kept.shape is not None:
            return _updated(deployment, kept)
        if not kept.own_replica.observed:
            document.plain()
    except Unreadable:
        if not kept.own_replica.observed:
            return None
    return as_observed(document, kind=KIND, namespace=deployment.namespace)


def unreferenced(decision: Decision) -> dict[str, Desired]:
    """Return the replicas that leave and that Crossplane does not refer to, by key, as they are listed.

    Crossplane deletes what it has observed, and replaces its references by what an answer desires. An answer
    on reads from before the latest one was applied leaves out what that one created: it would hold its nodes
    for ever. Desired once more it is observed, and leaves in a later pass. One that was deleted a moment ago
    looks the same in a list of before: it goes on leaving, or is created again and leaves like any other.
    (An answer cannot state its uid against that: Crossplane would write it into references, which have none.)
    Where something is placed, the pass after it does this. All count as ready: Crossplane calls a composite
    not Ready for any resource that is not, and nobody waits for one that leaves.
    """
    deployment = decision.inputs.deployment
    again = {}
    for own_replica in (dropped.own_replica for dropped in decision.dropped if not decision.placed):
        replica = own_replica.replica
        ours = bool(replica.owner) and replica.owner == deployment.metadata.uid
        if own_replica.observed or own_replica.terminating or not ours:
            continue
        resource = _resource(deployment, Kept(own_replica))
        if resource is not None:
            again[own_replica.key] = Desired(resource, ready=True)
    return again


def observed_size(kept: Kept) -> int:
    """Bytes of the document of a replica that is desired as it is observed, at least its template; else 0."""
    return kept.own_replica.document.size if kept.shape is None or kept.update not in AT_ONCE else 0


def kept_replica(
    deployment: ModelDeployment,
    kept: Kept,
    notes: PriorityNotes | None = None,
    *,
    remember: bool,
    leaving: str = "",
) -> Desired | None:
    """A replica that stays, see `_kept`; as it was made for an earlier answer where nothing has changed."""
    own_replica = kept.own_replica
    version = own_replica.document.opened().identity
    if version is None:
        return _kept(deployment, kept, notes, remember=remember, leaving=leaving)
    waits = kept.update not in AT_ONCE
    observed = own_replica.observed
    source = KeptFrom(version, kept.shape, observed, remember, waits, notes, leaving)
    return composed_once(
        deployment,
        own_replica.key,
        source,
        lambda: _kept(deployment, kept, notes, remember=remember, leaving=leaving),
        observed=observed_size(kept),
    )


def _kept(
    deployment: ModelDeployment, kept: Kept, notes: PriorityNotes | None, *, remember: bool, leaving: str
) -> Desired | None:
    """A replica that stays: updated in place, exactly as observed, or with the template it is observed with.

    None for one that is only listed and of which some part cannot be read: there is nothing to write again,
    and Crossplane, which has not observed it, does not delete it.

    `notes`: what it notes of its deployment's priority. With `remember` it is noted on it that it was
    Ready once, and the note is carried on ever after. A note of old stays as it is, so that an upgrade does
    not write to every replica; only on an observed one, because what is only listed may be gone already, and
    would come back as another that never was.
    """
    resource = _resource(deployment, kept)
    if resource is None:
        return None
    replica = kept.own_replica.replica
    noted = notes.annotations if notes is not None else {}
    if replica.was_ready or (remember and replica.ready is True):
        note, of_old = replica_api.WAS_READY_ANNOTATION, replica_api.WAS_READY_OF_OLD
        stated = text_at(kept.own_replica.document, "metadata", "annotations", note)
        text = of_old if stated == of_old else replica.uid or of_old
        if kept.own_replica.observed or text != of_old:
            noted = {note: text, **noted}
    if leaving:
        noted = {**noted, replica_api.LEAVING_ANNOTATION: leaving}
    if noted:
        resource["metadata"]["annotations"] = noted
    return Desired(resource, ready=kept.own_replica.observed and kept.own_replica.replica.ready is True)
