"""A control plane with clusters behind it, gone through in rounds: from a deployment to a request, and back.

`tests.support.crossplane` is Crossplane, `provider` carries Objects, `workers` are the clusters and `gateway`
is what stands before them. In a round every composite is reconciled at least once, and everybody else acts.
Names of objects that anybody deletes are kept, so that what is deleted and made again in one round is seen.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.simulate import gateway
from tests.simulate.provider import Provider
from tests.support.crossplane import WATCHING, ControlPlane, Name, Step, copied, fresh_copy, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.simulate.workers import Cluster

Plain = dict[str, Any]

COMPOSITES = ("ModelDeployment", "ModelEndpoint", "ModelReplica", "ModelService")
ROUND = 70.0
"""Seconds of a round: longer than an answer lives where Crossplane does not watch what it requires."""


@dataclass
class ClosedLoop:
    """The control plane and everything behind it."""

    clusters: dict[str, Cluster]
    """Workload clusters by the name of their ProviderConfig."""
    inputs: Mapping[str, Plain] = field(default_factory=dict)
    """The input of the step, by kind of composite."""
    version: str = "2.3"
    """Of Crossplane."""
    lag: tuple[float, float] = (0.0, 0.0)
    queue: tuple[float, float] = (0.0, 0.0)
    """As `ControlPlane` has them."""
    deleted: set[Name] = field(default_factory=set)
    """Everything that was ever deleted."""
    hearer: Callable[[Plain], None] | None = None
    """Hears of every object that is written."""

    def __post_init__(self) -> None:
        """Begin with nothing."""
        function = fresh_copy().answer
        steps = {kind: [Step(function, input=self.inputs.get(kind))] for kind in COMPOSITES}
        self.plane = ControlPlane(steps, self.version, self.queue, self.lag, listener=self._hear)
        self.provider = Provider(self.plane, self.clusters.get, quiet=True)

    def _hear(self, event: str, plain: Plain) -> None:
        if event == "DELETED" or "deletionTimestamp" in plain["metadata"]:
            self.deleted.add(name_of(plain))
        elif self.hearer is not None:
            self.hearer(plain)

    def of_kind(self, kind: str) -> list[Plain]:
        """Return the objects of a kind, by name."""
        return [plain for _, plain in sorted(self.plane.objects.of_kind(kind).items())]

    @contextmanager
    def editing(self, kind: str) -> Iterator[Plain]:
        """Edit the one object of a kind by hand."""
        (plain,) = self.of_kind(kind)
        made = copied(plain)
        yield made
        self.plane.write(made)

    def round(self) -> bool:
        """Let everybody act, and say whether anything changed. Raises AssertionError."""
        before = self.state()
        if self.version >= WATCHING:
            self.plane.resync()  # What is at rest is not asked again by the time.
        self.plane.run(ROUND)
        self.provider.act()
        for cluster in self.clusters.values():
            cluster.tick()
        self.provider.act()
        gateway.report(self.plane)
        assert not self.provider.complaints, self.provider.complaints
        return before != self.state()

    def state(self) -> tuple[Any, ...]:
        """Return everything that can change."""
        behind = [(dict(cluster.objects), cluster.standing()) for cluster in self.clusters.values()]
        return dict(self.plane.objects), behind

    def settle(self, rounds: int = 60) -> int:
        """Run rounds until nothing changes; return how many it took. Raises AssertionError."""
        for number in range(rounds):
            if not self.round():
                return number
        raise AssertionError(f"still changing after {rounds} rounds")
