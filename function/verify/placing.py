"""Check where the engines and members of a new replica were put, and what they claim there."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from function.api.stack import KSERVE
from function.verify.finding import Violation
from function.verify.matching import TooMany

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Engine, InferenceCluster, Member, ModelDeployment, ModelReplica
    from function.api.replica import StampedEngine, StampedMember
    from function.verify.decided import Decided
    from function.verify.matching import Matching


def _wanted(deployment: ModelDeployment, replica: ModelReplica) -> tuple[Engine, ...] | None:
    """The engines of the shape the replica was placed as; None when there is no such shape."""
    return next((shape.engines for shape in deployment.shapes if shape.name == replica.alternative), None)


def _pairs(engine: Engine, stamped: StampedEngine) -> list[tuple[Member, StampedMember]] | None:
    by_role = {str(member.role): member for member in engine.members}
    if sorted(by_role) != sorted(member.role for member in stamped.members):
        return None
    return [(by_role[member.role], member) for member in stamped.members]


def check_pools(
    where: str,
    deployment: ModelDeployment,
    cluster: InferenceCluster,
    replica: ModelReplica,
    matching: Matching,
) -> Iterator[Violation]:
    """Check the engines of one new replica. Raises TooMany."""
    engines = _wanted(deployment, replica)
    names = sorted(engine.name for engine in engines or ())
    if engines is None or names != sorted(engine.name for engine in replica.engines):
        yield Violation("Shape", where, "its engines are not those of the deployment")
        return
    by_name = {engine.name: engine for engine in engines}
    for stamped in replica.engines:
        pairs = _pairs(by_name[stamped.name], stamped)
        if pairs is None or stamped.copies != by_name[stamped.name].copies:
            yield Violation("Shape", where, f"engine {stamped.name} has other members or copies than wanted")
            continue
        yield from _engine(where, by_name[stamped.name], cluster, pairs, matching)


def _engine(
    where: str,
    engine: Engine,
    cluster: InferenceCluster,
    pairs: list[tuple[Member, StampedMember]],
    matching: Matching,
) -> Iterator[Violation]:
    pools = {pool.name: pool for pool in cluster.pools}
    used = sorted({stamped.pool for _, stamped in pairs})
    unknown = [name for name in used if name not in pools]
    if unknown:
        yield Violation(
            "Pool", where, f"engine {engine.name} is on {unknown[0]}, which {cluster.name} has not"
        )
        return
    proofs = [set(ids) for ids in zip(*(pools[name].fabrics for name in used), strict=True)]
    same = any(len(ids) == 1 and "" not in ids for ids in proofs)
    proven = engine.pool_policy == "SameFabric" and same
    if len(used) > 1 and not proven:
        yield Violation("Split", where, f"engine {engine.name} is on {' and '.join(used)}")
    if not any(stamped.requests for _, stamped in pairs):
        yield Violation("NothingClaimed", where, f"no member of engine {engine.name} binds a device")
    for member, stamped in pairs:
        yield from _member(f"engine {engine.name} {member.role}", where, cluster, (member, stamped), matching)


def _member(
    name: str, where: str, cluster: InferenceCluster, pair: tuple[Member, StampedMember], matching: Matching
) -> Iterator[Violation]:
    member, stamped = pair
    if stamped.pods != member.pods:
        yield Violation("Shape", where, f"{name} has {stamped.pods} pods, {member.pods} are wanted")
    pool = next(pool for pool in cluster.pools if pool.name == stamped.pool)
    possible = matching.claims(member, pool)
    if not possible:
        yield Violation("NoMatch", where, f"{name} does not match {cluster.name}/{pool.name}")
        return
    claimed = tuple((request.name, request.device_class, request.count) for request in stamped.requests)
    if claimed not in {tuple(part[:3] for part in claim) for claim in possible}:
        yield Violation(
            "Claim", where, f"{name} claims {claimed}, which {cluster.name}/{pool.name} cannot give"
        )
    elsewhere = any(matching.claimable(member, pool) for pool in cluster.pools)
    if member.requests and not claimed and elsewhere:
        yield Violation("Stranded", where, f"{name} binds nothing, and could on another pool")


def check_names(where: str, decided: Decided, replica: ModelReplica) -> Iterator[Violation]:
    """Check the name of a new replica, and that nobody else has its identity."""
    named = f"{decided.deployment.name}-{replica.cluster}-{replica.index}"
    digest = hashlib.sha256(named.encode()).hexdigest()[:5]
    if not replica.name.endswith(f"-{digest}"):
        yield Violation("Name", where, f"does not end in {digest}, the digest of {named}")
    same = [
        twin for twin in decided.existing if (twin.cluster, twin.index) == (replica.cluster, replica.index)
    ]
    if same:
        yield Violation(
            "Identity", where, f"{replica.cluster}/{replica.index} is the identity of {same[0].name}"
        )


def mismatched(
    deployment: ModelDeployment, cluster: InferenceCluster, replica: ModelReplica, matching: Matching
) -> bool:
    """Whether an existing replica could be mismatched: what it claims cannot be had as it is stamped."""
    engines = _wanted(deployment, replica)
    if engines is None or deployment.cache != replica.cache:
        return True
    by_name = {engine.name: engine for engine in engines}
    if sorted(by_name) != sorted(engine.name for engine in replica.engines):
        return True
    pools = {pool.name: pool for pool in cluster.pools}
    for stamped in replica.engines:
        pairs = _pairs(by_name[stamped.name], stamped)
        if pairs is None or stamped.copies < by_name[stamped.name].copies:
            return True
        for member, stamped_member in pairs:
            claimed = tuple(
                (request.name, request.device_class, request.count) for request in stamped_member.requests
            )
            pool = pools.get(stamped_member.pool)
            try:
                possible = matching.claims(member, pool) if pool else frozenset()
            except TooMany:
                return True
            grew = member.pods > stamped_member.pods
            resized = cluster.spec.stack == KSERVE and member.pods != stamped_member.pods
            if grew or resized or claimed not in {tuple(part[:3] for part in claim) for claim in possible}:
                return True
    return False
