"""Reuse: the answer is the same bytes with a memory of parsed objects as without one, whatever was asked
before: objects that change, vanish, come back, come back as they were (a restored etcd), have no uid or no
version, or have another content under the version of before.

What a memory may rely on is what the specification says "is the key that works": apiVersion, kind, uid and
resourceVersion "together with the object's length in bytes". So no two contents here share all of these.
"""

from __future__ import annotations

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from function import wire
from function.boundary.memory import Memory
from function.deployment import handler
from function.deployment.answers import Given, LatestAnswer
from function.runner import Function
from function.scheduler.budget import ALLOWANCE
from function.wire import write
from tests.properties.worlds import each_batch
from tests.support import build, generate, scale
from tests.support.cases import HARD, TIGHT, ask, one, single
from tests.support.drive import of_core
from tests.support.encode import encoded
from tests.support.optins import INPUT
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from function.boundary import Response

Plain = dict[str, Any]

STEPS = 14
"""Requests of one episode."""
EVICTING = 4_000
"""Bytes: room for two or three objects."""
ROOMY = 1 << 26
LIMITS = (ROOMY, ROOMY, 40_000, EVICTING, 0)


class Counting:
    """A log that adds up what was reused."""

    def __init__(self) -> None:
        self.reused = 0

    def info(self, _: str, **said: Any) -> None:
        self.reused += said["reused"]

    def error(self, _: str, **said: Any) -> None:
        raise AssertionError(said)


Contents = dict[tuple[Any, ...], str]
"""Contents by their keys."""


class Honest:
    """Gives objects their versions: low ones, used again and again, but never one key for two contents."""

    def __init__(self, draw: random.Random, contents: Contents) -> None:
        self.draw = draw
        self.contents = contents
        self.unversioned, self.edited = draw.choice(((0.2, 0.5), (0.0, 0.05)))
        """How often an object has no uid or no version, and how often it is edited: much, or hardly ever."""

    def stamp(self, manifest: Plain) -> None:
        """Give an object a version. One without uid or version stays so, whatever becomes of it."""
        metadata = manifest["metadata"]
        if not metadata.keys() >= {"uid", "resourceVersion"}:
            return
        if self.draw.random() < self.unversioned:
            del metadata[self.draw.choice(("uid", "resourceVersion"))]
            return
        for version in range(self.draw.choice((1, 1, 1, 2, 3)), 1_000):
            metadata["resourceVersion"] = str(version)
            content = json.dumps(manifest, sort_keys=True)
            key = (
                manifest["apiVersion"],
                manifest["kind"],
                metadata["uid"],
                version,
                len(write.struct(manifest)),
            )
            if self.contents.setdefault(key, content) == content:
                return

    def world(self, seed: int) -> World:
        """Return the world of a seed, its objects stamped. The observed may be older than the listed."""
        made = generate.world(seed, self.draw.choice((generate.CALM, generate.TASTE))).copy()
        for cluster in (
            made.deployment,
            *(made.clusters or ()),
            *(made.replicas or ()),
            *made.observed.values(),
            *(made.cache or ()),
        ):
            self.stamp(cluster)
        return made


def episode(seed: int, contents: Contents | None = None) -> Iterator[bytes]:
    """Yield the requests of two fleets whose objects share names and uids, in turn.

    Episodes that are asked of one memory share what is `known`, or their keys would mean several contents.
    Most of a world stays from one request to the next; one in three requests is the content of an earlier
    one again, its versions included, and in other bytes. Most of those are the latest again: of an object one
    version is remembered, and the fleets have other versions of it.
    """
    draw = random.Random(seed)
    honest = Honest(draw, {} if contents is None else contents)
    past = [honest.world(seed), honest.world(seed + 1_000_000)]
    for step in range(STEPS):
        now = past[-2]
        if step > 3 and draw.random() < 0.33:
            now = draw.choice((past[-1], past[-1], draw.choice(past)))
        elif step > 1:
            now = changed(draw, honest, now, honest.world(draw.randrange(10**9)))
        past.append(now)
        yield encoded(draw, now)


def changed(draw: random.Random, honest: Honest, now: World, other: World) -> World:
    """Return a world in which some objects are another world's, some were edited, and one has vanished."""
    clusters = list(now.clusters or other.clusters or ())
    if draw.random() < honest.edited / 2:
        clusters = [draw.choice(pair) for pair in zip(clusters, other.clusters or (), strict=False)]
    replicas = [replica for replica in now.replicas or () if draw.random() > honest.edited / 5]
    replicas += [replica for replica in other.replicas or () if draw.random() < honest.edited / 2]
    made = now.but(clusters=clusters, replicas=replicas).copy()
    for cluster in (*(made.clusters or ()), *(made.replicas or ())):
        if draw.random() < honest.edited:
            edit(draw, cluster)
            honest.stamp(cluster)
    return made


