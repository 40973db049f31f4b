"""Crossplane around composition functions, as versions 2.0 to 2.4 have it, and the events that it counts.

`run_step` is the loop of calls of one step. Before the first call its bootstrap requirements are fetched, and
sent with every call. A fatal result ends the loop. Otherwise an answer's requirements are compared, as
messages, with those of the answer before. Before the first call these are unset, and unset is not the same as
empty. Equal ends the loop, else they are fetched and the function is called again with the context that it
answered. From 2.4 on, what the last reconcile stated is delivered with the first call (its seeds), and the
first answer is final where what it states is what it was given.

`ControlPlane` is what happens around that: objects, watches, the queue, and the circuit breaker. Up to 2.3 a
composite hears of itself and of what it composes, from 2.4 on also of everything that its last answer and its
block require. An event of an object that is being deleted is free. Any other takes a token for each object
it carries: one for a create, two for an update, whoever wrote. A watch has no predicates, so the resync is an
update of every object and its start a create. Read in Crossplane's source at v2.0.4, v2.3.4 and v2.4.0.

A reconcile reads its composite, what that composes and what it requires from one cache that watches fill. It
writes one thing after the other, and each write shows in the cache a moment later. So what it wrote first
queues it again while it runs, and the next reconcile begins before what it wrote last can be seen: it is
answered on what was, and is repeated once that arrives. What is required is read when the function is called,
a moment after what is observed, so the list may have a later version of the same object. An object that is
composed and not in the cache is read from the API server; one that is required is not. Every kind is watched
from the beginning: in Crossplane the first read of a kind without an XRD is fresh, and starts its watch.

The status is applied server-side, and so are the annotations of what is composed: what an answer leaves out
goes, unless another writer has it. The conditions are written with the version that the status got, and
refused where somebody wrote in between.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from itertools import count
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as pb
from google.protobuf import struct_pb2

from example.caller import ROOT
from function.api.names import KEY_ANNOTATION, PAUSED_ANNOTATION
from function.boundary.memory import Memory
from function.runner import Function
from tests.support import build, drive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

Plain = dict[str, Any]

VERSIONS = ("2.0", "2.3", "2.4")
WATCHING = "2.4"
"""From this version on required resources are watched and seeded."""
CALLS = 6
"""Crossplane gives up when requirements have not settled after this many calls of one step."""
RETRY = (1.0, 30.0)
"""Seconds until a reconcile that failed is tried again."""
SYSTEM = ("Ready", "Responsive", "Synced")
"""Conditions of Crossplane's own."""
BURST, REFILL, COOLDOWN, HALF_OPEN = 100.0, 1.0, 300.0, 30.0
"""The circuit breaker: tokens, tokens a second, seconds open, and seconds between two events let through."""
DYING = 3.0
"""Seconds an object lives on after its deletion, for its finalizers."""
FOREGROUND = "foregroundDeletion"
NAMED = 3
"""Resources that are not ready and are named in the condition Ready."""
OWN_WRITES = 4
"""Crossplane's writes to a new composite: finalizer, Composition, revision, conditions. Three without one."""


class Away(Exception):
    """Nobody answers a call: no copy of the function is up, or the one that was asked ended."""


class Unsettled(AssertionError):
    """The requirements of a step still changed at the last call."""


@dataclass(frozen=True)
class Step:
    """One step of a pipeline."""

    function: Callable[[bytes], bytes]
    bootstrap: Mapping[str, pb.ResourceSelector] = field(default_factory=dict)
    input: Plain | None = None

    @cached_property
    def given(self) -> struct_pb2.Struct:
        """The input as it is sent."""
        sent = struct_pb2.Struct()
        sent.update(self.input or {})
        return sent


@dataclass(frozen=True)
class Ran:
    """The last answer of a step, and what it took."""

    response: pb.RunFunctionResponse
    calls: int
    sent: int
    """Bytes sent to the function."""

    @property
    def fatal(self) -> bool:
        """Whether the function gave up, so that nothing is applied."""
        return any(result.severity == pb.SEVERITY_FATAL for result in self.response.results)

    @property
    def stated(self) -> dict[str, pb.ResourceSelector]:
        """What the last answer requires: from 2.4 on it is watched, and seeds the next reconcile."""
        return dict(sorted(self.response.requirements.resources.items()))  # A map has no order of its own.


