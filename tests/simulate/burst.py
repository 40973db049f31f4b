"""Deployments created within seconds, treated as in a living control plane: read early, applied late.

Crossplane takes the snapshot of a reconcile when it starts, up to a hundred at a time; then the calls and
the applies queue for processor time and for the API server. So an answer may be applied most of a minute
after what it was computed from, and everybody's at once. Here a reconcile takes its snapshot when it starts
and is applied `queue` seconds later, drawn anew each time. What else happens is as in life: one reconcile of
a deployment at a time, another when something of its own has changed meanwhile or its time to live ends;
what is not desired is deleted and lives on for some seconds, but what has changed since the snapshot is not:
the API server refuses the write before the delete, and the reconcile starts anew; creation times are whole
seconds; a node runs one replica at a time, and which of those that wait for it is up to its cluster. With
`capacity: Published` the clusters reconcile in the same way, and what each published last is all that
deployments are told of others.
"""

from __future__ import annotations

import copy
import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.boundary import PlainDocument, Request, Response
from function.deployment.handler import run
from tests.simulate.race import with_charges
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
Pool = tuple[str, str]

AT_ONCE = 100
"""Reconciles under way at one time, at most."""
PENDING, SETTLED = 15.0, 60.0
"""Times to live, in seconds."""
DYING = (1.0, 8.0)
"""Seconds an object lives on after its deletion."""
END = 1_800.0
"""Seconds after which an episode is over, at rest or not."""


@dataclass(frozen=True)
class Kind:
    """What kind of burst."""

    deployments: int = 10
    replicas: tuple[int, ...] = (1, 2, 3)
    clusters: int = 12
    nodes: tuple[int, ...] = (2,)
    copies: tuple[int, ...] = (1,)
    within: float = 4.0
    queue: tuple[float, float] = (1.0, 50.0)
    start: float | None = None
    """Mean seconds until a replica that has its nodes is Ready; None: none ever is."""


@dataclass
class Model:
    """One deployment, and the state of its reconciles."""

    plain: Plain
    running: bool = False
    again: bool = False
    """Something of its own has changed since its reconcile started."""
    due: int = 0
    """The number of the wake-up that counts: earlier ones are void."""
    answer: Response | None = None
    yields: int = 0
    """Passes in which it gave something up."""
    reasons: set[str] = field(default_factory=set)
    """Every reason that a condition of it had."""


