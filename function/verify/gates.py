"""Gates: what a cluster must be like before a new replica may go there.

Every gate of docs/how-it-schedules.md, written anew from its sentence: taints, the clusterSelector, Ready, a
gateway, the cache's footprint, the stack, a lost cluster. `closed` names all that are shut, while the
scheduler stops at the first. The limit of replicas per cluster is in `rules`, as it needs the decision.

`deadline`, `lost` and `evacuable` are the rule of `placement.evacuate`: a replica may be given up for having
been lost or degraded too long. They go by observed heartbeats only, because there is no clock (Law 1), and
never where half of the fleet seems to be gone, because then it is the control plane that is cut off.

Limits: a gate says nothing of what runs. What is behind a shut gate stays, but for a NoExecute taint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from function.api import InferenceCluster, ModelDeployment, ModelReplica, Taint
from function.api.deployment import ReplicaShape
from function.api.expressible import obstacle, pods_of
from function.api.fault import Malformed
from function.api.model import mapping, mappings
from function.api.text import seconds_of
from function.api.workload import Workload
from function.cel import DIALECTS, CompileError, bind_cluster, compile_cluster, compile_device, compile_node
from function.verify.state import State


def deadline(state: State, deployment: ModelDeployment) -> int | None:
    """Return the time before which a fault has lasted too long; None: nothing may be given up for it.

    Now is what most of the clusters that are alive have reached: one whose clock is ahead decides nothing.
    """
    policy = deployment.spec.placement
    if policy is None or policy.evacuate is None:
        return None
    # No clock (Law 1): time is what the clusters' own heartbeats say, and a single one says nothing.
    alive = [cluster for cluster in state.clusters.values() if not cluster.deleting]
    beats = [beat for item in alive if (beat := item.heartbeat) is not None]
    after = policy.evacuate.after_seconds
    cut_off = 2 * sum(beat >= max(beats) - after for beat in beats) < len(beats)
    if len(beats) <= 1 or cut_off:
        return None
    reached = [beat for beat in beats if 2 * sum(other >= beat for other in beats) > len(beats)]
    return max(reached) - after


def lost(cluster: InferenceCluster, before: int) -> bool:
    """Tell whether nothing was heard of a cluster since, and nobody says that it is reached."""
    return cluster.heartbeat is not None and cluster.heartbeat < before and not cluster.reached


def evacuable(cluster: InferenceCluster, replica: ModelReplica, before: int) -> bool:
    """Tell if a replica could be given up. Since when it is not Ready itself, the checker does not read."""
    if lost(cluster, before):
        return True
    conditions = cluster.status.conditions if cluster.status else ()
    since = [
        seconds_of(condition.last_transition_time) for condition in conditions if condition.type == "Ready"
    ]
    if cluster.ready is False and all(item is not None and item < before for item in since):
        return True
    created = seconds_of(replica.created)
    return replica.ready is False and (not replica.created or (created is not None and created < before))


def tolerated(deployment: ModelDeployment, taint: Taint) -> bool:
    """The Kubernetes rule of taints and tolerations."""
    for toleration in deployment.template.tolerations:
        if toleration.effect is not None and toleration.effect != taint.effect:
            continue
        if toleration.operator == "Exists" and toleration.key in ("", taint.key):
            return True
        if toleration.operator == "Equal" and (toleration.key, toleration.value) == (taint.key, taint.value):
            return True
    return False


def _selected(deployment: ModelDeployment, cluster: InferenceCluster) -> bool:
    """Tell whether the clusterSelector selects the cluster: labels, expressions and CEL, all of them.

    A text that does not compile selects none: a new replica goes nowhere while the input is invalid.
    """
    selector, labels = deployment.template.cluster_selector, cluster.labels
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    for expression in selector.match_expressions:
        present, among = expression.key in labels, labels.get(expression.key) in expression.values
        holds = {"In": among, "NotIn": not among, "Exists": present, "DoesNotExist": not present}
        if not holds[expression.operator]:
            return False
    subject = bind_cluster(name=cluster.name, labels=labels, attributes=cluster.attributes)
    try:
        return all(compile_cluster(source).evaluate(subject).kind == "match" for source in selector.cel)
    except CompileError:
        return False


def closed(state: State, deployment: ModelDeployment, cluster: InferenceCluster) -> Iterator[str]:
    """Every reason why the cluster takes no new replica of the deployment, capacity aside."""
    if cluster.deleting:
        yield "it is being deleted"
    if not _selected(deployment, cluster):
        yield "the clusterSelector does not match it"
    for taint in cluster.spec.taints:
        if not tolerated(deployment, taint):
            yield f"its taint {taint} is not tolerated"
    if cluster.ready is not True:
        yield "it is not Ready"
    if not cluster.gateway:
        yield "it has no gateway address"
    if not any(expressible(state, deployment, shape, cluster) for shape in deployment.shapes):
        yield f"its stack {cluster.spec.stack} cannot express any shape"
    before = deadline(state, deployment)
    if before is not None and lost(cluster, before):
        yield "it is lost"
    yield from _unstaged(state, deployment, cluster)


def _unstaged(state: State, deployment: ModelDeployment, cluster: InferenceCluster) -> Iterator[str]:
    """Say why the weights of the deployment's cache are not to be expected there."""
    if not deployment.cache:
        return
    cache = state.caches.get((deployment.namespace, deployment.cache))
    footprint = cache.footprint if cache else None
    if footprint is None or any(cluster.labels.get(key) != value for key, value in footprint.items()):
        yield f"ModelCache {deployment.cache} is not staged there"
    policy = deployment.spec.placement
    if policy and policy.cache == "Require":
        listed = mappings(mapping(cache.status).get("clusters")) if cache else []
        phases = [entry.get("phase") for entry in listed if entry.get("name") == cluster.name]
        if phases != ["Ready"]:  # Listed twice, nothing is known of it.
            yield f"ModelCache {deployment.cache} is not Ready there"


