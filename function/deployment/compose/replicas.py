"""Desired ModelReplicas: new ones, retained ones updated in place, and those emitted exactly as observed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from function.api.names import replica_key
from function.api.replica import WAS_READY_ANNOTATION
from function.boundary import Desired, Unreadable
from function.deployment.compose.cache import EngineFrom, KeptFrom, PlacedFrom, composed_once
from function.deployment.compose.objects import composed, labels
from function.fail_static import as_observed
from function.scheduler.outcomes import Update
from function.scheduler.stamp import (
    RUNNING,
    STAMPED,
    engine_spec,
    member_spec,
    paused_spec,
    replica_spec,
    updated_spec,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.api import Engine, Member, ModelDeployment
    from function.deployment.compose.cache import EmittedEngines, RankedClaims
    from function.scheduler.candidate import Candidate
    from function.scheduler.matching.devices import Match
    from function.scheduler.matching.engine_options import EngineOption
    from function.scheduler.outcomes import Kept, Placed

KIND = "ModelReplica"
AT_ONCE = (None, Update.Now)
"""Replicas that are not in a staged rollout, and those whose turn it is, are updated now."""


def _requests(match: Match) -> list[dict[str, Any]]:
    """The DRA claim of a member's pods: what was resolved to claimable devices, and nothing else."""
    return [
        {
            "name": claim.request,
            "deviceClassName": claim.device.device_class_name,
            "count": claim.count,
            **({"selectors": [{"cel": source} for source in claim.selectors]} if claim.selectors else {}),
        }
        for claim in match.claimed
    ]


def _constraints(member: Member, match: Match) -> list[dict[str, Any]]:
    """The member's constraints on what its claim holds; one about nothing claimed is left out."""
    claimed = {claim.request for claim in match.claimed}
    emitted: list[dict[str, Any]] = []
    for constraint in member.node_selector.constraints if member.node_selector else ():
        named = [name for name in constraint.requests if name in claimed]
        if named:
            emitted.append({"requests": named, "matchAttribute": constraint.match_attribute})
        elif claimed and not constraint.requests:
            emitted.append({"matchAttribute": constraint.match_attribute})
    return emitted


def _claims(match: Match) -> RankedClaims:
    return tuple((claim.request, claim.rank, claim.device.device_class_name) for claim in match.claimed)


def _member(member: Member, match: Match, pool: str) -> dict[str, Any]:
    return member_spec(member, pool, _requests(match), _constraints(member, match))


def _engine(engine: Engine, matches: Sequence[Match], pools: Sequence[str]) -> dict[str, Any]:
    return engine_spec(engine, list(map(_member, engine.members, matches, pools)))


def _placed_engine(
    candidate: Candidate, engine: Engine, option: EngineOption, emitted: EmittedEngines
) -> dict[str, Any]:
    pools = tuple(candidate.cluster.pools[at].name for at in option.pools)
    source = EngineFrom(candidate.shape.name, engine.name, pools, tuple(map(_claims, option.matches)))
    return emitted.once(source, partial(_engine, engine, option.matches, pools))


def placed_replica(deployment: ModelDeployment, placed: Placed, emitted: EmittedEngines) -> Desired:
    """A new replica; as it was made for an earlier answer where it is placed again before it is there."""
    candidate = placed.candidate
    pools = tuple(candidate.cluster.pools[at].name for option in candidate.options for at in option.pools)
    source = PlacedFrom(placed.name, candidate.shape, candidate.options, pools)
    key = replica_key(placed.identity)
    return composed_once(deployment, key, source, lambda: _placed(deployment, placed, emitted))


def _placed(deployment: ModelDeployment, placed: Placed, emitted: EmittedEngines) -> Desired:
    candidate = placed.candidate
    engines = [_placed_engine(candidate, engine, option, emitted) for engine, option in candidate.engines]
    labelled = labels(deployment, placed.identity, candidate.shape.name)
    spec = replica_spec(deployment, placed.identity.cluster, engines)
    return Desired(composed(KIND, placed.name, deployment.namespace, labelled, spec))


def _updated(deployment: ModelDeployment, kept: Kept) -> dict[str, Any]:
    own_replica, shape = kept.own_replica, kept.shape
    assert own_replica.identity is not None  # noqa: S101 - only a replica with an identity is updated
    assert shape is not None  # noqa: S101 - see kept_replica
    if kept.update in AT_ONCE:
        stamped = own_replica.document.project(STAMPED)["spec"]
        spec = updated_spec(deployment, own_replica.cluster, shape, stamped)
    else:
        spec = paused_spec(shape, own_replica.document.project(RUNNING)["spec"])
    labelled = labels(deployment, own_replica.identity, shape.name)
    return composed(KIND, own_replica.replica.name, deployment.namespace, labelled, spec)


def _resource(deployment: ModelDeployment, kept: Kept) -> dict[str, Any] | None:
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


def observed_size(kept: Kept) -> int:
    """Bytes of the document of a replica that is desired as it is observed, at least its template; else 0."""
    return kept.own_replica.document.size if kept.shape is None or kept.update not in AT_ONCE else 0


def kept_replica(deployment: ModelDeployment, kept: Kept, *, remember: bool) -> Desired | None:
    """A replica that stays, see `_kept`; as it was made for an earlier answer where nothing has changed."""
    own_replica = kept.own_replica
    version = own_replica.document.identity
    if version is None:
        return _kept(deployment, kept, remember=remember)
    waits = kept.update not in AT_ONCE
    source = KeptFrom(version, kept.shape, own_replica.observed, noted=remember, waits=waits)
    return composed_once(
        deployment,
        own_replica.key,
        source,
        lambda: _kept(deployment, kept, remember=remember),
        observed=observed_size(kept),
    )


def _kept(deployment: ModelDeployment, kept: Kept, *, remember: bool) -> Desired | None:
    """A replica that stays: updated in place, exactly as observed, or with the template it is observed with.

    None for one that is only listed and of which some part cannot be read: there is nothing to write again,
    and Crossplane, which has not observed it, does not delete it.

    With `remember` it is noted on it that it was Ready once, and the note is carried on ever after. Only on
    an observed one: what is only listed may be gone already, and would come back as another that never was.
    """
    resource = _resource(deployment, kept)
    if resource is None:
        return None
    replica = kept.own_replica.replica
    if kept.own_replica.observed and (replica.was_ready or (remember and replica.ready is True)):
        resource["metadata"]["annotations"] = {WAS_READY_ANNOTATION: "true"}
    return Desired(resource, ready=kept.own_replica.observed and kept.own_replica.replica.ready is True)