@dataclass
class Burst:
    """One episode."""

    seed: int
    input: Plain
    kind: Kind = field(default_factory=Kind)
    now: float = 0.0
    calls: int = 0
    replicas: dict[str, Plain] = field(default_factory=dict)
    up: dict[str, bool] = field(default_factory=dict)
    """Replicas whose pods have their nodes."""
    yielded: int = 0
    ready_removed: list[str] = field(default_factory=list)
    """Replicas that were Ready when they were deleted."""
    refused: int = 0
    """Reconciles that ended because what they were to delete had changed since the snapshot."""
    most: int = 0
    """Replicas beyond capacity at one moment, at most."""
    quiet_since: float = 0.0
    """When a replica was created or deleted last."""

    def __post_init__(self) -> None:
        """Draw the fleet and the deployments."""
        self.draw = random.Random(f"burst {self.seed}")
        kind = self.kind
        self.clusters = [
            build.cluster(f"c{number:02}", [build.pool("p", self.draw.choice(kind.nodes))])
            for number in range(kind.clusters)
        ]
        self.sizes = {(cluster["metadata"]["name"], "p"): self.size_of(cluster) for cluster in self.clusters}
        self.published = [with_charges(cluster, []) for cluster in self.clusters]
        self.by_charges = self.input.get("capacity") == "Published"
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.waiting: list[Model] = []
        self.under_way = 0
        names = [f"model-{number:02}" for number in range(kind.deployments)]
        self.draw.shuffle(names)
        self.models: dict[str, Model] = {}
        for number, name in enumerate(names):
            self.after(number * kind.within / len(names), self._creation(name))
        for number in range(kind.clusters) if self.by_charges else ():
            self.after(self.draw.uniform(0, SETTLED), self._reading(number))

    def _reading(self, number: int) -> Callable[[], None]:
        """A cluster takes its snapshot; what it publishes is applied when its turn has come."""

        def read() -> None:
            name = self.clusters[number]["metadata"]["name"]
            here = [replica for replica in self.replicas.values() if label(replica, "cluster") == name]
            published = with_charges(self.clusters[number], [frozen(replica) for replica in here])
            self.after(self.draw.uniform(*self.kind.queue), self._publication(number, published))

        return read

    def _publication(self, number: int, published: Plain) -> Callable[[], None]:
        def publish() -> None:
            self.published[number] = published
            life = PENDING if "givesWay" in published["status"]["gpuPools"][0]["charged"] else SETTLED
            self.after(life * self.draw.uniform(0.9, 1.1), self._reading(number))

        return publish

    @staticmethod
    def size_of(cluster: Plain) -> int:
        """Nodes of the one pool of a cluster."""
        return int(cluster["status"]["gpuPools"][0]["nodes"])

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self.events, (self.now + seconds, self.draw.getrandbits(62), act))

    def play(self) -> Burst:
        """Play until nothing has been created or deleted for some time, or time is up.

        That is as long as it takes until a change is noticed: three settled times to live, or five where a
        cluster must notice it first and each waits for its turn in the queue.
        """
        rest = (5 if self.by_charges else 3) * SETTLED
        while self.events and self.now < END and self.now - self.quiet_since < rest:
            self.now, _, act = heapq.heappop(self.events)
            act()
        return self

    def stamp(self) -> str:
        """The time as the API server writes it."""
        seconds = int(self.now)
        return f"2026-03-01T{8 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"

    def _creation(self, name: str) -> Callable[[], None]:
        def create() -> None:
            copies = self.draw.choice(self.kind.copies)
            engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=copies)
            plain = build.deployment(name, self.draw.choice(self.kind.replicas), [engine])
            plain["metadata"] |= {"creationTimestamp": self.stamp(), "uid": build.uid("ml", name)}
            self.models[name] = Model(plain)
            self.wake(self.models[name])

        return create

    def wake(self, model: Model) -> None:
        """Queue a reconcile; one that is under way is followed by another."""
        model.due += 1
        if model.running:
            model.again = True
        elif model not in self.waiting:
            self.waiting.append(model)
            self._begin()

    def _begin(self) -> None:
        while self.waiting and self.under_way < AT_ONCE:
            model = self.waiting.pop(0)
            model.running, model.again = True, False
            self.under_way += 1
            self.after(self.draw.uniform(*self.kind.queue), self._application(model, self._snapshot(model)))

    def observed_of(self, model: Model) -> dict[str, Plain]:
        """What is observed of a deployment, by key: what is being deleted has left it."""
        name = model.plain["metadata"]["name"]
        return {
            f"replica-{label(replica, 'cluster')}-{label(replica, 'replica-index')}": replica
            for replica in self.replicas.values()
            if label(replica, "deployment") == name and not leaving(replica)
        }

    def _snapshot(self, model: Model) -> Request:
        documents = {
            "clusters": self.clusters,
            "all-replicas": [frozen(replica) for replica in self.replicas.values()],
            "all-deployments": [document.plain for document in self.models.values()],
            "all-caches": [],
        }
        if self.by_charges:
            name = model.plain["metadata"]["name"]
            listed = [item for item in documents["all-replicas"] if label(item, "deployment") == name]
            documents = {"clusters": list(self.published), "own-replicas": listed}
        return Request(
            PlainDocument(model.plain),
            {key: PlainDocument(frozen(replica)) for key, replica in self.observed_of(model).items()},
            {name: tuple(PlainDocument(item) for item in items) for name, items in documents.items()},
            self.input,
        )

    def _application(self, model: Model, request: Request) -> Callable[[], None]:
        def apply() -> None:
            self.calls += 1
            answer = model.answer = run(request)
            model.reasons |= {condition.reason for condition in answer.conditions}
            observed = {key: document.plain() for key, document in request.observed.items()}
            gone = [manifest for key, manifest in observed.items() if key not in answer.desired]
            refused = not all(self._delete(item) for item in gone)
            self.refused += refused
            model.yields += bool(gone) and not refused
            changed = [
                self._apply(model, observed.get(key), resource.resource)
                for key, resource in (() if refused else wanted(answer))
            ]
            model.running = False
            self.under_way -= 1
            self._next(model, answer, changed=bool(gone) or any(changed))
            self._begin()

        return apply

    def _next(self, model: Model, answer: Response, *, changed: bool) -> None:
        """Reconcile at once when something has changed, else when the time to live ends."""
        if changed or model.again:
            self.wake(model)
            return
        model.due += 1
        number = model.due
        life = (SETTLED if answer.settled else PENDING) * self.draw.uniform(0.9, 1.1)
        self.after(life, lambda: self.wake(model) if model.due == number else None)

    def _delete(self, seen: Plain) -> bool:
        """Delete a replica as it was seen; False, and nothing is done, if it has changed since."""
        name = seen["metadata"]["name"]
        here = self.replicas.get(name)
        if here is None:
            return True
        if here != seen:
            return False
        if is_ready(here):
            self.ready_removed.append(name)
        self.yielded += 1
        self.quiet_since = self.now
        here["metadata"] = here["metadata"] | {"deletionTimestamp": self.stamp()}
        self.after(self.draw.uniform(*DYING), lambda: self._end(name))
        return True

    def _end(self, name: str) -> None:
        gone = self.replicas.pop(name)
        self.up.pop(name, None)
        self.wake(self.models[label(gone, "deployment")])

    def _apply(self, model: Model, observed: Plain | None, resource: Plain) -> bool:
        """Apply one replica; whether it changed."""
        name = resource["metadata"]["name"] if observed is None else observed["metadata"]["name"]
        here = self.replicas.get(name)
        if here is not None:
            annotations = resource["metadata"].get("annotations", {})
            changed = annotations.items() > here["metadata"].get("annotations", {}).items()
            here["metadata"] = here["metadata"] | {"annotations": annotations}
            return changed
        made = copy.deepcopy(resource)
        made["metadata"] |= {
            "uid": build.uid(name, round(self.now * 1000)),
            "creationTimestamp": self.stamp(),
            "ownerReferences": [build.owner(model.plain)],
        }
        self.replicas[name] = made
        self.quiet_since = self.now
        self.most = max(self.most, self.excess())
        if self.kind.start is not None:
            self.after(self.draw.expovariate(1 / self.kind.start), lambda: self._start(name, made))
        return True

    def _start(self, name: str, made: Plain) -> None:
        """A replica becomes Ready if its pool has nodes left for it; else it tries again."""
        if self.replicas.get(name) is not made:
            return
        cluster, pool, nodes = held(made)
        running = [held(self.replicas[item]) for item in self.up]
        used = sum(replica[2] for replica in running if replica[:2] == (cluster, pool))
        if used + nodes > self.sizes[cluster, pool]:
            self.after(self.draw.uniform(1, 5), lambda: self._start(name, made))
            return
        self.up[name] = True
        made["status"] = {"conditions": [build.condition("Ready", status=True)]}
        if not leaving(made):
            self.wake(self.models[label(made, "deployment")])

    def charged(self) -> Counter[Pool]:
        """Nodes that living replicas hold, by pool."""
        nodes: Counter[Pool] = Counter()
        for replica in self.replicas.values():
            if not leaving(replica):
                cluster, pool, number = held(replica)
                nodes[cluster, pool] += number
        return nodes

    def crowded(self) -> list[Pool]:
        """The pools that hold more than they have."""
        return sorted(pool for pool, nodes in self.charged().items() if nodes > self.sizes[pool])

    def excess(self) -> int:
        """Nodes held beyond what there is."""
        return sum(max(0, nodes - self.sizes[pool]) for pool, nodes in self.charged().items())

    def missing(self) -> dict[str, int]:
        """Replicas without a place, by deployment."""
        short = {
            name: model.plain["spec"]["replicas"] - len(self.observed_of(model))
            for name, model in self.models.items()
        }
        return {name: number for name, number in sorted(short.items()) if number}

    def on(self, where: Pool) -> set[str]:
        """The deployments with a living replica on a pool."""
        return {
            label(replica, "deployment")
            for replica in self.replicas.values()
            if held(replica)[:2] == where and not leaving(replica)
        }


def wanted(answer: Response) -> list[tuple[str, Any]]:
    """The desired replicas of an answer."""
    return [
        (key, resource)
        for key, resource in answer.desired.items()
        if resource.resource["kind"] == "ModelReplica"
    ]


def frozen(replica: Plain) -> Plain:
    """A replica as it is now: its metadata and status are only ever replaced as a whole."""
    return dict(replica)


def leaving(replica: Plain) -> bool:
    """Whether a replica is being deleted."""
    return "deletionTimestamp" in replica["metadata"]


def is_ready(replica: Plain) -> bool:
    """Whether a replica says that it is Ready."""
    return any(condition["status"] == "True" for condition in replica.get("status", {}).get("conditions", ()))


def label(replica: Plain, name: str) -> str:
    """A label that the function gave a replica."""
    return str(replica["metadata"]["labels"][f"modelplane.ai/{name}"])


def held(replica: Plain) -> tuple[str, str, int]:
    """Cluster, pool and nodes of a replica of one engine with one member."""
    engine = replica["spec"]["engines"][0]
    return replica["spec"]["clusterName"], engine["members"][0]["nodePoolName"], engine["copies"]