def expressible(
    state: State, deployment: ModelDeployment, shape: ReplicaShape, cluster: InferenceCluster
) -> bool:
    """Tell if the pods of a shape can run on the cluster's stack, as the handler of replicas would say.

    That is asked of every cluster, and differs by its stack alone.
    """
    key = id(shape), cluster.spec.dialect
    if key not in state.expressed:
        state.expressed[key] = shape, _expressible(deployment, shape, cluster.spec.dialect)
    return state.expressed[key][1]


def _expressible(deployment: ModelDeployment, shape: ReplicaShape, dialect: str) -> bool:
    spec: dict[str, Any] = {"clusterName": "any", "serving": deployment.template.serving or {}}
    if deployment.cache:
        spec["modelCacheRef"] = {"name": deployment.cache}
    spec["engines"] = [
        engine.model_dump(by_alias=True, include={"name", "copies", "phase", "members"})
        for engine in shape.engines
    ]
    for member in (member for engine in spec["engines"] for member in engine["members"]):
        member["nodePoolName"] = "any"
    try:
        replica = Workload.parse({"metadata": {"name": "any"}, "spec": spec})
    except Malformed:  # The handler of replicas names it.
        return True
    return not obstacle(dialect, pods_of(replica))


def compiles(deployment: ModelDeployment) -> bool:
    """Tell whether every selector of the deployment compiles."""
    members = [member for shape in deployment.shapes for engine in shape.engines for member in engine.members]
    selectors = [member.node_selector for member in members]
    try:
        for source in deployment.template.cluster_selector.cel:
            compile_cluster(source)
        for selector in selectors:
            for node in selector.selectors:
                compile_node(node.cel)
        for sub in (sub for s in selectors for request in s.devices for sub in request.ranked):
            for device in sub.selectors:
                if not any(_compiles(device.cel, release) for release in DIALECTS):
                    return False
    except CompileError:
        return False
    return True


def _compiles(source: str, release: str) -> bool:
    """Tell whether a release accepts a text; which release a cluster runs is not asked here."""
    try:
        compile_device(source, release)
    except CompileError:
        return False
    return True
