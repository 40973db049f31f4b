"""Remedies: changes that might let one more replica fit, read off the recorded rejections.

Why read off. The changes that could be tried are endless; those that a rejection names are few. A rejection
carries the numbers of what is missing, so the change that would mend it can be written down.

Theory of operation
1. A proposer looks at the clusters with one kind of headline, the nearest miss first, and gives its most
   promising changes. `PROPOSERS` is the order in which kinds are tried.
2. `proposals` takes the best of every kind, then the second best of every kind: one kind of trouble on many
   clusters does not use up the tries of the others.
3. None is proved yet. `hints` tries them out, and gives those that help.

Adding one is step 7 of "A filter" in CONTRIBUTING.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from function.api import Device, InferenceCluster, ModelCache
from function.api.charge import is_anonymous
from function.api.cluster import Gateway
from function.api.deployment import MemberReference, SubRequest, TopologySpread
from function.api.model import ConditionStatus
from function.api.reasons import Reason, Rejection
from function.api.taints import Taint, Toleration, untolerated
from function.api.text import counted, listed
from function.boundary import JsonObject, frozen
from function.cel import Subject, suggest
from function.deployment.explain import change
from function.deployment.explain.change import Effort, InputChange, Rewrite, changed, edited
from function.deployment.explain.lint import Catalogue, unflattened
from function.scheduler.decision import Decision
from function.scheduler.device_matching import MAX_CLAIMED
from function.scheduler.scheduling_input import SchedulingInput, Unshared

# The context of remedies: a decision and its rejections, the nearest miss first.

CHANGES_PER_KIND = 2
"""How many changes of one kind are proposed, and how many clusters a change names."""
REWRITES = 32
"""Pairs of a selector and a device for which a rewrite is looked for: each is tried on every device."""
SHORT = tuple(reason for reason in Reason if reason.short_pool)
"""Reasons that more nodes would mend."""


@frozen
class ProposalContext:
    """The facts that the proposers look at."""

    decision: Decision
    inputs: SchedulingInput
    """Those of the decision."""
    rejections: Mapping[str, Rejection]

    def headed(self, *reasons: Reason) -> list[tuple[InferenceCluster, Rejection]]:
        """The clusters with one of these headlines, the nearest miss first."""
        clusters = self.inputs.fleet.clusters
        rejected = [
            (clusters[name], rejection)
            for name, rejection in self.rejections.items()
            if rejection.reason in reasons and name in clusters
        ]
        return sorted(rejected, key=lambda item: (item[1].missing, item[0].name))


# Remedies for want of nodes: add some, or have another deployment free some.


def nodes(context: ProposalContext) -> Iterator[InputChange]:
    """Add nodes to the pool that misses the fewest."""
    for cluster, rejection in context.headed(*SHORT)[:CHANGES_PER_KIND]:
        needed = _needed(context, cluster, rejection.pool)
        yield _grown(cluster, rejection.pool, rejection.missing)
        if needed > (rejection.needs or 0):
            yield _grown(cluster, rejection.pool, needed - (rejection.free or 0))
    for cluster, _ in context.headed(Reason.JointCapacity)[:1]:
        for pool in cluster.pools:
            free = context.decision.ledger.capacity(cluster.name, pool.name).free_nodes
            needed = _needed(context, cluster, pool.name)
            if needed > free:
                yield _grown(cluster, pool.name, needed - free)


def _needed(context: ProposalContext, cluster: InferenceCluster, pool: str) -> int:
    """Nodes that all engines that fit a pool's devices need there together."""
    placer = context.decision.placer
    verdicts = list(placer.on_pools(cluster)) if placer else []
    first = verdicts[0][0].name if verdicts else ""
    return sum(
        verdict.nodes or 0 for shape, verdict in verdicts if shape.name == first and verdict.pools == (pool,)
    )


