"""provider-kubernetes itself is killed, its cluster is away or refuses, and somebody edits by hand.

Nothing that serves is lost meanwhile (Law C), no Object is made anew, and all is as wanted in the end. What
happened to all Objects is followed through the API server's watch, and judged last. The provider comes to
its cluster through a relay, with a token that can be revoked: the control plane itself is never away.

With AWAY=300 the cluster is away for five minutes, and with POLL=10m the provider looks as seldom as it does
where it is shipped.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.history.judge import judge
from tests.history.lives import read
from tests.history.record import Recorder
from tests.live import faults, fleet, workload
from tests.live.plane import condition, is_true, name_of, path, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = [pytest.mark.live, faults.LONG, pytest.mark.usefixtures("cluster_controllers")]

Plain = dict[str, Any]

NAMESPACE, CLUSTER, GROUP = "provider", "byo-provider", "provider"
MODEL = fleet.small_deployment("provided", GROUP, 2, NAMESPACE)
DOWN, AWAY = 20.0, float(os.environ.get("AWAY", "75"))
"""Seconds without the provider, and without the cluster: longer than the provider's poll."""
PATIENCE = 420.0 if workload.POLL == "1m" else 1_500.0
SEEN = 5.0
"""Seconds until the provider has surely seen another Secret: it reads from a cache."""
SECRET = "provider-kubeconfig"
QUOTA = "too-small"


