"""Whole days of a fleet from one seed: Crossplane, its platform and its users, with faults between them.

Everything stands on `tests.support.crossplane`: one API server in memory, one queue of events, one clock, and
Crossplane as 2.0, 2.3 and 2.4 have it, with seeds, watches, breakers and answers that are applied late. Here
the kubelets, the platform team and the ML teams are added, and what goes wrong: Crossplane dies between what
it deletes and what it applies, or forgets all; requirements do not arrive; clusters say what nobody can read.

Every event has draws of its own, so one can be left out and the others stay as they are: `shrunk` leaves out
all that a broken promise does not need, and what is left is a short script.

The day is recorded as `tests.history` records a living control plane, and judged by the same judge. Then
faults stop, and `CALM` simulated seconds later no replica waits on a full pool, and no deployment for a node
that is free. Then there is room for everybody, and as much later every replica serves the image that is
wanted, and nothing is created or deleted any more.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from function.api.names import PAUSED_ANNOTATION
from function.api.reasons import INTERNAL_ERROR
from tests.history.judge import WAS_READY, judge
from tests.history.lives import ordered
from tests.history.record import KINDS, bare
from tests.simulate.episode import BrokenPromise
from tests.support import build
from tests.support.crossplane import VERSIONS, Away, ControlPlane, Name, fresh_copy, shipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.drive import Answer

Plain = dict[str, Any]

LOOK = 3.0
"""Seconds between two looks of the kubelets."""
PAUSES = (5.0, 20.0, 60.0, 120.0)
"""Seconds from one thing that happens to the next one."""
AWAY = (5.0, 30.0)
"""Seconds in which no copy of the function answers."""
CALM, STILL = 300.0, 120.0
"""Seconds until all is as it must be, and how long nothing has changed then."""
QUEUES = ((0.0, 0.5), (0.0, 5.0), (1.0, 50.0))
"""How late answers are applied, in seconds."""
LAGS = ((0.0, 0.0), (0.0, 0.1), (0.0, 0.1), (0.0, 2.0))
"""How long a write takes, and how late a watch shows it: on a machine that is quiet, usual or busy."""
AFRESH = 10.0
"""Seconds after a restore in which a copy that has just started must have the same answers."""
AGAIN, ANSWERS = 0.1, 1_000
"""How often, of 1, a request that was answered is asked again, and how many answers are remembered."""
WINDOW = 60.0
"""Seconds in which a reason may have held: the longest queue, and what Crossplane takes besides."""
GOOD, BAD = ("vllm:1", "vllm:2", "vllm:3"), "vllm:broken"
POLICIES: tuple[Plain, ...] = (
    {},
    {"rollout": {"maxUnavailable": 1}},
    {"disruption": {"maxUnavailable": 1}},
    {"rollout": {"maxUnavailable": 1}, "disruption": {"maxUnavailable": 0, "maxSurge": 1}},
)
TEAMS = ("ads", "search")


class Size(NamedTuple):
    """How much there is in a day."""

    clusters: tuple[int, ...]
    nodes: tuple[int, ...]
    """Of a cluster."""
    deployments: tuple[int, ...]
    """In the beginning."""
    most: int
    """Deployments that there may be."""
    replicas: int
    """As many as somebody asks for, who is not in a hurry."""
    events: int


CROWDED = Size((2,), (1, 2), (3,), most=4, replicas=3, events=6)
USUAL = Size((2, 3, 4), (1, 2, 2, 3), (2, 3, 4), most=6, replicas=4, events=14)
SMALL = Size((2, 2, 3), (1, 1, 2), (1, 2), most=2, replicas=2, events=5)
SIZES = (*(SMALL,) * 9, USUAL)
"""A small world takes an eighth to a quarter of the work, and meets the corners of a rule more often."""


def deployment_name(number: int) -> Name:
    """Return the name of a deployment: teams have namesakes."""
    return Name("ModelDeployment", TEAMS[number % 2], f"model-{number // 2}")


@dataclass
class Day:
    """One day. `happened` names its events in order, which is what a failing seed is read by."""

    OURS: ClassVar[tuple[str, ...]] = ("ModelDeployment",)
    """Kinds of composites that our handlers compose."""
    ELSEWHERE: ClassVar[tuple[str, ...]] = ("ModelReplica", "ModelEndpoint")
    """Those that somebody else does."""

    seed: int
    left_out: frozenset[int] = frozenset()
    """Numbers of events that do not happen."""
    sizes: tuple[Size, ...] = SIZES
    """One of them is drawn."""
    happened: list[str] = field(default_factory=list)
    rows: list[Plain] = field(default_factory=list)
    running: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """What has its nodes: cluster, pool and nodes by uid."""
    undeclared: set[str] = field(default_factory=set)
    """Clusters that no longer declare the pool that they publish."""
    due: dict[tuple[str, int], float] = field(default_factory=dict)
    """When pods of a template serve, by uid and generation."""
    complaints: list[str] = field(default_factory=list)
    """Promises that were broken on the way."""
    away: float = 0.0
    """Until when no copy of the function answers."""
    restores: int = 0
    """How often etcd was restored: every object is another one to the judge."""
    restored: float = -AFRESH
    """When it was last."""

    def __post_init__(self) -> None:
        """Draw the fleet, the deployments, and the Crossplane that they live with."""
        self.size = random.Random(f"size {self.seed}").choice(self.sizes)
        draw = self.draw = random.Random(f"swarm {self.seed}")
        self.pods = random.Random(f"pods {self.seed}")
        self.rows += [
            {"at": 0.0, "type": "LISTED", "kind": kind, "version": "0", "objects": []} for kind in KINDS
        ]
        self.calls = random.Random(f"calls {self.seed}")
        self.copies = [self.started() for _ in range(self.calls.choice((1, 2, 2, 3)))]
        self.again = random.Random(f"again {self.seed}")
        self.answers: dict[bytes, bytes] = {}
        self.plane = ControlPlane(
            shipped(self.OURS, self.ask, self.inputs()),
            draw.choice(VERSIONS),
            draw.choice(QUEUES),
            random.Random(f"lag {self.seed}").choice(LAGS),
            elsewhere=self.ELSEWHERE,
            seed=self.seed,
            listener=self.record,
            hearer=self.hear,
        )
        self.faulty = draw.random() < 0.5
        self.fleet = {
            f"c{number}": draw.choice(self.size.nodes) for number in range(draw.choice(self.size.clusters))
        }
        for name in self.fleet:
            self.publish(name)
        self.wishes: dict[Name, Plain] = {}
        for number in range(draw.choice(self.size.deployments)):
            self.create(deployment_name(number))
        self.plane.after(LOOK, self.look)

    @property
    def chances(self) -> int:
        """How many things happen."""
        return self.size.events

    def inputs(self) -> dict[str, Plain]:
        """Return what the inputs of the shipped Compositions have besides, by kind."""
        return {}

    def happenings(self) -> tuple[Callable[[Any], None], ...]:
        """Return what may happen in such a day."""
        return HAPPENINGS

    def ask(self, content: bytes) -> bytes:
        """Ask one of the copies of the function, as a Service does. Raises Away.

        Equal requests have equal answers, so most that were answered before are not asked again, and the
        others may not be answered otherwise by what a copy remembers by then.
        """
        if self.plane.now < self.away:
            raise Away
        copy, digest = self.calls.choice(self.copies), sha256(content).digest()
        before = self.answers.pop(digest, None)
        if before is None or self.again.random() < AGAIN:
            answer = copy(content)
            if before not in (None, answer):
                self.complain("one request has two answers")
        else:
            answer = before
        self.answers[digest] = answer
        if len(self.answers) > ANSWERS:
            self.answers.pop(next(iter(self.answers)))
        return answer

    def hear(self, name: Name, answer: Answer) -> None:
        """Complain of an error of our own."""
        if any(reason == INTERNAL_ERROR for _, reason, _ in answer.conditions.values()):
            self.complain(f"an error of our own in {name}")

    def complain(self, words: str) -> None:
        """Note a promise that is broken; the first of a day says enough."""
        if not self.complaints:
            self.complaints.append(f"at {self.plane.now:.0f} s: {words}")

    def record(self, event: str, plain: Plain) -> None:
        """Write down what a checker of histories follows."""
        if plain["kind"] in KINDS:
            row = {"at": self.plane.now, "type": event, "kind": plain["kind"]}
            self.rows.append({**row, "object": self._judged(plain)})

    def _judged(self, plain: Plain) -> Plain:
        """Return an object as its judge sees it: under versions that never repeat."""
        metadata = {**plain["metadata"], "resourceVersion": str(len(self.rows))}
        if self.restores:
            owners = metadata.get("ownerReferences", ())
            again = [{**owner, "uid": f"{owner['uid']} {self.restores}"} for owner in owners]
            noted = dict(metadata.get("annotations", {}))
            if noted.get(WAS_READY) == metadata["uid"]:
                noted[WAS_READY] += f" {self.restores}"
            uid = f"{metadata['uid']} {self.restores}"
            metadata |= {"uid": uid, "ownerReferences": again, "annotations": noted}
        return bare({**plain, "metadata": metadata})

    def save(self) -> None:
        """Make a backup of etcd."""
        self.saved = self.plane.backup()

    def restore(self) -> None:
        """Restore it; start the function anew, as docs/operations.md says, and declare what is wished."""
        self.restores, self.restored = self.restores + 1, self.plane.now
        self.forget()
        self.plane.restore(self.saved)
        for kind in KINDS:
            objects = [self._judged(plain) for name, plain in self.plane.objects.items() if name.kind == kind]
            row = {"at": self.plane.now, "type": "LISTED", "kind": kind, "objects": objects}
            self.rows.append({**row, "version": str(len(self.rows))})
        self.declare()

    def forget(self) -> None:
        """Start every copy of the function anew."""
        self.copies = [self.started() for _ in self.copies]

    def started(self) -> Callable[[bytes], bytes]:
        """Return a copy of the function that has just started."""
        return fresh_copy().answer

    def declare(self) -> None:
        """Bring clusters and deployments in line with what is wished, as a repository of manifests does."""
        for kind, wished in (("InferenceCluster", self.fleet), ("ModelDeployment", self.wishes)):
            for name in self.standing(kind):
                if (name.name if kind == "InferenceCluster" else name) not in wished:
                    self.plane.delete(name, by_hand=True)
        for cluster in self.fleet:
            self.publish(cluster)
        standing = self.standing("ModelDeployment")
        for name in self.wishes:
            if name in standing or name not in self.plane.objects:
                self.edit(name)
        if not self.wishes.keys() <= self.standing("ModelDeployment").keys():
            self.plane.after(LOOK, self.declare)  # One is still on its way out.

    # The platform team

    def publish(self, name: str, **changes: Any) -> None:
        """Publish a cluster as it is, or as somebody changed it."""
        plain = build.cluster(name, [build.pool("p", self.fleet[name])], labels={"fleet": "swarm"})
        before = self.plane.objects.get(Name("InferenceCluster", "", name))
        if before is not None:
            plain["spec"]["taints"] = before["spec"].get("taints", [])
        if name in self.undeclared:
            plain["spec"]["nodePools"] = [{"name": "another", "className": "any"}]
        plain["status"] = changes.pop("status", plain["status"])
        plain["spec"] |= changes
        plain["metadata"].pop("uid", None)
        self.plane.write(plain)

    def garble(self, name: str) -> None:
        """Publish what nobody can read, or nothing."""
        self.publish(name, status=self.draw.choice(({}, {"gpuPools": [None]}, {"conditions": []})))

    # The ML teams

    def engine(self) -> Plain:
        """Return the engine of a deployment: a copy on a node."""
        return build.engine(members=[build.member(devices=[build.request("gpu", 8)])])

    def wish(self, name: Name) -> Plain:
        """Return a deployment as somebody may want it."""
        plain = build.deployment(
            name.name,
            self.draw.choice((1, 2, 2, self.size.replicas - 1)),
            [self.engine()],
            namespace=name.namespace,
        )
        plain["spec"]["placement"] = dict(self.draw.choice(POLICIES))
        for given in ("uid", "creationTimestamp", "generation"):
            plain["metadata"].pop(given, None)
        return plain

    def create(self, name: Name) -> None:
        """Create a deployment."""
        self.wishes[name] = self.wish(name)
        self.edit(name, self.draw.choice(GOOD))

    def remove(self, name: Name) -> None:
        """Delete a deployment."""
        del self.wishes[name]
        self.plane.delete(name, by_hand=True)

    def edit(
        self, name: Name, image: str = "", replicas: int | None = None, *, paused: bool | None = None
    ) -> None:
        """Want another image or number, or pause; what Crossplane keeps in the spec stays."""
        plain = self.wishes[name]
        spec = plain["spec"]
        if paused is not None:
            plain["metadata"]["annotations"] = {PAUSED_ANNOTATION: str(paused).lower()}
        if image:
            for member in spec["template"]["spec"]["engines"][0]["members"]:
                member["template"] = build.template(image)
        spec["replicas"] = spec["replicas"] if replicas is None else replicas
        before = self.plane.objects.get(name, {})
        kept = {key: value for key, value in before.get("spec", {}).items() if key == "resourceRefs"}
        status = {"status": before["status"]} if "status" in before else {}
        metadata = {**before.get("metadata", {}), **plain["metadata"]}
        self.plane.write({**plain, **status, "metadata": metadata, "spec": {**spec, **kept}})

    # The kubelets

    def replicas(self) -> dict[Name, Plain]:
        """Return the replicas that stand."""
        return self.standing("ModelReplica")

    def standing(self, kind: str) -> dict[Name, Plain]:
        """Return the objects of a kind that nobody deleted."""
        return {
            name: plain
            for name, plain in self.plane.objects.of_kind(kind).items()
            if "deletionTimestamp" not in plain["metadata"]
        }

    def look(self) -> None:
        """Give nodes to replicas, and say what became of their pods, of the generation they run."""
        uids = {plain["metadata"]["uid"] for name, plain in self.plane.objects.items()}
        self.running = {uid: held for uid, held in self.running.items() if uid in uids}
        for name, plain in sorted(self.replicas().items()):
            if self._has_nodes(plain):
                self._serve(name, plain)
        for name, plain in sorted(self.standing("ModelEndpoint").items()):
            if not is_ready(plain):
                self.plane.patch(name, status=ready(plain, serves=True))
        self.plane.after(LOOK, self.look)

    def waits(self, replica: Plain) -> bool:
        """Whether the pods of a replica have no nodes."""
        return replica["metadata"]["uid"] not in self.running

    def fail(self, replica: Name) -> None:
        """Let the pods of a replica be gone for a while."""
        plain = self.plane.objects[replica]
        key = plain["metadata"]["uid"], plain["metadata"]["generation"]
        self.due[key] = self.plane.now + self.draw.choice((10.0, 60.0))

    def say_nothing(self) -> None:
        """Let nobody say any more whether a replica is Ready."""
        if self.replicas():
            self.plane.patch(self.draw.choice(sorted(self.replicas())), status={"conditions": []})

    def _has_nodes(self, plain: Plain) -> bool:
        uid, (cluster, pool, nodes) = plain["metadata"]["uid"], held(plain)
        if uid not in self.running:
            used = sum(count for where, of, count in self.running.values() if (where, of) == (cluster, pool))
            if used + nodes > self.fleet.get(cluster, 0):
                return False
            self.running[uid] = cluster, pool, nodes
        return True

    def _serve(self, name: Name, plain: Plain) -> None:
        key = plain["metadata"]["uid"], plain["metadata"]["generation"]
        bad = image(plain) == BAD
        due = self.due.setdefault(key, self.plane.now + self.pods.choice((0.0, 5.0, 30.0)))
        serves = self.plane.now >= due and not bad
        about = condition(plain, "Ready").get("observedGeneration") == key[1]
        if serves != is_ready(plain) or not about:
            self.plane.patch(name, status=ready(plain, serves=serves))

    # A day

    def live(self) -> Day:
        """Live through the day and its rest. Raises BrokenPromise."""
        self.plane.run(60.0)
        self.save()
        for number in range(self.size.events):
            self.draw = random.Random(f"event {number} of {self.seed}")
            event, pause = self.draw.choice(self.happenings()), self.draw.choice(PAUSES)
            if number not in self.left_out:
                self.happened.append(f"{self.plane.now:.0f} s {event.__name__.strip('_')}")
                event(self)
            self.plane.run(pause)
            self._hold(self.complaints)
        self.calm()
        self.plane.run(CALM)
        complaints = self._waiting()
        self._have_room()
        self.plane.run(CALM)
        moved = len([row for row in self.rows if row["at"] > self.plane.now - STILL and _moves(row)])
        complaints += [f"{moved} replicas came or went at rest"] if moved else []
        complaints += self.complaints + self.unfinished()
        complaints += [str(one) for one in judge(ordered(self.rows), WINDOW).violations]
        self._hold(complaints)
        return self

    def _hold(self, complaints: list[str]) -> None:
        """End the day if there is something to complain of. Raises BrokenPromise."""
        if complaints:
            lines = [f"seed {self.seed}, {self.plane.version}", *self.happened, *complaints]
            raise BrokenPromise("\n".join(lines))

    def calm(self) -> None:
        """Take every fault back, and every taint."""
        self.plane.crashes, self.plane.withheld = 0.0, ()
        self.away = 0.0
        self.plane.queue, self.plane.lag = (0.0, 1.0), LAGS[1]
        for name in self.fleet:
            self.publish(name, taints=[])

    def _waiting(self) -> list[str]:
        """Return which replicas wait on a full pool, and which deployments for a node that is free."""
        complaints, standing = [], self.replicas()
        for name, plain in standing.items():
            if self.waits(plain) and not self.may_wait(plain):
                complaints.append(f"{name.name} waits for a node of {plain['spec']['clusterName']}")
        used = Counter(plain["spec"]["clusterName"] for plain in standing.values())
        free = [name for name, nodes in self.fleet.items() if used[name] < nodes]
        free = [name for name in free if name not in self.undeclared]
        for name, wish in self.wishes.items():
            mine = sum(owned(plain, name) for plain in standing.values())
            if free and mine < wish["spec"]["replicas"] and not is_paused(wish):
                complaints.append(f"{name.namespace}/{name.name} has {mine}, and {free} have free nodes")
        return complaints

    def may_wait(self, replica: Plain) -> bool:
        """Let one that served wait for a node, because it never yields.

        A restore may have brought it back to a pool that shrank since.
        """
        noted = replica["metadata"].get("annotations", {}).get(WAS_READY)
        return bool(self.restores) and noted == replica["metadata"]["uid"]

    def _have_room(self) -> None:
        """Let every cluster have room for all, and every deployment an image that starts."""
        for name in self.fleet:
            self.fleet[name] += sum(wish["spec"]["replicas"] for wish in self.wishes.values())
            self.publish(name)
        for name in list(self.wishes):
            self.edit(name, self.draw.choice(GOOD), paused=False)

    def unfinished(self) -> list[str]:
        """Return what is not as it must be in the end."""
        complaints = []
        for name, wish in self.wishes.items():
            mine = [plain for plain in self.replicas().values() if owned(plain, name)]
            where, replicas = f"{name.namespace}/{name.name}", wish["spec"]["replicas"]
            if len(mine) != replicas or not all(map(is_ready, mine)):
                complaints.append(
                    f"{where}: {sum(map(is_ready, mine))} of {len(mine)} serve, {replicas} wanted"
                )
            wanted = image(wish["spec"]["template"])
            old = [plain["metadata"]["name"] for plain in mine if image(plain) != wanted]
            if old:
                complaints.append(f"{where}: {old} have an old image")
        return complaints


class Lives(Protocol):
    """What is lived through: a day, or a burst."""

    @property
    def chances(self) -> int:
        """How many things happen; each can be left out by its number."""
        ...

    def live(self) -> object:
        """Live through it. Raises BrokenPromise."""
        ...


def shrunk(made: Callable[[frozenset[int]], Lives]) -> str:
    """Return what a broken life still complains of with as few events as it needs; "" if it is not broken."""
    left_out: frozenset[int] = frozenset()
    complaint = broken(life := made(left_out))
    for number in range(life.chances) if complaint else ():
        if shorter := broken(made(left_out | {number})):
            left_out, complaint = left_out | {number}, shorter
    return complaint


def broken(life: Lives) -> str:
    """Live through something, and return what it complains of."""
    try:
        life.live()
    except BrokenPromise as complaint:
        return str(complaint)
    return ""


def _moves(row: Plain) -> bool:
    return row["type"] in ("ADDED", "DELETED") and row["kind"] == "ModelReplica"


def condition(plain: Plain, kind: str) -> Plain:
    """Return a condition of an object, {} for none."""
    rows = plain.get("status", {}).get("conditions", [])
    return next((row for row in rows if row["type"] == kind), {})


def is_paused(plain: Plain) -> bool:
    """Whether Crossplane leaves an object alone."""
    return bool(plain["metadata"].get("annotations", {}).get(PAUSED_ANNOTATION) == "true")


def is_ready(plain: Plain) -> bool:
    """Whether an object says that it is Ready."""
    return bool(condition(plain, "Ready").get("status") == "True")


def ready(plain: Plain, *, serves: bool) -> Plain:
    """Return the status with the condition Ready, of the generation that an object has."""
    row = build.condition("Ready", status=serves)
    return {"conditions": [row | {"observedGeneration": plain["metadata"]["generation"]}]}


def held(replica: Plain) -> tuple[str, str, int]:
    """Return cluster, pool and nodes of a replica of one engine with one member."""
    engine = replica["spec"]["engines"][0]
    return replica["spec"]["clusterName"], engine["members"][0]["nodePoolName"], int(engine["copies"])


def image(plain: Plain) -> str:
    """Return the image of the one engine."""
    template = plain["spec"]["engines"][0]["members"][0]["template"]
    return str(template["spec"]["containers"][0]["image"])


def owned(replica: Plain, name: Name) -> bool:
    """Whether a replica is of a deployment."""
    metadata = replica["metadata"]
    return (metadata["namespace"], metadata["labels"]["modelplane.ai/deployment"]) == name[1:]


def _pick(day: Day) -> str:
    return day.draw.choice(sorted(day.fleet))


def _scale(day: Day) -> None:
    day.edit(day.draw.choice(sorted(day.wishes)), replicas=day.draw.choice(range(day.size.replicas + 1)))


def _edit(day: Day) -> None:
    day.edit(day.draw.choice(sorted(day.wishes)), day.draw.choice(GOOD))


def _bad_image(day: Day) -> None:
    day.edit(day.draw.choice(sorted(day.wishes)), BAD)


def _pause(day: Day) -> None:
    day.edit(day.draw.choice(sorted(day.wishes)), paused=day.draw.random() < 0.7)


def _create(day: Day) -> None:
    names = map(deployment_name, range(day.size.most))
    missing = [name for name in names if name not in day.plane.objects]
    if missing:
        day.create(missing[0])


def _burst(day: Day) -> None:
    """Several deployments at once."""
    for _ in range(3):
        _create(day)


def _delete(day: Day) -> None:
    if len(day.wishes) > 1:
        day.remove(day.draw.choice(sorted(day.wishes)))


def _lose(day: Day) -> None:
    """Somebody deletes a replica."""
    if day.replicas():
        day.plane.delete(day.draw.choice(sorted(day.replicas())), by_hand=True)


def _drain(day: Day) -> None:
    day.publish(_pick(day), taints=[build.taint("maintenance", "NoExecute")])


def _keep_out(day: Day) -> None:
    day.publish(_pick(day), taints=[build.taint("maintenance", "NoSchedule")])


def _undrain(day: Day) -> None:
    for name in day.fleet:
        day.publish(name, taints=[])


def _shrink(day: Day) -> None:
    name = _pick(day)
    day.fleet[name] = max(1, day.fleet[name] - 1)
    day.publish(name)


def _grow(day: Day) -> None:
    name = _pick(day)
    day.fleet[name] += 1
    day.publish(name)


def _garble(day: Day) -> None:
    """A cluster publishes what nobody can read, or nothing."""
    day.garble(_pick(day))


def _undeclare(day: Day) -> None:
    """The pool of a cluster is declared no more, and still published."""
    if len(day.fleet) > len(day.undeclared) + 1:
        name = _pick(day)
        day.undeclared.add(name)
        day.publish(name)


def _remove(day: Day) -> None:
    """A cluster is deleted."""
    if len(day.fleet.keys() - day.undeclared) > 1:
        name = _pick(day)
        del day.fleet[name]
        day.undeclared.discard(name)
        day.plane.delete(Name("InferenceCluster", "", name), by_hand=True)


def _fail(day: Day) -> None:
    """A replica's pods are gone for a while."""
    serving = [name for name, plain in sorted(day.replicas().items()) if is_ready(plain)]
    if serving:
        day.fail(day.draw.choice(serving))


