"""Which pools of a fleet a sized model fits: the scheduler is asked, with a deployment made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.cel.quantity import quantity
from function.cli.commands.headroom import going_on
from function.cli.common import taken
from function.cli.worlds.manifests import Manifest, Manifests
from function.cli.worlds.world import request_for
from function.deployment.handler import forecast
from function.scheduler.matching.matcher import Fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api.cluster import Pool
    from function.boundary import Reuse
    from function.cli.sizing.memory import Need
    from function.scheduler.decision import Decision
    from function.scheduler.matching.engine_options import EngineOption

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


def selector(need: Need, driver: str) -> dict[str, Any]:
    """The nodeSelector that asks for a split."""
    return {
        "devices": [
            {
                "name": "gpu",
                "count": need.split.tensor,
                "selectors": [
                    {"cel": f'device.driver == "{driver}"'},
                    {
                        "cel": f'device.capacity["{driver}"].memory'
                        f'.compareTo(quantity("{need.gibibytes}Gi")) >= 0'
                    },
                ],
            }
        ]
    }


def _engine(need: Need, driver: str) -> dict[str, Any]:
    asked = {"nodeSelector": selector(need, driver)}
    if need.split.pipeline == 1:
        return {"name": "main", "members": [{"role": "Standalone", **asked}]}
    worker = {"role": "Worker", "worker": {"nodes": need.split.pipeline - 1}, **asked}
    return {"name": "main", "members": [{"role": "Leader", **asked}, worker]}


def _deployment(need: Need, driver: str) -> Manifest:
    content = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"replicas": 0, "template": {"spec": {"engines": [_engine(need, driver)]}}},
    }
    return Manifest(content, "size")


def pools_for(manifests: Manifests, need: Need, driver: str, reuse: Reuse) -> list[PoolFit]:
    """Every pool the split fits, capacity aside: with room first, then the tightest. Raises BadInput."""
    made = _deployment(need, driver)
    alone = Manifests({**manifests.by_kind, "ModelDeployment": [made]}, manifests.ignored)
    world = taken(alone, quietly=True).world
    decision = forecast(request_for(world, made), reuse=reuse).decision
    found = list(_fits(decision)) if decision else []
    return sorted(found, key=lambda each: (each.replicas == 0, each.memory, each.cluster, each.pool))


def _memory(option: EngineOption, pool: Pool) -> float:
    """Bytes of memory of the GPU that was chosen; its pool may call it by a name with a domain."""
    chosen = {one.device.name for match in option.matches for one in match.resolved}
    held = (
        device.subject.content.get(("capacity", device.driver, "memory"))
        for device in pool.devices or ()
        if device.name in chosen
    )
    number, power = quantity(next((str(each) for each in held if each), "0")).cell
    return number * 10.0**power


def _fits(decision: Decision) -> Iterator[PoolFit]:
    inputs = decision.inputs
    fits, (shape, *_) = Fits(inputs), inputs.deployment.shapes
    rejections = going_on(decision, inputs.fleet.clusters).places.rejections()
    for cluster in inputs.fleet.clusters.values():
        rejection = rejections.get(cluster.name)
        barred = rejection.reason.name if rejection and not rejection.pool else ""
        (engine,) = fits.cluster(shape.engines, cluster).engines
        for option in engine.options:
            ((at, nodes),) = option.nodes or ((option.pools[0], 1),)
            pool = cluster.pools[at]
            free = decision.ledger.free(cluster.name, pool.name)
            yield PoolFit(
                cluster.name, pool.name, max(1, nodes), free, pool.nodes, _memory(option, pool), barred
            )
