"""A workload cluster behind the control plane: provider-kubernetes itself, and controllers of Deployments.

The API server of the control plane is also that of the workload cluster, so what provider-kubernetes applies
is admitted, defaulted and kept by a real one, and real controllers make pods of it. Nobody schedules or runs
a pod: the kubelet is played (`Kubelet`).

`hack/provider.sh FOLDER` builds provider-kubernetes; PROVIDER_KUBERNETES names the folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from example.caller import ROOT
from tests.live import fleet, plane
from tests.live.plane import PAUSE, ControlPlane, Refused, is_true, name_of, until
from tests.support.slices import devices, resource_slice, slice_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

DEFAULT = ROOT / "dist" / "provider-kubernetes"
SYSTEM = "modelplane-system"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
REMOTE = "default"
"""The namespace of the workload cluster that pods run in."""
ADDRESS = "203.0.113.7"
"""Of its gateway."""
KUBECONFIG = "byo-kubeconfig"
PORTS = ("--metrics-bind-address=127.0.0.1:28090", "--health-probe-bind-addr=127.0.0.1:28091")
POLL = os.environ.get("POLL", "1m")
"""How often the provider looks at what it does not watch; 10m where it is shipped."""
CONTROLLERS = "deployment-controller,replicaset-controller"
BAD_IMAGE = "registry.example.com/models/too-large:v1"
"""A pod that runs it finds no node."""
NO_DEVICES = "0/3 nodes are available: 3 cannot allocate all claims."
"""What its scheduler says."""
CLASS = "eks-g6-l4-8x"
"""Of the example fleet."""
SINCE = "2026-01-01T00:00:00Z"
_PODS = f"/api/v1/namespaces/{REMOTE}/pods"

plane.GROUPS.update(
    {
        "Object": "kubernetes.m.crossplane.io/v1alpha1",
        "ObservedObjectCollection": "kubernetes.m.crossplane.io/v1alpha1",
        "ClusterProviderConfig": "kubernetes.m.crossplane.io/v1alpha1",
        "CustomResourceDefinition": "apiextensions.k8s.io/v1",
        "Deployment": "apps/v1",
        "ResourceClaimTemplate": "resource.k8s.io/v1",
        "HTTPRoute": "gateway.networking.k8s.io/v1",
        "Gateway": "gateway.networking.k8s.io/v1",
    }
)


def folder() -> Path:
    """The folder with the provider's program and CRDs: what PROVIDER_KUBERNETES says, else the default."""
    return Path(os.environ.get("PROVIDER_KUBERNETES") or DEFAULT).absolute()


def missing() -> str:
    """One sentence about what keeps a workload cluster from being there, "" when nothing does."""
    if (folder() / "provider").exists():
        return ""
    return f"no provider-kubernetes: {folder()}/provider is not there; hack/provider.sh {folder()} builds it"


@contextmanager
def running(living: ControlPlane) -> Iterator[None]:
    """Run provider-kubernetes and the controllers, with all of install.md's "What a cluster must have"."""
    _definitions(living)
    _prerequisites(living)
    state, kubeconfig = living.state, f"--kubeconfig={living.state}/admin.kubeconfig"
    provider = [str(folder() / "provider"), "--enable-watches", "--sanitize-secrets", *PORTS]
    provider += ["--webhook-port=28092", f"--poll={POLL}"]
    serving = {"TLS_SERVER_CERTS_DIR": str(state / "tls-server"), "POD_NAMESPACE": "crossplane-system"}
    controllers = [str(state / "bin" / "kube-controller-manager"), kubeconfig, f"--controllers={CONTROLLERS}"]
    controllers += ["--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=28093"]
    controllers += [f"--cert-dir={state}/pki", "--use-service-account-credentials=false"]
    with (
        _process(living, "provider", provider, serving),
        _process(living, "controllers", controllers, {}),
        Kubelet(ControlPlane(living.scripts, living.state)),
    ):
        yield