def run_step(
    step: Step,
    request: pb.RunFunctionRequest,
    fetch: Callable[[pb.ResourceSelector], pb.Resources],
    *,
    version: str = "2.3",
    seeds: Mapping[str, pb.ResourceSelector] | None = None,
    withheld: Collection[str] = (),
) -> Ran:
    """Call the function of a step until its requirements settle. Raises Unsettled.

    `withheld`: requirements that do not arrive, by what stands before the first slash of their names.
    """
    asked = pb.RunFunctionRequest()
    asked.CopyFrom(request)
    asked.meta.tag = asked.meta.tag or "a reconcile"  # Crossplane gives one to all calls of it.
    watching = version >= WATCHING
    given = {name: fetch(selector) for name, selector in step.bootstrap.items()}
    for name, selector in (seeds or {}).items() if watching else ():
        given.setdefault(name, fetch(selector))
    delivered, stated, sent = given, None, 0
    for calls in range(1, CALLS + 1):
        asked.ClearField("required_resources")
        for name, resources in delivered.items():
            if name.partition("/")[0] not in withheld:
                asked.required_resources[name].CopyFrom(resources)
        content = asked.SerializeToString(deterministic=True)
        sent += len(content)
        ran = Ran(pb.RunFunctionResponse.FromString(step.function(content)), calls, sent)
        before, stated = stated, ran.response.requirements if ran.response.HasField("requirements") else None
        if ran.fatal or before == stated:
            return ran
        delivered = given | {name: fetch(selector) for name, selector in ran.stated.items()}
        if watching and calls == 1 and delivered == given:
            return ran
        asked.context.CopyFrom(ran.response.context)
    raise Unsettled(f"the requirements still changed at call {CALLS}")


def run_pipeline(
    steps: list[Step],
    request: pb.RunFunctionRequest,
    fetch: Callable[[pb.ResourceSelector], pb.Resources],
    **how: Any,
) -> list[Ran]:
    """Run the steps one after the other: desired state and context of each go on to the next."""
    asked = pb.RunFunctionRequest()
    asked.CopyFrom(request)
    ran: list[Ran] = []
    for step in steps:
        ran.append(run_step(step, asked, fetch, **how))
        response = ran[-1].response
        asked.desired.CopyFrom(response.desired)
        asked.context.CopyFrom(response.context)
    return ran


ROUTES = {"ModelEndpoint": "example/routing/endpoints.yaml"}
"""Compositions that are shipped as examples, by kind."""


MEMORY = 1 << 25
"""Bytes that a copy of the function may remember."""


def fresh_copy() -> Function:
    """Return the function as it has just started: it remembers nothing yet."""
    quiet = structlog.wrap_logger(None, wrapper_class=structlog.make_filtering_bound_logger("critical"))
    return Function(quiet, memory=Memory(MEMORY))


def shipped(
    kinds: Sequence[str],
    function: Callable[[bytes], bytes] | None = None,
    inputs: Mapping[str, Plain] | None = None,
    tree: Path = ROOT,
) -> dict[str, list[Step]]:
    """Return the pipelines of the Compositions that a tree ships, with what their inputs have besides."""
    function = function or fresh_copy().answer
    made = {}
    for kind in kinds:
        place = tree / ROUTES.get(kind, f"apis/{kind.lower()}s/composition.yaml")
        [step] = yaml.safe_load(place.read_text())["spec"]["pipeline"]
        given = {**(step.get("input") or {}), **(inputs or {}).get(kind, {})}
        made[kind] = [Step(function, input=given or None)]
    return made


def copied(plain: Any) -> Any:
    """Return a copy of plain data, for a fifth of what `copy.deepcopy` takes."""
    if isinstance(plain, dict):
        return {key: copied(value) for key, value in plain.items()}
    return [copied(value) for value in plain] if isinstance(plain, list | tuple) else plain


def applied(held: Plain, before: Plain, now: Plain) -> Plain:
    """Return what a server-side apply leaves of an object, by what its writer applied before and applies now.

    What the writer leaves out goes, unless somebody else has changed it since. A list is one value. A value
    that somebody wrote before it was applied as well would stay in Crossplane; here it goes.
    """
    made: Plain = {}
    for key in held | now:
        has, had, gets = held.get(key), before.get(key), now.get(key)
        if isinstance(has, dict) and all(isinstance(part, dict | None) for part in (had, gets)):
            part = applied(has, had or {}, gets or {})
            if part or key in now or key not in before:
                made[key] = part
        elif key in now:
            made[key] = gets
        elif key not in before or has != had:
            made[key] = has
    return made


class Name(NamedTuple):
    """What an object is stored under."""

    kind: str
    namespace: str
    name: str


