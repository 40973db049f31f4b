"""Remedies for clusters that are kept out: tolerate a taint, select another label, mend the cluster."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from function.api.cluster import Gateway
from function.api.model import ConditionStatus
from function.api.reasons import Reason
from function.api.taints import Toleration, untolerated
from function.api.text import listed
from function.cel import suggest
from function.deployment.explain.change import Effort, InputChange, changed, edited, with_cluster
from function.deployment.explain.remedies.context import CHANGES_PER_KIND, ProposalContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from function.api import InferenceCluster, ModelCache
    from function.api.taints import Taint
    from function.boundary import JsonObject
    from function.scheduler.scheduling_input import SchedulingInput


K = TypeVar("K")


def taints(context: ProposalContext) -> Iterator[InputChange]:
    """Tolerate the NoSchedule taint that alone keeps most clusters out."""
    return _tolerations(context, "NoSchedule", Effort.TOLERATE)


def drains(context: ProposalContext) -> Iterator[InputChange]:
    """Tolerate a NoExecute taint, by which somebody drains a cluster: room elsewhere is what they want."""
    return _tolerations(context, "NoExecute", Effort.DRAINED)


def _tolerations(context: ProposalContext, effect: str, cost: Effort) -> Iterator[InputChange]:
    tolerations = context.inputs.deployment.template.tolerations
    kept_out: dict[Taint, list[str]] = defaultdict(list)
    for cluster, _ in context.headed(Reason.UntoleratedTaint):
        left = untolerated(cluster.spec.taints, tolerations)
        if len(left) == 1 and left[0].effect == effect:
            kept_out[left[0]].append(cluster.name)
    for taint, names in _widest(kept_out, str):
        yield _tolerated(taint, names, cost)


def _tolerated(taint: Taint, clusters: list[str], cost: Effort) -> InputChange:
    toleration = Toleration(key=taint.key, value=taint.value, effect=taint.effect)

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        return edited(inputs, lambda plain: _add_toleration(plain, toleration))

    facts = {
        "key": taint.key,
        "value": taint.value,
        "effect": taint.effect,
        "clusters": clusters[:CHANGES_PER_KIND],
    }
    drained = " and run where it drains" if cost is Effort.DRAINED else ""
    text = f"tolerate the taint {taint}{drained} ({listed(clusters, CHANGES_PER_KIND)})"
    return InputChange("TolerateTaint", cost, text, apply, facts, group=f"taint {taint}")


def _add_toleration(plain: JsonObject, toleration: Toleration) -> None:
    spec = plain["spec"]["template"]["spec"]
    spec["tolerations"] = [*spec.get("tolerations", ()), toleration.model_dump(by_alias=True)]


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
    def edit(plain: JsonObject) -> None:
        plain["spec"]["template"]["spec"]["clusterSelector"]["matchLabels"][key] = new

    text = f"select {key}={new} instead of {old} ({listed(clusters, CHANGES_PER_KIND)})"
    facts = {"label": key, "from": old, "to": new, "clusters": _named(clusters)}
    cost = Effort.ALTERNATIVE if suggest(old, [new]) is None else Effort.SPELLING
    return InputChange(
        "SelectLabel", cost, text, lambda inputs: edited(inputs, edit), facts, group=f"label {key}"
    )


def readiness(context: ProposalContext) -> Iterator[InputChange]:
    """Mend a cluster that is not Ready."""
    ready = (ConditionStatus(type="Ready", status="True"),)
    for cluster, _ in context.headed(Reason.ClusterNotReady)[:CHANGES_PER_KIND]:
        yield _once(cluster, "ClusterReady", "is Ready", conditions=ready)


SOMEWHERE = "192.0.2.1"
"""An address for trying out what one would change; nobody has it (RFC 5737)."""


def gateways(context: ProposalContext) -> Iterator[InputChange]:
    """Give a cluster a gateway."""
    for cluster, _ in context.headed(Reason.NoGatewayAddress)[:CHANGES_PER_KIND]:
        yield _once(cluster, "ClusterGateway", "has a gateway address", gateway=Gateway(address=SOMEWHERE))


def _once(cluster: InferenceCluster, kind: str, what: str, **status: object) -> InputChange:
    """A cluster that says something else of itself, once it is mended."""

    def apply(inputs: SchedulingInput) -> SchedulingInput:
        if cluster.status is None:
            return inputs
        return with_cluster(inputs, changed(cluster, status=changed(cluster.status, **status)))

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
    def apply(inputs: SchedulingInput) -> SchedulingInput:
        left = {label: value for label, value in cache.footprint.items() if label != key}
        selector = changed(cache.spec.cluster_selector, match_labels=left)
        wider = changed(cache, spec=changed(cache.spec, cluster_selector=selector))
        return replace(inputs, fleet=replace(inputs.fleet, cache=wider))

    name, wanted = cache.metadata.name, cache.footprint[key]
    text = f"stage the ModelCache {name} without {key}={wanted} too ({listed(clusters, CHANGES_PER_KIND)})"
    facts = {"cache": name, "label": key, "value": wanted, "clusters": _named(clusters)}
    return InputChange("WidenCache", Effort.ALTERNATIVE, text, apply, facts, group=f"cache {key}")


def hydration(context: ProposalContext) -> Iterator[InputChange]:
    """Start where the weights are still on their way, instead of waiting until they are there."""
    if context.headed(Reason.CacheNotReady):

        def edit(plain: JsonObject) -> None:
            plain["spec"].setdefault("placement", {})["cache"] = "Prefer"

        text = "set placement.cache to Prefer: replicas then start where the cache is not Ready yet"
        facts = {"cache": "Prefer"}
        yield InputChange("PreferCache", Effort.ALTERNATIVE, text, lambda inputs: edited(inputs, edit), facts)


def _widest(kept_out: Mapping[K, list[str]], key: Callable[[K], Any]) -> list[tuple[K, list[str]]]:
    """What keeps most clusters out, with those clusters; ties by its own order."""
    ordered = sorted(kept_out.items(), key=lambda item: (-len(item[1]), key(item[0])))
    return ordered[:CHANGES_PER_KIND]


def _named(clusters: list[str]) -> list[str]:
    """The clusters that a change names as data."""
    return clusters[:CHANGES_PER_KIND]
