"""Adapters on a replica: the list that its loaders follow, and what loading needs in the pods.

An engine with room for adapters is started with room, and a loader stands beside it: the LoRA syncer of the
Gateway API Inference Extension. It reads a list from a ConfigMap and calls the engine's own API,
`/v1/load_lora_adapter` and `/v1/unload_lora_adapter`. So an edit of the list restarts nothing.

    room_of ▶ placements ▶ config_map        room_flags, with_room ▶ a serving pod

The loader unloads what the list names as absent, and leaves alone what it does not name. So an adapter that
leaves moves to the second list, and stays there for a while: the latest `MAX_ABSENT` of them.

Limits: a loader reports to nobody, so all that can be said of an adapter is that it is *configured*: that the
list on the cluster has it. The kubelet brings an edit of the list into a pod within about a minute. A list
has `MAX_PRESENT` bytes for all engines: adapters beyond wait, and are not listed as absent either.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from function.api.adapter import AdapterPlacement, AdapterRoom, common_room, holders
from function.api.expressible import unfolded
from function.api.model import mapping, mappings, string
from function.api.workload import Container, Workload, WorkloadEngine
from function.boundary import Plain
from function.fail_static import key_of
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
MAX_BYTES, MAX_PRESENT = 512 * 1024, 384 * 1024
"""Bytes of the lists of all engines, and of adapters in them that are to be there. An Object holds the lists
twice, and etcd takes 1.5 MiB."""
FRAME = 120
"""Bytes around an adapter in a list."""
_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})


def room_of(replica: Workload) -> AdapterRoom | None:
    """Return the room of a replica, None where no engine declares any."""
    return common_room(engine.adapters for engine in replica.spec.engines if engine.adapters is not None)


def adapters_head(replica: Workload, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap without its lists: what it is, and where."""
    metadata = {"name": names.joined_name(replica.name, names.ADAPTERS), "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def config_map(
    replica: Workload,
    placements: Iterable[AdapterPlacement],
    observed: Mapping[str, ObservedObject],
    ports: Mapping[str, int],
    namespace: str,
) -> dict[str, Any]:
    """Return the ConfigMap: for each engine with room the adapters it is to have, and those that left.

    `ports`: of the engines with room, by name. One that cannot be read keeps the weights that it was listed
    with (Law C 2).
    """
    present_before, absent_before = _applied_last(replica, observed, namespace)
    held = _held(replica, placements, present_before)
    present = _fitting(held, present_before, MAX_PRESENT // len(ports))
    absent = {
        name: source for name, source in {**absent_before, **present_before}.items() if name not in held
    }
    latest = dict(reversed([*absent.items()][-MAX_ABSENT:]))
    used = sum(_size(*item) for item in present.items())
    left = _fitting(latest, (), MAX_BYTES // len(ports) - used)
    absent = {name: source for name, source in absent.items() if name in left}
    lists = {
        field: {"models": [{"id": name, "source": source} for name, source in sources.items()]}
        for field, sources in (("ensureExist", present), ("ensureNotExist", absent))
    }
    data = {}
    for engine, port in sorted(ports.items()):
        content = {LISTS: {"name": replica.name, "port": port, **lists}}
        # JSON is YAML, and as long as every other way to write it is no clearer.
        data[f"{engine}.yaml"] = json.dumps(content, indent=2) + "\n"
    return adapters_head(replica, namespace) | {"data": data}


def _applied_last(
    replica: Workload, observed: Mapping[str, ObservedObject], namespace: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return both lists as they were applied last, perhaps in the namespace that the replica leaves."""
    listed = observed.get(key_of(names.ADAPTERS, adapters_head(replica, namespace), observed))
    before = listed or next(iter(names.among(observed, names.ADAPTERS)), None)
    return _lists({} if before is None else before.manifest)


def _held(
    replica: Workload, placements: Iterable[AdapterPlacement], before: Mapping[str, str]
) -> dict[str, str]:
    """Return the sources of the adapters that a replica is to have, in the order of their turn."""
    room = room_of(replica)
    held = holders(placements, 0 if room is None else room.adapters)
    sources = {placement.adapter: placement.source or before.get(placement.adapter, "") for placement in held}
    return {name: source for name, source in sources.items() if name and source}


def _size(name: str, source: str) -> int:
    """Return how long an entry is at most, as an Object has it: JSON in JSON."""
    return FRAME + len(json.dumps(json.dumps([name, source])))


def _fitting(sources: Mapping[str, str], first: Collection[str], most: int) -> dict[str, str]:
    """Return those that fit into so many bytes, by name; `first` have their turn before the others."""
    fitting: dict[str, str] = {}
    for name in sorted(sources, key=lambda name: name not in first):
        most -= _size(name, sources[name])
        if most < 0:
            break
        fitting[name] = sources[name]
    return {name: fitting[name] for name in sorted(fitting)}


def unlisted(
    replica: Workload,
    placements: Iterable[AdapterPlacement],
    observed: Mapping[str, ObservedObject],
    namespace: str,
) -> int:
    """Return how many adapters wait because the lists of the engines with room are full.

    Some are placed, so there is such an engine.
    """
    listed, _ = _applied_last(replica, observed, namespace)
    held = _held(replica, placements, listed)
    engines = sum(engine.adapters is not None for engine in replica.spec.engines)
    return len(held) - len(_fitting(held, listed, MAX_PRESENT // engines))


def configured(observed: Mapping[str, ObservedObject]) -> tuple[str, ...] | None:
    """Return the adapters that the list on the cluster has; None while no list is seen there."""
    for key in sorted(observed):
        if names.what_of(key) == names.ADAPTERS and observed[key].remote is not None:
            return tuple(sorted(_lists(observed[key].remote or {})[0]))
    return None


def _lists(manifest: Mapping[str, Plain]) -> tuple[dict[str, str], dict[str, str]]:
    """Read both lists of a ConfigMap back; all engines have the same."""
    for text in mapping(manifest.get("data")).values():
        try:
            content = json.loads(string(text))
        except (ValueError, RecursionError):
            continue
        lists = mapping(content, LISTS)
        present, absent = (
            {
                string(model.get("id")): string(model.get("source"))
                for model in mappings(mapping(lists.get(field)).get("models"))
            }
            for field in ("ensureExist", "ensureNotExist")
        )
        return present, absent
    return {}, {}


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


def with_room(
    spec: dict[str, Any], replica: Workload, engine: WorkloadEngine, image: str | None = None
) -> None:
    """Add the loader of an engine and the volume of its list to the spec of a serving pod."""
    spec["volumes"].append(
        {"name": VOLUME, "configMap": {"name": names.joined_name(replica.name, names.ADAPTERS)}}
    )
    loader = {
        "name": LOADER,
        "image": image or LOADER_IMAGE,
        # A container beside the engine from its start on, that ends with it (Kubernetes 1.29).
        "restartPolicy": "Always",
        "env": [{"name": "DYNAMIC_LORA_ROLLOUT_CONFIG", "value": f"{DIRECTORY}/{engine.name}.yaml"}],
        # The whole directory: what is mounted by a subPath never sees an edit.
        "volumeMounts": [{"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}],
    }
    spec["initContainers"] = [loader]
