"""provider-kubernetes itself is killed, its cluster is away, and somebody edits by hand.

Nothing that serves is lost meanwhile (Law C), no Object is made anew, and all is as wanted in the end.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.live import faults, fleet, workload
from tests.live.plane import is_true, name_of, path, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = [pytest.mark.live, faults.LONG, pytest.mark.usefixtures("cluster_controllers")]

Plain = dict[str, Any]

NAMESPACE, CLUSTER, GROUP = "provider", "byo-provider", "provider"
MODEL = fleet.small_deployment("provided", GROUP, 2, NAMESPACE)
DOWN, AWAY = 20.0, 75.0
"""Seconds without the provider, and without the cluster: longer than the provider's poll."""
PATIENCE = 420.0
NOWHERE = "https://127.0.0.1:1"
"""Nothing listens there."""


@pytest.fixture(scope="module", autouse=True)
def serving(living: ControlPlane, cluster_controllers: None) -> Iterator[None]:
    """A deployment that serves on a cluster of the provider; nothing of it is left in the end."""
    living.apply(fleet.applicable(workload.declared_class()))
    living.apply(workload.declared_cluster(CLUSTER, GROUP, 4))
    until(lambda: is_true(living.get("InferenceCluster", CLUSTER), "Ready"), f"{CLUSTER} Ready", PATIENCE)
    fleet.create_namespace(living, NAMESPACE)
    living.apply(MODEL)
    until(lambda: len(fleet.endpoints(living, MODEL)) == 2, "an endpoint of each", PATIENCE)
    yield
    living.kubectl("delete", "modeldeployment", name_of(MODEL), "-n", NAMESPACE, "--wait=false")
    until(lambda: not workload.remains(living, NAMESPACE), "nothing remains", PATIENCE)
    fleet.leave(living, NAMESPACE)
    living.kubectl("delete", "inferencecluster", CLUSTER, "--wait=false")
    until(lambda: living.get("InferenceCluster", CLUSTER) is None, "the cluster gone", PATIENCE)


def standing(living: ControlPlane) -> set[str]:
    """What must not be lost: replicas, endpoints, what manages their workloads, and the workloads."""
    plains = [
        *fleet.replicas(living, MODEL),
        *fleet.endpoints(living, MODEL),
        *living.list("ClusterProviderConfig"),
        *(plain for plain in living.list("Object", NAMESPACE) if manages(plain)),
        *living.list("Deployment", workload.REMOTE),
        *living.list("ResourceClaimTemplate", workload.REMOTE),
    ]
    return {plain["metadata"]["uid"] for plain in plains if "deletionTimestamp" not in plain["metadata"]}


def manages(plain: Plain) -> bool:
    """Whether an Object does more than observe: those of pods come and go with them."""
    return bool(plain["spec"].get("managementPolicies", ["*"]) != ["Observe"])


def edit(living: ControlPlane, image: str, replicas: int) -> None:
    """Want another image and number."""
    (engine,) = MODEL["spec"]["template"]["spec"]["engines"]
    engine["members"][0]["template"]["spec"]["containers"][0]["image"] = image
    MODEL["spec"]["replicas"] = replicas
    living.apply(MODEL)


def until_all_run(living: ControlPlane, image: str, replicas: int) -> None:
    """Wait until every replica has a pod of an image, and an endpoint."""
    until(lambda: len(workload.pods(living, image)) == replicas, f"{replicas} pods run {image}", PATIENCE)
    until(lambda: len(fleet.endpoints(living, MODEL)) == replicas, "an endpoint of each", PATIENCE)


def test_a_provider_that_is_killed_loses_nothing(living: ControlPlane, day: Day) -> None:
    before = standing(living)
    with day.step(f"provider-kubernetes killed for {DOWN:.0f} s, edit and scale", "done, nothing lost"):
        with faults.killed(living, "provider"):
            edit(living, "vllm/vllm-openai:v0.12.0", 3)
            time.sleep(DOWN)
        until_all_run(living, "vllm/vllm-openai:v0.12.0", 3)
    assert before - standing(living) == set()


def test_a_cluster_that_is_away_loses_nothing(living: ControlPlane, day: Day) -> None:
    """Its kubeconfig leads nowhere for a while."""
    before = standing(living)
    kubeconfig = (living.state / "admin.kubeconfig").read_text()
    with day.step(f"the cluster's API away for {AWAY:.0f} s, edit", "done, nothing lost"):
        point(living, kubeconfig.replace("https://127.0.0.1:26443", NOWHERE))
        edit(living, "vllm/vllm-openai:v0.13.0", 3)
        time.sleep(AWAY)
        assert before - standing(living) == set()
        point(living, kubeconfig)
        until_all_run(living, "vllm/vllm-openai:v0.13.0", 3)
    assert before - standing(living) == set()


def point(living: ControlPlane, kubeconfig: str) -> None:
    """Have the cluster's secret hold a kubeconfig."""
    patch = json.dumps({"stringData": {"kubeconfig": kubeconfig}})
    living.kubectl("patch", "secret", workload.KUBECONFIG, "-n", workload.SYSTEM, "-p", patch)


def test_what_is_edited_by_hand_is_put_back(living: ControlPlane, day: Day) -> None:
    before = standing(living)
    (one, *_) = [plain for plain in living.list("Object", NAMESPACE) if serves(plain)]
    wanted = one["spec"]["forProvider"]["manifest"]["spec"]
    where, remote = path("Object", name_of(one), NAMESPACE), managed(one)
    with day.step("an Object is edited by hand, and what it manages", "both are put back"):
        workload.patch(living, where, {"spec": {"forProvider": {"manifest": {"spec": {"replicas": 7}}}}})
        workload.patch(living, remote, {"spec": {"progressDeadlineSeconds": 77}})

        def is_back() -> bool:
            current = living.get("Object", name_of(one), NAMESPACE) or {}
            there = (living.request("GET", remote) or {}).get("spec", {})
            same = current["spec"]["forProvider"]["manifest"]["spec"] == wanted
            kept = ("replicas", "progressDeadlineSeconds")
            return bool(same and all(there.get(name) == wanted[name] for name in kept))

        until(is_back, "the Object and the Deployment as they were", PATIENCE)
    assert before - standing(living) == set()


def serves(plain: Plain) -> bool:
    manifest = plain["spec"]["forProvider"]["manifest"]
    return manifest["kind"] == "Deployment" and not manifest["metadata"]["name"].endswith("-epp")


def managed(plain: Plain) -> str:
    """The path of what an Object manages."""
    manifest = plain["spec"]["forProvider"]["manifest"]
    return path("Deployment", manifest["metadata"]["name"], workload.REMOTE)