@pytest.fixture(scope="module")
def followed(living: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A recording of all that happens to our kinds and to Objects from here on."""
    file = tmp_path_factory.mktemp("followed") / "history.jsonl"
    recorder = Recorder.of(living.state / "admin.kubeconfig", file.open("w"))
    recorder.start()
    yield file
    recorder.close()


@pytest.fixture(scope="module")
def relay() -> faults.Relay:
    """The way to the cluster."""
    started = faults.Relay()
    started.start()
    return started


@pytest.fixture(scope="module", autouse=True)
def serving(
    living: ControlPlane, cluster_controllers: None, relay: faults.Relay, followed: Path
) -> Iterator[None]:
    """A deployment that serves on a cluster of the provider; nothing of it is left in the end."""
    fleet.create_namespace(living, NAMESPACE)
    metadata = {"name": SECRET, "namespace": workload.SYSTEM}
    living.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    point(living, relay, faults.token(living, NAMESPACE, "first"))
    living.apply(fleet.applicable(workload.declared_class()))
    cluster = workload.declared_cluster(CLUSTER, GROUP, 4)
    cluster["spec"]["cluster"]["existing"]["secretRef"]["name"] = SECRET
    living.apply(cluster)
    until(lambda: is_true(living.get("InferenceCluster", CLUSTER), "Ready"), f"{CLUSTER} Ready", PATIENCE)
    living.apply(MODEL)
    until(lambda: len(fleet.endpoints(living, MODEL)) == 2, "an endpoint of each", PATIENCE)
    yield
    living.kubectl("delete", "modeldeployment", name_of(MODEL), "-n", NAMESPACE, "--wait=false")
    until(lambda: not workload.remains(living, NAMESPACE), "nothing remains", PATIENCE)
    fleet.leave(living, NAMESPACE)
    living.kubectl("delete", "inferencecluster", CLUSTER, "--wait=false")
    until(lambda: living.get("InferenceCluster", CLUSTER) is None, "the cluster gone", PATIENCE)


def standing(living: ControlPlane) -> set[str]:
    """What must not be lost: replicas, what manages their workloads, and the workloads.

    An endpoint may be withdrawn while a pod is replaced, so endpoints are judged by all that happened.
    """
    plains = [
        *fleet.replicas(living, MODEL),
        *living.list("ClusterProviderConfig"),
        *(plain for plain in living.list("Object", NAMESPACE) if manages(plain)),
        *living.list("Deployment", workload.REMOTE),
        *living.list("ResourceClaimTemplate", workload.REMOTE),
    ]
    return {plain["metadata"]["uid"] for plain in plains if "deletionTimestamp" not in plain["metadata"]}


def manages(plain: Plain) -> bool:
    """Whether an Object does more than observe: those of pods come and go with them."""
    return bool(plain["spec"].get("managementPolicies", ["*"]) != ["Observe"])


def edit(living: ControlPlane, image: str, replicas: int, **placement: Plain) -> None:
    """Want another image and number, under a policy or none."""
    (engine,) = MODEL["spec"]["template"]["spec"]["engines"]
    engine["members"][0]["template"]["spec"]["containers"][0]["image"] = image
    MODEL["spec"].pop("placement", None)
    MODEL["spec"] |= {"replicas": replicas, **({"placement": placement} if placement else {})}
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


@pytest.mark.parametrize(
    ("fault", "image"),
    [("away", "v0.13.0"), pytest.param("hangs", "v0.13.1", marks=faults.ASKED)],
)
def test_a_cluster_without_an_answer_loses_nothing(
    living: ControlPlane, day: Day, relay: faults.Relay, fault: str, image: str
) -> None:
    """It takes no connection; or it takes all, and gets minutes later what it was sent, old writes too."""
    before, image = standing(living), f"vllm/vllm-openai:{image}"
    with day.step(f"the cluster's API {fault} for {AWAY:.0f} s, edit", "said, then done, nothing lost"):
        with relay.away() if fault == "away" else relay.hung():
            edit(living, image, 3)
            time.sleep(AWAY)
            until(lambda: SECRET in unreachable(living), f"ClusterReachable names {SECRET}", PATIENCE)
            assert before - standing(living) == set()
        until_all_run(living, image, 3)
        until(lambda: unreachable(living) == "", "ClusterReachable again", PATIENCE)
    assert before - standing(living) == set()


def unreachable(living: ControlPlane) -> str:
    """What the cluster says of not being reached."""
    return str(condition(living.get("InferenceCluster", CLUSTER), "ClusterReachable").get("message", ""))


def point(living: ControlPlane, relay: faults.Relay, token: str) -> None:
    """Have the cluster's secret hold a kubeconfig with a token."""
    kubeconfig = yaml.safe_load((living.state / "admin.kubeconfig").read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = relay.server
    kubeconfig["users"][0]["user"] = {"token": token}
    patch = json.dumps({"stringData": {"kubeconfig": yaml.safe_dump(kubeconfig)}})
    living.kubectl("patch", "secret", SECRET, "-n", workload.SYSTEM, "-p", patch)


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


def messages(living: ControlPlane, kind: str) -> list[str]:
    """What the replicas say in a condition: the reason and the message."""
    rows = [condition(replica, kind) for replica in fleet.replicas(living, MODEL)]
    return [f"{row.get('reason')}: {row.get('message')}" for row in rows]


@contextmanager
def no_more_pods(living: ControlPlane) -> Iterator[None]:
    """Have a ResourceQuota refuse every further pod. Its counts are written here; nobody else counts."""
    where = f"/api/v1/namespaces/{workload.REMOTE}/resourcequotas"
    metadata, hard = {"name": QUOTA, "namespace": workload.REMOTE}, {"pods": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    living.request("POST", where, quota)
    workload.patch(living, f"{where}/{QUOTA}/status", {"status": {"hard": hard, "used": hard}})
    try:
        yield
    finally:
        living.request("DELETE", f"{where}/{QUOTA}")


def test_a_quota_that_refuses_pods_is_named(living: ControlPlane, day: Day) -> None:
    """The replica without a pod uses the budget up, so that no pod of the others is stopped for a new one."""
    before, image = standing(living), "vllm/vllm-openai:v0.14.0"
    replicas = len(fleet.replicas(living, MODEL))
    until(lambda: len(fleet.endpoints(living, MODEL)) == replicas, "an endpoint of each", PATIENCE)
    serving = {name_of(endpoint) for endpoint in fleet.endpoints(living, MODEL)}
    with day.step("a quota of the cluster refuses pods, edit and scale", "said, then done, nothing lost"):
        with no_more_pods(living):
            edit(living, image, 4, rollout={"maxUnavailable": 1})
            said = f"exceeded quota: {QUOTA}"

            def names_it() -> bool:
                return any("FailedCreate" in one and said in one for one in messages(living, "ModelReady"))

            until(names_it, "a replica names the quota that refuses its pod", PATIENCE)
            assert before - standing(living) == set()
            assert {name_of(endpoint) for endpoint in fleet.endpoints(living, MODEL)} == serving
        edit(living, image, 4)
        until_all_run(living, image, 4)
    assert before - standing(living) == set()


def test_credentials_that_are_rotated_lose_nothing(
    living: ControlPlane, day: Day, relay: faults.Relay
) -> None:
    """A wrong token first; then a good one, and the one of before is revoked.

    The provider's watches go on with what they began with, so from then on it sees by its poll alone.
    """
    before, image = standing(living), "vllm/vllm-openai:v0.15.0"
    with day.step("a wrong token, edit; then a new one, the old revoked", "said, then done, nothing lost"):
        point(living, relay, "nobody")
        time.sleep(SEEN)
        edit(living, image, 4)
        wait = "a replica says that the credentials are refused"
        until(lambda: any("credentials" in one for one in messages(living, "ModelUpdated")), wait, PATIENCE)
        assert before - standing(living) == set()
        point(living, relay, faults.token(living, NAMESPACE, "second"))
        living.kubectl("delete", "secret", "first", "-n", NAMESPACE)
        relay.cut()  # As the API server does by itself, after five to ten minutes.
        until_all_run(living, image, 4)

        def all_updated() -> bool:
            return all(is_true(replica, "ModelUpdated") for replica in fleet.replicas(living, MODEL))

        until(all_updated, "all are known to run it", PATIENCE)
    assert before - standing(living) == set()


def test_nothing_composed_left_and_nothing_became_another(followed: Path) -> None:
    """Law C and Law 2, of every version of every Object, ProviderConfig, replica and endpoint meanwhile."""
    history = read(followed)
    assert history.of("Object"), "nothing was followed"
    verdict = judge(history)
    assert verdict.violations == [], verdict.report()
