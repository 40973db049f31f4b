"""A real cluster without kubelets on loopback: its scripts, a small client, and nodes with devices.

The scripts start etcd, kube-apiserver, kube-controller-manager, kube-scheduler with DRA and the
LeaderWorkerSet controller, and play the kubelet: a bound pod is Ready. The real programs decide what binds.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from example.caller import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Plain = dict[str, Any]

PORT = 36443
PROGRAMS = ("kubectl", "etcd", "openssl", "xz")
_CORE, _RESOURCE = "/api/v1", "/apis/resource.k8s.io/v1"
PATHS = {
    "Node": f"{_CORE}/nodes",
    "Pod": f"{_CORE}/namespaces/default/pods",
    "Service": f"{_CORE}/namespaces/default/services",
    "ResourceSlice": f"{_RESOURCE}/resourceslices",
    "DeviceClass": f"{_RESOURCE}/deviceclasses",
    "ResourceClaim": f"{_RESOURCE}/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": f"{_RESOURCE}/namespaces/default/resourceclaimtemplates",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets",
}
"""The kinds that decide what binds; routes and what else a replica has are none of the scheduler's."""
_NOT_FOUND, _BUSY = 404, (409, 429, 500, 503)
_local = threading.local()


def scripts() -> Path:
    """The folder with start.sh: what REFEREE says, else beside the control plane's."""
    return Path(os.environ.get("REFEREE") or ROOT.parent / "shared" / "referee").absolute()


def missing() -> str:
    """One sentence about what keeps the cluster from starting here, "" when nothing does."""
    if not (scripts() / "start.sh").exists():
        return f"no cluster: {scripts()}/start.sh is not there; name its folder with REFEREE"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"no cluster: {', '.join(absent)} is missing" if absent else ""


@contextmanager
def started() -> Iterator[None]:
    """Start the cluster and end it."""
    environment = {"GATES": "DRADeviceTaints=true", **os.environ, "SRC": str(ROOT)}
    try:
        subprocess.run([scripts() / "start.sh"], env=environment, check=True, stdout=subprocess.DEVNULL)
        for name, expression in CLASSES.items():
            add_class(name, expression)
        yield
    finally:
        subprocess.run([scripts() / "stop.sh"], env=environment, check=False)


_TYPED = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == "
CLASSES = {
    "gpu.nvidia.com": f"{_TYPED}'gpu'",
    "mig.nvidia.com": f"{_TYPED}'mig'",
    "rdma.dra.net": "device.driver == 'dra.net'",
}


def add_class(name: str, expression: str) -> None:
    """Make a DeviceClass."""
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    apply(head | {"spec": {"selectors": [{"cel": {"expression": expression}}]}})


class RefusedByServer(Exception):
    """The API server takes no such object."""


def call(method: str, path: str, body: object = None, form: str = "application/json") -> Plain:
    """Ask the API server; what is not there is empty."""
    data = None if body is None else json.dumps(body)
    for attempt in range(6):
        if getattr(_local, "connection", None) is None:
            context = ssl._create_unverified_context()  # noqa: S323 - a cluster of its own, on loopback
            _local.connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=context, timeout=60)
        try:
            headers = {"Authorization": "Bearer admin-token", "Content-Type": form}
            _local.connection.request(method, path, data, headers)
            answer = _local.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            _local.connection = None
        else:
            if answer.status < 400:
                return json.loads(text) if text else {}
            if answer.status == _NOT_FOUND and method != "POST":
                return {}
            if answer.status not in _BUSY or attempt == 5:
                raise RefusedByServer(f"{method} {path}: {answer.status} {text.decode()[:500]}")
        time.sleep(0.3 * (attempt + 1))
    raise RefusedByServer(f"{method} {path}: no answer")


def apply(manifest: Plain) -> None:
    """Apply an object on the server's side, as provider-kubernetes does."""
    path = f"{PATHS[manifest['kind']]}/{manifest['metadata']['name']}?fieldManager=referee&force=true"
    call("PATCH", path, manifest, "application/apply-patch+yaml")


def delete(kind: str, name: str, **options: object) -> None:
    """Delete an object, and what it owns."""
    head = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    call("DELETE", f"{PATHS[kind]}/{name}", head | options)


