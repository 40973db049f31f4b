"""A whole ModelDeployment for a sized model, and the pools of a fleet that it fits.

One node makes a Standalone member; several make a Leader and Workers, whose arguments are those of vLLM's
multi-node mode with the variables that the platform sets in each pod. The token for private weights comes
from an optional Secret.

`SizedFleet` finds the pools: the scheduler is asked about a deployment that is made up for each split.

The reverse stands at the end: `misfits` warns of pools whose GPUs the weights of a known model do not fit,
or that offer parts of a GPU to a model that is split. It looks at weights alone, so it never warns of what an
engine could still arrange.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING

from function.api import Device, InferenceCluster, Pool
from function.api.names import API_VERSION
from function.boundary import PlainDocument, frozen
from function.cel.library.quantity import quantity
from function.cel.library.strings import quoted
from function.cli.bad_input import BadInput
from function.cli.sizing.memory import GIB, PLAIN, TENSOR, USABLE, Load, Need, Split, need, weights_total
from function.cli.sizing.models import SizedModel, of_repository
from function.cli.text import listed, slug
from function.cli.worlds import advisories
from function.cli.worlds.manifest import Manifest
from function.cli.worlds.world import Planned, Presented, World
from function.deployment.forecast import forecast, read_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import JsonObject


IMAGE = "docker.io/vllm/vllm-openai:v0.11.2"
PORT = 8000
CONVERTED = {"fp8": ["--quantization=fp8"], "fp16": ["--dtype=float16"], "bf16": ["--dtype=bfloat16"]}
"""Arguments by which the engine converts weights as it loads them; other types need such weights."""
CACHE = {"fp8": ["--kv-cache-dtype=fp8"]}


@frozen
class Wish:
    """The options of a manifest, besides the split."""

    name: str = ""
    namespace: str = "default"
    replicas: int = 1
    image: str = IMAGE
    repository: str = ""


def deployment(model: SizedModel, load: Load, need: Need, selector: JsonObject, wish: Wish) -> JsonObject:
    """A ModelDeployment that serves a model with one split. Raises BadInput where something is missing.

    Raises:
        BadInput: where the weights are nowhere to be found, cannot be converted, or the sequence is longer
            than the model was made for.
    """
    repository = wish.repository or model.repository
    if not repository:
        raise BadInput("the configuration does not say where the weights are: give --repository ORG/NAME")
    if model.architecture.context and load.context > model.architecture.context:
        most = model.architecture.context
        raise BadInput(f"--max-model-len {load.context}: {repository} was made for at most {most} tokens")
    words = _words(model, load, need, repository)
    member = _Member(need, selector, wish.image, words, slug(model.name, "model"))
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelDeployment",
        "metadata": {"name": wish.name or slug(model.name, "model"), "namespace": wish.namespace},
        "spec": {
            "replicas": wish.replicas,
            "template": {"spec": {"engines": [{"name": "main", "members": member.members()}]}},
        },
    }


def remarks(model: SizedModel, load: Load, need: Need) -> list[str]:
    """Yield the parts of a manifest that are estimates, and how near they come."""
    shape, none = model.architecture, "" if model.published else " (none published)"
    weights = weights_total(shape, load.dtype) / GIB
    parts = f"{need.weights / GIB:.1f} GiB of weights, {need.cache / GIB:.1f} GiB of KV cache"
    cache = f"{load.batch} x {load.context} tokens, {load.cache_dtype}"
    loading = (
        [f"Loading takes {need.loading / GIB:.1f} GiB of it: vLLM converts {shape.dtype} weights only then."]
        if need.loading
        else []
    )
    windows = " Layers with a sliding window keep no more than that." if any(shape.windows) else ""
    return [
        f"{model.summary}{none}.",
        f"{weights:.1f} GiB of weights as {load.dtype}.",
        f"Estimated for each GPU: {parts} ({cache}), and the engine's own: {need.gibibytes}Gi.{windows}",
        *loading,
        "Measure before you rely on it: docs/sizing.md.",
    ]


def _words(model: SizedModel, load: Load, need: Need, repository: str) -> list[str]:
    """The command line that both members of a gang share.

    Raises:
        BadInput: where the engine cannot convert the published weights to the wanted type.
    """
    split, is_as_published = need.split, load.dtype == model.architecture.dtype
    if not is_as_published and not (load.dtype in CONVERTED and model.architecture.dtype in PLAIN):
        raise BadInput(
            f"--dtype {load.dtype}: an engine does not convert {model.architecture.dtype} weights to it "
            "as it loads them; give the config.json of weights that have it"
        )
    return [
        f"vllm serve {repository}",
        *model.arguments,
        *([] if is_as_published else CONVERTED[load.dtype]),
        *CACHE.get(load.cache_dtype, []),
        f"--tensor-parallel-size={split.tensor}",
        *([f"--pipeline-parallel-size={split.pipeline}"] if split.pipeline > 1 else []),
        f"--max-model-len={load.context}",
        f"--max-num-seqs={load.batch}",
    ]


@frozen
class _Member:
    """The fields that the members of an engine share."""

    need: Need
    selector: JsonObject
    image: str
    words: list[str]
    served: str

    def members(self) -> list[JsonObject]:
        """The members of the engine: one for a node, a leader and its workers for several."""
        serving = [f"--served-model-name={self.served}", f"--port={PORT}"]
        nodes = self.need.split.pipeline
        if nodes == 1:
            return [self._member("Standalone", serving)]
        gang = [
            "--distributed-executor-backend=mp",
            f"--nnodes={nodes}",
            "--node-rank=$(MODELPLANE_RANK)",
            "--master-addr=$(MODELPLANE_LEADER_ADDRESS)",
        ]
        leader = self._member("Leader", [*gang, *serving])
        worker = self._member("Worker", [*gang, "--headless"])
        return [leader, {"role": "Worker", "worker": {"nodes": nodes - 1}, **worker}]

    def _member(self, role: str, words: list[str]) -> JsonObject:
        """One member. The pods of a gang learn their own address: vLLM must not guess it."""
        token = {"secretKeyRef": {"name": "hf-token", "key": "HF_TOKEN", "optional": True}}
        address = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        container: JsonObject = {
            "name": "engine",
            "image": self.image,
            "command": ["/bin/sh", "-c"],
            "args": [" ".join(("exec", *self.words, *words))],
            "env": [
                {"name": "HF_TOKEN", "valueFrom": token},
                *([address] if self.need.split.pipeline > 1 else []),
            ],
        }
        template = {"spec": {"containers": [container]}}  # Shared memory is mounted on the workload cluster.
        return {"role": role, "nodeSelector": deepcopy(self.selector), "template": template}


# Find the pools of a fleet that a sized model fits, by scheduling a deployment made for it.

NAME = "sized-model"
NETWORK_ATTRIBUTES = frozenset({"linkType", "rdma"})
"""Attributes that a network device has and no other: docs/clusters.md, Words for attributes."""


@frozen
class PoolFit:
    """One pool that a split fits."""

    cluster: str
    pool: str
    nodes: int
    """Nodes a replica takes."""
    replicas: int
    """Replicas that would fit now."""
    memory: float
    """Bytes of memory of its GPUs: the less, the less is wasted."""
    barred: str
    """The reason why the cluster takes nothing now; empty when it does."""


@frozen
class Drivers:
    """The DRA drivers that devices are asked of."""

    gpu: str
    nics: tuple[str, ...]
    """Of the network devices that the nodes of a gang need; empty: none is asked for."""
    parted: bool = False
    """Whether some of the fleet's GPUs are parts of one (MIG)."""