def _grown(cluster: InferenceCluster, pool: str, more: int) -> InputChange:
    """The change that adds nodes to a pool, usable at once; `hints` looks for the least number that helps."""
    total = cluster.by_name[pool].nodes

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        status = cluster.status
        if status is None:
            return inputs
        grown = tuple(
            changed(
                published,
                nodes=published.nodes + more,
                usable={"nodes": published.nodes - published.unusable + more, "toCome": published.to_come},
            )
            if published.name == pool
            else published
            for published in status.gpu_pools
        )
        return change.with_cluster(inputs, changed(cluster, status=changed(status, gpu_pools=grown)))

    text = f"add {counted(more, 'node')} to pool {pool} of cluster {cluster.name} ({total} to {total + more})"
    return InputChange(
        "AddNodes",
        Effort.HARDWARE,
        text,
        apply,
        {"cluster": cluster.name, "pool": pool, "nodes": more},
        group=f"nodes {cluster.name}/{pool}",
        smaller=lambda number: _grown(cluster, pool, number),
        bounds=(1, more),
    )


def holders(context: ProposalContext) -> Iterator[InputChange]:
    """Free nodes that another deployment holds, in the pool that misses the fewest."""
    deployment = context.inputs.deployment
    deployment_name = f"{deployment.namespace}/{deployment.name}"
    for cluster, rejection in context.headed(*SHORT)[:CHANGES_PER_KIND]:
        held = context.decision.ledger.holders(cluster.name, rejection.pool)
        enough = [
            (count, holder)
            for holder, count in held.items()
            if holder != deployment_name and not is_anonymous(holder) and count >= rejection.missing
        ]
        if enough:
            yield _freed(context, cluster, rejection, min(enough)[1])


def _freed(
    context: ProposalContext, cluster: InferenceCluster, rejection: Rejection, holder: str
) -> InputChange:
    """Have a holder give up replicas on a pool, the smallest first, until enough nodes are free."""
    pool, freed = rejection.pool, 0
    leaving: set[tuple[str, str]] = set()
    others = context.inputs.fleet.other_replicas
    for replica in sorted(others, key=lambda replica: (replica.nodes.get(pool, 0), replica.name)):
        holds = (replica.holder, replica.cluster) == (holder, cluster.name)
        if holds and replica.nodes.get(pool) and freed < rejection.missing:
            leaving.add((replica.namespace, replica.name))
            freed += replica.nodes[pool]

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        staying = Unshared(
            replica
            for replica in inputs.fleet.other_replicas
            if (replica.namespace, replica.name) not in leaving
        )
        return replace(inputs, fleet=replace(inputs.fleet, other_replicas=staying))

    text = f"free {counted(freed, 'node')} of pool {pool} of cluster {cluster.name}, held by {holder}"
    facts = {"cluster": cluster.name, "pool": pool, "nodes": freed, "heldBy": holder}
    return InputChange("FreeNodes", Effort.FREE, text, apply, facts, group=f"free {cluster.name}/{pool}")


# Remedies for the deployment's own limits: move the one that stands in the way, by as little as it takes.


def limits(context: ProposalContext) -> Iterator[InputChange]:
    """Raise the deployment's own limit by as little as it takes."""
    policy, least = context.inputs.policy, context.inputs.deployment.spec.min_replicas
    if context.decision.withheld and least is not None:
        reach = context.decision.total + context.decision.withheld
        yield _limit(f"lower minReplicas from {least} to {reach}", ("minReplicas",), reach)
    if policy.max_replicas_per_cluster and context.headed(Reason.MaxReplicasPerCluster):
        new = policy.max_replicas_per_cluster + 1
        text = f"raise placement.maxReplicasPerCluster to {new}"
        yield _limit(text, ("placement", "maxReplicasPerCluster"), new)
    yield from _skews(context)
    if context.headed(Reason.SearchBudgetExceeded):
        steps = context.inputs.config.search_budget * 10
        text = f"raise searchBudget in the function's input to {steps}"
        yield InputChange(
            "RaiseLimit",
            Effort.ALTERNATIVE,
            text,
            lambda inputs: replace(inputs, config=changed(inputs.config, search_budget=steps)),
            {"searchBudget": steps},
        )


def _skews(context: ProposalContext) -> Iterator[InputChange]:
    """Allow as much more skew as the nearest of the clusters needs that are too far ahead."""
    needed = {rejection.needs for _, rejection in context.headed(Reason.TopologySpread) if rejection.needs}
    stated = context.inputs.policy.topology_spread or ()
    for at, constraint in enumerate(stated):
        more = [skew for skew in sorted(needed) if skew > constraint.max_skew]
        if constraint.when_unsatisfiable == "DoNotSchedule" and more:
            yield _skewed(stated, at, more[0])