def name_of(plain: Plain) -> Name:
    """Return what an object is stored under."""
    metadata = plain["metadata"]
    return Name(plain["kind"], metadata.get("namespace", ""), metadata["name"])


def selects(selector: pb.ResourceSelector, plain: Plain) -> bool:
    """Whether a selector matches an object. By name, no namespace means a cluster-scoped one."""
    metadata = plain["metadata"]
    if (selector.api_version, selector.kind) != (plain["apiVersion"], plain["kind"]):
        return False
    namespace = metadata.get("namespace", "")
    if selector.HasField("match_name"):
        return (selector.namespace, selector.match_name) == (namespace, metadata["name"])
    labels = metadata.get("labels", {})
    within = selector.namespace in ("", namespace)
    return within and all(labels.get(key) == text for key, text in selector.match_labels.labels.items())


class Store(dict[Name, Plain]):
    """Objects by name. Those of one kind, which everybody asks for, are at hand in the order of all."""

    def __init__(self, objects: Mapping[Name, Plain] | None = None) -> None:
        """Begin with these objects."""
        super().__init__()
        self._kinds: defaultdict[str, dict[Name, Plain]] = defaultdict(dict)
        for name, plain in (objects or {}).items():
            self[name] = plain

    def __setitem__(self, name: Name, plain: Plain) -> None:
        """Store an object."""
        super().__setitem__(name, plain)
        self._kinds[name.kind][name] = plain

    def remove(self, name: Name) -> Plain:
        """Let go of an object, and return it."""
        self._kinds[name.kind].pop(name)
        return super().pop(name)

    def of_kind(self, kind: str) -> dict[Name, Plain]:
        """Return the objects of a kind."""
        return self._kinds[kind]


@dataclass
class Breaker:
    """The circuit breaker of one composite."""

    tokens: float = BURST
    filled: float = 0.0
    opened: float | None = None
    """When it opened; None while it is closed."""
    allowed: float = 0.0
    """When the last event was let through while it was open."""

    def lets(self, now: float, counts: Counter[str]) -> bool:
        """Count an event, and say whether it may queue the composite."""
        was_open, let = self.opened is not None, self.opened is None or now > self.allowed + HALF_OPEN
        self.tokens = min(BURST, self.tokens + REFILL * (now - self.filled))
        self.filled = now
        counts["tokens"] += 1
        counts["dropped"] += not let
        if was_open and let:
            self.allowed = now
        if self.opened is not None and now - self.opened < COOLDOWN:
            return let
        self.opened = None
        if self.tokens >= 1:
            self.tokens -= 1
            return let
        self.opened = self.allowed = now
        counts["opened"] += 1
        return let


@dataclass
class Composite:
    """What Crossplane knows of one composite besides the object."""

    breaker: Breaker = field(default_factory=Breaker)
    composed: dict[str, Name] = field(default_factory=dict)
    stated: list[dict[str, pb.ResourceSelector]] = field(default_factory=list)
    """What each step required in the last reconcile."""
    watched: dict[str, list[pb.ResourceSelector]] = field(default_factory=dict)
    """What required resources are watched by, by kind."""
    applied: Plain = field(default_factory=dict)
    """The status that was applied last: what Crossplane may take away."""
    seen: dict[str, tuple[Name, str]] = field(default_factory=dict)
    """Names and versions of what was observed when the reconcile under way began, by key."""
    began: Plain = field(default_factory=dict)
    """The object as it was then."""
    running: bool = False
    again: bool = False
    wakes: int = 0
    """How often it was queued: a ttl that was set before the last time is void."""
    started: int = 0
    """The same when the reconcile under way began."""
    counts: Counter[str] = field(default_factory=Counter)
    """reconciles, calls, bytes, tokens, dropped, opened, refused."""


class Backup(NamedTuple):
    """Everything that an API server had at one moment."""

    objects: dict[Name, Plain]
    composed: dict[Name, dict[str, Name]]
    applied: dict[Name, Plain]
    annotated: dict[Name, Plain]
    version: int
    """The resource version that was given last."""