def selector(need: Need, drivers: Drivers) -> JsonObject:
    """The nodeSelector that asks for a split: GPUs, and for several nodes a network device for each GPU."""
    memory = f'device.capacity["{drivers.gpu}"].memory.compareTo(quantity("{need.gibibytes}Gi")) >= 0'
    requests = {"gpu": [f'device.driver == "{drivers.gpu}"', memory]}
    if drivers.parted and need.split.tensor * need.split.pipeline > 1:  # A process sees no second part.
        requests["gpu"].append(f'device.attributes["{drivers.gpu}"].?type.orValue("gpu") != "mig"')
    if need.split.pipeline > 1 and drivers.nics:
        one, several = f'== "{drivers.nics[0]}"', f"in [{', '.join(map(quoted, drivers.nics))}]"
        requests["nic"] = [f"device.driver {one if len(drivers.nics) == 1 else several}"]
    devices = [
        {"name": name, "count": need.split.tensor, "selectors": [{"cel": text} for text in texts]}
        for name, texts in requests.items()
    ]
    return {"devices": devices}


def _engine(need: Need, drivers: Drivers) -> JsonObject:
    """An engine that asks for the devices of a split, and runs nothing."""
    request = {"nodeSelector": selector(need, drivers)}
    if need.split.pipeline == 1:
        return {"name": "main", "members": [{"role": "Standalone", **request}]}
    worker = {"role": "Worker", "worker": {"nodes": need.split.pipeline - 1}, **request}
    return {"name": "main", "members": [{"role": "Leader", **request}, worker]}


def _trial(need: Need, drivers: Drivers) -> Manifest:
    """A deployment that no manifest has: it wants no replica, so what is asked is where one would fit."""
    content = {
        "apiVersion": API_VERSION,
        "kind": "ModelDeployment",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"replicas": 0, "template": {"spec": {"engines": [_engine(need, drivers)]}}},
    }
    return Manifest(content, "size")


