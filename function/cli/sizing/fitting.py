"""Find the pools of a fleet that a sized model fits, by scheduling a deployment made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.api.names import API_VERSION
from function.cel.library.quantity import quantity
from function.cli.worlds.inputs import taken
from function.cli.worlds.manifest import Manifest, Manifests
from function.cli.worlds.world import request_for
from function.deployment.forecast import forecast

if TYPE_CHECKING:
    from function.api import Device
    from function.boundary import Reuse
    from function.cli.sizing.memory import Need

NAME = "sized-model"


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
    nic: str
    """Of the network devices that the nodes of a gang need; empty: none is asked for."""


def selector(need: Need, drivers: Drivers) -> dict[str, Any]:
    """The nodeSelector that asks for a split: GPUs, and for several nodes a network device for each GPU."""
    memory = f'device.capacity["{drivers.gpu}"].memory.compareTo(quantity("{need.gibibytes}Gi")) >= 0'
    devices = [_request("gpu", need, f'device.driver == "{drivers.gpu}"', memory)]
    if need.split.pipeline > 1 and drivers.nic:
        devices.append(_request("nic", need, f'device.driver == "{drivers.nic}"'))
    return {"devices": devices}


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


def pools_for(manifests: Manifests, need: Need, drivers: Drivers, reuse: Reuse) -> list[PoolFit]:
    """Every pool the split fits, capacity aside: with room first, then the tightest. Raises BadInput."""
    made = _deployment(need, drivers)
    world = taken(manifests.having("ModelDeployment", [made]), quietly=True).world
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
        for fit in forecast(request_for(world, made, reuse), reuse=reuse).fitting_pools()
    ]
    return sorted(fits, key=lambda fit: (fit.replicas == 0, fit.memory, fit.cluster, fit.pool))


def _memory(devices: tuple[Device, ...]) -> float:
    """Bytes of memory of the GPU that was chosen; its pool may call it by a name with a domain."""
    held = (device.subject.content.get(("capacity", device.driver, "memory")) for device in devices)
    number, power = quantity(next((str(value) for value in held if value), "0")).cell
    return number * 10.0**power
