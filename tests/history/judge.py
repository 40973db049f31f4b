"""Judge a recording: has everything that left its reason, and did every promise hold over time?

It shares no code with the scheduler, and decides nothing. A decision is applied on a snapshot that is up to
`WINDOW` seconds old, so a reason counts if it held at any moment of that time before what it is to explain.
The judge is therefore never stricter than the promises, and what it names is broken:

R1. a replica leaves only for a reason of Law 2 (`REASONS`), or by somebody else's hand;
R2. an endpoint leaves only where its replica was not Ready, or leaves; never by doubt;
R3. an identity is never used by two objects at a time, and a replica never changes cluster or pool;
R4. a rollout takes no more replicas out of service than `rollout.maxUnavailable`, until they are Ready again.
    One that was out of service when that may have been decided is not taken;
R5. a pool that holds more than it has, with a replica there that never was Ready, is said to within `SAID`,
    unless every deployment with such a replica there was paused;
R6. what manages something on a cluster leaves with its owner, or after an edit of it; its manifest keeps its
    identity, and its provider configuration is never another (Law C).

Limits. Nodes are counted, devices are not; pools that charge devices are left out. Selectors are not
evaluated: an edited one, or devices that are published anew, may be a mismatch. Where a list stands for what
a watch missed, what left in between is counted, and not judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.history.lives import History, Life, Version

Plain = dict[str, Any]
Pool = tuple[str, str]

WINDOW = 240.0
"""Seconds: Crossplane gives a reconcile two minutes, and a busy machine needs time of its own."""
SAID = 300.0
"""Seconds until an overcommitted pool is said to be one."""
WAS_READY = "modelplane.ai/was-ready"
PREEMPTING = "modelplane.ai/preempting"
PAUSED = "crossplane.io/paused"
KEY = "crossplane.io/composition-resource-name"
LATE = float("inf")


@dataclass(frozen=True)
class Violation:
    """One promise that was broken, when, and by what."""

    law: str
    at: float
    where: str
    message: str

    def __str__(self) -> str:
        """`R1 at 12.3 s, team/chat-5ab63: ...`."""
        return f"{self.law} at {self.at:.1f} s, {self.where}: {self.message}"


@dataclass
class Verdict:
    """What was judged, and what is wrong with it."""

    counts: Counter[str] = field(default_factory=Counter)
    """What left, by kind and reason."""
    violations: list[Violation] = field(default_factory=list)

    def report(self) -> str:
        """Lines of text: the counts, then the violations."""
        lines = [f"{count:6} {what}" for what, count in sorted(self.counts.items())]
        return "\n".join([*lines, *map(str, self.violations)]) + "\n"


def judge(history: History, window: float = WINDOW) -> Verdict:
    """Judge all of a recording. `window`: seconds that a reconcile may take, from its snapshot to its end."""
    court = _Court(history, window)
    court.replicas()
    court.endpoints()
    court.identities()
    court.rollouts()
    court.crowds()
    court.objects()
    court.verdict.violations.sort(key=lambda violation: violation.at)
    return court.verdict


class _Court:
    """One recording before its judge."""

    def __init__(self, history: History, window: float) -> None:
        self.history, self.window = history, window
        self.verdict = Verdict()
        self.clusters: dict[str, list[Life]] = defaultdict(list)
        for cluster in history.of("InferenceCluster"):
            self.clusters[cluster.name].append(cluster)
        nodes = _Nodes(history)
        self.over, self.by_devices = nodes.intervals(), nodes.by_devices
        self.siblings: dict[str, list[Life]] = defaultdict(list)
        for replica in history.of("ModelReplica"):
            self.siblings[replica.owner].append(replica)
        self.reasons: dict[int, str] = {}
        """Why a replica left, by the identity of its life."""

    def _violates(self, law: str, life: Life, version: Version, message: str) -> None:
        where = f"{life.kind} {life.name}"
        self.verdict.violations.append(Violation(law, version.at, where, message))

    def _leavers(self, kind: str) -> Iterator[tuple[Life, Version]]:
        """Yield what Crossplane removed, in order; count what others did, and what is not known."""
        removals = [(life, life.removed) for life in self.history.of(kind) if life.removed is not None]
        for life, removed in sorted(removals, key=lambda pair: pair[1].turn):
            if life.unseen:
                self.verdict.counts[f"{kind}: between two lists"] += 1
            elif not life.by_crossplane:
                self.verdict.counts[f"{kind}: by another hand"] += 1
                self.reasons[id(life)] = "by another hand"
            elif life.owner and not self._owner_stands(life, removed):
                self.verdict.counts[f"{kind}: its owner leaves"] += 1
            elif life.owner:
                yield life, removed

    def _owner_stands(self, life: Life, removed: Version) -> bool:
        owner = self.history.lives.get(life.owner)
        return owner is not None and owner.stands(removed.turn)

    def replicas(self) -> None:
        """R1."""
        for life, removed in self._leavers("ModelReplica"):
            case = _Case(self, life, removed, self.history.lives[life.owner])
            reason = next((name for name, holds in REASONS.items() if holds(case)), "")
            self.reasons[id(life)] = reason
            self.verdict.counts[f"ModelReplica: {reason or 'without a reason'}"] += 1
            if not reason:
                self._violates("R1", life, removed, "it left without a reason")

    def endpoints(self) -> None:
        """R2."""
        replicas: dict[str, list[Life]] = defaultdict(list)
        for life in self.history.of("ModelReplica"):
            replicas[life.name].append(life)
        for life, removed in self._leavers("ModelEndpoint"):
            reason = _withdrawn(replicas[life.name], removed, self.window)
            self.verdict.counts[f"ModelEndpoint: {reason or 'without a reason'}"] += 1
            if not reason:
                self._violates("R2", life, removed, "withdrawn, and its replica was never seen not Ready")

    def identities(self) -> None:
        """R3."""
        for siblings in self.siblings.values():
            for at, life in enumerate(siblings):
                key = _key(life)
                for earlier in siblings[:at]:
                    if key and _key(earlier) == key and earlier.exists(life.began.turn):
                        self._violates("R3", life, life.began, f"{key} is that of {earlier.name}, too")
        for life in self.history.of("ModelReplica"):
            for before, version in zip(life.versions, life.versions[1:], strict=False):
                was, now = before.plain["spec"], version.plain["spec"]
                if was["clusterName"] != now["clusterName"]:
                    self._violates("R3", life, version, f"moved from {was['clusterName']}")
                pinned = _pinned(was)
                moved = [member for member, pool in _pinned(now).items() if pinned.get(member, pool) != pool]
                if moved:
                    self._violates("R3", life, version, f"{moved} of it moved to another pool")

    def rollouts(self) -> None:
        """R4."""
        taken: dict[str, set[int]] = defaultdict(set)
        previous: dict[int, Plain] = {}
        for life, version in self.history.order:
            if life.kind != "ModelReplica" or not life.owner:
                continue
            before, now = previous.get(id(life)), version.plain
            previous[id(life)] = now
            out = taken[life.owner]
            if before is not None and _template(before) != _template(now) and self._served(life, version):
                out.add(id(life))
                self._budget(life, version, len(out))
            elif not life.stands(version.turn) or _is_back(now):
                out.discard(id(life))

    def _served(self, life: Life, edited: Version) -> bool:
        """Tell whether a replica was in service when it was edited, and whenever that may have been decided.

        Silence is no sign that it was not, once it was Ready.
        """
        start, was_ready = edited.at - self.window, False
        for at, version in enumerate(life.versions):
            if version.turn >= edited.turn:
                break
            status = _condition(version.plain, "Ready").get("status")
            was_ready |= status == "True"
            is_idle = status == "False" or not was_ready
            if is_idle and life.versions[at + 1].at >= start:
                return False
        return _in_service(life.before(edited.turn))

    def _budget(self, life: Life, version: Version, out: int) -> None:
        """Judge how many are out of service by a rollout, this one included."""
        owner = self.history.lives.get(life.owner)
        versions = [] if owner is None else [*owner.during(version.at - self.window, version.at)]
        budgets = [_budget_of(plain) for plain in versions]
        if not budgets or None in budgets:
            return
        standing = sum(sibling.stands(version.turn) for sibling in self.siblings[life.owner])
        more = max(0, standing - min(plain["spec"]["replicas"] for plain in versions))
        self.verdict.counts["ModelReplica: updated within a budget"] += 1
        allowed = max(budget for budget in budgets if budget is not None) + more
        if out > allowed:
            self._violates(
                "R4", life, version, f"{out} are out of service by a rollout that allows {allowed}"
            )

    def crowds(self) -> None:
        """R5."""
        for (cluster, pool), intervals in self.over.items():
            for start, end in intervals:
                self.verdict.counts["Pool: held more than it has"] += 1
                if end - start > SAID and not self._is_said(cluster, pool, start, end):
                    message = f"held more than it has for {end - start:.0f} s, and nobody said so"
                    self.verdict.violations.append(Violation("R5", start, f"{cluster}/{pool}", message))

    def _is_said(self, cluster: str, pool: str, start: float, end: float) -> bool:
        for life in self.clusters[cluster]:
            for plain in life.during(start, end):
                if any(row.get("overcommitted") for row in _published(plain) if row["name"] == pool):
                    return True
        there, waiting = set[str](), set[str]()
        for life in self.history.of("ModelReplica"):
            seen = [plain for plain in life.during(start, end) if plain["spec"]["clusterName"] == cluster]
            there |= {life.owner} if seen else set()
            waiting |= {life.owner for plain in seen if not _was_ready(plain)}
        is_asked = False
        for uid in there & self.history.lives.keys():
            plains = [*self.history.lives[uid].during(start, end)]
            spoken = [_condition(plain, "CapacityRespected") for plain in plains]
            if any(row.get("status") == "False" for row in spoken):
                return True
            # At rest a deployment does not read who else is there, and nobody asks one that is paused.
            noted = [plain["metadata"].get("annotations") or {} for plain in plains]
            is_paused = any(annotations.get(PAUSED) == "true" for annotations in noted)
            is_asked |= any(spoken) and uid in waiting and not is_paused
        return not is_asked

    def objects(self) -> None:
        """R6."""
        for kind in ("ClusterProviderConfig", "Object"):
            for life, removed in self._leavers(kind):
                owner = self.history.lives[life.owner]
                if life.last["spec"].get("managementPolicies") == ["Observe"]:
                    self.verdict.counts[f"{kind}: only observed"] += 1
                elif self._was_edited(owner, life.began, removed):
                    self.verdict.counts[f"{kind}: its owner was edited"] += 1
                else:
                    self.verdict.counts[f"{kind}: without a reason"] += 1
                    self._violates("R6", life, removed, "it left, and its owner neither left nor was edited")
        self._manifests()

    @staticmethod
    def _was_edited(owner: Life, since: Version, until: Version) -> bool:
        """Whether the spec of an owner was another one at any moment between two."""
        stated = _stated(owner.before(until.turn))
        return any(_stated(plain) != stated for plain in owner.during(since.at, until.at))

    def _manifests(self) -> None:
        for life in self.history.of("Object"):
            for version in life.versions[1:]:
                if _identity(version.plain) != _identity(life.began.plain):
                    self._violates("R6", life, version, "its manifest became another object, or moved")


@dataclass(frozen=True)
class _Case:
    """A replica that Crossplane removed while its deployment stands."""

    court: _Court
    life: Life
    removed: Version
    owner: Life

    @property
    def start(self) -> float:
        return self.removed.at - self.court.window

    @property
    def spec(self) -> Plain:
        """The replica's spec before it left."""
        return dict(self.life.last["spec"])

    def deployments(self) -> Iterator[Plain]:
        """Yield the deployment as it may have been known."""
        return self.owner.during(self.start, self.removed.at)

    def clusters(self) -> Iterator[Plain]:
        """Yield the replica's cluster as it may have been known."""
        for life in self.court.clusters[self.spec["clusterName"]]:
            if life.ended is None or life.ended.at >= self.start:
                yield from life.during(self.start, self.removed.at)

    def is_gone(self) -> bool:
        """Reason 1: there was a moment without its cluster."""
        listed = self.court.history.listed.get("InferenceCluster", LATE)
        now = max(self.start, listed, self.life.began.at)
        if now > self.removed.at:
            return True  # Nothing was seen of clusters.
        for life in self.court.clusters[self.spec["clusterName"]]:
            ended = LATE if life.ended is None or life.ended.turn > self.removed.turn else life.ended.at
            if life.began.at <= now:
                now = max(now, ended)
        return now <= self.removed.at

    def is_drained(self) -> bool:
        """Reason 2: a NoExecute taint that the deployment does not tolerate."""
        tolerations = [
            deployment["spec"]["template"]["spec"].get("tolerations") or []
            for deployment in self.deployments()
        ]
        return any(
            taint["effect"] == "NoExecute" and not any(_tolerates(row, taint) for row in rows)
            for cluster in self.clusters()
            for taint in cluster["spec"].get("taints") or []
            for rows in tolerations
        )

    def is_surplus(self) -> bool:
        """Reason 4: more stood than were wanted. What another hand took may still have been counted."""
        standing = 1
        for sibling in self.court.siblings[self.life.owner]:
            removed = sibling.removed
            if sibling is self.life or sibling.began.turn > self.removed.turn:
                continue
            taken = self.court.reasons.get(id(sibling)) == "by another hand"
            standing += (
                removed is None or removed.turn > self.removed.turn or (taken and removed.at > self.start)
            )
        return standing > min((plain["spec"]["replicas"] for plain in self.deployments()), default=0)

    def yields(self) -> bool:
        """Reason 6: it was not Ready, never had been, and a pool of it held more than it has."""
        if _was_ready(self.life.last):
            return False
        pools = {(self.spec["clusterName"], pool) for pool in _pinned(self.spec).values()}
        if pools & self.court.by_devices:
            return True  # Its devices may have been too few where its nodes were enough.
        intervals = [interval for pool in pools for interval in self.court.over.get(pool, ())]
        return any(end >= self.start and start <= self.removed.at for start, end in intervals)

    def is_replaced(self) -> bool:
        """Whether another one was created after it; or the recording ends, or the wish changed."""
        end = self.removed.at + self.court.window
        after = [
            life
            for life in self.court.siblings[self.life.owner]
            if self.removed.turn < life.began.turn and life.began.at <= end
        ]
        wish = _stated(self.owner.before(self.removed.turn))
        edited = any(
            _stated(version.plain) != wish
            for version in self.owner.versions
            if self.removed.at <= version.at <= end
        )
        return bool(after) or end > self.court.history.until or edited

    def is_mismatched(self) -> bool:
        """Reason 3: it no longer matches, and is replaced."""
        pools = set(_pinned(self.spec).values())
        lost = any(
            rows and not pools <= {row["name"] for row in rows}
            for cluster in self.clusters()
            for rows in [cluster["spec"].get("nodePools") or []]
        )
        devices = [
            _devices(plain, pools)
            for life in self.court.clusters[self.spec["clusterName"]]
            for plain in life.during(self.life.began.at, self.removed.at)
        ]
        before = self.owner.before(self.life.began.turn)["spec"]["template"]["spec"]
        edited = any(
            _wishes(plain["spec"]["template"]["spec"]) != _wishes(before)
            for plain in self.owner.during(self.life.began.at, self.removed.at)
        )
        changed = any(published != devices[0] for published in devices)
        return (lost or changed or edited) and self.is_replaced()

    def is_degraded(self) -> bool:
        """Reason 7: asked for, and replaced."""
        asked = any((plain["spec"].get("placement") or {}).get("evacuate") for plain in self.deployments())
        return asked and self.is_replaced()

    def is_preempted(self) -> bool:
        """Reason 8: another deployment that names a priority class came to its cluster, or waited there."""
        for uid, siblings in self.court.siblings.items():
            owner = self.court.history.lives.get(uid)
            if owner is None or owner is self.owner:
                continue
            if not (owner.last["spec"].get("placement") or {}).get("priorityClassName"):
                continue
            for life in siblings:
                near = abs(life.began.at - self.removed.at) <= self.court.window
                waited = any(
                    PREEMPTING in (plain["metadata"].get("labels") or {})
                    for plain in life.during(self.start, self.removed.at)
                )
                if (near or waited) and life.last["spec"]["clusterName"] == self.spec["clusterName"]:
                    return True
        return False