@frozen(slots=False)
class SizedFleet:
    """A fleet that splits are tried on: its clusters as the scheduler would see them, without deployments."""

    world: World

    def nic_drivers(self) -> tuple[str, ...]:
        """The drivers of its network devices, told by the attributes that such devices have."""
        devices = (device for pool in self._pools for device in pool.devices or ())
        return tuple(sorted({device.driver for device in devices if _is_network(device)}))

    def has_parts(self, gpu: str) -> bool:
        """Tell whether some GPUs are parts of one, which hold no model that is split."""
        devices = (device for pool in self._pools for device in pool.devices or ())
        return any(is_part(device) for device in devices if device.driver == gpu)

    def widths(self, gpu: str) -> list[int]:
        """How many GPUs its nodes have that reach others, as far as tensors are usually split."""
        networked = [pool.devices or () for pool in self._pools if any(map(_is_network, pool.devices or ()))]
        counts = {device.count for devices in networked for device in devices if device.driver == gpu}
        return sorted(counts & set(TENSOR)) or [max(TENSOR)]

    @cached_property
    def _pools(self) -> list[Pool]:
        """The pools of every cluster that can be read."""
        documents = map(PlainDocument, self.world.clusters)
        read = (self.world.memo.parsed(document, read_cluster) for document in documents)
        # One that cannot be read takes nothing new, and was named when the fleet was read.
        return [pool for cluster in read if isinstance(cluster, InferenceCluster) for pool in cluster.pools]

    @cached_property
    def _presented(self) -> Presented:
        """The fleet as Crossplane would present it: equal for every split, as no trial places anything."""
        return Presented(self.world)

    def pools_for(self, need: Need, drivers: Drivers) -> list[PoolFit]:
        """Every pool the split fits, capacity aside: with room first, then the tightest. Raises BadInput.

        The scheduler is asked about a deployment that wants no replica. So a full pool is in the answer as
        well, with no replica now.
        """
        request, memo = self._presented.request(_trial(need, drivers)), self.world.memo
        fits = [
            PoolFit(
                fit.cluster,
                fit.pool,
                fit.needs,
                0 if fit.barred else fit.more,
                gpu_memory(fit.devices),
                fit.barred.reason.name if fit.barred else "",
            )
            for fit in forecast(request, reuse=memo, shared=memo.shared).fitting_pools()
        ]
        return sorted(fits, key=lambda fit: (fit.replicas == 0, fit.memory, fit.cluster, fit.pool))


def is_part(device: Device) -> bool:
    """Tell a part of a GPU by the type that NVIDIA's driver publishes."""
    return device.subject.content.get(("attributes", device.driver, "type")) == ("string", "mig")


def _is_network(device: Device) -> bool:
    """Tell a network device by its attributes: drivers are named as their makers like."""
    return not NETWORK_ATTRIBUTES.isdisjoint(name.rpartition("/")[2] for name in device.attributes)


# And the reverse: whether the pools that a manifest asks for hold its model.

LIGHTER = ("--quantization", "-q", "--load-format", "--cpu-offload-gb")
"""With one of these, weights take another share of a GPU's memory than they are published with."""
UTILIZATION = ("--gpu-memory-utilization",)


def gpu_memory(devices: tuple[Device, ...]) -> float:
    """Bytes of memory of the GPU that was chosen; its pool may call it by a name with a domain."""
    held = (device.subject.content.get(("capacity", device.driver, "memory")) for device in devices)
    number, power = quantity(next((str(value) for value in held if value), "0")).cell
    return number * 10.0**power


def misfits(planned: Planned) -> Iterator[advisories.Advisory]:
    """Pools that the first engine may land on, and whose GPUs do not do for its model.

    Nothing is said of an engine that is not vLLM; of weights neither where the model is not known, nor where
    an option changes how much memory they take.
    """
    serving = advisories.first_serving(planned.manifest)
    if serving is None or not serving.runs_vllm or not planned.forecast.readable:
        return
    tensor, pipeline = (serving.number(flags) for flags in (advisories.TENSOR, advisories.PIPELINE))
    model = None if serving.flag(LIGHTER) else of_repository(serving.model)
    if tensor * pipeline == 1 and model is None:
        return
    fits = [fit for fit in planned.forecast.fitting_pools() if not fit.barred]
    parted = [f"{fit.cluster}/{fit.pool}" for fit in fits if any(map(is_part, fit.devices))]
    if parted and tensor * pipeline > 1:
        text = (
            f"splits its model over GPUs (TP {tensor}, PP {pipeline}), and may get parts of one (MIG) on "
            f"{listed(sorted(parted))}, of which a process sees only one: select whole ones by their type"
        )
        yield planned.manifest, "SplitOverParts", serving.field, text
    if model is None:
        return
    shape, split = model.architecture, Split(tensor, pipeline)
    weights = need(shape, Load(shape.dtype, "bf16", 1, 1), split).weights
    share = 1.0 if serving.flag(UTILIZATION) else USABLE  # However much of a GPU it is told to take.
    memories = {f"{fit.cluster}/{fit.pool}": gpu_memory(fit.devices) for fit in fits}
    small = [place for place, memory in sorted(memories.items()) if 0 < memory * share < weights]
    if small:
        where = listed([f"{place} ({memories[place] / GIB:.0f} GiB)" for place in small])
        text = (
            f"{serving.model} has about {weights / GIB:.0f} GiB of weights for each GPU (TP {split.tensor}, "
            f"PP {split.pipeline}), too much for what matches on {where}: see fleet-scheduler size"
        )
        yield planned.manifest, "MemoryShort", serving.field, text
