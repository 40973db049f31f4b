"""Adapters on a replica: the list that its loaders follow, and what loading needs in the pods.

An engine with room for adapters is started with room, and a loader stands beside it: the LoRA syncer of the
Gateway API Inference Extension. It reads a list from a ConfigMap and calls the engine's own API,
`/v1/load_lora_adapter` and `/v1/unload_lora_adapter`. So an edit of the list restarts nothing.

    room_of ▶ placements ▶ config_map        room_flags, with_room ▶ a serving pod

The loader unloads what the list names as absent, and leaves alone what it does not name. So an adapter that
leaves moves to the second list, and stays there for a while: the latest `MAX_ABSENT` of them.

Limits: a loader reports to nobody, so all that can be said of an adapter is that it is *configured*: that the
list on the cluster has it. The kubelet brings an edit of the list into a pod within about a minute.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from function.api.adapter import AdapterPlacement, AdapterRoom, common_room, holders
from function.api.expressible import unfolded
from function.api.model import mapping, mappings, string
from function.api.workload import Container, Workload, WorkloadEngine
from function.boundary import Plain
from function.objects import ObservedObject
from function.replica import names

LOADER_IMAGE = "registry.k8s.io/gateway-api-inference-extension/lora-syncer:v1.2.1"
LOADER, VOLUME, DIRECTORY = "adapter-loader", "adapters", "/adapters"
LISTS = "vLLMLoRAConfig"
"""The key under which the loader finds its lists."""
LOADING = ("/v1/load_lora_adapter", "/v1/unload_lora_adapter")
"""The engine's API for loading, which asks nobody who they are."""
UPDATING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
MAX_ABSENT = 256
"""How many adapters that left are still named for engines that may have them."""
_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})


def room_of(replica: Workload) -> AdapterRoom | None:
    """Return the room of a replica, None where no engine declares any."""
    return common_room(engine.adapters for engine in replica.engines if engine.adapters is not None)


def adapters_head(replica: Workload, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap without its lists: what it is, and where."""
    metadata = {"name": names.adapters_name(replica.name), "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def config_map(
    replica: Workload,
    placements: Iterable[AdapterPlacement],
    before: ObservedObject | None,
    ports: Mapping[str, int],
    namespace: str,
) -> dict[str, Any]:
    """Return the ConfigMap: for each engine with room the adapters it is to have, and those that left.

    `before`: what was applied last. `ports`: of the engines with room, by name. One that cannot be read keeps
    the weights that it was listed with (Law C 2).
    """
    room = room_of(replica)
    present_before, absent_before = _lists({} if before is None else before.manifest)
    held = holders(placements, 0 if room is None else room.adapters)
    present = {
        placement.adapter: placement.source or present_before.get(placement.adapter, "") for placement in held
    }
    present = {name: present[name] for name in sorted(present) if name and present[name]}
    absent = {
        name: source for name, source in {**absent_before, **present_before}.items() if name not in present
    }
    lists = {
        "ensureExist": {"models": _models(present)},
        "ensureNotExist": {"models": _models(dict(list(absent.items())[-MAX_ABSENT:]))},
    }
    data = {}
    for engine, port in sorted(ports.items()):
        content = {LISTS: {"name": replica.name, "port": port, **lists}}
        # JSON is YAML, and as long as every other way to write it is no clearer.
        data[_file(engine)] = json.dumps(content, indent=2) + "\n"
    return adapters_head(replica, namespace) | {"data": data}


def configured(observed: Mapping[str, ObservedObject]) -> tuple[str, ...] | None:
    """Return the adapters that the list on the cluster has; None while no list is seen there."""
    for key in sorted(observed):
        if names.what_of(key) == names.ADAPTERS and observed[key].remote is not None:
            return tuple(sorted(_lists(observed[key].remote or {})[0]))
    return None


def _models(sources: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"id": name, "source": source} for name, source in sources.items()]


def _lists(manifest: Mapping[str, Plain]) -> tuple[dict[str, str], dict[str, str]]:
    """Read both lists of a ConfigMap back; all engines have the same."""
    for text in mapping(manifest.get("data")).values():
        try:
            content = json.loads(string(text))
        except (ValueError, RecursionError):
            continue
        lists = mapping(mapping(content).get(LISTS))
        present, absent = (
            {
                string(model.get("id")): string(model.get("source"))
                for model in mappings(mapping(lists.get(field)).get("models"))
            }
            for field in ("ensureExist", "ensureNotExist")
        )
        return present, absent
    return {}, {}


def _file(engine: str) -> str:
    return f"{engine}.yaml"


# What a serving pod of an engine with room has besides. Nothing of it depends on which adapters are placed.


def room_flags(container: Container, room: AdapterRoom) -> list[str]:
    """Return the arguments that give an engine room, without those that its own words have.

    Empty where a shell starts the engine: what follows its script would not reach the engine.
    """
    if container.command and container.command[0].rpartition("/")[2] in _SHELLS:
        return []
    words = unfolded(container).args
    flags = {"--enable-lora": "", "--max-loras": str(room.slots), "--max-lora-rank": str(room.max_rank)}
    if room.overcommit > 1:
        flags["--max-cpu-loras"] = str(room.adapters)
    return [
        f"{flag}={value}" if value else flag
        for flag, value in flags.items()
        if not any(word == flag or word.startswith(f"{flag}=") for word in words)
    ]


def with_room(spec: dict[str, Any], replica: Workload, engine: WorkloadEngine) -> None:
    """Add the loader of an engine and the volume of its list to the spec of a serving pod."""
    spec["volumes"].append({"name": VOLUME, "configMap": {"name": names.adapters_name(replica.name)}})
    loader = {
        "name": LOADER,
        "image": LOADER_IMAGE,
        # A container beside the engine from its start on, that ends with it (Kubernetes 1.29).
        "restartPolicy": "Always",
        "env": [{"name": "DYNAMIC_LORA_ROLLOUT_CONFIG", "value": f"{DIRECTORY}/{_file(engine.name)}"}],
        # The whole directory: what is mounted by a subPath never sees an edit.
        "volumeMounts": [{"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}],
    }
    spec["initContainers"] = [loader]
