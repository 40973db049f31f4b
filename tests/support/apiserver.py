"""A small API server: lists in pages from a table, and the failures of a real one.

Statuses, content types and bodies are those of kube-apiserver 1.35.4, taken down from it. `tests/live` asks
the real one the same.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Plain = dict[str, Any]
PLURALS = {
    "InferenceClass": "inferenceclasses",
    "InferenceCluster": "inferenceclusters",
    "ModelDeployment": "modeldeployments",
    "ModelReplica": "modelreplicas",
    "ModelEndpoint": "modelendpoints",
    "ModelCache": "modelcaches",
    "ModelAdapter": "modeladapters",
    "ModelAdapterPlacement": "modeladapterplacements",
    "Composition": "compositions",
    "Object": "objects",
    "ObservedObjectCollection": "observedobjectcollections",
    "ResourceSlice": "resourceslices",
    "DeviceTaintRule": "devicetaintrules",
    "Node": "nodes",
    "Event": "events",
}
FLEET = tuple(kind for kind in PLURALS if kind.startswith(("Inference", "Model")))
TOKEN, USER = "good-token", "system:serviceaccount:crossplane-system:rbac-manager"
EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent "
    "list - objects that were created, modified, or deleted between the time the first chunk was returned "
    "and now may show up in the list."
)


@dataclass
class Table:
    """What the server has, how it is asked, and how it fails."""

    objects: list[Plain]
    served: set[str]
    """Kinds whose CRD is installed."""
    versions: dict[str, str] = field(default_factory=dict)
    """The only version of some kinds that is served."""
    forbidden: set[str] = field(default_factory=set)
    expire: int = 0
    """So many continuations are refused as too old."""
    busy: int = 0
    """So many requests are answered with 429 first."""
    seconds: float = 0.0
    """Seconds until an answer."""
    moments: list[list[Plain]] = field(default_factory=list)
    """What the server has from the next request for a single object on, and from the one after that."""
    asked: list[str] = field(default_factory=list)

    def list_of(self, kind: str, namespace: str) -> list[Plain]:
        manifests = [plain for plain in self.objects if plain["kind"] == kind]
        inside = (plain for plain in manifests if namespace in ("", plain["metadata"].get("namespace")))
        return sorted(inside, key=lambda plain: (plain["metadata"].get("namespace", ""), _name(plain)))


def _name(plain: Plain) -> str:
    return str(plain["metadata"]["name"])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    table: Table

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass

    def do_GET(self) -> None:
        table = self.table
        table.asked.append(self.path)
        time.sleep(table.seconds)
        if table.busy:
            table.busy -= 1
            self._send(
                429, b"Too many requests, please try again later.\n", "text/plain", {"Retry-After": "0"}
            )
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._fail(401, "Unauthorized", "Unauthorized")
            return
        split = urlsplit(self.path)
        parts = split.path.strip("/").split("/")  # apis/GROUP/VERSION[/namespaces/NAMESPACE]/PLURAL[/NAME]
        parts = ["apis", "", *parts[1:]] if parts[0] == "api" else parts
        namespace = parts[4] if parts[3:4] == ["namespaces"] else ""
        plural, *name = parts[5:] if namespace else parts[3:]
        kind = next((kind for kind in table.served if PLURALS[kind] == plural), None)
        if kind is None or table.versions.get(kind, parts[2]) != parts[2]:
            self._send(404, b"404 page not found\n", "text/plain; charset=utf-8")
            return
        if kind in table.forbidden:
            verb, group = ("get" if name else "list"), parts[1]
            name_of_kind = f"{plural}.{group}" if group else plural
            message = (
                f'{name_of_kind} is forbidden: User "{USER}" cannot {verb} resource "{plural}" '
                f'in API group "{group}" at the cluster scope'
            )
            self._fail(403, "Forbidden", message)
            return
        if name:
            self._one(kind, namespace, name[0])
        else:
            self._page(kind, namespace, {key: value[0] for key, value in parse_qs(split.query).items()})

    def _one(self, kind: str, namespace: str, name: str) -> None:
        if self.table.moments:
            self.table.objects = self.table.moments.pop(0)
        manifests = [plain for plain in self.table.list_of(kind, namespace) if _name(plain) == name]
        if manifests:
            self._answer(manifests[0])
        else:
            self._fail(404, "NotFound", f'{PLURALS[kind]}.modelplane.ai "{name}" not found')

    def _page(self, kind: str, namespace: str, query: dict[str, str]) -> None:
        if "continue" in query and self.table.expire:
            self.table.expire -= 1
            self._fail(410, "Expired", EXPIRED)
            return
        every = self.table.list_of(kind, namespace)
        wanted = query.get("labelSelector", "").partition("=")
        if wanted[0]:
            every = [
                plain for plain in every if plain["metadata"].get("labels", {}).get(wanted[0]) == wanted[2]
            ]
        start = int(query.get("continue", "0"))
        end = start + int(query.get("limit", len(every) + 1))
        rest = {"continue": str(end), "remainingItemCount": len(every) - end} if end < len(every) else {}
        items = every[start:end]
        version = items[0]["apiVersion"] if items else "modelplane.ai/v1alpha1"
        metadata = {"resourceVersion": "659", **rest}
        self._answer({"apiVersion": version, "items": items, "kind": f"{kind}List", "metadata": metadata})

    def _fail(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self._answer({**status, "message": message, "reason": reason, "code": code}, code)

    def _answer(self, plain: Plain, code: int = 200) -> None:
        self._send(code, json.dumps(plain).encode(), "application/json")

    def _send(self, code: int, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        with suppress(ConnectionError):  # A client that waits no longer is what some tests want.
            self._write(code, body, {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})})

    def _write(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(
    objects: Iterable[Plain], served: Iterable[str] = (*FLEET, "Composition")
) -> Iterator[tuple[str, Table]]:
    """Serve objects on loopback; yields the address and the table."""
    table = Table(list(objects), set(served))
    handler = type("Handler", (_Handler,), {"table": table})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", table
        finally:
            server.shutdown()
            thread.join()


def kubeconfig(path: Path, address: str, *, token: str = TOKEN, namespace: str = "ml-team") -> Path:
    """Write a kubeconfig of one context, `production`."""
    context = {"cluster": "c", "user": "u", "namespace": namespace}
    plain = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "production", "context": context}],
        "current-context": "production",
    }
    path.write_text(yaml.safe_dump(plain))
    return path
