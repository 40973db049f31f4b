"""Follow what an API server says of our kinds, and write it down: one line of JSON for each event.

A line has the seconds since the recording began, the kind, the type of the event (ADDED, MODIFIED, DELETED)
and the object with its resourceVersion. LISTED has every object of a kind: the first line of each, and once
more where the server no longer has what a watch missed (410 Gone). END is the last line of a recording that
was closed. A kind that is not served yet, a server that is away and a watch that ends are tried again.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]

KINDS = {
    **{
        kind: f"/apis/modelplane.ai/v1alpha1/{plural}"
        for kind, plural in {
            "InferenceClass": "inferenceclasses",
            "InferenceCluster": "inferenceclusters",
            "ModelCache": "modelcaches",
            "ModelDeployment": "modeldeployments",
            "ModelEndpoint": "modelendpoints",
            "ModelReplica": "modelreplicas",
            "ModelService": "modelservices",
        }.items()
    },
    "ClusterProviderConfig": "/apis/kubernetes.m.crossplane.io/v1alpha1/clusterproviderconfigs",
    "Object": "/apis/kubernetes.m.crossplane.io/v1alpha1/objects",
}
"""The kinds that are followed, and where they are served."""
PAUSE = 0.5
"""Seconds until a server that is away, or a kind that is not served, is tried again."""
WATCH, SILENT = 240, 300.0
"""Seconds until the server ends a watch, and until one that says nothing is given up."""
_OK, _GONE = 200, 410


class Away(Exception):
    """The server did not answer, or refused: it is tried again."""


@dataclass
class Recorder:
    """Threads that follow one kind each and write to one file."""

    server: str
    token: str
    file: TextIO
    kinds: dict[str, str] = field(default_factory=lambda: dict(KINDS))
    _versions: dict[str, str] = field(default_factory=dict)
    """The last resourceVersion that was seen of a kind; missing until it is listed anew."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _writes: threading.Lock = field(default_factory=threading.Lock)
    _began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, kubeconfig: Path, file: TextIO) -> Recorder:
        """Make a recorder of the first cluster of a kubeconfig, with its first user's token."""
        plain = yaml.safe_load(kubeconfig.read_text())
        return cls(plain["clusters"][0]["cluster"]["server"], plain["users"][0]["user"]["token"], file)

    def start(self) -> None:
        """Follow every kind from now on. A thread may still wait for its server when the process ends."""
        for kind in self.kinds:
            threading.Thread(target=self._follow, args=(kind,), daemon=True).start()

    def close(self) -> None:
        """Write the last line; nothing is written after it."""
        self._write("END")
        with self._writes:
            self._ended.set()
            self.file.close()

    def _write(self, event: str, **more: Any) -> None:
        line = {"at": round(time.monotonic() - self._began, 3), "type": event, **more}
        with self._writes:
            if not self._ended.is_set():
                self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
                self.file.flush()

    def _follow(self, kind: str) -> None:
        while not self._ended.is_set():
            try:
                if kind in self._versions:
                    self._watch(kind)
                else:
                    self._list(kind)
            except (Away, OSError, http.client.HTTPException, ValueError):
                # A line that is cut off is no JSON: the watch goes on from the event before it.
                self._ended.wait(PAUSE)

    def _list(self, kind: str) -> None:
        answer = json.load(self._ask(self.kinds[kind]))
        version = answer["metadata"]["resourceVersion"]
        objects = [bare(plain) for plain in answer.get("items") or []]
        self._write("LISTED", kind=kind, version=version, objects=objects)
        self._versions[kind] = version

    def _watch(self, kind: str) -> None:
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH}"
        answer = self._ask(f"{self.kinds[kind]}?{query}&resourceVersion={self._versions[kind]}")
        if answer.status == _GONE:
            del self._versions[kind]
            return
        for line in answer:
            event = json.loads(line)
            plain = event["object"]
            if event["type"] == "ERROR":
                if plain.get("code") == _GONE:
                    del self._versions[kind]
                    return
                raise Away(str(plain.get("message")))
            if event["type"] != "BOOKMARK":
                self._write(event["type"], kind=kind, object=bare(plain))
            self._versions[kind] = plain["metadata"]["resourceVersion"]

    def _ask(self, where: str) -> http.client.HTTPResponse:
        """Send a request on a connection of its own. Raises Away unless it is answered or gone."""
        address = urlsplit(self.server)
        host, port = str(address.hostname), address.port
        if address.scheme == "https":
            context = ssl._create_unverified_context()  # noqa: S323 - a test's control plane, on loopback
            connection = http.client.HTTPSConnection(host, port, context=context, timeout=SILENT)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=SILENT)
        connection.request("GET", where, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        if answer.status not in (_OK, _GONE):
            answer.close()
            raise Away(f"{where}: {answer.status}")
        return answer


def bare(plain: Plain) -> Plain:
    """Return an object without what no judgement reads and much is written of."""
    metadata = {key: value for key, value in plain["metadata"].items() if key != "managedFields"}
    bared = {**plain, "metadata": metadata}
    if "placement" in (plain.get("status") or {}):
        bared["status"] = {key: value for key, value in plain["status"].items() if key != "placement"}
    return bared
