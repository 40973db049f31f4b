"""Ask what some changes would do: the fleet settled with and without them, and the difference.

The manifests are edited change by change, both fleets settle (`simulate.settle`), and the two ends are
compared for each deployment. Nothing is executed: what would make the changes is printed as commands.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from function.api.replica import DEPLOYMENT_LABEL
from function.cli.worlds.apply import Commands, one_after_another
from function.cli.worlds.changes import Change, Delete, Drain
from function.cli.worlds.inputs import FLEET, taken
from function.cli.worlds.manifest import Manifests, map_at
from function.cli.worlds.simulate import Difference, compare, settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.cli.worlds.adapters import AdapterDifference
    from function.cli.worlds.source import Origin
    from function.cli.worlds.world import Simulation


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Both forecasts and their difference."""

    changes: tuple[Change, ...]
    before: Simulation
    after: Simulation
    differences: list[Difference]
    bystanders: list[str]
    """Replicas on a drained or deleted cluster whose deployment is not in the files."""
    commands: Commands
    """What makes the changes, and what takes them back."""
    adapters: list[AdapterDifference] = field(default_factory=list)
    """Empty where there are no adapters."""

    @property
    def as_data(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "changes": [str(change) for change in self.changes],
            "settles": self.after.settled,
            "rounds": len(self.after.rounds),
            "deployments": [difference.as_data for difference in self.differences],
            "notForecast": self.bystanders,
            "commands": self.commands.as_data,
            "assumptions": self.after.world.notes,
            **({"adapters": [adapter.as_data for adapter in self.adapters]} if self.adapters else {}),
        }


def script_of(manifests: Manifests, changes: tuple[Change, ...]) -> Commands:
    """The kubectl commands that make the changes, and those that take them back. Raises BadInput."""
    parts = []
    for change in changes:
        before, manifests = manifests, change.apply(manifests)
        parts.append(change.commands(before))
    return one_after_another(parts)


def forecast_both(
    manifests: Manifests, changes: tuple[Change, ...], origin: Origin | None, *, quietly: bool = False
) -> tuple[WhatIf, tuple[str, ...]]:
    """Forecast with and without the changes. Returns the answer and what cannot be read. Raises BadInput."""
    edited = manifests
    for change in changes:
        edited = change.apply(edited)
    changed = taken(edited, origin, quietly=quietly, needs=FLEET)
    start = changed if changed.faults else taken(manifests, quietly=True, needs=FLEET)
    before = settle(replace(start.world, memo=changed.world.memo))
    after = settle(changed.world)
    emptied = {change.cluster for change in changes if isinstance(change, Drain | Delete)}
    bystanders = list(_bystanders(manifests, emptied))
    chosen = changed.titles(())
    differences = [entry for entry in compare(before, after) if not chosen or entry.name in chosen]
    commands = script_of(manifests, changes).on(origin.kubectl if origin else "kubectl")
    adapters: list[AdapterDifference] = []
    if manifests["ModelAdapter"] or edited["ModelAdapter"]:
        from function.cli.worlds.adapters import compared, settled  # noqa: PLC0415 - all handlers are needed

        only = changed.origin.only
        every = compared(settled(start.manifests, before), settled(edited, after))
        adapters = [entry for entry in every if not only or entry.name.startswith(f"{only}/")]
    return WhatIf(changes, before, after, differences, bystanders, commands, adapters), changed.faults


def _bystanders(manifests: Manifests, emptied: set[str]) -> Iterator[str]:
    identities = {manifest.identity for manifest in manifests["ModelDeployment"]}
    for replica in manifests["ModelReplica"]:
        cluster = replica.spec.get("clusterName")
        owner = map_at(replica.metadata, "labels").get(DEPLOYMENT_LABEL)
        if cluster in emptied and (replica.namespace, str(owner)) not in identities:
            yield f"{replica.namespace}/{replica.name} on {cluster}"
