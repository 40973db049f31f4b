"""A full fleet of a low class, then deployments of one that preempts: as few give way as are needed.

It comes after `test_live_routing`, which posts CRDs that are installed here too. The clusters are those of
the InferenceCluster handler, with provider-kubernetes. Replicas have no pods: the test says that one is Ready
once its cluster has a node for it, as a kubelet would. `TURNS=20 make live LIVE='-k turns'` takes twenty that
preempt, and as many nodes more.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example.caller import ROOT
from tests.live import fleet, workload
from tests.live.plane import ControlPlane, Refused, is_true, name_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day

pytestmark = pytest.mark.live

Plain = dict[str, Any]

NAMESPACE, GROUP = "preemption", "preemption"
TURNS = int(os.environ.get("TURNS", "5"))
CLUSTERS, NODES = ("preempt-1", "preempt-2"), -(-TURNS * 3 // 4)
LOW = [fleet.small_deployment(f"batch-{at}", GROUP, 2, NAMESPACE) for at in range(NODES)]
HIGH = [fleet.small_deployment(f"chat-{at}", GROUP, 1, NAMESPACE) for at in range(TURNS)]
"""What runs takes every node; what comes then needs two of three of them."""
ARBITRATING, PREEMPTING = "inferenceclusters-arbitrate", "modeldeployments-preempt"
SHIPPED = "modeldeployments.modelplane.ai"
CLASSES = [{"name": "production", "value": 1000, "preempts": True}, {"name": "batch", "value": 10}]
TTL = {"pending": "5s", "settled": "15s"}
"""Up to 2.3 nobody is woken by what is required, so a settled answer is asked for again soon."""
PATIENCE = 900.0
"""Seconds: on 2.3 each of a dozen steps waits for a ttl, and a busy machine takes minutes more."""


@pytest.fixture(scope="module", autouse=True)
def arbitrated(living: ControlPlane) -> Iterator[None]:
    """Clusters that arbitrate; the Compositions are gone in the end, and what was made of them before."""
    if reason := workload.missing():
        pytest.skip(reason)
    living.kubectl("delete", "inferenceclusters", "--all")
    deployments = json.loads(living.kubectl("get", "composition", SHIPPED, "-o", "json"))["spec"]
    clusters = yaml.safe_load((ROOT / "apis/inferenceclusters/composition.yaml").read_text())["spec"]
    (step,) = clusters["pipeline"]
    step["functionRef"] = deployments["pipeline"][0]["functionRef"]
    step["input"] |= {"preemption": "Arbitrate", "accounting": "Node", "ttl": TTL}
    deployments["pipeline"][0]["input"] |= {"priorityClasses": CLASSES, "ttl": TTL}
    with workload.running(living):
        for name, spec in ((ARBITRATING, clusters), (PREEMPTING, deployments)):
            head = {"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition"}
            living.apply({**head, "metadata": {"name": name}, "spec": spec})
        yield
        for deployment in (*LOW, *HIGH):
            living.kubectl(
                *("delete", "modeldeployment", name_of(deployment), "-n", NAMESPACE),
                *("--ignore-not-found", "--wait=false"),
            )
        until(lambda: not on_clusters(living), "no replica is left", PATIENCE)
        living.kubectl("delete", "inferenceclusters", *CLUSTERS, "--ignore-not-found", "--wait=false")
        until(lambda: not any(map(cluster_of(living), CLUSTERS)), "the clusters are gone", PATIENCE)
        living.kubectl("delete", "composition", ARBITRATING, PREEMPTING)
        fleet.leave(living, NAMESPACE)


def cluster_of(living: ControlPlane) -> Any:
    return lambda name: living.get("InferenceCluster", name)


def on_clusters(living: ControlPlane) -> list[Plain]:
    """Every replica on the clusters of this file, also those that are being deleted."""
    return [
        replica
        for replica in living.list("ModelReplica", NAMESPACE)
        if replica["spec"]["clusterName"] in CLUSTERS
    ]


def run_what_has_nodes(living: ControlPlane) -> None:
    """Make replicas Ready, the oldest first, while their cluster has a node that nobody runs on."""
    replicas = on_clusters(living)
    running = Counter(one["spec"]["clusterName"] for one in replicas if is_true(one, "Ready"))
    for replica in sorted(replicas, key=lambda one: (one["metadata"]["creationTimestamp"], name_of(one))):
        name = replica["spec"]["clusterName"]
        leaves = "deletionTimestamp" in replica["metadata"]
        if running[name] < NODES and not leaves and not is_true(replica, "Ready"):
            running[name] += 1
            try:
                fleet.make_ready(living, [replica])
            except Refused:  # It is gone meanwhile: the next look sees it.
                continue


def ready(living: ControlPlane, deployments: list[Plain]) -> list[Plain]:
    """Replicas of some deployments that are Ready and stay."""
    names = {name_of(deployment) for deployment in deployments}
    return [
        replica
        for replica in on_clusters(living)
        if replica["metadata"]["labels"]["modelplane.ai/deployment"] in names
        if is_true(replica, "Ready") and "deletionTimestamp" not in replica["metadata"]
    ]


def all_run(living: ControlPlane, deployments: list[Plain]) -> bool:
    """Let run what has nodes, and tell whether every replica of some deployments does."""
    run_what_has_nodes(living)
    return len(ready(living, deployments)) == sum(one["spec"]["replicas"] for one in deployments)


def quiet(living: ControlPlane) -> bool:
    """Tell whether every cluster says that nobody has to give way and no pool is over."""
    statuses = [(living.get("InferenceCluster", name) or {}).get("status", {}) for name in CLUSTERS]
    over = [pool for status in statuses for pool in status.get("gpuPools", []) if "overcommitted" in pool]
    return all(status.get("givesWay") == [] for status in statuses) and not over


def create(living: ControlPlane, deployments: list[Plain], class_name: str) -> None:
    """Create deployments of a class."""
    for deployment in deployments:
        spec = {**deployment["spec"], "placement": {"priorityClassName": class_name}}
        spec["crossplane"] = {"compositionRef": {"name": PREEMPTING}}
        living.apply({**deployment, "spec": spec})


def test_a_fleet_is_full_of_a_low_class(living: ControlPlane) -> None:
    fleet.create_namespace(living, NAMESPACE)
    living.apply(fleet.applicable(workload.declared_class()))
    for name in CLUSTERS:
        cluster = workload.declared_cluster(name, GROUP, NODES)
        cluster["spec"]["crossplane"] = {"compositionRef": {"name": ARBITRATING}}
        living.apply(cluster)
    for name in CLUSTERS:
        until(
            lambda name=name: is_true(living.get("InferenceCluster", name), "Ready"),
            f"{name} Ready",
            PATIENCE,
        )
    create(living, LOW, "batch")
    until(lambda: all_run(living, LOW), "every node runs the low class", PATIENCE)
    until(
        lambda: all("modelplane.ai/was-ready" in noted(one) for one in ready(living, LOW)), "noted", PATIENCE
    )
    assert {noted(one)["modelplane.ai/priority"] for one in ready(living, LOW)} == {"10"}


def noted(replica: Plain) -> Plain:
    return replica["metadata"].get("annotations") or {}


def test_as_many_give_way_as_are_needed(living: ControlPlane, day: Day) -> None:
    before = {one["metadata"]["uid"] for one in ready(living, LOW)}
    assert len(before) == len(CLUSTERS) * NODES
    create(living, HIGH, "production")
    step = f"{len(HIGH)} deployments of a class that preempts, on a full fleet"
    with day.step(step, f"all Ready, {len(HIGH)} of {len(before)} replicas of the low class gave way"):
        until(lambda: all_run(living, HIGH), "every replica of the high class runs", PATIENCE)
        until(lambda: quiet(living), "nobody has to give way any more", PATIENCE)
    after = {one["metadata"]["uid"] for one in ready(living, LOW)}
    assert len(before & after) == len(before) - len(HIGH), "no Ready replica more than was needed"
    held = Counter(
        one["spec"]["clusterName"]
        for one in on_clusters(living)
        if "deletionTimestamp" not in one["metadata"]
    )
    assert held == dict.fromkeys(CLUSTERS, NODES), "every node is used once"
    waiting = living.list("ModelReplica", NAMESPACE, "modelplane.ai/preempting")
    until(
        lambda: not living.list("ModelReplica", NAMESPACE, "modelplane.ai/preempting"), "no label", PATIENCE
    )
    assert len(waiting) <= len(HIGH)
