"""The control plane of `tests.support.crossplane`, driven by hand.

Nobody is queued: a test says which deployment is reconciled next, how much time passes, and how old the reads
of replicas are. It looks at every answer beside everything that could be read for it. However much or little
of that was asked for, and in however many calls, the answer must be that of one call that is handed it all.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.deployment.requirements import ROWS
from tests.support import build, drive
from tests.support.crossplane import ControlPlane, Name, Step, Store, copied, fresh_copy
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.support.crossplane import Composite, Ran
    from tests.support.parts import Source

Plain = dict[str, Any]

CLUSTER, REPLICA, DEPLOYMENT, CACHE = "InferenceCluster", "ModelReplica", "ModelDeployment", "ModelCache"
BLOCK = {
    name: pb.ResourceSelector(api_version=build.API, kind=kind, match_labels=pb.MatchLabels())
    for name, kind in (("clusters", CLUSTER), ("all-replicas", REPLICA))
}
"""What a Composition with a bootstrap block hands over in every call."""


def requirements_of(kind: str) -> frozenset[str]:
    """Return the names, up to their first slash, under which objects of a kind may arrive."""
    rows = {name: row for name, row in ROWS.items() if row.kind == kind}
    return frozenset(rows).union(*(row.block for row in rows.values()))


class Driven(ControlPlane):
    """All that the control plane knows, and what a test says of it."""

    def __init__(
        self,
        objects: Iterable[Plain],
        look: Callable[[World, drive.Answer], None],
        *,
        given: Plain | None = None,
        block: bool = False,
        version: str = "2.3",
    ) -> None:
        """Begin with objects. `look` sees every answer beside what could be read, before it is applied.

        `given` is the function's input, and `block` says whether the Composition has a bootstrap block.
        """
        self._function, self._look = fresh_copy().answer, look
        self.given, self.has_block = given, block
        super().__init__({DEPLOYMENT: [Step(self._answer, BLOCK if block else {}, given)]}, version)
        self.calls: dict[Name, int] = {}
        """Calls of the latest reconcile."""
        self.answers: dict[Name, drive.Answer] = {}
        self.listed: Store | None = None
        """The replicas as lists have them; None: as they are."""
        self.observed: Store | None = None
        """The replicas as they are observed; others are read past the cache. None: as they are."""
        self.fails: Source | None = None
        """While it is there Crossplane dies on its way: it applied some of what is desired, and no status."""
        for plain in objects:
            self.write(plain)

    @contextmanager
    def edit(self, name: Name) -> Iterator[Plain]:
        """Hand out a copy of an object, and write what became of it."""
        plain = copied(self.objects[name])
        yield plain
        self.write(plain)

    def living(self, kind: str) -> dict[Name, Plain]:
        """Return copies of the objects of a kind that are not on their way out."""
        held = self.objects.of_kind(kind).items()
        return {name: copied(plain) for name, plain in held if "deletionTimestamp" not in plain["metadata"]}

    def composed(self, of: Name) -> dict[str, Plain]:
        """Return copies of what a deployment composes and nobody deleted, by key."""
        held = {key: self.objects.get(child) for key, child in self.composites[of].composed.items()}
        return {
            key: copied(plain)
            for key, plain in held.items()
            if plain is not None and "deletionTimestamp" not in plain["metadata"]
        }

    def leaving(self) -> set[Name]:
        """Return the objects on their way out."""
        return {name for name, plain in self.objects.items() if "deletionTimestamp" in plain["metadata"]}

    def age(self) -> bool:
        """Let what is being deleted come nearer its end. Says whether something went."""
        before = self.leaving()
        self.run(1.0)
        return not before <= self.objects.keys()

    def reconcile(self, of: Name) -> drive.Answer:
        """Reconcile one deployment."""
        self._waiting.append(of)
        self._begin()
        self.run(0.0)
        return self.answers[of]

    def _wake(self, name: Name) -> None:
        """Queue nobody: the test says who is next."""

    def fetch(self, selector: pb.ResourceSelector) -> pb.Resources:
        """Return what a selector matches, of replicas as lists have them."""
        with self._reading(self.listed):
            return super().fetch(selector)

    def _observed(self, name: Name, composite: Composite) -> pb.RunFunctionRequest:
        with self._reading(self.observed):
            return super()._observed(name, composite)

    @contextmanager
    def _reading(self, replicas: Store | None) -> Iterator[None]:
        """Let the cache have these replicas, if any are given."""
        cache = self._cache
        if replicas is not None:
            others = {name: plain for name, plain in cache.items() if name.kind != REPLICA}
            self._cache = Store(others | replicas)
        try:
            yield
        finally:
            self._cache = cache

    def _apply(self, owner: Name, desired: Plain) -> None:
        if self.fails is None or self.fails.odds(0.5):
            super()._apply(owner, desired)

    def _write(self, name: Name, composite: Composite, ran: list[Ran], writes: Iterator[None]) -> None:
        if self.fails is not None:  # The references come first, and after all that is desired the status.
            writes = islice(writes, 1 + len(self.answers[name].desired))
        super()._write(name, composite, ran, writes)

    def _answer(self, content: bytes) -> bytes:
        self._asked = content
        return self._function(content)

    def _called(self, name: Name, composite: Composite, asked: pb.RunFunctionRequest) -> list[Ran]:
        ran = super()._called(name, composite, asked)
        world = self._world()
        whole = drive.run(world)
        answer = replace(drive.answer(ran[-1].response), decision=whole.decision)
        self.calls[name], self.answers[name] = ran[-1].calls, answer
        self._keep_apart(composite, answer)
        assert answer.desired == whole.desired, f"asked in turns it is another answer: {world.dump()}"
        self._look(world, answer)
        return ran

    def _world(self) -> World:
        """Return the latest request with everything that could be read for it, whatever was asked for."""
        request = pb.RunFunctionRequest.FromString(self._asked)
        deployment = drive.plain(request.observed.composite.resource)
        observed = request.observed.resources
        more = {}
        if (self.given or {}).get("coordination") == "GlobalOrder":
            more = {"all-deployments": self._read(DEPLOYMENT), "all-caches": self._read(CACHE)}
        wanted = deployment["spec"]["template"]["spec"].get("modelCacheRef", {}).get("name")
        home = deployment["metadata"]["namespace"]
        caches = self._read(CACHE) if wanted else None
        return World(
            deployment,
            observed={key: drive.plain(observed[key].resource) for key in sorted(observed)},
            clusters=self._read(CLUSTER),
            replicas=self._read(REPLICA),
            cache=caches and [one for one in caches if name_in(one) == (home, wanted)],
            input=self.given,
            more={name: listed for name, listed in more.items() if listed is not None},
        )

    def _read(self, kind: str) -> list[Plain] | None:
        """Return the objects of a kind as lists have them; None while they do not arrive."""
        if requirements_of(kind) <= set(self.withheld):
            return None
        with self._reading(self.listed):
            return [plain for _, plain in sorted(self._cache.of_kind(kind).items())]

    def _keep_apart(self, composite: Composite, answer: drive.Answer) -> None:
        """Hold that nothing new is applied to another's object, nor to one that is known to leave."""
        for key, desired in answer.replicas.items():
            metadata = desired["metadata"]
            held = self.objects.get(Name(REPLICA, metadata["namespace"], metadata["name"]))
            if held is None or key in composite.composed:
                continue
            owners = [owner["uid"] for owner in held["metadata"].get("ownerReferences", ())]
            assert composite.began["metadata"]["uid"] in owners, f"{key} would be applied to another's object"
            leaves = "deletionTimestamp" in held["metadata"]
            assert not leaves or self.listed is not None, f"{key} would be applied to what is being deleted"


def name_in(plain: Plain) -> tuple[str, str]:
    """Return namespace and name of an object."""
    return plain["metadata"]["namespace"], plain["metadata"]["name"]