@contextmanager
def _process(living: ControlPlane, name: str, words: list[str], more: dict[str, str]) -> Iterator[None]:
    environment = {**os.environ, "KUBECONFIG": str(living.state / "admin.kubeconfig"), **more}
    log, pid = (living.state / "logs" / f"{name}.log").open("wb"), living.state / "pids" / name
    with log, subprocess.Popen(words, stdout=log, stderr=log, env=environment) as process:
        pid.write_text(str(process.pid))
        try:
            yield
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)  # It may have been started again since.
            pid.unlink()


def _definitions(living: ControlPlane) -> None:
    """Install the CRDs of the provider and of what the cluster must have, and let Crossplane compose Objects.

    The RBAC manager would give Crossplane these rules for an installed Provider package.
    """
    files = sorted((folder() / "crds").glob("*.yaml"))
    force = ("--server-side", "--force-conflicts")  # Tests of routing bring those of Gateway API, too.
    living.kubectl("apply", *force, *(word for file in files for word in ("-f", str(file))))
    for file in files:
        name = name_of(yaml.safe_load(file.read_text()))
        until(
            lambda name=name: is_true(living.get("CustomResourceDefinition", name), "Established"),
            f"{name} Established",
        )
    groups = ["kubernetes.m.crossplane.io"]
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}
    labels = {"rbac.crossplane.io/aggregate-to-crossplane": "true"}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    living.apply({**kind, "metadata": {"name": "provider-kubernetes", "labels": labels}, "rules": [rule]})


def _prerequisites(living: ControlPlane) -> None:
    """Make the namespaces, the kubeconfig, the gateway, the device class and LeaderWorkerSet's controller."""
    for name in (SYSTEM, "lws-system"):
        living.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    living.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": KUBECONFIG, "namespace": SYSTEM},
            "stringData": {"kubeconfig": (living.state / "admin.kubeconfig").read_text()},
        },
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "inference-gateway", "namespace": SYSTEM},
            "spec": {
                "gatewayClassName": "any",
                "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
            },
        },
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "lws-controller-manager", "namespace": "lws-system"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "lws"}},
                "template": {
                    "metadata": {"labels": {"app": "lws"}},
                    "spec": {"containers": [{"name": "manager", "image": "registry.k8s.io/lws/lws:v0.8.0"}]},
                },
            },
        },
    )
    programmed = {"type": "Programmed", "status": "True", "reason": "Programmed", "message": ""}
    status = {
        "addresses": [{"type": "IPAddress", "value": ADDRESS}],
        "conditions": [{**programmed, "lastTransitionTime": SINCE}],
    }
    gateway = living.get("Gateway", "inference-gateway", SYSTEM)
    assert gateway is not None, "it was applied"
    patch(living, f"{plane.path('Gateway', 'inference-gateway', SYSTEM)}/status", {"status": status})


def pods(living: ControlPlane, image: str = "") -> list[Plain]:
    """The pods of the workload cluster that are not being deleted; with an image, those that run it."""
    listed = (living.request("GET", _PODS) or {}).get("items", [])
    alive = [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]
    return [pod for pod in alive if image in ("", pod["spec"]["containers"][0]["image"])]


def remains(living: ControlPlane, namespace: str) -> list[str]:
    """Names of what serves on the workload cluster, and of the Objects for it in a namespace."""
    kinds = ("Deployment", "ResourceClaimTemplate", "HTTPRoute")
    remote = [name_of(plain) for kind in kinds for plain in living.list(kind, REMOTE)]
    return remote + list(map(name_of, living.list("Object", namespace)))


def declared_class() -> Plain:
    """The class of the nodes."""
    return next(plain for plain in fleet.example_fleet() if name_of(plain) == CLASS)


def declared_cluster(name: str, group: str, nodes: int) -> Plain:
    """A cluster as its platform team declares it, by a kubeconfig and a pool; for a group only."""
    existing = {"secretRef": {"name": KUBECONFIG, "key": "kubeconfig"}}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": name, "labels": {fleet.GROUP: group}},
        "spec": {
            "cluster": {"source": "Existing", "existing": existing},
            "taints": [{"key": fleet.GROUP, "effect": "NoSchedule"}],
            "nodePools": [{"name": "l4", "className": CLASS, "nodeCount": nodes}],
        },
    }