def _unknown(day: Day) -> None:
    """A replica's controller no longer says whether it is Ready."""
    day.say_nothing()


def _withhold(day: Day) -> None:
    """Requirements do not arrive, or do again."""
    if day.faulty:
        day.plane.withheld = day.draw.choice(((), ("cluster",), ("fleet-clusters",), ("own-replicas",)))


def _crash(day: Day) -> None:
    """Crossplane dies between what it deletes and what it applies, again and again, or no more."""
    if day.faulty:
        day.plane.crashes = day.draw.choice((0.0, 0.3))


def _restart(day: Day) -> None:
    day.plane.restart()


def _resync(day: Day) -> None:
    day.plane.resync()


def _restart_function(day: Day) -> None:
    """One copy of the function ends, and another one starts."""
    day.copies[day.draw.randrange(len(day.copies))] = day.started()


def _lose_function(day: Day) -> None:
    """No copy of the function answers for a while."""
    day.away = day.plane.now + day.draw.choice(AWAY)


def _save(day: Day) -> None:
    day.save()


def _restore(day: Day) -> None:
    day.restore()


HAPPENINGS: tuple[Callable[[Day], None], ...] = (
    *(_scale, _edit, _bad_image, _pause, _create, _burst, _delete, _lose),
    *(_drain, _keep_out, _undrain, _shrink, _grow, _garble, _undeclare, _remove),
    *(_fail, _unknown, _withhold, _crash, _restart, _resync),
    *(_restart_function, _lose_function, _save, _restore),
)


