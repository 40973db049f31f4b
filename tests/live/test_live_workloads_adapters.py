"""Adapters on a cluster, with provider-kubernetes itself: placed and listed there, and no pod restarts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.live import fleet, plane, workload
from tests.live.events import TOKENS, Watch
from tests.live.plane import condition, is_true, name_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("cluster_controllers")]

Plain = dict[str, Any]

NAMESPACE, CLUSTER, GROUP = "tuned", "byo-tuned", "tuned"
REPLICAS, PATIENCE = 2, 480.0
MODEL = fleet.small_deployment("tuned", GROUP, REPLICAS, NAMESPACE)
ENGINE = MODEL["spec"]["template"]["spec"]["engines"][0]
ENGINE["adapters"] = {"slots": 2}
POD = ENGINE["members"][0]["template"]["spec"]
POD["volumes"] = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}]
POD["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
POD["containers"][0]["resources"] = {"requests": {"cpu": 1, "memory": "2Gi"}}
BUDGET = 100
"""Tokens that a composite has before Crossplane opens its circuit breaker."""
plane.GROUPS["ConfigMap"] = "v1"


def adapter(name: str, replicas: int) -> Plain:
    spec = {"base": {"deploymentName": name_of(MODEL)}, "source": f"acme/{name}", "replicas": replicas}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelAdapter",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.fixture(scope="module", autouse=True)
def serving(living: ControlPlane, cluster_controllers: None) -> Iterator[None]:
    """A deployment with room that serves on a cluster of the provider; nothing of it is left in the end."""
    for kind in ("modeladapters", "modeladapterplacements"):
        name = f"{kind}.modelplane.ai"
        until(
            lambda name=name: is_true(living.get("CompositeResourceDefinition", name), "Established"),
            f"XRD {name} Established",
            PATIENCE,
        )
    living.apply(fleet.applicable(workload.declared_class()))
    living.apply(workload.declared_cluster(CLUSTER, GROUP, 4))
    until(lambda: is_true(living.get("InferenceCluster", CLUSTER), "Ready"), f"{CLUSTER} Ready", PATIENCE)
    fleet.create_namespace(living, NAMESPACE)
    living.apply(MODEL)
    until(lambda: len(fleet.endpoints(living, MODEL)) == REPLICAS, "an endpoint of each", PATIENCE)
    yield
    living.kubectl("delete", "modeladapters", "--all", "-n", NAMESPACE, "--wait=false")
    until(lambda: not living.list("ModelAdapterPlacement", NAMESPACE), "no place of an adapter", PATIENCE)
    living.kubectl("delete", "modeldeployment", name_of(MODEL), "-n", NAMESPACE, "--wait=false")
    until(lambda: not workload.remains(living, NAMESPACE), "nothing remains", PATIENCE)
    fleet.leave(living, NAMESPACE)
    living.kubectl("delete", "inferencecluster", CLUSTER, "--wait=false")
    until(lambda: living.get("InferenceCluster", CLUSTER) is None, "the cluster gone", PATIENCE)


def listed(living: ControlPlane, field: str) -> dict[str, list[str]]:
    """Return the adapters of a list on the cluster, by replica."""
    adapters = {}
    for replica in map(name_of, fleet.replicas(living, MODEL)):
        held = living.get("ConfigMap", f"{replica}-adapters", workload.REMOTE)
        for text in (held or {}).get("data", {}).values():
            models = json.loads(text)["vLLMLoRAConfig"][field]["models"]
            adapters[replica] = [model["id"] for model in models]
    return adapters


def running(living: ControlPlane) -> dict[str, Any]:
    """Return what a restart would change: the pods, and the template of each Deployment."""
    names = tuple(map(name_of, fleet.replicas(living, MODEL)))
    workloads = [one for one in living.list("Deployment", workload.REMOTE) if name_of(one).startswith(names)]
    pods = [pod for pod in workload.pods(living) if name_of(pod).startswith(names)]
    return {
        "pods": {pod["metadata"]["uid"] for pod in pods},
        "templates": {name_of(one): one["spec"]["template"] for one in workloads},
    }


def serves(living: ControlPlane, name: str, places: int) -> bool:
    """Tell whether an adapter says that it is configured on so many replicas, with an endpoint on each."""
    current = living.get("ModelAdapter", name, NAMESPACE)
    ready = ((current or {}).get("status") or {}).get("replicas", {}).get("ready")
    ways = living.list("ModelEndpoint", NAMESPACE, f"modelplane.ai/adapter={name}")
    return is_true(current, "AdapterReady") and (ready, len(ways)) == (places, places)


def test_an_adapter_is_placed_and_restarts_no_pod(living: ControlPlane, day: Day) -> None:
    before = running(living)
    assert len(before["pods"]) >= REPLICAS
    engines = [one["spec"]["containers"][0] for one in before["templates"].values()]
    mounted = [one for one in engines if any(at["name"] == "scratch" for at in one.get("volumeMounts", ()))]
    assert [one["resources"]["requests"] for one in mounted] == [{"cpu": "1", "memory": "2Gi"}] * REPLICAS
    watch = Watch("ModelAdapter", namespace=NAMESPACE)
    watch.start()
    with day.step("create an adapter of what serves there", "listed on the cluster, an endpoint on each"):
        living.apply(adapter("support", REPLICAS))
        until(
            lambda: list(listed(living, "ensureExist").values()) == [["support"]] * REPLICAS,
            "both lists",
            PATIENCE,
        )
        until(lambda: serves(living, "support", REPLICAS), "an endpoint on each", PATIENCE)
    assert running(living) == before
    assert sum(TOKENS[kind] for _, kind, _, _ in watch.seen) < BUDGET


def test_an_edit_of_the_list_restarts_no_pod(living: ControlPlane, day: Day) -> None:
    before = running(living)
    with day.step("replace it by another one there", "other lists on the cluster, no pod restarts"):
        living.apply(adapter("code", 1))
        living.kubectl("delete", "modeladapter", "support", "-n", NAMESPACE, "--wait=false")
        until(lambda: sorted(listed(living, "ensureExist").values()) == [[], ["code"]], "its list", PATIENCE)
        until(lambda: serves(living, "code", 1), "its endpoint", PATIENCE)
    left = listed(living, "ensureNotExist")
    assert list(left.values()) == [["support"]] * REPLICAS, "the engines are told to forget it"
    assert running(living) == before
    current = living.get("ModelAdapter", "code", NAMESPACE)
    assert condition(current, "AdapterScheduled").get("reason") == "FullyScheduled"