def _skewed(stated: tuple[TopologySpread, ...], at: int, skew: int) -> InputChange:
    """The change that raises one maxSkew. The list is written whole: an edit sets a value at a path."""
    key, old = stated[at].topology_key, stated[at].max_skew
    raised = (*stated[:at], changed(stated[at], max_skew=skew), *stated[at + 1 :])
    spread = [constraint.model_dump(mode="json", by_alias=True, exclude_none=True) for constraint in raised]

    text = f"raise maxSkew of the topologySpread over {key} from {old} to {skew}"
    facts = {"topologyKey": key, "from": old, "maxSkew": skew}
    return InputChange(
        "RaiseLimit",
        Effort.ALTERNATIVE,
        text,
        change.setting(("placement", "topologySpread"), spread),
        facts,
        group=f"skew {key}",
    )


def _limit(text: str, path: tuple[str, ...], value: int) -> InputChange:
    """The change that sets a limit of the deployment, at its path in the spec."""
    apply, name = change.setting(path, value), path[-1]
    return InputChange("RaiseLimit", Effort.ALTERNATIVE, text, apply, {name: value}, group=name)


# Remedies for clusters that are kept out: tolerate a taint, select another label, mend the cluster.

K = TypeVar("K")


def taints(
    context: ProposalContext, effect: str = "NoSchedule", cost: Effort = Effort.TOLERATE
) -> Iterator[InputChange]:
    """Tolerate the taint of an effect that alone keeps most clusters out."""
    tolerations = context.inputs.deployment.template.tolerations
    kept_out: dict[Taint, list[str]] = defaultdict(list)
    for cluster, _ in context.headed(Reason.UntoleratedTaint):
        left = untolerated(cluster.spec.taints, tolerations)
        if len(left) == 1 and left[0].effect == effect:
            kept_out[left[0]].append(cluster.name)
    for taint, names in _widest(kept_out, str):
        yield _tolerated(taint, names, cost)


def _tolerated(taint: Taint, clusters: list[str], cost: Effort) -> InputChange:
    """The change that tolerates one taint. `clusters`: those that nothing else keeps out."""
    toleration = Toleration(key=taint.key, value=taint.value, effect=taint.effect)

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        def edit(plain: JsonObject) -> None:
            spec = plain["spec"]["template"]["spec"]
            spec["tolerations"] = [*spec.get("tolerations", ()), toleration.model_dump(by_alias=True)]

        return edited(inputs, edit)

    facts = {
        "key": taint.key,
        "value": taint.value,
        "effect": taint.effect,
        "clusters": clusters[:CHANGES_PER_KIND],
    }
    drained = " and run where it drains" if cost is Effort.DRAINED else ""
    text = f"tolerate the taint {taint}{drained} ({listed(clusters, CHANGES_PER_KIND)})"
    return InputChange("TolerateTaint", cost, text, apply, facts, group=f"taint {taint}")


def device_taints(context: ProposalContext) -> Iterator[InputChange]:
    """Tolerate, in one request, the taints of devices that alone keep most clusters out."""
    kept_out: dict[tuple[str, tuple[Taint, ...]], list[str]] = defaultdict(list)
    for cluster, rejection in context.headed(Reason.UntoleratedDeviceTaint):
        for leaf in rejection.leaves:
            sub, device = _sub_request(context.inputs, leaf), _device(cluster, leaf)
            if leaf.reason is Reason.UntoleratedDeviceTaint and sub is not None and device is not None:
                kept_out[leaf.request, untolerated(device.taints, sub.tolerations)].append(cluster.name)
    for (request, taints_left), names in _widest(kept_out, str):
        clusters = sorted(set(names))
        yield _device_tolerated(request, taints_left, clusters)


def _device_tolerated(request: str, left: tuple[Taint, ...], clusters: list[str]) -> InputChange:
    """The change that tolerates device taints in every way in which a request may be served."""
    stated = [taint.model_dump(by_alias=True, exclude_defaults=True) for taint in left]

    def edit(plain: JsonObject) -> None:
        for asked in change.requests_in(plain):
            if asked.get("name") == request:
                asked["tolerations"] = [*asked.get("tolerations", ()), *stated]

    named = ", ".join(map(str, left))
    text = f"tolerate the device taint {named} in request {request} ({listed(clusters, CHANGES_PER_KIND)})"
    facts = {"request": request, "taints": stated, "clusters": clusters[:CHANGES_PER_KIND]}
    return InputChange(
        *("TolerateDeviceTaint", Effort.TOLERATE, text, lambda inputs: edited(inputs, edit), facts),
        group=f"device taint {named}",
    )


