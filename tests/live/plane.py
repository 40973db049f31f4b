"""A real control plane on loopback: where its scripts are, starting and ending it, and talking to it.

The scripts start etcd, kube-apiserver, kube-controller-manager, a registry and Crossplane as processes. They
cannot run pods, so the function is a process too and the tests play the platform.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from example.caller import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Plain = dict[str, Any]
T = TypeVar("T")

DEFAULT = ROOT.parent / "shared" / "controlplane"
"""Where the scripts are looked for when CONTROLPLANE does not say."""
PROGRAMS = {
    "kubectl": "kubectl",
    "etcd": "etcd, Debian package etcd-server",
    "docker-registry": "docker-registry",
    "openssl": "openssl",
    "xz": "xz, Debian package xz-utils",
    "unshare": "unshare, Debian package util-linux",
}
GROUPS = {
    "Configuration": "pkg.crossplane.io/v1",
    "Function": "pkg.crossplane.io/v1",
    "CompositeResourceDefinition": "apiextensions.crossplane.io/v2",
    "Operation": "ops.crossplane.io/v1alpha1",
    "WatchOperation": "ops.crossplane.io/v1alpha1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Namespace": "v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "Gateway": "gateway.networking.k8s.io/v1",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "Service": "v1",
}
SHIPPED = "2.3.4"
"""The Crossplane that the scripts start where CROSSPLANE_VERSION asks for no other."""
PORT = 26443
PAUSE = 0.05
"""Seconds between two looks: the resolution of every time that is reported."""
PATIENCE = 240.0
"""Seconds until what must be seen is given up on: four times the slowest step of a busy machine."""
_MISSING, _OK = 404, 300


def scripts() -> Path:
    """The folder with up.sh: what CONTROLPLANE says, else the default."""
    return Path(os.environ.get("CONTROLPLANE") or DEFAULT).absolute()


def version() -> str:
    """The version of Crossplane that the scripts start."""
    if said := os.environ.get("CROSSPLANE_VERSION"):
        return said
    built = re.fullmatch(r"controlplane-(\d+\.\d+\.\d+)", scripts().name)  # By `make core`.
    return built[1] if built else SHIPPED


def missing() -> str:
    """One sentence about what keeps the control plane from starting here, "" when nothing does."""
    if not (scripts() / "up.sh").exists():
        return f"no control plane: {scripts()}/up.sh is not there; name its folder with CONTROLPLANE"
    absent = [said for program, said in PROGRAMS.items() if shutil.which(program) is None]
    if absent:
        return f"no control plane: {', '.join(absent)} is missing"
    if os.geteuid() != 0:
        return "no control plane: only root may start Crossplane with a hosts file of its own"
    return ""


class Refused(Exception):
    """The API server or kubectl said no; the text is what it said."""


@dataclass
class ControlPlane:
    """A control plane that runs, or can be started."""

    scripts: Path
    state: Path
    flags: str = ""
    """Flags of Crossplane core."""
    _connection: http.client.HTTPSConnection | None = field(default=None, repr=False)

    @classmethod
    def here(cls, flags: str = "") -> ControlPlane:
        """The one that `make live` uses; nothing is started."""
        state = os.environ.get("CONTROLPLANE_STATE") or Path(tempfile.gettempdir(), "fleet-scheduler-live")
        return cls(scripts(), Path(state).absolute(), flags)

    @property
    def cli(self) -> Path:
        """The crossplane CLI."""
        return self.state / "bin" / "crossplane"

    def up(self, *, rbac: bool = False) -> None:
        """Start it, from nothing; with the RBAC manager, or with Crossplane as an administrator."""
        self.script("down.sh", "--clean")
        self.script("up.sh", CORE_FLAGS=self.flags, **({"RBAC": "1"} if rbac else {}))

    def down(self) -> None:
        """End what was started, and forget its state. Unpacked programs and logs stay."""
        if self._connection is not None:
            self._connection.close()
        self.script("down.sh", "--clean")

    def script(self, name: str, *words: str, **more: str) -> str:
        """Run one of the scripts and return what it prints."""
        environment = {**os.environ, "CONTROLPLANE_STATE": str(self.state), **more}
        return run(["bash", str(self.scripts / name), *words], environment=environment)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """Run kubectl as a user would and return what it prints. Raises Refused."""
        return run(["kubectl", "--kubeconfig", str(self.state / "admin.kubeconfig"), *words], stdin=stdin)

    def shell(self, line: str) -> str:
        """Run a line of the documentation in the repository. Raises Refused."""
        environment = {**os.environ, "KUBECONFIG": str(self.state / "admin.kubeconfig")}
        return run(["bash", "-ec", line], environment=environment)

    def apply(self, *objects: Plain) -> None:
        """`kubectl apply` some objects. Raises Refused."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, kind: str, name: str, namespace: str = "") -> Plain | None:
        """One object, None when there is none."""
        return self.request("GET", path(kind, name, namespace))

    def list(self, kind: str, namespace: str = "", labels: str = "") -> list[Plain]:
        """Every object of a kind, in one namespace or in all, in the order of their names."""
        answer = self.request(
            "GET", path(kind, "", namespace) + (f"?labelSelector={labels}" if labels else "")
        )
        items: list[Plain] = (answer or {}).get("items", [])
        return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), name_of(item)))

    def publish(self, plain: Plain, manager: str = "platform") -> None:
        """Write the status of an object as its controller would: server-side, by a field manager."""
        metadata = plain["metadata"]
        where = path(plain["kind"], metadata["name"], metadata.get("namespace", ""))
        kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
        sent = {**{key: plain[key] for key in ("apiVersion", "kind", "status")}, "metadata": kept}
        query = f"?fieldManager={manager}&force=true"
        self.request("PATCH", f"{where}/status{query}", sent, "application/apply-patch+yaml")

    def request(
        self, method: str, where: str, body: object = None, content_type: str = "application/json"
    ) -> Plain | None:
        """Ask the API server; None when it has no such object. Raises Refused."""
        status, content = self._answer(method, where, body, content_type)
        if status == _MISSING:
            return None
        if status >= _OK:
            raise Refused(json.loads(content).get("message", content.decode()))
        plain: Plain = json.loads(content)
        return plain

    def _answer(self, method: str, where: str, body: object, content_type: str) -> tuple[int, bytes]:
        sent = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer admin-token", "Content-Type": content_type}
        for again in (True, False):
            if self._connection is None:
                context = ssl._create_unverified_context()  # noqa: S323 - its own certificate, on loopback
                self._connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=context, timeout=60)
            try:
                self._connection.request(method, where, sent, headers)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError):
                self._connection.close()
                self._connection = None
                if not again:
                    raise
        raise AssertionError("not reached")