REASONS: dict[str, Callable[[_Case], bool]] = {
    "its cluster is gone": _Case.is_gone,
    "a taint": _Case.is_drained,
    "scaled down": _Case.is_surplus,
    "it gave way": _Case.yields,
    "a mismatch": _Case.is_mismatched,
    "degraded": _Case.is_degraded,
    "preempted": _Case.is_preempted,
}
"""Law 2's reasons, in the order in which they are looked at."""


class _Nodes:
    """Which pools held more than they have, and when: one walk through all events."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.has: dict[Pool, int] = {}
        self.held: dict[Pool, dict[int, tuple[int, bool]]] = defaultdict(dict)
        """By pool and life: nodes, and whether the replica is on its way to Ready."""
        self.by_devices: set[Pool] = set()
        """The pools that charged devices at some time."""
        self.since: dict[Pool, float] = {}
        self.closed: dict[Pool, list[tuple[float, float]]] = defaultdict(list)

    def intervals(self) -> dict[Pool, list[tuple[float, float]]]:
        """Return the time spans in which a pool held more, with a replica there that is on its way."""
        for life, version in self.history.order:
            if life.kind == "InferenceCluster":
                pools = self._publish(life, version)
            elif life.kind == "ModelReplica":
                pools = self._hold(life, version)
            else:
                continue
            for pool in pools:
                self._look(pool, version.at)
        for pool, start in self.since.items():
            self.closed[pool].append((start, self.history.until))
        return self.closed

    def _publish(self, life: Life, version: Version) -> set[Pool]:
        standing = {pool for pool in self.has if pool[0] == life.name}
        for pool in standing:
            del self.has[pool]
        if life.exists(version.turn):
            for row in _published(version.plain):
                if row.get("accounting", "Node") == "Node":
                    self.has[life.name, row["name"]] = int(row.get("nodes") or 0)
                else:
                    self.by_devices.add((life.name, row["name"]))
        return standing | {pool for pool in self.has if pool[0] == life.name}

    def _hold(self, life: Life, version: Version) -> set[Pool]:
        touched = {pool for pool, holders in self.held.items() if holders.pop(id(life), None)}
        if life.stands(version.turn):
            awaited = _condition(version.plain, "Ready").get("status") != "True"
            for pool, nodes in _charges(version.plain["spec"]).items():
                self.held[pool][id(life)] = (nodes, awaited)
                touched.add(pool)
        return touched

    def _look(self, pool: Pool, now: float) -> None:
        holders = self.held[pool].values()
        nodes = self.has.get(pool)
        over = nodes is not None and sum(held for held, _ in holders) > nodes
        if over and any(awaited for _, awaited in holders):
            self.since.setdefault(pool, now)
        elif pool in self.since:
            self.closed[pool].append((self.since.pop(pool), now))


def _charges(spec: Plain) -> Counter[Pool]:
    """Nodes that a replica holds: one for each pod of a member that claims devices."""
    held: Counter[Pool] = Counter()
    for engine in spec["engines"]:
        for member in engine["members"]:
            if member.get("deviceRequests"):
                pods = (member.get("worker") or {}).get("nodes", 1) if member["role"] == "Worker" else 1
                held[spec["clusterName"], member["nodePoolName"]] += int(engine.get("copies", 1) * pods)
    return held


def _pinned(spec: Plain) -> dict[tuple[str, str], str]:
    """The pool of each member, by engine and role."""
    return {
        (engine["name"], member["role"]): member["nodePoolName"]
        for engine in spec["engines"]
        for member in engine["members"]
    }


def _published(cluster: Plain) -> list[Plain]:
    """Return the pools that a cluster publishes, without what nobody can read."""
    rows = (cluster.get("status") or {}).get("gpuPools") or []
    return [row for row in rows if isinstance(row, dict) and "name" in row]


def _devices(cluster: Plain, pools: set[str]) -> list[Any]:
    return [
        (row["name"], row.get("devices"), row.get("attributes"))
        for row in _published(cluster)
        if row["name"] in pools
    ]


def _wishes(template: Plain) -> list[Any]:
    """Return what of a deployment's template a mismatch may come from."""
    shapes = [template.get("engines"), *(row.get("engines") for row in template.get("alternatives") or [])]
    members = [
        (
            engine["name"],
            engine.get("copies"),
            engine.get("poolPolicy"),
            member["role"],
            member.get("worker"),
            member.get("nodeSelector"),
        )
        for engines in shapes
        for engine in engines or []
        for member in engine["members"]
    ]
    return [template.get("modelCacheRef"), members]


