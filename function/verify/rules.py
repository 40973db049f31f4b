"""Check decisions against every rule that they must keep."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from function.verify.capacity import check_capacity, check_completeness
from function.verify.evacuation import deadline, evacuable
from function.verify.finding import Violation
from function.verify.gates import closed, compiles, drained, expressible
from function.verify.matching import Matching, TooMany
from function.verify.placing import check_names, check_pools, mismatched
from function.verify.yielding import may_give_way

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from function.api import ModelReplica
    from function.verify.decided import Decided
    from function.verify.state import State


def check(state: State, decisions: Sequence[Decided]) -> list[Violation]:
    """Check decisions that were made one after the other on one state. No finding: they keep every rule."""
    matching = Matching()
    findings = [finding for decided in decisions for finding in _one(state, decided, matching)]
    findings.extend(check_capacity(state, decisions))
    for decided in decisions:
        findings.extend(check_completeness(state, decisions, decided, matching))
    return sorted(set(findings))


def _one(state: State, decided: Decided, matching: Matching) -> Iterator[Violation]:
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
        if not all(expressible(decided.deployment, shape, cluster) for shape in shapes):
            yield Violation("Gate", where, f"the stack {cluster.spec.stack} cannot express its shape")
        try:
            yield from check_pools(where, decided.deployment, cluster, replica, matching)
        except TooMany:
            yield Violation("Unchecked", where, "there are too many assignments of devices to try them all")
        yield from check_names(where, decided, replica)


def _counts(decided: Decided) -> Iterator[Violation]:
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
    """A replica leaves for a reason on the list, or not at all."""
    replaceable = len(decided.new)
    identities = {(after.cluster, after.index) for _, after in decided.kept}
    before = deadline(state, decided.deployment)
    surplus = max(0, len(decided.existing) - decided.deployment.wanted)
    gives_way = may_give_way(state)
    for replica in decided.lost:
        cluster = state.clusters.get(replica.cluster)
        readable = replica.cluster not in state.unreadable
        if cluster is None and readable and state.clusters:
            continue
        if cluster is not None and drained(decided.deployment, cluster):
            continue
        if (replica.cluster, replica.index) in identities:
            continue  # Of two objects with one identity only one is desired.
        if (replica.namespace, replica.name) in gives_way:
            continue
        if surplus and len(decided.desired) >= decided.deployment.wanted:
            surplus -= 1
            continue
        if cluster and replaceable and mismatched(decided.deployment, cluster, replica, matching):
            replaceable -= 1
            continue
        if cluster and replaceable and before is not None and evacuable(cluster, replica, before):
            replaceable -= 1
            continue
        where = f"{decided.deployment.namespace}/{replica.name}"
        yield Violation("Lost", where, f"leaves {replica.cluster} for no reason that allows it")


def _moved(decided: Decided) -> Iterator[Violation]:
    """A replica never changes its cluster or its pools."""
    for before, after in decided.kept:
        where = f"{decided.deployment.namespace}/{before.name}"
        if before.cluster != after.cluster:
            yield Violation("Moved", where, f"from {before.cluster} to {after.cluster}")
        elif before.whole and _pinned(before) != _pinned(after):
            yield Violation("Moved", where, "to other pools of its cluster")


def _pinned(replica: ModelReplica) -> set[tuple[str, str, str]]:
    return {
        (engine.name, member.role, member.pool) for engine in replica.engines for member in engine.members
    }