def labels(context: ProposalContext) -> Iterator[InputChange]:
    """Ask for the other value of the one label that alone keeps most clusters out."""
    wanted = context.inputs.deployment.template.cluster_selector.match_labels
    kept_out: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cluster, _ in context.headed(Reason.ClusterSelectorMismatch):
        wrong = [key for key, value in sorted(wanted.items()) if cluster.labels.get(key) != value]
        if len(wrong) == 1 and wrong[0] in cluster.labels:
            kept_out[wrong[0], cluster.labels[wrong[0]]].append(cluster.name)
    for (key, value), names in _widest(kept_out, tuple):
        yield _selected(key, wanted[key], value, names)


def _selected(key: str, old: str, new: str, clusters: list[str]) -> InputChange:
    """The change that selects another value of a label: a slip where both are near, else an alternative."""
    text = f"select {key}={new} instead of {old} ({listed(clusters, CHANGES_PER_KIND)})"
    facts = {"label": key, "from": old, "to": new, "clusters": clusters[:CHANGES_PER_KIND]}
    cost = Effort.SPELLING if suggest(old, [new]) else Effort.ALTERNATIVE
    apply = change.setting(("template", "spec", "clusterSelector", "matchLabels", key), new)
    return InputChange("SelectLabel", cost, text, apply, facts, group=f"label {key}")


def readiness(context: ProposalContext) -> Iterator[InputChange]:
    """Mend a cluster that is not Ready."""
    ready = (ConditionStatus(type="Ready", status="True"),)
    for cluster, _ in context.headed(Reason.ClusterNotReady)[:CHANGES_PER_KIND]:
        yield _once(cluster, "ClusterReady", "is Ready", conditions=ready)


SOMEWHERE = "192.0.2.1"
"""An address for trying out what one would change; it is reserved for documentation (RFC 5737)."""


def gateways(context: ProposalContext) -> Iterator[InputChange]:
    """Give a cluster a gateway."""
    for cluster, _ in context.headed(Reason.NoGatewayAddress)[:CHANGES_PER_KIND]:
        yield _once(cluster, "ClusterGateway", "has a gateway address", gateway=Gateway(address=SOMEWHERE))


def _once(cluster: InferenceCluster, kind: str, what: str, **status: object) -> InputChange:
    """A cluster that says something else of itself, once it is mended."""

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        if cluster.status is None:
            return inputs
        return change.with_cluster(inputs, changed(cluster, status=changed(cluster.status, **status)))

    text = f"once cluster {cluster.name} {what}"
    return InputChange(kind, Effort.HARDWARE, text, apply, {"cluster": cluster.name}, group=kind)


def caches(context: ProposalContext) -> Iterator[InputChange]:
    """Stage the cache on more clusters: without the one label that alone leaves most of them out."""
    cache = context.inputs.fleet.cache
    if cache is None:
        return
    left_out: dict[str, list[str]] = defaultdict(list)
    for cluster, _ in context.headed(Reason.OutsideCacheFootprint):
        wrong = [key for key, value in sorted(cache.footprint.items()) if cluster.labels.get(key) != value]
        if len(wrong) == 1:
            left_out[wrong[0]].append(cluster.name)
    for key, names in _widest(left_out, str):
        yield _widened(cache, key, names)


def _widened(cache: ModelCache, key: str, clusters: list[str]) -> InputChange:
    """The change that stages a cache on more clusters, by one label less. It is its owner's to make."""

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        left = {label: value for label, value in cache.footprint.items() if label != key}
        selector = changed(cache.spec.cluster_selector, match_labels=left)
        wider = changed(cache, spec=changed(cache.spec, cluster_selector=selector))
        return replace(inputs, fleet=replace(inputs.fleet, cache=wider))

    name, wanted = cache.metadata.name, cache.footprint[key]
    text = f"stage the ModelCache {name} without {key}={wanted} too ({listed(clusters, CHANGES_PER_KIND)})"
    facts = {"cache": name, "label": key, "value": wanted, "clusters": clusters[:CHANGES_PER_KIND]}
    return InputChange("WidenCache", Effort.ALTERNATIVE, text, apply, facts, group=f"cache {key}")


