"""A closed loop with a played engine and loader over HTTP: what is said to be configured answers.

The engine has the API for adapters that vLLM documents, and the loader does with a list what the LoRA syncer
of the Gateway API Inference Extension documents. Both handlers are the real ones. Replicas are lost and come,
engines restart and forget, adapters are scaled, deleted and created. After each, every adapter is asked for
wherever a replica's status names it.
"""

from __future__ import annotations

import json
import random
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.adapter.plane import Plane, adapter, replica
from tests.support.scale import count

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE = "base-model"
SLOTS, WAIT = 40, 120
"""Slots of a replica, and the seconds after which a request on the loopback is given up."""


class Engine(BaseHTTPRequestHandler):
    """The routes of an engine that adapters need; which are loaded is its server's."""

    def do_GET(self) -> None:
        """`/health` and `/v1/models`."""
        loaded = self.server.loaded  # type: ignore[attr-defined]
        self._say(200, {"data": [{"id": name} for name in (BASE, *loaded)]})

    def do_POST(self) -> None:
        """Load, unload, complete."""
        loaded = self.server.loaded  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/load_lora_adapter":
            if body["lora_name"] in loaded or len(loaded) >= SLOTS:
                return self._say(400, {"error": "already loaded, or no slot left"})
            loaded[body["lora_name"]] = body["lora_path"]
        elif self.path == "/v1/unload_lora_adapter":
            if loaded.pop(body["lora_name"], None) is None:
                return self._say(404, {"error": "not loaded"})
        elif body["model"] not in (BASE, *loaded):
            return self._say(404, {"error": "no such model"})
        return self._say(200, {"weights": loaded.get(body.get("model"), "")})

    def _say(self, code: int, content: Any) -> None:
        text = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def running() -> Iterator[ThreadingHTTPServer]:
    """Run one engine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    server.loaded = {}  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def call(engine: ThreadingHTTPServer, path: str, body: Any = None) -> tuple[int, Any]:
    """Send one request to an engine."""
    connection = HTTPConnection("127.0.0.1", engine.server_address[1], timeout=WAIT)
    try:
        connection.request(
            "GET" if body is None else "POST", path, None if body is None else json.dumps(body)
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def sync(engine: ThreadingHTTPServer, text: str) -> None:
    """Bring an engine in line with a list, as its loader does: load what is missing, unload what is named."""
    lists = json.loads(text)["vLLMLoRAConfig"]
    have = {model["id"] for model in call(engine, "/v1/models")[1]["data"]}
    # The order of the two is not the loader's promise, so the harder one is played: it loads first.
    for model in lists["ensureExist"]["models"]:
        if model["id"] not in have:
            body = {"lora_name": model["id"], "lora_path": model["source"]}
            call(engine, "/v1/load_lora_adapter", body)
    for model in lists["ensureNotExist"]["models"]:
        if model["id"] in have:
            call(engine, "/v1/unload_lora_adapter", {"lora_name": model["id"]})


class Loop:
    """The namespace, and an engine for each replica in it."""

    def __init__(self, stack: ExitStack, adapters: int, replicas: int) -> None:
        """Start everything."""
        self.stack, self.engines, self.asked = stack, {}, 0
        self.plane = Plane.of([], [adapter(f"lora-{number:03}") for number in range(adapters)])
        for number in range(replicas):
            self.join(f"chat-{number:02}", f"cluster-{number % 3}")

    def join(self, name: str, cluster: str) -> None:
        """Let a replica join."""
        self.plane.replicas[name] = replica(name, cluster, SLOTS)
        self.engines[name] = self.stack.enter_context(running())

    def lose(self, name: str) -> None:
        """Let a replica be gone."""
        self.plane.drop(name)
        del self.engines[name]

    def settle(self) -> None:
        """Reconcile everything, the loaders twice: at the second a slot is free."""
        for _ in range(3):
            self.plane.settle(1)
            for name, engine in self.engines.items():
                (text,) = self.plane.composed[name]["adapters"]["spec"]["forProvider"]["manifest"][
                    "data"
                ].values()
                for _ in range(2):
                    sync(engine, text)

    def check(self) -> None:
        """Ask for every adapter wherever it is said to be configured; nothing else is loaded."""
        for name, engine in self.engines.items():
            said = {entry["name"] for entry in self.plane.replicas[name]["status"]["adapters"]}
            for model in said:
                status, content = call(engine, "/v1/completions", {"model": model, "prompt": "x"})
                assert (status, content["weights"]) == (200, f"acme/{model}-lora"), (name, model)
                self.asked += 1
            assert set(engine.loaded) == said, name
        for name, composite in self.plane.adapters.items():
            assert composite["status"]["replicas"]["ready"] == composite["spec"]["replicas"], name


def test_every_adapter_that_is_said_to_be_configured_answers() -> None:
    adapters, replicas = count(12, 200, 200), count(3, 12, 12)
    draw = random.Random(7)
    with ExitStack() as stack:
        loop = Loop(stack, adapters, replicas)
        loop.settle()
        loop.check()
        names = sorted(loop.plane.adapters)
        for name in draw.sample(names, len(names) // 3):
            loop.plane.adapters[name]["spec"]["replicas"] = draw.choice((0, 2))
        loop.settle()
        loop.check()
        loop.engines["chat-00"].loaded.clear()  # A restart: the engine forgets, its loader does not.
        loop.lose("chat-01")
        loop.join("chat-99", "cluster-1")
        loop.settle()
        loop.check()
        for name in names[: len(names) // 4]:
            del loop.plane.adapters[name]
            loop.plane.composed.pop(name)
        loop.plane.adapters["late"] = adapter("late", replicas=2)
        loop.settle()
        loop.check()
        assert loop.asked >= 3 * (adapters // 2)
