"""Desired ModelReplicas: new ones, retained ones updated in place, and those emitted exactly as observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import replica_key
from function.api.replica import WAS_READY_ANNOTATION
from function.boundary import Desired, Unreadable
from function.deployment.compose.objects import composed, labels
from function.deployment.compose.remembered import MadeOf, remembered
from function.fail_static import as_observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.api import Engine, Member, ModelDeployment
    from function.boundary import Shape
    from function.scheduler.candidate import Candidate
    from function.scheduler.decision import Kept, Placed
    from function.scheduler.matching.devices import Match
    from function.scheduler.matching.engine_options import EngineOption

KIND = "ModelReplica"


def _member(
    member: Member, pool: str, requests: list[dict[str, Any]], constraints: list[dict[str, Any]]
) -> dict[str, Any]:
    """One member: only the fields that are set, and never an empty list."""
    emitted: dict[str, Any] = {"role": member.role, "nodePoolName": pool}
    if requests:
        emitted["deviceRequests"] = requests
    if constraints:
        emitted["deviceConstraints"] = constraints
    if member.worker is not None and member.worker.nodes is not None:
        emitted["worker"] = {"nodes": member.worker.nodes}
    if member.template is not None:
        emitted["template"] = member.template
    return emitted


def _engine(engine: Engine, members: list[dict[str, Any]]) -> dict[str, Any]:
    emitted: dict[str, Any] = {"name": engine.name, "copies": engine.copies, "members": members}
    if engine.phase is not None:
        emitted["phase"] = engine.phase
    return emitted


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


def _spec(deployment: ModelDeployment, cluster: str, engines: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = {"clusterName": cluster, "engines": engines}
    if deployment.cache:
        spec["modelCacheRef"] = {"name": deployment.cache}
    if deployment.template.serving is not None:
        spec["serving"] = deployment.template.serving
    return spec


Members = dict[tuple[int, int, str], dict[str, Any]]
"""Members emitted for new replicas, by member, match and pool: most of the replicas of an answer share them,
and what is shared is written once. For one answer: the first two are identities."""


def _placed_engine(
    candidate: Candidate, engine: Engine, option: EngineOption, emitted: Members
) -> dict[str, Any]:
    members = []
    for at, member in enumerate(engine.members):
        match, pool = option.matches[at], candidate.pool(option, at)
        key = (id(member), id(match), pool)
        if key not in emitted:
            emitted[key] = _member(member, pool, _requests(match), _constraints(member, match))
        members.append(emitted[key])
    return _engine(engine, members)


def placed_replica(deployment: ModelDeployment, placed: Placed, emitted: Members) -> Desired:
    """A new replica; as it was made for an earlier answer where it is placed again before it is there."""
    candidate = placed.candidate
    pools = [candidate.cluster.pools[at].name for option in candidate.options for at in option.pools]
    made_of = MadeOf((candidate.shape, *candidate.options), (placed.name, *pools))
    key = replica_key(placed.identity)
    return remembered(deployment, key, made_of, lambda: _placed(deployment, placed, emitted))


def _placed(deployment: ModelDeployment, placed: Placed, emitted: Members) -> Desired:
    candidate = placed.candidate
    engines = [_placed_engine(candidate, engine, option, emitted) for engine, option in candidate.engines]
    labelled = labels(deployment, placed.identity, candidate.shape.name)
    spec = _spec(deployment, placed.identity.cluster, engines)
    return Desired(composed(KIND, placed.name, deployment.namespace, labelled, spec))


def _updated_engine(engine: Engine, observed: Mapping[str, Any]) -> dict[str, Any]:
    """An engine as wanted now, on the pools and with the requests it was stamped with."""
    by_role = {str(member.role): member for member in engine.members}
    members = [
        _member(
            by_role[stamped.get("role") or "Standalone"],
            stamped["nodePoolName"],
            stamped.get("deviceRequests") or [],
            stamped.get("deviceConstraints") or [],
        )
        for stamped in observed["members"]
    ]
    return _engine(engine, members)


_STAMPED: Shape = {
    "spec": {
        "engines": {
            "name": None,
            "members": {
                "role": None,
                "nodePoolName": None,
                "deviceRequests": None,
                "deviceConstraints": None,
            },
        }
    }
}
"""What an updated replica keeps of what was stamped on it; the templates come from the deployment."""


def _updated(deployment: ModelDeployment, kept: Kept) -> dict[str, Any]:
    own, shape = kept.own, kept.shape
    assert own.identity is not None  # noqa: S101 - only a replica with an identity is updated
    assert shape is not None  # noqa: S101 - see kept_replica
    by_name = {engine.name: engine for engine in shape.engines}
    observed = own.document.project(_STAMPED)["spec"]["engines"]
    engines = [_updated_engine(by_name[engine["name"]], engine) for engine in observed]
    labelled = labels(deployment, own.identity, shape.name)
    return composed(
        KIND, own.replica.name, deployment.namespace, labelled, _spec(deployment, own.cluster, engines)
    )


def _resource(deployment: ModelDeployment, kept: Kept) -> dict[str, Any] | None:
    document = kept.own.document
    try:
        if kept.shape is not None:
            return _updated(deployment, kept)
        if not kept.own.observed:
            document.plain()
    except Unreadable:
        if not kept.own.observed:
            return None
    return as_observed(document, kind=KIND, namespace=deployment.namespace)


def kept_replica(deployment: ModelDeployment, kept: Kept, *, remember: bool = False) -> Desired | None:
    """A replica that stays, see `_kept`; as it was made for an earlier answer where nothing has changed."""
    own = kept.own
    made_of = MadeOf((own.replica, kept.shape), (own.observed, remember))
    return remembered(deployment, own.key, made_of, lambda: _kept(deployment, kept, remember=remember))


def _kept(deployment: ModelDeployment, kept: Kept, *, remember: bool) -> Desired | None:
    """A replica that stays: updated in place, or exactly as observed.

    None for one that is only listed and of which some part cannot be read: there is nothing to write again,
    and Crossplane, which has not observed it, does not delete it.

    With `remember` it is noted on it that it was Ready once, and the note is carried on ever after. Only on
    an observed one: what is only listed may be gone already, and would come back as another that never was.
    """
    resource = _resource(deployment, kept)
    if resource is None:
        return None
    replica = kept.own.replica
    if kept.own.observed and (replica.was_ready or (remember and replica.ready is True)):
        resource["metadata"]["annotations"] = {WAS_READY_ANNOTATION: "true"}
    return Desired(resource, ready=kept.own.observed and kept.own.replica.ready is True)