def give_the_platforms_part_back(living: ControlPlane) -> None:
    """Install the Compositions again that `install.take_the_platforms_part` took away."""
    living.kubectl("annotate", "configurationrevisions", "--all", "crossplane.io/paused-")
    for name in ("inferenceclusters", "modelreplicas"):
        words = ("get", "composition", f"{name}.modelplane.ai", "--ignore-not-found")
        until(lambda words=words: living.kubectl(*words), f"the Composition of {name}")


def patch(living: ControlPlane, where: str, body: Plain) -> None:
    """Merge something into an object; one that has gone is no matter."""
    living.request("PATCH", where, body, "application/merge-patch+json")


@dataclass
class Kubelet(threading.Thread):
    """Plays scheduler and kubelet: every pod in `REMOTE` runs and is ready, but for those of `BAD_IMAGE`."""

    living: ControlPlane
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Start no thread yet."""
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Look until the end."""
        while not self._ended.wait(PAUSE * 4):
            for pod in (self.living.request("GET", _PODS) or {}).get("items", []):
                try:
                    self._act(pod)
                except Refused:  # Changed meanwhile: the next look sees it.
                    continue

    def _act(self, pod: Plain) -> None:
        where = f"{_PODS}/{name_of(pod)}"
        if "deletionTimestamp" in pod["metadata"]:
            self.living.request("DELETE", f"{where}?gracePeriodSeconds=0")
        elif pod["spec"]["containers"][0]["image"] == BAD_IMAGE:
            if not pod.get("status", {}).get("conditions"):
                self._say(where, ("PodScheduled",), "False", reason="Unschedulable", message=NO_DEVICES)
        elif not is_true(pod, "Ready"):
            self._say(where, ("PodScheduled", "ContainersReady", "Ready"), "True", phase="Running")

    def _say(
        self, where: str, kinds: tuple[str, ...], status: str, phase: str = "Pending", **more: str
    ) -> None:
        made = [{"type": kind, "status": status, "lastTransitionTime": SINCE, **more} for kind in kinds]
        patch(self.living, f"{where}/status", {"status": {"phase": phase, "conditions": made}})


IMAGES = [
    {"names": [f"registry.example.com/team/image-{at}@sha256:{at:064x}"], "sizeBytes": 1} for at in range(50)
]
"""A kubelet lists the fifty largest."""


def add_nodes(plane: ControlPlane, first: int, last: int) -> None:
    """Add nodes of the pool with their drivers' slices, Ready."""
    for name in (f"seen-{at}" for at in range(first, last)):
        metadata = {"name": name, "labels": {"modelplane.ai/pool": "l4"}}
        plane.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        turn(plane, name, "True", images=IMAGES)
        # Nobody here plays the controller that takes back the taint with which nodes begin.
        patch(plane, f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        attributes = declared_class()["spec"]["devices"][0]
        kind = {key: attributes[key] for key in ("attributes", "capacity")}
        content = resource_slice(name, devices(kind, 8))
        plane.request("POST", SLICES, {**content, "metadata": {"name": slice_name(content)}})


def turn(plane: ControlPlane, node: str, ready: str, beat: str = fleet.SINCE, **more: Any) -> None:
    """Say whether a node is Ready, as its kubelet does, or the node controller where that is silent."""
    row = {"type": "Ready", "status": ready, "lastTransitionTime": fleet.SINCE}
    row |= {"lastHeartbeatTime": beat, "reason": "Played", "message": ""}
    patch(plane, f"/api/v1/nodes/{node}/status", {"status": {"conditions": [row], **more}})


def members(plane: ControlPlane) -> list[Plain]:
    """The Objects of the collections."""
    return plane.list("Object", SYSTEM, "kubernetes.crossplane.io/owned-by-collection")
