"""Find the pools of a fleet that a sized model fits, by scheduling a deployment made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.api import InferenceCluster, Malformed
from function.api.names import API_VERSION
from function.cel.library.quantity import quantity
from function.cel.library.quoting import quoted
from function.cli.worlds.manifest import Manifest, Manifests
from function.cli.worlds.memo import ParseMemo
from function.cli.worlds.world import request_for, world_of
from function.deployment.forecast import forecast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import Device
    from function.cli.sizing.memory import Need

NAME = "sized-model"
NETWORK_ATTRIBUTES = frozenset({"linkType", "rdma"})
"""Attributes that a network device has and no other: docs/clusters.md, Words for attributes."""


@dataclass(frozen=True, slots=True)
class PoolFit:
    """One pool that a split fits."""

    cluster: str
    pool: str
    nodes: int
    """Nodes a replica takes."""
    free: int
    total: int
    memory: float
    """Bytes of memory of its GPUs: the less, the less is wasted."""
    barred: str
    """The reason why the cluster takes nothing now; empty when it does."""

    @property
    def replicas(self) -> int:
        """Replicas that would fit now."""
        return 0 if self.barred else max(0, self.free) // self.nodes


@dataclass(frozen=True, slots=True)
class Drivers:
    """The DRA drivers that devices are asked of."""

    gpu: str
    nics: tuple[str, ...]
    """Of the network devices that the nodes of a gang need; empty: none is asked for."""


def selector(need: Need, drivers: Drivers) -> dict[str, Any]:
    """The nodeSelector that asks for a split: GPUs, and for several nodes a network device for each GPU."""
    memory = f'device.capacity["{drivers.gpu}"].memory.compareTo(quantity("{need.gibibytes}Gi")) >= 0'
    devices = [_request("gpu", need, f'device.driver == "{drivers.gpu}"', memory)]
    if need.split.pipeline > 1 and drivers.nics:
        devices.append(_request("nic", need, _of(drivers.nics)))
    return {"devices": devices}


def _of(drivers: tuple[str, ...]) -> str:
    """The selector of one driver, or of any of several."""
    if len(drivers) == 1:
        return f'device.driver == "{drivers[0]}"'
    return f"device.driver in [{', '.join(map(quoted, drivers))}]"


def _request(name: str, need: Need, *selectors: str) -> dict[str, Any]:
    return {"name": name, "count": need.split.tensor, "selectors": [{"cel": cel} for cel in selectors]}


def _engine(need: Need, drivers: Drivers) -> dict[str, Any]:
    request = {"nodeSelector": selector(need, drivers)}
    if need.split.pipeline == 1:
        return {"name": "main", "members": [{"role": "Standalone", **request}]}
    worker = {"role": "Worker", "worker": {"nodes": need.split.pipeline - 1}, **request}
    return {"name": "main", "members": [{"role": "Leader", **request}, worker]}


def _deployment(need: Need, drivers: Drivers) -> Manifest:
    content = {
        "apiVersion": API_VERSION,
        "kind": "ModelDeployment",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"replicas": 0, "template": {"spec": {"engines": [_engine(need, drivers)]}}},
    }
    return Manifest(content, "size")


class SizedFleet:
    """A fleet that splits are tried on."""

    def __init__(self, manifests: Manifests) -> None:
        """Take its clusters as the scheduler would see them. Raises BadInput."""
        self._world = world_of(manifests.having("ModelDeployment", []))
        self._reuse = ParseMemo()

    def nic_drivers(self) -> tuple[str, ...]:
        """The drivers of its network devices, told by the attributes that such devices have."""
        return tuple(sorted({device.driver for device in self._devices() if _is_network(device)}))

    def _devices(self) -> Iterator[Device]:
        for cluster in self._world.clusters:
            try:
                pools = InferenceCluster.parse(cluster).pools
            except Malformed:  # It takes nothing new, and was named when the fleet was read.
                continue
            yield from (device for pool in pools for device in pool.devices or ())

    def pools_for(self, need: Need, drivers: Drivers) -> list[PoolFit]:
        """Every pool the split fits, capacity aside: with room first, then the tightest. Raises BadInput."""
        request = request_for(self._world, _deployment(need, drivers), self._reuse)
        fits = [
            PoolFit(
                fit.cluster,
                fit.pool,
                fit.needs,
                fit.free,
                fit.total,
                _memory(fit.devices),
                fit.barred.reason.name if fit.barred else "",
            )
            for fit in forecast(request, reuse=self._reuse).fitting_pools()
        ]
        return sorted(fits, key=lambda fit: (fit.replicas == 0, fit.memory, fit.cluster, fit.pool))


def _is_network(device: Device) -> bool:
    return not NETWORK_ATTRIBUTES.isdisjoint(name.rpartition("/")[2] for name in device.attributes)


def _memory(devices: tuple[Device, ...]) -> float:
    """Bytes of memory of the GPU that was chosen; its pool may call it by a name with a domain."""
    held = (device.subject.content.get(("capacity", device.driver, "memory")) for device in devices)
    number, power = quantity(next((str(value) for value in held if value), "0")).cell
    return number * 10.0**power
