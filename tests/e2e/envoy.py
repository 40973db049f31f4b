"""A real Envoy, configured by hand with what an HTTPRoute says.

No controller of Gateway API runs here: this file plays its part and translates, so what is proven is that the
route means what it should, not that any one gateway reads it. Every backend gets a hop of its own on loopback
for its rewrite, which Envoy has per route and not per weighted cluster. Envoy draws a backend by a random
number; here each request brings its own, so that shares are counted and not estimated.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Plain = dict[str, Any]
Target = tuple[str, int]
"""Address and port."""

MISSING = "no Envoy: `make envoy` installs one; or put it on the PATH, or set ENVOY=/path/to/envoy"
DRAW = "x-draw"
"""The header with the number that decides between backends."""
STARTED = 30.0
"""Seconds until Envoy answers."""


def binary() -> str:
    """Return the program; skip the test where there is none."""
    beside = Path(sys.executable).parent
    program = os.environ.get("ENVOY") or shutil.which("envoy") or shutil.which("envoy", path=str(beside))
    if not program:
        pytest.skip(MISSING)
    return program


@dataclass
class ModelServer:
    """A fake model: answers every request with its own name, and notes path and host."""

    name: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    @contextmanager
    def running(self) -> Iterator[ModelServer]:
        """Serve until the end of the block."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                server.requests.append((self.path, self.headers["host"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(server.name.encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
            self.port = listening.server_port
            thread = Thread(target=listening.serve_forever)
            thread.start()
            try:
                yield self
            finally:
                listening.shutdown()
                thread.join()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@dataclass(frozen=True)
class Gateway:
    """An Envoy that serves one route."""

    port: int

    def post(self, path: str, draw: int = 0) -> tuple[int, str]:
        """Send a request; return the status and who answered."""
        headers = {DRAW: str(draw), "host": "models.internal"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", b"{}", headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - on loopback
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""


@contextmanager
def serving(route: Plain, leads_to: Mapping[str, Target], folder: Path) -> Iterator[Gateway]:
    """Serve a route. `leads_to`: where each Service leads on this machine."""
    port = free_port()
    file = folder / "envoy.json"
    file.write_text(json.dumps(bootstrap(route, leads_to, port)))
    words = [binary(), "-c", str(file), "--use-dynamic-base-id", "--concurrency", "1", "-l", "error"]
    with subprocess.Popen(words) as process:
        try:
            until_answering(process, port)
            yield Gateway(port)
        finally:
            process.terminate()


def until_answering(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until Envoy accepts connections."""
    deadline = time.monotonic() + STARTED
    while time.monotonic() < deadline:
        assert process.poll() is None, "Envoy refused its configuration"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("Envoy does not answer")


def bootstrap(route: Plain, leads_to: Mapping[str, Target], port: int) -> Plain:
    """Return Envoy's configuration for a route of one rule."""
    (rule,) = route["spec"]["rules"]
    (match,) = rule["matches"]
    prefix, timeout = match["path"]["value"], rule.get("timeouts", {}).get("request", "15s")
    hops = {reference["name"]: free_port() for reference in rule["backendRefs"]}
    shares = [
        {"name": f"hop-{backend['name']}", "weight": backend["weight"]} for backend in rule["backendRefs"]
    ]
    weighted = {"clusters": shares, "header_name": DRAW}
    listeners = [listener("gateway", port, prefix, {"weighted_clusters": weighted, "timeout": timeout})]
    clusters = []
    for reference in rule["backendRefs"]:
        name = reference["name"]
        action = {"cluster": f"to-{name}", "timeout": timeout, **_rewrite(reference)}
        listeners.append(listener(f"hop-{name}", hops[name], prefix, action))
        clusters += [
            cluster(f"hop-{name}", ("127.0.0.1", hops[name])),
            cluster(f"to-{name}", leads_to[name]),
        ]
    return {"static_resources": {"listeners": listeners, "clusters": clusters}}


def _rewrite(reference: Plain) -> Plain:
    (rewrite,) = (
        condition["urlRewrite"] for condition in reference["filters"] if condition["type"] == "URLRewrite"
    )
    host = {"host_rewrite_literal": rewrite["hostname"]} if "hostname" in rewrite else {}
    assert rewrite["path"]["type"] == "ReplacePrefixMatch"
    return {"prefix_rewrite": rewrite["path"]["replacePrefixMatch"], **host}


def address(target: Target) -> Plain:
    """Return an address as Envoy writes it."""
    return {"socket_address": {"address": target[0], "port_value": target[1]}}


def listener(name: str, port: int, prefix: str, action: Plain, filters: Sequence[Plain] = ()) -> Plain:
    """Return a listener of one route. `filters`: what a request passes before it is routed."""
    routes = [{"match": {"prefix": prefix}, "route": action}]
    typed = "type.googleapis.com/envoy.extensions.filters"
    router = {"@type": f"{typed}.http.router.v3.Router"}
    manager = {
        "@type": f"{typed}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [*filters, {"name": "envoy.filters.http.router", "typed_config": router}],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {"name": name, "address": address(("127.0.0.1", port)), "filter_chains": [chain]}


def cluster(name: str, target: Target) -> Plain:
    """Return a cluster of one address."""
    endpoint = {"endpoint": {"address": address(target)}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