def add_node(name: str, labels: Plain, entries: Sequence[Plain], **spec: object) -> list[tuple[str, str]]:
    """Make a Node and the ResourceSlices of its drivers; return what was made."""
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": EARLY}
    call(
        "POST",
        PATHS["Node"],
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": spec,
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [ready | {"lastTransitionTime": EARLY}],
            },
        },
    )
    call("PATCH", f"{PATHS['Node']}/{name}", {"spec": {"taints": None}}, "application/merge-patch+json")
    made = [("Node", name)]
    for driver in dict.fromkeys(entry["driver"] for entry in entries if claimable(entry)):
        made.append(("ResourceSlice", f"{name}-{driver.replace('.', '-')}"))
        devices = [
            {
                "name": f"{entry['name']}-{at}",
                "attributes": entry["attributes"],
                "capacity": entry["capacity"],
            }
            for entry in entries
            if claimable(entry) and entry["driver"] == driver
            for at in range(entry["count"])
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        head = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": made[-1][1]},
        }
        spec_of_slice = {"driver": driver, "nodeName": name, "pool": pool, "devices": devices}
        call("POST", PATHS["ResourceSlice"], head | {"spec": spec_of_slice})
    return made


EARLY = "2026-01-01T00:00:00Z"


def claimable(entry: Plain) -> bool:
    """Whether a driver publishes an entry."""
    return bool(entry.get("claim", "DRA") == "DRA")


class Seen(threading.Thread):
    """The pods and claims of the cluster, looked at all the time."""

    def __init__(self) -> None:
        """Look, from now on."""
        super().__init__(daemon=True)
        self._items: dict[str, list[Plain]] = {}
        self.looks = 0
        self.start()

    def run(self) -> None:
        """Look again and again."""
        while True:
            try:
                self._items = {
                    kind: call("GET", PATHS[kind]).get("items", []) for kind in ("Pod", "ResourceClaim")
                }
                self.looks += 1
            except RefusedByServer:
                time.sleep(1)
            time.sleep(0.2)

    def of(self, prefix: str, kind: str = "Pod") -> list[Plain]:
        """The objects whose names begin with a prefix."""
        return [item for item in self._items.get(kind, []) if item["metadata"]["name"].startswith(prefix)]

    def fresh(self) -> None:
        """Wait for a look that began after now."""
        before = self.looks
        wait(lambda: self.looks >= before + 2, 30)

    def settled(self, prefix: str, expected: int, *, grace: float = 5.0, limit: float = 90.0) -> list[str]:
        """Wait until so many pods are bound, or surely are not; return what is said of the others."""
        end, since, before = time.monotonic() + limit, time.monotonic(), None
        while True:
            pods = [pod for pod in self.of(prefix) if "deletionTimestamp" not in pod["metadata"]]
            unbound = [pod for pod in pods if not pod["spec"].get("nodeName")]
            if len(pods) == expected and not unbound:
                return []
            state = len(pods), sorted(pod["metadata"]["name"] for pod in unbound)
            since, before = (since, before) if state == before else (time.monotonic(), state)
            refused = bool(unbound) and all(map(_refused, unbound))
            waited = time.monotonic() - since
            # The workers of a gang come after its leader is there.
            if (refused and waited > grace * (1 if len(pods) == expected else 2)) or time.monotonic() > end:
                said = [f"{pod['metadata']['name']}: {_refused(pod)}" for pod in unbound]
                return said or [f"{len(pods)} of {expected} pods"]
            time.sleep(0.1)

    def rolled(self, replicas: Sequence[Plain], grace: float = 120) -> bool:
        """Wait until every pod of some replicas has the image that its replica asks for, and a node.

        False once nothing of them has changed for so long: on a busy machine a rollout takes any time.
        """
        self.fresh()
        since, before = time.monotonic(), self._running(replicas)
        while not all(map(self._rolled, replicas)):
            if (running := self._running(replicas)) != before:
                since, before = time.monotonic(), running
            if time.monotonic() > since + grace:
                return False
            time.sleep(0.1)
        return True

    def _running(self, replicas: Sequence[Plain]) -> list[str]:
        pods = [pod for replica in replicas for pod in self.of(replica["metadata"]["name"])]
        return sorted(f"{pod['metadata']['uid']} {pod['spec'].get('nodeName')}" for pod in pods)

    def _rolled(self, replica: Plain) -> bool:
        members = [member for engine in replica["spec"]["engines"] for member in engine["members"]]
        images = {member["template"]["spec"]["containers"][0]["image"] for member in members}
        pods = self.of(replica["metadata"]["name"])
        bound = all(pod["spec"].get("nodeName") for pod in pods)
        return bound and {pod["spec"]["containers"][0]["image"] for pod in pods} == images


def _refused(pod: Plain) -> str:
    """Why the scheduler did not bind a pod; empty while it has not tried."""
    conditions = (one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled")
    return next((f"{one.get('reason')}: {one.get('message')}"[:300] for one in conditions), "")


def wait(done: Callable[[], bool], limit: float) -> bool:
    """Wait until something is so; False where it never was."""
    end = time.monotonic() + limit
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