@contextmanager
def controller(plane: ControlPlane, name: str) -> Iterator[None]:
    """Run one more controller of Kubernetes, beside those that the control plane starts."""
    program = plane.state / "bin" / "kube-controller-manager"
    words = [program, f"--controllers={name}", "--kubeconfig", plane.state / "admin.kubeconfig"]
    words += ["--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=26559"]
    words += ["--cert-dir", plane.state / "pki", "--use-service-account-credentials=false"]
    words += ["--horizontal-pod-autoscaler-sync-period=2s"]  # 15 s by default, which prove nothing more.
    log = (plane.state / "logs" / f"{name}.log").open("wb")
    with log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()


def run(words: list[str], stdin: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it prints. Raises Refused with its complaint."""
    ended = subprocess.run(
        words,
        input=stdin,
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if ended.returncode:
        raise Refused(f"{' '.join(words)}\n{ended.stderr.strip()}\n{ended.stdout.strip()}")
    return ended.stdout


def path(kind: str, name: str = "", namespace: str = "") -> str:
    """The path of an object, or of a list of them, on the API server."""
    version = GROUPS.get(kind, "modelplane.ai/v1alpha1")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{within}/{plural}{f'/{name}' if name else ''}"


def name_of(plain: Plain) -> str:
    """The name of an object."""
    return str(plain["metadata"]["name"])


def condition(plain: Plain | None, kind: str) -> Plain:
    """A condition of an object, {} when it has none of that type."""
    conditions = ((plain or {}).get("status") or {}).get("conditions") or []
    return next((condition_row for condition_row in conditions if condition_row["type"] == kind), {})


def is_true(plain: Plain | None, kind: str) -> bool:
    """Whether a condition of an object is True."""
    return condition(plain, kind).get("status") == "True"


def until_all(
    looks: Mapping[str, Callable[[], object]], since: float, seconds: float = PATIENCE
) -> dict[str, float]:
    """Look until all is seen; return the seconds each took, counted from `since` on the monotonic clock.

    Fails after `seconds`, naming what is not seen.
    """
    seen: dict[str, float] = {}
    while len(seen) < len(looks):
        for what, look in looks.items():
            if what not in seen and look():
                seen[what] = time.monotonic() - since
        missing = sorted(looks.keys() - seen.keys())
        assert time.monotonic() - since < seconds or not missing, (
            f"not seen within {seconds:.0f} s: {missing}"
        )
        time.sleep(PAUSE)
    return seen


def until(look: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Look until something is seen, and return it. Fails after `seconds`, saying `what` was not seen."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not seen within {seconds:.0f} s: {what}; last: {seen!r}"
        time.sleep(PAUSE)