def _template(replica: Plain) -> list[Any]:
    """Return what of a replica restarts its pods when it changes."""
    spec = replica["spec"]
    return [
        spec.get("modelCacheRef"),
        spec.get("serving"),
        [[member.get("template") for member in engine["members"]] for engine in spec["engines"]],
    ]


def _in_service(replica: Plain) -> bool:
    """Whether a replica surely serves what its spec says."""
    ready = _condition(replica, "Ready")
    about = ready.get("observedGeneration") == _generation(replica)
    return ready.get("status") == "True" and about and "deletionTimestamp" not in replica["metadata"]


def _is_back(replica: Plain) -> bool:
    """Whether a replica may serve what its spec says."""
    ready = _condition(replica, "Ready")
    about = ready.get("observedGeneration", _generation(replica)) >= _generation(replica)
    return ready.get("status") == "True" and bool(about)


def _budget_of(deployment: Plain) -> int | None:
    """Return `rollout.maxUnavailable`; None where there is no rollout, or it is a share of the replicas."""
    budget = ((deployment["spec"].get("placement") or {}).get("rollout") or {}).get("maxUnavailable")
    return budget if isinstance(budget, int) else None


def _withdrawn(replicas: list[Life], removed: Version, window: float) -> str:
    """Return why an endpoint was withdrawn, "" without a reason. Its replica may leave a moment later."""
    for life in replicas:
        if (
            life.removed is not None
            and life.began.at <= removed.at
            and life.removed.at <= removed.at + window
        ):
            return "its replica leaves"
        versions = life.during(removed.at - window, removed.at)
        if any(_condition(plain, "Ready").get("status") == "False" for plain in versions):
            return "its replica is not Ready"
    return "" if replicas else "there is no replica"