def edit(draw: random.Random, manifest: Plain) -> None:
    """Change something that decides. Another count keeps the length; the rest may not."""
    what = draw.choice(("counts", "counts", "counts", "condition", "spec"))
    if what == "counts":
        for pool in manifest.get("status", {}).get("gpuPools", ()):
            pool["nodes"] = draw.choice((0, 1, 40))
    elif what == "condition":
        status = draw.choice(("True", "False", "Unknown"))
        manifest.setdefault("status", {})["conditions"] = [{"type": "Ready", "status": status}]
    elif draw.random() < 0.3:
        manifest["spec"] = draw.choice(({}, {"taints": [{"key": "odd", "effect": "NoSchedule"}]}, "broken"))


def seeds(number: int) -> range:
    return scale.batch(number, quick=16, gate=2_000, soak=20_000)


@each_batch
def test_the_answer_is_the_same_bytes_with_a_memory_and_without(number: int) -> None:
    log = Counting()
    for seed in seeds(number):
        plain = Function(log=Counting())
        reusing = Function(log=log, memory=Memory(LIMITS[seed % len(LIMITS)]))
        for step, content in enumerate(episode(seed)):
            assert reusing.answer(content) == plain.answer(content), f"seed {seed}, step {step}"
    assert log.reused, "nothing was reused, so nothing was looked at"


def test_episodes_have_answers_that_are_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law above looks at them, then: the latest answer of a deployment is the memory that holds most."""
    latest, given_again = LatestAnswer.get, []

    def get(cache: LatestAnswer, given: Given) -> Response | None:
        response = latest(cache, given)
        given_again.append(response is not None)
        return response

    monkeypatch.setattr(LatestAnswer, "get", get)
    for seed in range(8):
        function = Function(log=Counting(), memory=Memory(ROOMY))
        for content in episode(seed):
            function.answer(content)
    assert given_again.count(True) > STEPS


@pytest.mark.parametrize("limit", [ROOMY, EVICTING])
def test_the_same_with_many_threads_on_one_memory(limit: int) -> None:
    plain = Function(log=Counting())
    contents: Contents = {}
    asked = [content for seed in range(scale.count(2, 40, 200)) for content in episode(seed, contents)]
    expected = [plain.answer(content) for content in asked]
    reusing = Function(log=Counting(), memory=Memory(limit))

    def all_of_them(worker: int) -> list[int]:
        order = random.Random(worker).sample(range(len(asked)), len(asked))
        return [place for place in order if reusing.answer(asked[place]) != expected[place]]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(all_of_them, range(6))) == [[]] * 6
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("limits", [(ALLOWANCE, 100_000), (100_000, ALLOWANCE), (ALLOWANCE - 1, ALLOWANCE)])
def test_what_ran_out_of_one_budget_is_searched_again_with_another(limits: tuple[int, int]) -> None:
    """Eight requests that no eight entries cover together: more than a search has of its own."""
    devices = [build.gpu(count, name=f"g{at}") for at, count in enumerate(TIGHT)]
    engines = [single(*[build.request(f"r{at}", count) for at, count in enumerate(HARD)])]
    made = World(ask(engines=engines), [one("a", pools=[build.pool("p", 1, devices)])])
    for manifest in made.clusters or ():
        manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    draw, reusing = random.Random(0), Function(log=Counting(), memory=Memory(ROOMY))
    for limit in limits:
        content = encoded(draw, made.but(input=INPUT | {"searchBudget": limit}))
        assert reusing.answer(content) == Function(log=Counting()).answer(content), limit


class Careless:
    """A memory that leaves something out of the specification's key."""

    def __init__(self, left_out: str) -> None:
        self.left_out = left_out
        self.contents: dict[Any, Any] = {}

    def parsed(self, document: Any, parse: Callable[[Any], Any]) -> Any:
        plain = document.plain()
        metadata = plain.get("metadata", {})
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if self.left_out != "missing" and None in (uid, version):
            return parse(document)
        key = {"kind": (plain.get("apiVersion"), plain.get("kind")), "uid": uid, "version": version}
        key["length"] = len(write.struct(plain))
        key.pop(self.left_out, None)
        place = (parse, *key.items())
        if place not in self.contents:
            self.contents[place] = parse(document)
        return self.contents[place]

    def digest(self) -> None:
        """It tells nobody what was parsed."""
        return


@pytest.mark.parametrize(
    ("left_out", "caught"),
    [("nothing", False), ("version", True), ("length", True), ("missing", True)],
)
def test_a_memory_that_looks_at_less_would_be_caught(left_out: str, *, caught: bool) -> None:
    """The specification's own key keeps the law; without the version, without the length, or with a key for
    objects that have no uid or no version, answers differ.
    """
    assert any(differs(seed, Careless(left_out)) for seed in range(8)) == caught


def differs(seed: int, memory: Careless) -> bool:
    """Say whether the answers of an episode are others with such a memory."""
    requests = [wire.decode(content).request for content in episode(seed)]
    return any(
        not same_answer(handler.run(request, reuse=memory), handler.run(request)) for request in requests
    )


def same_answer(one: Response, other: Response) -> bool:
    return of_core(one).same(of_core(other))