def hydration(context: ProposalContext) -> Iterator[InputChange]:
    """Start where the weights are still on their way, instead of waiting until they are there."""
    if context.headed(Reason.CacheNotReady):
        text = "set placement.cache to Prefer: replicas then start where the cache is not Ready yet"
        facts = {"cache": "Prefer"}
        apply = change.setting(("placement", "cache"), facts["cache"])
        yield InputChange("PreferCache", Effort.ALTERNATIVE, text, apply, facts)


def _widest(kept_out: Mapping[K, list[str]], key: Callable[[K], Any]) -> list[tuple[K, list[str]]]:
    """Return the reason that keeps most clusters out, with those clusters; ties by the order of reasons."""
    ordered = sorted(kept_out.items(), key=lambda item: (-len(item[1]), key(item[0])))
    return ordered[:CHANGES_PER_KIND]


# Remedies for device requests that nothing matches: rewrite one selector, or ask for fewer devices.

BLAMED = (Reason.NoMatchingDevice, Reason.DeviceSelectorError)


def selectors(context: ProposalContext) -> Iterator[InputChange]:
    """Rewrite one device selector so that a device matches: the cheapest, of those the most opening."""
    rewrites = _Rewrites(context.inputs)
    opened: Counter[Rewrite] = Counter()
    for cluster, rejection in context.headed(*BLAMED):
        opened.update({remedy for leaf in rejection.leaves if (remedy := rewrites.of(cluster, leaf))})
    ordered = sorted(opened.items(), key=lambda item: (item[0].cost, -item[1], item[0]))
    yield from (rewritten(cheapest) for cheapest, _ in ordered[:CHANGES_PER_KIND])


class _Rewrites:
    """The rewrites of a deployment's device selectors, each pair of selector and device looked at once."""

    def __init__(self, inputs: SchedulingInput) -> None:
        self._inputs = inputs
        self._catalogue = Catalogue.of(inputs.fleet)
        self._beside: dict[SubRequest, Catalogue] = {}
        self._rewrites: dict[tuple[str, Subject], Rewrite | None] = {}

    def of(self, cluster: InferenceCluster, leaf: Rejection) -> Rewrite | None:
        """The rewrite of the selector that a rejection is about, for the device that came closest."""
        sub, device = _sub_request(self._inputs, leaf), _device(cluster, leaf)
        if leaf.reason not in BLAMED or leaf.selector is None or sub is None or device is None:
            return None
        selector = self._inputs.evaluations.program(sub.selectors[leaf.selector])
        key = (selector.source, device.subject)
        if key not in self._rewrites and len(self._rewrites) < REWRITES:
            self._rewrites[key] = change.rewrite(selector, device.subject, self._about(sub))
        return self._rewrites.get(key)

    def _about(self, sub: SubRequest) -> Catalogue:
        """Return the published devices that a request is about."""
        if sub not in self._beside:
            programs = [self._inputs.evaluations.program(selector) for selector in sub.selectors]
            self._beside[sub] = self._catalogue.beside(programs)
        return self._beside[sub]


def source_of(inputs: SchedulingInput, leaf: Rejection) -> str:
    """The text of the selector that a rejection is about; empty when it is about none."""
    if leaf.selector is None:
        return ""
    if leaf.request:
        sub = _sub_request(inputs, leaf)
        return sub.selectors[leaf.selector].cel if sub else ""
    members = (reference.member for reference in inputs.deployment.members if _is_about(leaf, reference))
    return next(
        (
            member.node_selector.selectors[leaf.selector].cel
            for member in members
            if member.node_selector.selectors
        ),
        "",
    )


def _sub_request(inputs: SchedulingInput, leaf: Rejection) -> SubRequest | None:
    """The way of a request that a rejection is about."""
    for reference in inputs.deployment.requests:
        same = (reference.request.name, reference.rank) == (leaf.request, leaf.rank)
        if same and _is_about(leaf, reference.of):
            return reference.sub
    return None