def _tolerates(toleration: Plain, taint: Plain) -> bool:
    """Tell whether Kubernetes' rules have a toleration tolerate a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (
        taint.get("value") or ""
    )


def _was_ready(replica: Plain) -> bool:
    """Whether a replica is Ready, or ever was."""
    metadata = replica["metadata"]
    noted = (metadata.get("annotations") or {}).get(WAS_READY)
    # Without a uid it is of a version that noted less; another's uid came with the name.
    return _condition(replica, "Ready").get("status") == "True" or noted in ("true", metadata["uid"])


def _condition(plain: Plain, kind: str) -> Plain:
    rows = (plain.get("status") or {}).get("conditions") or []
    return next((row for row in rows if row["type"] == kind), {})


def _generation(plain: Plain) -> int:
    return int(plain["metadata"].get("generation") or 0)


def _stated(plain: Plain) -> Plain:
    """Return a spec without what Crossplane keeps there: references are no edit, and raise generations."""
    kept = ("crossplane", "resourceRefs")
    return {key: value for key, value in plain["spec"].items() if key not in kept}


def _key(replica: Life) -> str:
    annotations = replica.began.plain["metadata"].get("annotations") or {}
    return str(annotations.get(KEY, ""))


def _identity(plain: Plain) -> tuple[Any, ...]:
    """Return which object on which cluster an Object manages."""
    manifest = plain["spec"]["forProvider"]["manifest"]
    metadata = manifest.get("metadata") or {}
    names = (
        manifest.get("apiVersion"),
        manifest.get("kind"),
        metadata.get("namespace"),
        metadata.get("name"),
    )
    return (*names, (plain["spec"].get("providerConfigRef") or {}).get("name"))
