"""Remedies for clusters that are kept out: tolerate a taint, select another label, mend the cluster."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from function.api.model import ConditionStatus
from function.api.taints import Toleration, untolerated
from function.explain.change import Change, Plain, changed, edited, with_cluster
from function.explain.remedies.seen import EACH, Seen, some
from function.scheduler.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from function.api import InferenceCluster
    from function.api.taints import Taint
    from function.scheduler.question import Question


def taints(seen: Seen) -> Iterator[Change]:
    """Tolerate the taint that alone keeps most clusters out."""
    tolerations = seen.question.deployment.template.tolerations
    kept_out: dict[Taint, list[str]] = defaultdict(list)
    for cluster, _ in seen.headed(Reason.UntoleratedTaint):
        left = untolerated(cluster.spec.taints, tolerations)
        if len(left) == 1:
            kept_out[left[0]].append(cluster.name)
    for taint, names in sorted(kept_out.items(), key=lambda item: (-len(item[1]), str(item[0])))[:EACH]:
        yield _tolerated(taint, names)


def _tolerated(taint: Taint, clusters: list[str]) -> Change:
    toleration = Toleration(key=taint.key, value=taint.value, effect=taint.effect)

    def apply(question: Question) -> Question:
        return edited(question, lambda plain: _add_toleration(plain, toleration))

    facts = {"key": taint.key, "value": taint.value, "effect": taint.effect, "clusters": clusters[:EACH]}
    text = f"tolerate the taint {taint} ({some(clusters)})"
    return Change("TolerateTaint", text, apply, facts, group=f"taint {taint}")


def _add_toleration(plain: Plain, toleration: Toleration) -> None:
    spec = plain["spec"]["template"]["spec"]
    spec["tolerations"] = [*spec.get("tolerations", ()), toleration.model_dump(by_alias=True)]


def labels(seen: Seen) -> Iterator[Change]:
    """Ask for the other value of the one label that alone keeps most clusters out."""
    wanted = seen.question.deployment.template.cluster_selector.match_labels
    kept_out: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cluster, _ in seen.headed(Reason.ClusterSelectorMismatch):
        wrong = [key for key, value in sorted(wanted.items()) if cluster.labels.get(key) != value]
        if len(wrong) == 1 and wrong[0] in cluster.labels:
            kept_out[wrong[0], cluster.labels[wrong[0]]].append(cluster.name)
    ordered = sorted(kept_out.items(), key=lambda item: (-len(item[1]), item[0]))
    for (key, value), names in ordered[:EACH]:
        yield _selected(key, wanted[key], value, names)


def _selected(key: str, old: str, new: str, clusters: list[str]) -> Change:
    def edit(plain: Plain) -> None:
        plain["spec"]["template"]["spec"]["clusterSelector"]["matchLabels"][key] = new

    text = f"select {key}={new} instead of {old} ({some(clusters)})"
    facts = {"label": key, "from": old, "to": new, "clusters": clusters[:EACH]}
    return Change("SelectLabel", text, lambda question: edited(question, edit), facts, group=f"label {key}")


def readiness(seen: Seen) -> Iterator[Change]:
    """Mend a cluster that is not Ready."""
    for cluster, _ in seen.headed(Reason.ClusterNotReady)[:EACH]:
        yield Change(
            "ClusterReady",
            f"once cluster {cluster.name} is Ready",
            _ready(cluster),
            {"cluster": cluster.name},
            group="ready",
        )


def _ready(cluster: InferenceCluster) -> Callable[[Question], Question]:
    def apply(question: Question) -> Question:
        if cluster.status is None:
            return question
        told = (ConditionStatus(type="Ready", status="True"),)
        return with_cluster(question, changed(cluster, status=changed(cluster.status, conditions=told)))

    return apply
