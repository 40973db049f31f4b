"""Rollouts, drains and losses on a simulated platform that starts pods slowly, or never.

The control plane is driven by hand (`driven`). What is behind it (`platforms`) knows the truth of every
replica: which image its pods run, whether they serve; an image that is bad never does. What it tells of that
comes late, or is the truth of before: a platform of others tells a generation, or nothing but Ready; ours,
which is here as a whole, a digest, on Deployments, LeaderWorkerSets and KServe.

After every reconcile:

- what served and was taken out of service by us (updated, drained, replaced) left no more than the budget of
  the wanted replicas out of service;
- an image that does not start took no more serving replicas than `rollout.maxUnavailable`;
- there are at most wanted plus maxSurge replicas, and no pool holds more than it has;
- no claim template and no mirrored Secret left a cluster while pods could refer to it;
- what does not arrive, or cannot be read, updates nothing that depends on it and takes nothing away.

When nothing happens any more everything comes to rest: as many serve as are wanted and have a place, on the
image that is wanted, and on the way there no replica was updated twice. Where nothing is left that could say
what the pods of a gang run (`Chain.is_mute`), that must be said of it, and the next edit must end it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from function.scheduler.outcomes import Cause
from tests.simulate.driven import CLUSTER, DEPLOYMENT, REPLICA, Driven, requirements_of
from tests.simulate.episode import BrokenPromise
from tests.simulate.platforms import CONTROLLERS, CROSSPLANE, PROVIDER, Chain, Foreign, image
from tests.simulate.workers import Cluster
from tests.support import build, law
from tests.support.cases import ask
from tests.support.crossplane import DYING, VERSIONS, Name, Store
from tests.support.parts import Source
from tests.support.promises import identity, ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.drive import Answer
    from tests.support.world import World

Plain = dict[str, Any]

GOOD = ("vllm:1", "vllm:2", "vllm:3", "vllm:4")
BAD = ("vllm:broken", "vllm:broken-too")
MENDING = "vllm:5"
"""The image of an edit that ends a doubt: no pod ever ran it."""
SECRETS = ("hf", "hf-new", "hf-rotated")
FOREIGN, OURS = ("generation", "ready"), ("a pod", "copies", "a gang", "gangs", "KServe", "KServe gang")
"""What a platform of others publishes, and what a replica is on ours."""
COPIES = ("copies", "gangs")
GENTLE = (*COPIES, "KServe")
"""Where a replica takes requests while its pods are replaced: copy by copy, or with one on top."""
REST = 200
"""Steps after the last event until everything has come to rest, at most."""
STILL = 12
"""Steps without a change after which nothing will change any more."""


class Read(NamedTuple):
    """Replicas as they are, or were a step before."""

    store: Store
    observed: dict[str, Plain]
    served: set[str]
    """Those that serve what their specs say, by key."""
    taking: set[str]
    """Those that take requests."""
    judged: set[str]
    """Those that serve as far as could be read."""


@dataclass
class Life:
    """One episode: a control plane with one deployment, and the platform."""

    draw: Source
    kind: str
    """One of FOREIGN or of OURS."""
    plane: Driven
    platform: Foreign | Chain
    weather: Weather
    taken: Counter[str] = field(default_factory=Counter)
    """Replicas in service that an image was given to, since it was wanted."""
    updates: Counter[str] = field(default_factory=Counter)
    """Updates of each replica since the last event, by key."""
    seen: Counter[str] = field(default_factory=Counter)
    secret: str = SECRETS[0]
    """The Secret that its pods are to read."""
    calm: bool = False
    """Whether nothing fails any more."""
    past: Read | None = None
    garbled: dict[str, Plain] = field(default_factory=dict)
    """What clusters published whose status nobody can read now."""

    @property
    def of(self) -> Name:
        """The name of the deployment."""
        (name,) = self.plane.objects.of_kind(DEPLOYMENT)
        return name

    @property
    def spec(self) -> Plain:
        """The deployment's spec."""
        return dict(self.plane.objects[self.of]["spec"])

    @property
    def placement(self) -> Plain:
        """Its policy."""
        return dict(self.spec["placement"])

    @property
    def image(self) -> str:
        """The image that is wanted."""
        return image(self.plane.objects[self.of])

    def clusters(self) -> dict[str, Plain]:
        """Return the clusters by name."""
        return {name.name: plain for name, plain in self.plane.living(CLUSTER).items()}

    def name_of(self, key: str) -> Name:
        """Return the name of a replica."""
        return self.plane.composites[self.of].composed[key]

    def taint(self, cluster: str) -> None:
        """Drain a cluster."""
        with self.plane.edit(Name(CLUSTER, "", cluster)) as plain:
            plain["spec"]["taints"] = [build.taint("maintenance", "NoExecute")]

    def replicas(self) -> dict[str, Plain]:
        """Return the replicas that are not on their way out, by key."""
        return {key: one for key, one in self.plane.composed(self.of).items() if one["kind"] == REPLICA}

    def serving(self) -> set[str]:
        """Return the keys of the replicas that serve in truth, and are not on their way out.

        One that was given another template is: its old pods may serve until the platform looks at it.
        """
        return {key for key, one in self.replicas().items() if self.platform.serves(one)}

    def mute(self) -> list[str]:
        """Return the names of the replicas of whose pods nothing can be known until the next edit."""
        chain = self.platform if isinstance(self.platform, Chain) else None
        replicas = self.replicas().values() if chain else ()
        return [one["metadata"]["name"] for one in replicas if chain and chain.is_mute(one)]

    def standing(self) -> tuple[object, ...]:
        """Return what there is to be still: images, who serves, and the pods behind it."""
        images = {key: image(one) for key, one in self.replicas().items()}
        remote = self.platform.remote if isinstance(self.platform, Chain) else {}
        return images, self.serving(), [[pod.name for pod in one.pods] for one in remote.values()]

    # One step

    def step(self) -> Answer:
        """Reconcile once, look at what was done, and let the platform act."""
        served, before = self.serving(), {key: image(one) for key, one in self.replicas().items()}
        living = self.replicas()
        taking = {key for key, one in living.items() if self.platform.takes_requests(one)}
        read = self._look_back(served, taking)
        fails = bool(self.weather.fails) and self.draw.odds(self.weather.fails)
        self.plane.fails = self.draw if fails and not self.calm else None
        answer = self.plane.reconcile(self.of)
        images = {key: image(read.observed.get(key, one)) for key, one in living.items()}
        complaints = [*self._out_of_service(read, before | images, answer), *self._overcommitted()]
        if complaints:
            raise BrokenPromise("; ".join(complaints))
        for key, one in self.replicas().items():
            if key in before and before[key] != image(one):
                self.updates[key] += 1
                self.platform.edited(one)
        living = self.replicas()
        if isinstance(self.platform, Chain):
            self.platform.fleet = self.clusters()
        self.platform.act(living)
        for one in living.values():
            self.plane.write(one)
        if isinstance(self.platform, Chain) and self.platform.complaints:
            raise BrokenPromise("; ".join(self.platform.complaints))
        return answer

    def _look_back(self, served: set[str], taking: set[str]) -> Read:
        """Let Crossplane read its replicas as they were a step before, or as they are.

        Returns what can be known of them: where neither read is of now, those serve that did then, but for
        those that were taken in the step before.
        """
        replicas, past = self.replicas(), self.past
        now = self.past = Read(Store(self.plane.objects.of_kind(REPLICA)), replicas, served, taking, served)
        self.plane.listed = self.plane.observed = None
        if past is None or self.calm or not self.weather.stale:
            return now
        if self.draw.odds(self.weather.stale):
            self.plane.listed = past.store
        fresh = self.plane.listed is None and "all-replicas" not in self.plane.withheld
        if self.draw.odds(self.weather.stale) and (self.weather.blind or fresh):
            self.plane.observed = past.store
        if fresh or self.plane.observed is None:
            return now
        there, born = past.judged & replicas.keys(), replicas.keys() - past.observed.keys()
        taken = {key for key in there if image(replicas[key]) != image(past.observed[key])}
        served = (past.served & replicas.keys()) - taken | (served & born)
        taking = (past.taking & replicas.keys()) - (set() if self.gentle else taken) | (taking & born)
        self.past = now._replace(judged=served)
        return past._replace(served=served, taking=taking)

    def _out_of_service(self, read: Read, before: dict[str, str], answer: Answer) -> Iterator[str]:
        """Yield what was taken out of service beyond the budget it was taken under."""
        served, taking = read.served, read.taking
        wanted, replicas = self.spec["replicas"], self.replicas()
        updated = {key for key in served & replicas.keys() if before[key] != image(replicas[key])}
        if updated and self.plane.withheld:
            yield f"{sorted(updated)} were updated while {sorted(self.plane.withheld)} did not arrive"
        causes = {dropped.own_replica.key: dropped.cause for dropped in answer.decision.dropped}
        gone = served - replicas.keys()
        left = len(taking - gone - (set() if self.gentle else updated))
        budgets = [self.update_budget] if updated and not self.gentle else []
        budgets += [self.drain_budget for key in gone if causes[key] is Cause.Drained]
        budgets += [self.replacement_budget for key in gone if causes[key] is Cause.Replaced]
        self.seen.update(causes[key].name for key in gone)
        self.seen["updated"] += len(updated)
        if (
            budgets
            and None not in budgets
            and wanted - left > self._allowed(max(filter(None, budgets), default=0))
        ):
            yield f"{left} of {wanted} serve after {sorted(updated)} were updated and {sorted(gone)} left"
        if self.update_budget is None:
            return
        for key in updated:
            self.taken[image(replicas[key])] += 1
        for name in BAD:
            # One half updated may be mended where no budget lets others be: its other copies serve on.
            if self.taken[name] > self._allowed(max(self.update_budget, self.gentle)):
                yield f"{name} took {self.taken[name]} serving replicas"

    def _allowed(self, budget: int) -> int:
        """Return how many may be out of service: where nothing tells of a decision, another may be made."""
        return budget * (1 + self.weather.blind)

    @property
    def gentle(self) -> bool:
        """Whether a replica takes requests while its pods are replaced."""
        return self.kind in GENTLE

    @property
    def nodes(self) -> int:
        """The nodes of one replica."""
        (engine,) = self.spec["template"]["spec"]["engines"]
        return len(engine["members"]) * int(engine.get("copies", 1))

    @property
    def surge(self) -> int:
        """How many more than wanted there may be."""
        return int(self.placement.get("disruption", {}).get("maxSurge", 0))

    @property
    def update_budget(self) -> int | None:
        """How many may be out of service because of an update."""
        rollout = self.placement.get("rollout")
        return None if rollout is None else int(rollout.get("maxUnavailable", 1))

    @property
    def drain_budget(self) -> int | None:
        """How many may be out of service because of drains."""
        stated = self.placement.get("disruption", {}).get("maxUnavailable", 0 if self.surge else None)
        return None if stated is None else int(stated)

    @property
    def replacement_budget(self) -> int | None:
        """How many may be out of service because of replacements."""
        return self.update_budget if self.drain_budget is None else self.drain_budget

    def _overcommitted(self) -> Iterator[str]:
        """Yield the pools that hold more than they have.

        A replacement may stand on the nodes of what it replaces, which is being deleted.
        """
        held = Counter(one["spec"]["clusterName"] for one in self.plane.living(REPLICA).values())
        clusters = self.clusters()
        for name, number in held.items():
            cluster = clusters.get(name)
            published = self.garbled.get(name, cluster["status"] if cluster else None)
            if published is not None and number * self.nodes > published["gpuPools"][0]["nodes"]:
                yield f"{name} holds {number} replicas"

    # What happens

    def edit(self, name: str) -> None:
        """Want another image."""
        template = build.template(name)
        if self.kind.startswith("KServe"):
            template["spec"]["containers"][0]["command"] = ["vllm", "serve"]
        secret = {"secretKeyRef": {"name": self.secret, "key": "token"}}
        template["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "valueFrom": secret}]
        with self.plane.edit(self.of) as plain:
            for member in plain["spec"]["template"]["spec"]["engines"][0]["members"]:
                member["template"] = template
        self.taken.clear()

    def happen(self) -> str:
        """Let something happen."""
        event = self.draw.choice(self.weather.events)
        event(self)
        self.updates.clear()
        return str(event.__name__)


def _good(life: Life) -> None:
    life.edit(life.draw.choice(GOOD))


def _bad(life: Life) -> None:
    life.edit(life.draw.choice(BAD))


def _rotate(life: Life) -> None:
    """Another Secret, with another image or the same."""
    life.secret = life.draw.choice(SECRETS)
    life.edit(life.draw.choice((life.image, *GOOD)))


def _restamp(life: Life) -> None:
    """Somebody edits the claims of a replica by hand, as a scheduler of others does."""
    keys = sorted(life.replicas())
    if keys and isinstance(life.platform, Chain):
        selector = life.draw.choice(("true", "1 == 1"))
        with life.plane.edit(life.name_of(life.draw.choice(keys))) as replica:
            life.platform.restamp(replica, selector)


def _move(life: Life) -> None:
    """The input sends what is placed from now on to another namespace."""
    if isinstance(life.platform, Chain):
        life.platform.to_own_namespace = life.draw.odds(0.5)


def _reshape(life: Life) -> None:
    """Selector and image at once: what was stamped does not match any more."""
    _good(life)
    count = life.draw.choice((8, 4))
    with life.plane.edit(life.of) as plain:
        for member in plain["spec"]["template"]["spec"]["engines"][0]["members"]:
            member["nodeSelector"]["devices"][0]["count"] = count


def _drain(life: Life) -> None:
    life.taint(life.draw.choice(sorted(life.clusters())))


def _undrain(life: Life) -> None:
    for name in life.plane.living(CLUSTER):
        with life.plane.edit(name) as cluster:
            cluster["spec"].pop("taints", None)


def _maintain(life: Life) -> None:
    """Maintenance goes on from one cluster to the next."""
    _undrain(life)
    _drain(life)


def _fail(life: Life) -> None:
    """Pods of a replica are gone for a while."""
    keys = sorted(life.replicas())
    if keys:
        with life.plane.edit(life.name_of(life.draw.choice(keys))) as replica:
            life.platform.fail(replica)


def _disturb(life: Life) -> None:
    """Something between the control plane and the pods stops, or goes on."""
    life.platform.disturb()


def _refuse(life: Life) -> None:
    """A quota of a cluster refuses further pods, or is lifted. There is one where the platform is ours."""
    if isinstance(life.platform, Chain):
        life.platform.refuse()


def _revert(life: Life) -> None:
    """An edit is taken back at once, or an hour later, when it has begun somewhere."""
    before = life.image
    _bad(life)
    for _ in range(life.draw.choice((1, 1, 2, 4))):
        life.step()
        life.plane.age()
    life.edit(before)


def _regret(life: Life) -> None:
    """An edit is taken back when it has reached pods, and a cluster without any of them is drained."""
    before = life.image
    _bad(life)
    for _ in range(10):
        life.step()
        life.plane.age()
        if isinstance(life.platform, Chain) and life.platform.runs(BAD):
            break
    life.edit(before)
    life.step()
    life.plane.age()
    _undrain(life)
    others = {one["spec"]["clusterName"] for key, one in life.replicas().items() if key not in life.serving()}
    for name in sorted(life.clusters().keys() - others)[:1]:
        life.taint(name)


def _lose(life: Life) -> None:
    """Somebody deletes a replica."""
    keys = sorted(life.replicas())
    if keys:
        life.plane.delete(life.name_of(life.draw.choice(keys)), by_hand=True)


def _vanish(life: Life) -> None:
    """A cluster is deleted, and comes back empty at the end of the episode."""
    names = sorted(life.plane.living(CLUSTER))
    if len(names) > 1:
        gone = life.draw.choice(names)
        life.plane.delete(gone, by_hand=True)
        life.plane.run(DYING)
        life.garbled.pop(gone.name, None)


def _blind(life: Life) -> None:
    """A requirement does not arrive for a while."""
    life.plane.withheld = requirements_of(life.draw.choice((CLUSTER, REPLICA)))


def _garble(life: Life) -> None:
    """A cluster publishes something that nobody can read."""
    name = life.draw.choice(sorted(life.plane.living(CLUSTER)))
    with life.plane.edit(name) as cluster:
        life.garbled.setdefault(name.name, cluster["status"])
        cluster["status"] = life.draw.choice(("broken", {"gpuPools": [None]}))


def _see(life: Life) -> None:
    """Everything arrives and can be read again."""
    life.plane.withheld = ()
    for name in life.plane.living(CLUSTER):
        with life.plane.edit(name) as cluster:
            cluster["status"] = life.garbled.get(name.name, cluster["status"])
    life.garbled.clear()


def _scale(life: Life) -> None:
    with life.plane.edit(life.of) as plain:
        plain["spec"]["replicas"] = life.draw.choice((1, 2, 3, 4))
    life.taken.clear()  # What was taken may be what leaves.


def _wait(_: Life) -> None:
    """Nothing happens for a step."""


EDITS = (_good, _good, _bad, _bad, _revert, _revert)
EVENTS = (
    *(*EDITS, _reshape, _scale),
    *(_rotate, _rotate, _restamp, _restamp, _move),
    *(_disturb, _disturb, _drain, _drain, _undrain, _fail, _lose, _vanish),
    *(_blind, _garble, _see, _see),
    *(_wait, _wait, _wait),
)
POLICIES: tuple[Plain, ...] = (
    {"rollout": {"maxUnavailable": 1}},
    {"rollout": {"maxUnavailable": 2}},
    {"rollout": {}, "disruption": {"maxUnavailable": 1}},
    {"rollout": {"maxUnavailable": 1}, "disruption": {"maxUnavailable": 0, "maxSurge": 1}},
    {"rollout": {"maxUnavailable": 0}, "disruption": {"maxUnavailable": 0, "maxSurge": 1}},
    {"rollout": {"maxUnavailable": 0}, "disruption": {"maxUnavailable": 1, "maxSurge": 2}},
    {"rollout": {"maxUnavailable": 0}, "disruption": {"maxSurge": 1}},
)


@dataclass(frozen=True)
class Weather:
    """What lives are like: draw from these."""

    kinds: tuple[str, ...]
    policies: tuple[Plain, ...]
    events: tuple[Callable[[Life], None], ...]
    replicas: tuple[int, ...]
    lags: tuple[tuple[float, ...], ...]
    """How late Crossplane, the provider and the controllers are, each apart."""
    fails: float = 0.0
    """The chance that Crossplane fails while it applies what the deployment desires."""
    stale: float = 0.0
    """The chance that the replicas are read as they were a step before, the list and the observed apart."""
    blind: bool = False
    """Whether both may be: then nothing that is read knows of the latest answer."""


ANY = (0.1, 0.4, 0.4, 0.8)
USUAL = Weather(
    kinds=(*FOREIGN, *OURS), policies=POLICIES, events=EVENTS, replicas=(1, 2, 3, 4), lags=(ANY, ANY, ANY)
)
STORM = Weather(
    kinds=("a gang", "a gang", "gangs", "a pod"),
    policies=POLICIES[:1],
    events=(*EDITS, *EDITS, *(_rotate, _rotate, _restamp, _restamp, _disturb, _fail, _scale)),
    replicas=(3, 4),
    lags=((0.0, 0.3), (0.0, 0.4), (0.8, 0.95)),
)
"""Gangs, edit upon edit, and controllers that act long after everybody else: evidence is all there is."""
FOG = replace(
    STORM,
    policies=POLICIES[2:3],
    events=(_regret, _wait),
    lags=((0.0,), (0.6, 0.8), (0.0, 0.4)),
)
"""Edits that are taken back, drains, and a provider that is the last to see what became of them."""

QUOTA = replace(USUAL, kinds=OURS, events=(*EVENTS, *(_refuse, _refuse, _refuse, _refuse)))
"""Clusters that refuse pods for hours: those of before have to serve on."""
HAZE = replace(
    USUAL,
    kinds=(*FOREIGN, "a pod", "copies"),
    events=(*EVENTS, *(_maintain, _maintain, _maintain)),
    stale=0.5,
)
"""The list of the replicas, or what is observed of them, lacks what Crossplane applied a step before."""
ROUNDS = replace(
    HAZE, kinds=FOREIGN, events=(*EDITS, _scale, *(_maintain, _maintain, _maintain)), replicas=(3, 4)
)
"""The same, while maintenance goes round and images are edited: what was just taken is read late."""
NIGHT = replace(HAZE, blind=True)
"""Or both do, and no budget knows what was just taken: as much again may be, and no more."""
STUMBLE = replace(USUAL, fails=0.2)
"""Crossplane applies some replicas of an answer and not the others, and forgets what it was told to say."""
ALONE = (
    STUMBLE,
    *(replace(STORM, kinds=(kind,), fails=0.1) for kind in OURS),
    STUMBLE,
    *(replace(FOG, kinds=(kind,)) for kind in OURS),
)
"""The weathers in which evidence counts, by the kinds of ours."""


def _check(world: World, answer: Answer) -> None:
    """Look at the promises on one request and its answer."""
    complaints = list(law.unexplained(world, answer)) + (["the answer is fatal"] if answer.fatal else [])
    for promise in (ledger.overcharged, ledger.too_many, identity.moved, identity.reused):
        complaints += promise(world, answer)
    if complaints:
        raise BrokenPromise(f"{complaints}\n{world.dump()}")


def born(seed: int, weather: Weather = USUAL) -> Life:
    """Return a life whose replicas all serve."""
    draw = Source(f"rollouts {seed}")
    kind = draw.choice(weather.kinds)
    engines, nodes = _engines(kind)
    names = ("a", "b", "c", "d")[: draw.choice((1, 2, 3, 4))]
    clusters = {
        name: build.cluster(name, [build.pool("p0", draw.choice((2, 3, 5)) * nodes)]) for name in names
    }
    policy = dict(draw.choice(weather.policies))
    wanted = ask(draw.choice(weather.replicas), engines=engines, placement=policy)
    platform = Foreign(draw, kind) if kind in FOREIGN else Chain(draw, clusters, gentle=kind in GENTLE)
    for name, cluster in clusters.items():
        cluster["status"]["providerConfigRef"] = {"name": f"{name}-kubeconfig"}
        if isinstance(platform, Chain):  # KServe rolls with a pod on top, which has to have a node.
            there = cluster["status"]["gpuPools"][0]["nodes"] + 4 * kind.startswith("KServe")
            platform.remote[name] = Cluster({f"n{at}": {"modelplane.ai/pool": "p0"} for at in range(there)})
    if kind.startswith("KServe"):
        serving = {"model": {"uri": "hf://org/model"}}
        wanted["spec"]["template"]["spec"]["serving"] = serving
        if kind == "KServe gang":
            serving["parallelism"] = {"pipeline": 2}
        for cluster in clusters.values():
            cluster["spec"]["stack"] = "KServe"
    plane = Driven([*clusters.values(), wanted], _check, version=VERSIONS[seed % 3])
    life = Life(draw, kind, plane, platform, weather, calm=True)
    life.edit(GOOD[0])
    for _ in range(60):
        life.step()
        if len(life.serving()) == len(life.replicas()):
            break
    if isinstance(platform, Chain):
        late = map(draw.choice, weather.lags)
        platform.lags = dict(zip((CROSSPLANE, PROVIDER, CONTROLLERS), late, strict=True))
    life.calm = False
    return life


def _engines(kind: str) -> tuple[list[Plain] | None, int]:
    """Return the engines of a replica, and the nodes that it takes."""
    copies = 2 if kind in COPIES else 1
    if "gang" in kind:
        return [build.gang(copies=copies)], 2 * copies
    member = build.member(devices=[build.request("gpu", 8)])
    return ([build.engine(members=[member], copies=copies)] if copies > 1 else None), copies


def live(seed: int, steps: int = 16, weather: Weather = USUAL) -> Life:
    """Live through an episode, and come to rest."""
    life = born(seed, weather)
    complaints: list[str] = []
    try:
        for _ in range(steps):
            complaints.append(life.happen())
            for _ in range(life.draw.choice((1, 1, 2, 3))):
                life.step()
                life.plane.age()
        _undrain(life)
        _see(life)
        life.edit(life.draw.choice(GOOD))
        life.platform.calm()
        life.calm = True
        life.updates.clear()
        if _rest(life):
            life.seen["mute"] += 1
            life.edit(MENDING)
            life.updates.clear()
            if _rest(life):
                raise BrokenPromise("nothing is known of what pods run, also after another edit")
    except AssertionError as broken:
        where = f"seed {seed}, {life.kind}, {life.placement}, after {', '.join(complaints)}"
        raise BrokenPromise(f"{where}: {broken}") from broken
    return life


def _rest(life: Life) -> bool:
    """Wait until nothing changes any more, and look at what stands. Returns whether it waits for evidence."""
    still, answer = 0, None
    for _ in range(REST):
        before = life.standing()
        answer = life.step()
        life.plane.age()
        still = still + 1 if life.standing() == before else 0
        if still > STILL and not life.plane.leaving():
            break
    else:
        raise BrokenPromise("no rest")
    assert answer is not None
    twice = {key: number for key, number in life.updates.items() if number > 1}
    if twice:
        raise BrokenPromise(f"updated more than once: {twice}")
    mute = life.mute()
    if any(f"/{name} " in answer.conditions["ReplicasUpdated"][2] for name in mute):
        return True
    for complaints in _unfinished(life, answer):
        raise BrokenPromise(complaints)
    return False


def _unfinished(life: Life, answer: Answer) -> Iterator[str]:
    wanted, replicas = life.spec["replicas"], life.replicas()
    if len(replicas) > wanted + life.surge:
        yield f"{len(replicas)} stand for {wanted} wanted"
    if answer.reason() == "ReplicasCreated":
        if len(replicas) != wanted:
            yield f"{len(replicas)} stand for {wanted} wanted, and nothing is said of it"
        outdated = sorted(key for key, one in replicas.items() if image(one) != life.image)
        if outdated:
            yield f"{outdated} still have an old image: {answer.conditions}"
        if life.serving() != replicas.keys():
            yield f"{sorted(replicas.keys() - life.serving())} do not serve"
        if answer.reason("ReplicasUpdated") != "AllReplicasUpdated":
            yield f"everything is updated, and that is said: {answer.conditions}"
    life.seen[answer.reason()] += 1
