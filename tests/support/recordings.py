"""Recorded calls, of requests with a secret wherever one may stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.runner import Function
from function.server.services import Recorder
from tests.support import build
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-77e1"


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def _say(self, event: str, **more: Any) -> None:
        self.said.append((event, more))

    info = warning = error = _say


def recorded(folder: Path, *requests: bytes, log: Log | None = None, **limits: int) -> Recorder:
    recorder = Recorder(folder, log or Log(), "tested", **limits)
    function = Function(Log(), recorder=recorder)
    for request in requests:
        function.answer(request)
    return recorder


def secret_world() -> World:
    parent = build.deployment("chat", 2)
    container = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"][
        "containers"
    ][0]
    container["env"] = [{"name": "HF_TOKEN", "value": CANARY}]
    container["args"] = [f"--key={CANARY}"]
    parent["metadata"]["annotations"] = {"note": CANARY}
    running = build.replica(parent, "east", 0, ready=True)
    clusters = [build.cluster("east", [build.pool("h100", 3)])]
    return World(parent, clusters, [running], build.observed(running))


def secret_request() -> bytes:
    message = secret_world().message()
    message.context.update({"secret": CANARY})
    message.observed.resources["replica-east-0"].connection_details["password"] = CANARY.encode()
    return message.SerializeToString()
