"""Ports of serving pods: where requests arrive, and where an engine listens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.expressible import DECODE_PORT

if TYPE_CHECKING:
    from function.api.workload import Workload, WorkloadEngine

PORT = 8000
"""Where a pod takes requests."""

_HIGHEST_PORT = 65_535


def number(text: str, otherwise: int, highest: int) -> int:
    """Return a flag's value as a number from 1 to `highest`, `otherwise` for anything else."""
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(highest)) else 0
    return value if 1 <= value <= highest else otherwise


def engine_port(replica: Workload, engine: WorkloadEngine) -> int:
    """Return the port that an engine listens on."""
    if not replica.is_disaggregated or engine.phase != "Decode":
        return PORT
    return number(engine.serving.template.container.flag("--port"), DECODE_PORT, _HIGHEST_PORT)


def listening(port: int) -> dict[str, Any]:
    """Return the port of a container that takes requests, and the probe that says it does."""
    return {
        "ports": [{"containerPort": port}],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": port},
            "initialDelaySeconds": 30,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
        },
    }