def _is_about(leaf: Rejection, reference: MemberReference) -> bool:
    """Tell whether a rejection is about a member: shapes may have engines and roles of one name."""
    where = (reference.shape.name, reference.engine.name, reference.member.role)
    return where == (leaf.alternative, leaf.engine, leaf.member)


def _device(cluster: InferenceCluster, leaf: Rejection) -> Device | None:
    """The device entry that a rejection names; one without a name is named by its driver."""
    pool = cluster.by_name.get(leaf.pool)
    devices = pool.devices or () if pool else ()
    return next((device for device in devices if leaf.device in (device.name, device.driver)), None)


_KINDS = {
    Effort.SPELLING: "CorrectSelector",
    Effort.UNIT: "CorrectSelector",
    Effort.GUARD: "GuardSelector",
}


def rewritten(selector: Rewrite) -> InputChange:
    """The change that writes a selector anew, wherever it is written."""

    def edit(plain: JsonObject) -> None:
        for request in change.requests_in(plain):
            for stated in (*request.get("selectors", ()), *request.get("claimSelectors", ())):
                stated["cel"] = selector.new if stated["cel"] == selector.old else stated["cel"]

    kind = _KINDS.get(selector.cost, "RelaxSelector")
    text = f"{selector.meaning}: change the selector {selector.old} to {selector.new}"
    facts = {"selector": selector.old, "instead": selector.new}
    group = f"relax {selector.old}"
    return InputChange(kind, selector.cost, text, lambda inputs: edited(inputs, edit), facts, group=group)


def counts(context: ProposalContext) -> Iterator[InputChange]:
    """Ask for as many devices per node as there are, where the most are."""
    short = {
        (leaf.request, leaf.needs or 0, leaf.free)
        for _, rejection in context.headed(Reason.DeviceCountShort)
        for leaf in rejection.leaves
        if leaf.reason is Reason.DeviceCountShort and leaf.free
    }
    short |= {
        (leaf.request, sub.count, MAX_CLAIMED)
        for _, rejection in context.headed(Reason.ClaimTooLarge)
        for leaf in rejection.leaves
        if (sub := _sub_request(context.inputs, leaf)) and sub.count > MAX_CLAIMED
    }
    if short:
        yield _lowered(*min(short, key=lambda item: (-item[2], item)))


def _lowered(request: str, needs: int, most: int) -> InputChange:
    """The change that asks for as many devices as there are, in the ways that ask for too many."""

    def edit(plain: JsonObject) -> None:
        for stated in change.requests_in(plain):
            if stated.get("name") == request and stated.get("count", 1) == needs:
                stated["count"] = most

    text = f"ask for {most} instead of {needs} devices in request {request}"
    facts = {"request": request, "from": needs, "to": most}
    group = f"count {request}"
    return InputChange(
        "LowerCount", Effort.RELAX, text, lambda inputs: edited(inputs, edit), facts, group=group
    )


PROPOSERS: tuple[Callable[[ProposalContext], Iterator[InputChange]], ...] = (
    selectors,
    labels,
    caches,
    hydration,
    limits,
    taints,
    device_taints,
    holders,
    counts,
    readiness,
    gateways,
    nodes,
    # An operator drains a cluster by a NoExecute taint and wants it empty, so this comes last.
    partial(taints, effect="NoExecute", cost=Effort.DRAINED),
)
"""In the order in which their changes are tried: the cheapest first, as far as a kind has one price."""


def proposals(decision: Decision, rejections: Mapping[str, Rejection]) -> Iterator[InputChange]:
    """Every proposal: the best of each kind first, then the second best of each.

    While a selector does not compile nothing is matched, so then only its correction can help.
    """
    for invalid in decision.inputs.selectors.invalid:
        new, _ = unflattened(invalid.error.source, decision.inputs.fleet)
        if new:
            yield rewritten(Rewrite(Effort.SPELLING, invalid.error.source, new, "correct the spelling"))
    if decision.inputs.selectors.invalid:
        return
    context = ProposalContext(decision, decision.inputs, rejections)
    columns = [list(proposer(context)) for proposer in PROPOSERS]
    for row in range(max(map(len, columns), default=0)):
        yield from (column[row] for column in columns if row < len(column))