def _relapse(day: Day) -> None:
    """Etcd is restored from just before a pool grew, and the pool has shrunk by then."""
    name = _pick(day)
    day.save()
    day.fleet[name] += 1
    day.publish(name)
    day.plane.run(day.draw.choice(PAUSES[:2]))
    day.fleet[name] = max(1, day.fleet[name] - 2)
    day.restore()


def _hoard(day: Day) -> None:
    """Everybody wants more than there is, and one of them is paused."""
    for name in day.wishes:
        day.edit(name, replicas=1, paused=False)
    day.plane.run(PAUSES[2])
    paused = day.draw.choice(sorted(day.wishes))
    for name in day.wishes:
        day.edit(name, replicas=2 * day.size.replicas, paused=name == paused)


class PausingDay(Day):
    """A day in which somebody often waits for more, and nobody acts for it."""

    def happenings(self) -> tuple[Callable[[Any], None], ...]:
        """Let deployments often be paused while they want more."""
        return (*HAPPENINGS, *(_hoard,) * 20)


class RelapsingDay(Day):
    """A day in which versions often repeat with other contents."""

    def happenings(self) -> tuple[Callable[[Any], None], ...]:
        """Let etcd be restored often."""
        return (*HAPPENINGS, *(_relapse,) * 10)

    def ask(self, content: bytes) -> bytes:
        """Compare what is answered after a restore with what a copy that has just started answers."""
        answer = super().ask(content)
        if self.plane.now < self.restored + AFRESH and fresh_copy().answer(content) != answer:
            self.complain("a copy answers by what it remembers from before a restore")
        return answer
