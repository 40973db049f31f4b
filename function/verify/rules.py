"""Check decisions against every rule that they must keep.

For each deployment: counts (wanted, minReplicas, surge, the limit per cluster), the causes for which a
replica may leave (Law 2), that none moves, and for each new replica its gates, its pools, its claims and its
names. Rules about the fleet as a whole are in `capacity`.

    check ▶ each deployment (counts, losses, moves) ▶ each new replica (gates, pools, claims, names) ▶
    capacity

A finding is a decision that no reading of the rules allows. Where a rule leaves a choice, every choice is
right: the checker tries them all, and never asks which one the scheduler would take.

Limits: where several replicas leave for fewer causes than there are (a surplus of one, two replacements), the
checker counts, and does not ask which was meant.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence

from function.api import Engine, InferenceCluster, Member, ModelDeployment, ModelReplica
from function.api.model import KSERVE
from function.api.replica import StampedEngine, StampedMember
from function.verify import capacity
from function.verify.gates import closed, compiles, deadline, evacuable, expressible, tolerated
from function.verify.matching import Matching, TooMany
from function.verify.state import Decided, State, Violation


def _wanted(deployment: ModelDeployment, replica: ModelReplica) -> tuple[Engine, ...] | None:
    """Return the engines of the shape the replica was placed as; None when there is no such shape."""
    return next((shape.engines for shape in deployment.shapes if shape.name == replica.alternative), None)


def _pairs(engine: Engine, stamped: StampedEngine) -> list[tuple[Member, StampedMember]] | None:
    """Pair each member with its stamped form, by role; None where the roles are others."""
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
    """Check one engine: its pools exist, it is on one of them or on one fabric, and it claims something.

    Two pools are one fabric where an id, or the attribute, is published by both and equal.
    """
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
    """Check one member: its pods, and that its claim is one of those that its pool can give.

    A member that binds nothing is stranded where it could bind a device on another pool (Two-level matching).
    """
    member, stamped = pair
    if stamped.pods != member.pods:
        yield Violation("Shape", where, f"{name} has {stamped.pods} pods, {member.pods} are wanted")
    pool = next(pool for pool in cluster.pools if pool.name == stamped.pool)
    possible = matching.claims(member, pool)
    if not possible:
        yield Violation("NoMatch", where, f"{name} does not match {cluster.name}/{pool.name}")
        return
    claimed = tuple((request.name, request.device_class, request.count) for request in stamped.requests)
    if claimed not in possible:
        yield Violation(
            "Claim", where, f"{name} claims {claimed}, which {cluster.name}/{pool.name} cannot give"
        )
    elsewhere = any(matching.claimable(member, pool) for pool in cluster.pools)
    if member.requests and not claimed and elsewhere:
        yield Violation("Stranded", where, f"{name} binds nothing, and could on another pool")


def mismatched(
    deployment: ModelDeployment, cluster: InferenceCluster, replica: ModelReplica, matching: Matching
) -> bool:
    """Tell whether an existing replica could be mismatched: what it claims cannot be had as it is stamped."""
    engines = _wanted(deployment, replica)
    # Another ModelCache may leave the cluster out of its footprint; which one does, `gates` would say.
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
            claimed = frozenset(
                (request.name, request.device_class, request.count) for request in stamped_member.requests
            )
            pool = pools.get(stamped_member.pool)
            try:
                possible = matching.claims(member, pool, new=False) if pool else frozenset()
            except TooMany:
                return True
            # A node cost that grew may not fit; on KServe a gang of another size is another workload.
            grew = member.pods > stamped_member.pods
            resized = cluster.spec.stack == KSERVE and member.pods != stamped_member.pods
            if grew or resized or claimed not in map(frozenset, possible):
                return True
    return False


def check(state: State, decisions: Sequence[Decided]) -> list[Violation]:
    """Check decisions that were made one after the other on one state. No finding: they keep every rule."""
    matching = Matching()
    findings = [finding for decided in decisions for finding in _one(state, decided, matching)]
    findings.extend(capacity.check_capacity(state, decisions))
    findings.extend(capacity.check_quotas(state, decisions))
    for decided in decisions:
        findings.extend(capacity.check_completeness(state, decisions, decided, matching))
    return sorted(set(findings))


def _one(state: State, decided: Decided, matching: Matching) -> Iterator[Violation]:
    """Check one decision. New replicas are checked one by one, the others by what became of them."""
    yield from _counts(decided)
    if state.closed and decided.new:
        text = f"{len(decided.new)} new though the function's input is invalid"
        yield Violation("InvalidInput", decided.title, text)
    yield from _lost(state, decided, matching)
    yield from _moved(decided)
    for replica in decided.new:
        where = f"{decided.deployment.namespace}/{replica.name}"
        cluster = state.clusters.get(replica.cluster)
        if cluster is None:
            yield Violation(
                "Gate", where, f"placed on {replica.cluster}, which cannot be read or is not there"
            )
            continue
        for why in closed(state, decided.deployment, cluster):
            yield Violation("Gate", where, f"placed on {replica.cluster}, but {why}")
        shapes = [shape for shape in decided.deployment.shapes if shape.name == replica.alternative]
        if not all(expressible(state, decided.deployment, shape, cluster) for shape in shapes):
            yield Violation("Gate", where, f"the stack {cluster.spec.stack} cannot express its shape")
        try:
            yield from check_pools(where, decided.deployment, cluster, replica, matching)
        except TooMany:
            yield Violation("Unchecked", where, "there are too many assignments of devices to try them all")
        yield from _named(where, decided, replica)


def _named(where: str, decided: Decided, replica: ModelReplica) -> Iterator[Violation]:
    """Check the name of a new replica, and that no other has its identity."""
    named = f"{decided.deployment.name}-{replica.cluster}-{replica.index}"
    digest = hashlib.sha256(named.encode()).hexdigest()[:5]
    if not replica.name.endswith(f"-{digest}"):
        yield Violation("Name", where, f"does not end in {digest}, the digest of {named}")
    identity = (replica.cluster, replica.index)
    twin = next((one for one in decided.existing if (one.cluster, one.index) == identity), None)
    if twin is not None:
        text = f"{replica.cluster}/{replica.index} is the identity of {twin.name}"
        yield Violation("Identity", where, text)


def _counts(decided: Decided) -> Iterator[Violation]:
    """Check numbers: none beyond what is wanted and the surge, none below `minReplicas`, none above a limit.

    All of them gate new replicas only. What runs is never judged by a number (Law 2).
    """
    deployment, total, new = decided.deployment, len(decided.desired), decided.new
    least = deployment.least
    policy = deployment.spec.placement
    surge = policy.disruption.max_surge if policy and policy.disruption else 0
    if new and total > deployment.wanted + surge:
        text = f"{total} desired, {deployment.wanted} wanted, {len(new)} new"
        yield Violation("TooMany", decided.title, f"{text}, surge {surge}" if surge else text)
    if new and least is not None and total < least:
        yield Violation("MinReplicas", decided.title, f"{len(new)} new below minReplicas {least}")
    if new and not compiles(deployment):
        yield Violation("InvalidInput", decided.title, f"{len(new)} new though a selector does not compile")
    limit = policy.max_replicas_per_cluster if policy else None
    for cluster, count in sorted(Counter(replica.cluster for replica in decided.desired).items()):
        # A replica that leaves when its replacement serves does not count against it.
        if limit is not None and count > limit + surge and any(replica.cluster == cluster for replica in new):
            yield Violation("MaxReplicasPerCluster", decided.title, f"{count} on {cluster}, {limit} allowed")


def _lost(state: State, decided: Decided, matching: Matching) -> Iterator[Violation]:
    """A replica leaves for a reason on the list of Law 2, or not at all. The numbers are those of the list.

    Reason 5, a replica that is being deleted, is not asked for: such a one is not among the existing ones.
    """
    replaceable = len(decided.new)
    identities = {(after.cluster, after.index) for _, after in decided.kept}
    before = deadline(state, decided.deployment)
    surplus = max(0, len(decided.existing) - decided.deployment.wanted)
    gives_way, named = capacity.may_give_way(state), capacity.named_to_give_way(state)
    for replica in decided.lost:
        cluster = state.clusters.get(replica.cluster)
        readable = replica.cluster not in state.unreadable
        if cluster is None and readable and state.clusters:
            continue  # 1. Its cluster is gone, and the list of clusters is no empty answer.
        evicting = [taint for taint in cluster.spec.taints if taint.effect == "NoExecute"] if cluster else []
        if not all(tolerated(decided.deployment, taint) for taint in evicting):
            continue  # 2. A NoExecute taint that the deployment does not tolerate.
        if (replica.cluster, replica.index) in identities:
            continue  # Of two objects with one identity only one is desired.
        if (replica.namespace, replica.name) in gives_way:
            continue  # 6. It yields its place in a pool that holds more than it has, or in a quota.
        if (replica.namespace, replica.name) in named:
            named = frozenset()  # 8. One a pass: the next is judged by what came of it.
            continue
        if surplus and len(decided.desired) >= decided.deployment.wanted:
            surplus -= 1  # 4. Scale down, as far as more are kept than are wanted.
            continue
        if cluster and replaceable and mismatched(decided.deployment, cluster, replica, matching):
            replaceable -= 1  # 3. Its replacement was placed in the same pass, or it would be held.
            continue
        if cluster and replaceable and before is not None and evacuable(cluster, replica, before):
            replaceable -= 1  # 7. Degraded for longer than asked, and its replacement has a place.
            continue
        where = f"{decided.deployment.namespace}/{replica.name}"
        yield Violation("Lost", where, f"leaves {replica.cluster} for no reason that allows it")


def _moved(decided: Decided) -> Iterator[Violation]:
    """Check that no replica changes its cluster or its pools."""
    for before, after in decided.kept:
        was, now = (
            {(engine.name, member.role, member.pool) for engine in one.engines for member in engine.members}
            for one in (before, after)
        )
        where = f"{decided.deployment.namespace}/{before.name}"
        if before.cluster != after.cluster:
            yield Violation("Moved", where, f"from {before.cluster} to {after.cluster}")
        elif before.whole and was != now:
            yield Violation("Moved", where, "to other pools of its cluster")