@dataclass
class ControlPlane:
    """Objects, and Crossplane with a pipeline for some of their kinds."""

    pipelines: Mapping[str, list[Step]]
    version: str = WATCHING
    queue: tuple[float, float] = (0.0, 0.0)
    """Seconds between the snapshot of a reconcile and its first write, at least and at most."""
    lag: tuple[float, float] = (0.0, 0.0)
    """Seconds that a write takes, and again those until a watch shows it, at least and at most."""
    workers: int = 100
    """Reconciles of one kind at a time."""
    elsewhere: Collection[str] = ()
    """Kinds of composites that other pipelines reconcile: Crossplane writes to new ones all the same."""
    own_writes: int = OWN_WRITES
    withheld: Collection[str] = ()
    """Requirements that do not arrive, as `run_step` has them."""
    holds: Callable[[Name], bool] | None = None
    """Says of an object that is deleted whether somebody's finalizer still holds it."""
    failures: tuple[type[Exception], ...] = (Away,)
    """What a reconcile may fail of; it is tried again."""
    crashes: float = 0.0
    """How often, of 1, Crossplane dies between what it deletes and what it applies."""
    listener: Callable[[str, Plain], None] | None = None
    """Hears of every write: ADDED, MODIFIED or DELETED, and the object."""
    hearer: Callable[[Name, drive.Answer], None] | None = None
    """Hears of every answer before it is applied."""
    seed: int = 1
    now: float = 0.0
    objects: Store = field(default_factory=Store)
    composites: dict[Name, Composite] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing to do."""
        self._draw = random.Random(self.seed)
        self._numbers = count(1)
        self._version = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._waiting: list[Name] = []
        self._earlier: set[Name] = set()
        self._watches: defaultdict[str, set[str]] = defaultdict(set)
        self._cache = Store(self.objects)
        """What Crossplane's watches showed."""
        self._shown: defaultdict[str, float] = defaultdict(float)
        """When the last event of a kind arrives: they keep their order."""
        self._messages: dict[Name, tuple[Plain, pb.Resource]] = {}
        self._fetched: dict[bytes, tuple[Sequence[Plain], pb.Resources]] = {}
        """What selectors matched last. What is stored never changes, so equal is the same."""
        self._tags: dict[bytes, str] = {}
        self._annotated: dict[Name, Plain] = {}
        """The annotations that were applied last: those that are left out of the next answer go."""

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), act))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, act = heapq.heappop(self._events)
            act()
        self.now = end

    def forget_counts(self) -> None:
        """Count from now on, with full buckets."""
        for composite in self.composites.values():
            composite.counts.clear()
            composite.breaker = Breaker(filled=self.now)

    def counted(self, what: str, kind: str = "") -> dict[str, int]:
        """What was counted of each composite of a kind, by name; those with nothing are left out."""
        return {
            name.name: composite.counts[what]
            for name, composite in sorted(self.composites.items())
            if composite.counts[what] and kind in ("", name.kind)
        }

    def write(self, plain: Plain) -> None:
        """Create or replace an object, whoever does; a write that changes nothing is none."""
        self._put(copied(plain))

    def _put(self, plain: Plain) -> None:
        """Write what nobody changes any more. What is stored never changes, so its parts are shared."""
        name = name_of(plain)
        before = self.objects.get(name)
        metadata = {**plain["metadata"]}
        made = {**plain, "metadata": metadata}
        if before is None:
            again = [next(self._numbers)] * (name in self._earlier)
            self._earlier.add(name)
            metadata.setdefault("uid", build.uid(*name, *again))
            metadata.setdefault("creationTimestamp", self._stamp())
            metadata["generation"] = 1
        else:
            kept = ("uid", "creationTimestamp", "resourceVersion", "deletionTimestamp", "finalizers")
            metadata |= {key: before["metadata"][key] for key in kept if key in before["metadata"]}
            metadata["generation"] = before["metadata"]["generation"]
            if made == before:
                return
            metadata["generation"] += made.get("spec") != before.get("spec")
        metadata["resourceVersion"] = self._next_version()
        self.objects[name] = made
        self._changed(before, made)
        if before is None and (name.kind in self.pipelines or name.kind in self.elsewhere):
            for _ in range(self.own_writes):
                self.touch(name)
        elif name.kind in self.elsewhere and metadata["generation"] != before["metadata"]["generation"]:
            self.touch(name)  # The generation that its conditions are about.

    def touch(self, name: Name) -> None:
        """Write something to an object that no function reads."""
        metadata = self.objects[name]["metadata"]
        annotations = {**metadata.get("annotations", {}), "touched": str(next(self._numbers))}
        self.patch(name, metadata={**metadata, "annotations": annotations})

    def patch(self, name: Name, **parts: Plain) -> None:
        """Replace whole parts of an object, such as its status."""
        self._put({**self.objects[name], **parts})

    def delete(self, name: Name, *, by_hand: bool = False) -> None:
        """Delete an object, and what it owns; they live on for their finalizers.

        Crossplane deletes in the foreground, which has a finalizer of its own.
        """
        before = self.objects.get(name)
        if before is None or "deletionTimestamp" in before["metadata"]:
            return
        marks = {
            "deletionTimestamp": self._stamp(),
            "resourceVersion": self._next_version(),
            "finalizers": [] if by_hand else [FOREGROUND],
        }
        made = {**before, "metadata": before["metadata"] | marks}
        self.objects[name] = made
        self._changed(before, made)
        if self.lag[1]:
            self.after(self.lag[1], lambda: self._leave(name))
        else:
            self._leave(name)

    def _leave(self, name: Name) -> None:
        """Delete what an object owns, as the garbage collector does; its own finalizers take longer."""
        self._collect(name)
        self.after(DYING, lambda: self._end(name))

    def _end(self, name: Name) -> None:
        """Let an object go, once no finalizer holds it; in the foreground what it owns goes first."""
        if "deletionTimestamp" not in self.objects.get(name, {}).get("metadata", {}):
            return  # A backup from before has it, or has it no more.
        if self._collect(name) or (self.holds is not None and self.holds(name)):
            self.after(DYING, lambda: self._end(name))
            return
        self._changed(self.objects.remove(name), None)
        self.composites.pop(name, None)

    def _collect(self, name: Name) -> bool:
        """Delete what a deleted object owns, once more if need be, and say if it waits for that."""
        metadata = self.objects.get(name, {}).get("metadata", {})
        if "deletionTimestamp" not in metadata:
            return False
        owns = (
            (other, plain["metadata"].get("ownerReferences", ())) for other, plain in self.objects.items()
        )
        owned = [other for other, owners in owns if any(one["uid"] == metadata["uid"] for one in owners)]
        in_foreground = FOREGROUND in metadata["finalizers"]
        for other in owned:
            self.delete(other, by_hand=not in_foreground)
        return in_foreground and bool(owned)

    def restart(self) -> None:
        """Start Crossplane anew: what was under way, watched, seeded and counted is forgotten.

        Every watch hands over every object once, which queues every composite.
        """
        self._waiting.clear()
        self._watches.clear()
        self._shown.clear()
        self._cache = Store(self.objects)
        for name, composite in self.composites.items():
            self.composites[name] = Composite(
                composed=composite.composed, applied=composite.applied, wakes=composite.wakes + 1
            )
        for plain in list(self.objects.values()):
            self._notify(None, plain)

    def backup(self) -> Backup:
        """Return all there is now."""
        composed = {name: dict(composite.composed) for name, composite in self.composites.items()}
        applied = {name: composite.applied for name, composite in self.composites.items()}
        return Backup(dict(self.objects), composed, applied, dict(self._annotated), self._version)

    def restore(self, backup: Backup) -> None:
        """Let all be as it was: versions that were given since are given again. Crossplane starts anew."""
        self._version, self._annotated = backup.version, dict(backup.annotated)
        self.objects = Store(backup.objects)
        self.composites = {
            name: Composite(composed=dict(composed), applied=backup.applied[name])
            for name, composed in backup.composed.items()
        }
        self._messages.clear()
        for name, plain in self.objects.items():
            if "deletionTimestamp" in plain["metadata"]:
                self.after(DYING, lambda name=name: self._end(name))
        self.restart()

    def resync(self) -> None:
        """Hand every object to every watch again, as each hour does."""
        for plain in list(self.objects.values()):
            self._notify(plain, plain)

    def _moment(self) -> float:
        """Return how long a write or a watch takes now."""
        return self._draw.uniform(*self.lag) if self.lag[1] else 0.0

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _stamp(self) -> str:
        seconds = int(self.now)
        return f"2026-03-01T{8 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"

    def _changed(self, before: Plain | None, after: Plain | None) -> None:
        """Tell the listener of a write, then everybody who watches."""
        if self.listener is not None:
            event = "ADDED" if before is None else "DELETED" if after is None else "MODIFIED"
            self.listener(event, after or before or {})
        kind, cache = (after or before or {})["kind"], self._cache
        self._shown[kind] = max(self._shown[kind], self.now + self._moment())
        if self._shown[kind] <= self.now:
            self._show(cache, before, after)
        else:
            self.after(self._shown[kind] - self.now, lambda: self._show(cache, before, after))

    def _show(self, cache: Store, before: Plain | None, after: Plain | None) -> None:
        """Let a write arrive in the cache that it was meant for, and tell everybody who watches."""
        if cache is not self._cache:
            return  # Crossplane started anew since, and has read everything then.
        if after is not None:
            cache[name_of(after)] = after
        elif before is not None:
            cache.remove(name_of(before))
        self._notify(before, after)

    def _notify(self, before: Plain | None, after: Plain | None) -> None:
        """Tell everybody who watches an object; a create and an end carry one object, an update two."""
        for plain in (before, after):
            if plain is None:
                continue
            name = name_of(plain)
            if name.kind in self.pipelines:
                self._count(name, plain)
            for other in self._dependants(plain):
                self._count(other, plain)

    def _count(self, name: Name, plain: Plain) -> None:
        if name not in self.objects:
            return
        composite = self.composites.setdefault(name, Composite())
        free = "deletionTimestamp" in plain["metadata"]
        if free or composite.breaker.lets(self.now, composite.counts):
            self._wake(name)

    def _dependants(self, plain: Plain, kind: str = "") -> list[Name]:
        """Return the composites, of one kind or of any, that an object is mapped to: each once."""
        name = name_of(plain)
        return [
            other
            for other, composite in self.composites.items()
            if kind in ("", other.kind)
            if name in composite.composed.values()
            or any(selects(selector, plain) for selector in composite.watched.get(name.kind, ()))
        ]

    def _wake(self, name: Name) -> None:
        composite = self.composites[name]
        composite.wakes += 1
        if composite.running:
            composite.again = True
        elif name not in self._waiting:
            self._waiting.append(name)
            self.after(0.0, self._begin)

    def _begin(self) -> None:
        for name in list(self._waiting):
            busy = sum(
                composite.running for other, composite in self.composites.items() if other.kind == name.kind
            )
            if busy >= self.workers:
                continue
            self._waiting.remove(name)
            metadata = self._cache[name]["metadata"] if name in self._cache else {}
            paused = metadata.get("annotations", {}).get(PAUSED_ANNOTATION) == "true"
            if name not in self.objects or not metadata or paused or "deletionTimestamp" in metadata:
                continue
            composite = self.composites[name]
            composite.running, composite.again = True, False
            composite.started = composite.wakes
            asked = self._observed(name, composite)
            if moment := self._moment():
                self.after(moment, partial(self._compose, name, composite, asked))
            else:
                self._compose(name, composite, asked)

    def _compose(self, name: Name, composite: Composite, asked: pb.RunFunctionRequest) -> None:
        """Run the pipeline, and write what it answers when the turn has come, unless Crossplane ended."""
        if self.composites.get(name) is not composite:
            return
        try:
            ran = self._called(name, composite, asked)
        except self.failures:
            composite.running = False
            self._fail(name, composite)
            return
        writes = self._writes(name, composite, ran)
        self.after(self._draw.uniform(*self.queue), partial(self._write, name, composite, ran, writes))

    def _fail(self, name: Name, composite: Composite) -> None:
        """Say that a reconcile failed, so that the answer's own conditions are not known; try it again."""
        composite.counts["failed"] += 1
        status = self.objects[name].get("status", {})
        rows = [
            row if row["type"] in SYSTEM else {**row, "status": "Unknown", "reason": "FatalError"}
            for row in status.get("conditions", ())
        ]
        self.after(self._draw.uniform(*RETRY), lambda: self._retry(name, composite))
        self.patch(name, status={**status, "conditions": rows})

    def _retry(self, name: Name, composite: Composite) -> None:
        if self.composites.get(name) is composite:
            self._wake(name)

    def fetch(self, selector: pb.ResourceSelector) -> pb.Resources:
        """Return what a selector matches, from 2.4 on in order; nothing for a name that is not there."""
        of_kind = sorted(self._cache.of_kind(selector.kind).items())
        matched = [plain for _, plain in of_kind if selects(selector, plain)]
        if self.version < WATCHING:
            self._draw.shuffle(matched)
        which = selector.SerializeToString(deterministic=True)
        before, resources = self._fetched.get(which, ((), pb.Resources()))
        if len(before) == len(matched) and all(map(is_, before, matched)):
            return resources
        resources = pb.Resources()
        for plain in matched:
            resources.items.add().CopyFrom(self._sent(plain))
        self._fetched[which] = matched, resources
        return resources

    def _sent(self, plain: Plain) -> pb.Resource:
        """Return an object as it is sent: most are sent more often than they change."""
        name = name_of(plain)
        before, sent = self._messages.get(name, (None, None))
        if before is not plain or sent is None:
            sent = pb.Resource()
            sent.resource.update(plain)
            self._messages[name] = plain, sent
        return sent

    def _observed(self, name: Name, composite: Composite) -> pb.RunFunctionRequest:
        """Return what the cache shows of a composite; what is referred to and not in it is read past it."""
        asked = pb.RunFunctionRequest()
        composite.seen.clear()
        composite.began = self._cache[name]
        asked.observed.composite.CopyFrom(self._sent(composite.began))
        references = composite.began.get("spec", {}).get("resourceRefs", ())
        for child in (Name(*reference) for reference in references):
            held = self._cache.get(child, self.objects.get(child))
            if held is not None:
                key = held["metadata"]["annotations"][KEY_ANNOTATION]
                asked.observed.resources[key].CopyFrom(self._sent(held))
                composite.seen[key] = child, held["metadata"]["resourceVersion"]
        return asked

    def _called(self, name: Name, composite: Composite, asked: pb.RunFunctionRequest) -> list[Ran]:
        """Call the pipeline, with what the cache shows by now of what is required."""
        ran: list[Ran] = []
        for number, step in enumerate(self.pipelines[name.kind]):
            if step.input is not None:
                asked.input.CopyFrom(step.given)
            asked.ClearField("meta")
            digest = sha256(asked.SerializeToString(deterministic=True)).digest()
            asked.meta.tag = self._tags.setdefault(digest, f"{next(self._numbers)}")
            seeds = composite.stated[number] if number < len(composite.stated) else {}
            how = {"version": self.version, "seeds": seeds, "withheld": self.withheld}
            ran.append(run_step(step, asked, self.fetch, **how))
            asked.desired.CopyFrom(ran[-1].response.desired)
            asked.context.CopyFrom(ran[-1].response.context)
        composite.counts["reconciles"] += 1
        composite.counts["calls"] += sum(step.calls for step in ran)
        composite.counts["bytes"] += sum(step.sent for step in ran)
        return ran

    def _write(self, name: Name, composite: Composite, ran: list[Ran], writes: Iterator[None]) -> None:
        """Write what is next, unless Crossplane ended or the composite did, and the rest after that."""
        while self.composites.get(name) is composite and name in self.objects:
            if next(writes, writes) is writes:
                self._finish(name, composite, ran)
                return
            if moment := self._moment():
                self.after(moment, partial(self._write, name, composite, ran, writes))
                return

    def _finish(self, name: Name, composite: Composite, ran: list[Ran]) -> None:
        """End a reconcile, and begin again at once or when the answer's time has run out."""
        wakes = composite.started
        composite.running = False
        if composite.again:
            composite.again = False
            self._wake(name)
        lives = [step.response.meta.ttl for step in ran]
        life = min((ttl.seconds + ttl.nanos / 1e9 for ttl in lives if ttl.seconds or ttl.nanos), default=0.0)
        if life:
            due = life * self._draw.uniform(0.9, 1.1)
            self.after(due, lambda: self._due(name, composite, wakes))
        self._begin()

    def _due(self, name: Name, composite: Composite, wakes: int) -> None:
        if self.composites.get(name) is composite and composite.wakes == wakes:
            self._wake(name)

    def _writes(self, name: Name, composite: Composite, ran: list[Ran]) -> Iterator[None]:
        """Delete what is not desired, refer to the rest and apply it, then write status and conditions."""
        if any(step.fatal for step in ran):
            return
        answer = drive.answer(ran[-1].response)
        if self.hearer is not None:
            self.hearer(name, answer)
        gone = {key: seen for key, seen in composite.seen.items() if key not in answer.desired}
        if any(self._is_newer(*seen) for seen in gone.values()):
            composite.again = True  # It writes to what it deletes first, with the version that it has seen.
            composite.counts["refused"] += 1
            return
        for key, (child, _) in gone.items():
            composite.composed.pop(key, None)
            self.delete(child)
        if self.crashes and self._draw.random() < self.crashes:
            composite.again = True
            return
        named = [self._named(name, composite, *desired) for desired in sorted(answer.desired.items())]
        composite.composed = {
            key: name_of(plain) for key, plain in zip(sorted(answer.desired), named, strict=True)
        }
        references = [[*child] for child in composite.composed.values()]
        self.patch(name, spec={**self.objects[name].get("spec", {}), "resourceRefs": references})
        yield
        for plain in named:
            self._apply(name, plain)
            yield
        composite.stated = [step.stated for step in ran]
        self._watch(name, composite)
        status = applied(self.objects[name].get("status", {}), composite.applied, answer.status)
        composite.applied = answer.status
        self.patch(name, status=status)
        written = self.objects[name]
        yield
        if self.objects[name] is not written:
            composite.again = True
            return
        self._report(name, composite, status, answer)

    def _is_newer(self, name: Name, seen: str) -> bool:
        """Whether somebody wrote to an object since it was seen."""
        held = self.objects.get(name)
        leaves = held is None or "deletionTimestamp" in held["metadata"]
        return not leaves and held is not None and held["metadata"]["resourceVersion"] != seen

    def _named(self, owner: Name, composite: Composite, key: str, desired: Plain) -> Plain:
        """Return what is desired under the name that it has, or gets."""
        metadata = {**desired.get("metadata", {})}
        metadata["annotations"] = {**metadata.get("annotations", {}), KEY_ANNOTATION: key}
        held, _ = composite.seen.get(key, (None, ""))
        metadata["name"] = held.name if held else metadata.get("name", f"{owner.name}-{key}")
        if owner.namespace:
            metadata.setdefault("namespace", owner.namespace)
        return {**desired, "metadata": metadata}

    def _watch(self, name: Name, composite: Composite) -> None:
        """Watch what is composed, from 2.4 on what is required; a kind that is new hands all over."""
        blocks = [step.bootstrap for step in self.pipelines[name.kind]]
        named = (*blocks, *composite.stated) if self.version >= WATCHING else ()
        composite.watched = defaultdict(list)
        for selector in (selector for required in named for selector in required.values()):
            composite.watched[selector.kind].append(selector)
        kinds = {child.kind for child in composite.composed.values()} | composite.watched.keys()
        started = kinds - self._watches[name.kind]
        self._watches[name.kind] |= kinds
        for plain in [plain for of, plain in self.objects.items() if of.kind in started]:
            for other in self._dependants(plain, name.kind):
                self._count(other, plain)

    def _apply(self, owner: Name, desired: Plain) -> None:
        before = self.objects.get(name_of(desired), {})
        made, metadata = {**desired}, desired["metadata"]
        metadata["labels"] = metadata.get("labels", {}) | {"crossplane.io/composite": owner.name}
        metadata["ownerReferences"] = [build.owner(self.objects[owner])]
        kept = {part: before[part] for part in ("status",) if part in before}
        stated, last = metadata.get("annotations", {}), self._annotated.get(name_of(desired), {})
        self._annotated[name_of(desired)] = stated
        if held := before.get("metadata", {}).get("annotations"):
            metadata["annotations"] = applied(held, last, stated)
        if "resourceRefs" in before.get("spec", {}):
            made["spec"] = {**made["spec"], "resourceRefs": before["spec"]["resourceRefs"]}
        self._put({**made, **kept})

    def _report(self, name: Name, composite: Composite, status: Plain, answer: drive.Answer) -> None:
        """Write Crossplane's own conditions with those of the answer."""
        rows = {row["type"]: row for row in status.get("conditions", [])}
        for kind, (holds, reason, message) in answer.conditions.items():
            rows[kind] = {"type": kind, "status": str(holds), "reason": reason, "message": message}
        about = {"observedGeneration": self._generation(name, composite)}
        unready = sorted(answer.desired.keys() - answer.ready)
        rest = f", and {len(unready) - NAMED} more" if len(unready) > NAMED else ""
        said = f"Unready resources: {', '.join(unready[:NAMED])}{rest}" if unready else ""
        rows["Synced"] = {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", **about}
        ready = {"type": "Ready", "status": str(not unready and not answer.unready), "message": said}
        rows["Ready"] = {**ready, "reason": "Simulated", **about}
        opened = composite.breaker.opened is not None
        reason = "WatchCircuitOpen" if opened else "WatchCircuitClosed"
        rows["Responsive"] = {"type": "Responsive", "status": str(not opened), "reason": reason}
        self.patch(name, status={**status, "conditions": [rows[kind] for kind in sorted(rows)]})

    def _generation(self, name: Name, composite: Composite) -> int:
        """Return the generation that a reconcile was about: its own write of references is part of it."""
        versions = [composite.began, self.objects[name]]
        specs = [
            {key: part for key, part in plain.get("spec", {}).items() if key != "resourceRefs"}
            for plain in versions
        ]
        return int(versions[specs[0] == specs[1]]["metadata"]["generation"])
