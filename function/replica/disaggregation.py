"""Add what serving pods need when prefill and decode run in engines of their own.

Both exchange KV blocks over NIXL. Requests reach a decode pod at its sidecar, which has prefill done
elsewhere and passes on to the engine beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import SERVING_LABEL
from function.replica.ports import PORT, engine_port, listening

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.api.workload import Workload, WorkloadEngine

SIDECAR_IMAGE = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"

_SIDE_CHANNEL: tuple[dict[str, Any], ...] = (
    {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "5557"},
)


def disaggregated(replica: Workload, engine: WorkloadEngine, template: dict[str, Any]) -> dict[str, Any]:
    """Complete the template of a serving pod; one of an engine without a phase stays as it is."""
    if engine.phase is None:
        return template
    metadata, spec = template["metadata"], template["spec"]
    container = spec["containers"][0]
    container["env"] = with_side_channel(container.get("env", ()))
    spec["volumes"].append({"name": "nixl-shm", "emptyDir": {"medium": "Memory"}})
    if engine.phase == "Decode":
        spec["containers"].append(_sidecar(engine_port(replica, engine)))
    metadata["labels"] |= {
        "app": metadata["labels"][SERVING_LABEL],
        "llm-d.ai/inference-serving": "true",
        "llm-d.ai/role": engine.phase.lower(),
    }
    return template


def with_side_channel(env: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return variables with those of the channel over which KV blocks are exchanged, unless they are set."""
    given = list(env)
    names = {variable["name"] for variable in given}
    return [*given, *(dict(variable) for variable in _SIDE_CHANNEL if variable["name"] not in names)]


def _sidecar(port: int) -> dict[str, Any]:
    """Return the container that stands before a decode engine which listens on `port`."""
    return {
        "name": "pd-sidecar",
        "image": SIDECAR_IMAGE,
        "args": ["--secure-proxy=false", "--kv-connector=nixlv2", f"--vllm-port={port}"],
        **listening(PORT),
    }
