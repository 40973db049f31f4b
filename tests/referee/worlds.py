"""One InferenceCluster on the real cluster: what is decided for it in process, and what becomes of it.

And random ones: `World.random(seed, mode)`. In mode `exclusive` every pod takes more than half of a node, so
that counting nodes is exact, and nothing at all may differ.
"""

from __future__ import annotations

import copy
import json
import random
import threading
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from function.cli.render.workloads import workloads_of
from function.cli.worlds.inputs import taken
from function.cli.worlds.manifests import load_texts
from function.cli.worlds.world import ParseMemo, plan_all, replicas_of
from tests.referee import cluster
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from function.cli.worlds.inputs import Inputs

Plain = dict[str, Any]
GPU, NET = build.GPU, "dra.net"
MODES = ("exclusive", "node", "device", "mixed", "lost")
SERVING = ("model-serving", "resource-claim")
"""Keys of what has the pods of engines, and their claims; routes and pickers are none of the question."""
_DECIDING = threading.Lock()


def inputs_of(objects: Sequence[Plain]) -> Inputs:
    """Read objects as the command line reads files."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return taken(load_texts([("world.json", text)], checked=False), quietly=True)


def pods_of(replicas: Sequence[Plain]) -> int:
    """How many pods replicas have."""
    return sum(
        engine.get("copies", 1)
        * (member.get("worker", {}).get("nodes", 1) if member["role"] == "Worker" else 1)
        for replica in replicas
        for engine in replica["spec"]["engines"]
        for member in engine["members"]
    )


class World:
    """A cluster of pools: `{name: (nodes, accounting, device entries)}`."""

    def __init__(
        self,
        name: str,
        pools: dict[str, tuple[int, str, list[Plain]]],
        *,
        published: Plain | None = None,
    ) -> None:
        """Take the pools, and the cluster where it is published already; nothing is built yet."""
        self.name, self.pools, self._published = name, pools, published
        self.across = False
        """Whether its pools keep the pods of an engine on different nodes."""
        self.observed: dict[str, Plain] = {}
        """What its cluster publishes of the nodes that can be used and of their devices, by pool."""
        self.tenants: list[str] = []
        """Pods that others have there."""
        self.replicas: list[Plain] = []
        self.asked: dict[str, Plain] = {}
        """The deployments of its replicas, as they are now."""
        self._made: list[tuple[str, str]] = []
        self._applied: dict[str, set[tuple[str, str]]] = {}

    @property
    def fleet(self) -> list[Plain]:
        """The cluster as its platform publishes it."""
        if self._published is not None:
            return [self._published]
        published = [
            build.pool(pool, nodes, entries) | {"accounting": accounting} | self.observed.get(pool, {})
            for pool, (nodes, accounting, entries) in self.pools.items()
        ]
        made = build.cluster(self.name, published)
        made["status"]["providerConfigRef"] = {"name": self.name}
        for pool in made["spec"]["nodePools"] if self.across else ():
            pool["acrossNodes"] = "Required"
        return [made]

    def decide(self, deployment: Plain) -> tuple[list[Plain], Plain]:
        """New replicas of a deployment, and the report on it."""
        wanted, report = self.plan(deployment)
        names = {replica["metadata"]["name"] for replica in self.replicas}
        return [replica for replica in wanted if replica["metadata"]["name"] not in names], report

    def plan(self, deployment: Plain) -> tuple[list[Plain], Plain]:
        """All replicas that a deployment is to have, and the report on it."""
        with _DECIDING:
            inputs = inputs_of([*self.fleet, *self.replicas, deployment])
            name = deployment["metadata"]["name"]
            [planned] = [
                one for one in plan_all(inputs.world, reuse=ParseMemo()) if one.manifest.name == name
            ]
            wanted = replicas_of(planned)
        for replica in wanted:
            replica["metadata"].setdefault("uid", build.uid(replica["metadata"]["name"]))
            replica["metadata"].setdefault("creationTimestamp", deployment["metadata"]["creationTimestamp"])
        return wanted, planned.forecast.report()

    def build(self, *, turned: bool = False, **node: object) -> None:
        """Make the nodes; `turned`: their drivers list the devices the other way round."""
        for pool, (nodes, _, _) in self.pools.items():
            for at in range(nodes):
                self.add_node(pool, at, turned=turned, **node)

    def add_node(self, pool: str, at: int, *, turned: bool = False, **node: object) -> None:
        """Make one node of a pool."""
        _, _, entries = self.pools[pool]
        labels, listed = {"modelplane.ai/pool": pool}, entries[::-1] if turned else entries
        self._made += cluster.add_node(f"{self.name}-{pool}-{at}", labels, listed, **node)

    def put(self, replicas: Sequence[Plain], edit: Callable[[Plain], None] | None = None) -> list[str]:
        """Apply what replicas become on their cluster, edited; return what the API server refuses."""
        with _DECIDING:
            composed = [
                (one.name, copy.deepcopy(manifest))
                for one in workloads_of(inputs_of([*self.fleet, build.deployment()]), replicas)
                for key, manifest in one.manifests()
                if key.startswith(SERVING)
            ]
        refused = []
        for name, manifest in composed:
            manifest["metadata"].setdefault("namespace", "default")
            if edit:
                edit(manifest)
            self._applied.setdefault(name, set()).add((manifest["kind"], manifest["metadata"]["name"]))
            try:
                cluster.apply(manifest)
            except cluster.RefusedByServer as refusal:
                refused.append(str(refusal))
        return refused

    def take_away(self, replicas: Sequence[Plain], seen: cluster.Seen) -> None:
        """Delete replicas and wait until nothing of them is left."""
        names = [replica["metadata"]["name"] for replica in replicas]
        for name in names:
            for kind, made in self._applied.pop(name, ()):
                cluster.delete(kind, made)
        self.replicas = [one for one in self.replicas if one["metadata"]["name"] not in names]
        cluster.wait(lambda: not any(seen.of(n) or seen.of(n, "ResourceClaim") for n in names), 60)

    def without_tenants(self) -> None:
        """Delete the pods of others."""
        for name in self.tenants:
            cluster.delete("Pod", name, gracePeriodSeconds=0)
            cluster.delete("ResourceClaimTemplate", name)
        self.tenants.clear()

    def tear_down(self, seen: cluster.Seen) -> None:
        """Delete everything."""
        self.take_away([{"metadata": {"name": name}} for name in self._applied], seen)
        self.without_tenants()
        for kind, name in self._made:
            cluster.delete(kind, name)

    def by_hand(self, deployment: Plain, pools: Sequence[str], name: str) -> Plain | None:
        """One replica on pools of our choice, written as if every rule of matching had let it pass."""
        parent = copy.deepcopy(deployment)
        parent["metadata"] |= {"name": name, "uid": build.uid(name)}
        engines = copy.deepcopy(parent["spec"]["template"]["spec"]["engines"])
        for engine, pool in zip(engines, pools, strict=True):
            for member in engine["members"]:
                selector = member.pop("nodeSelector", {})
                requests = [_claimed(request, self.pools[pool][2]) for request in selector.get("devices", ())]
                if not all(requests):
                    return None
                member |= {"nodePoolName": pool, "deviceRequests": [one for one in requests if one]}
                if "constraints" in selector:
                    member["deviceConstraints"] = selector["constraints"]
        made = build.replica(parent, self.name, 0, engines)
        made["metadata"] |= {"name": f"{name}-00000"}
        made["spec"]["engines"] = engines
        return made

    @classmethod
    def random(cls, seed: int, mode: str) -> World:
        """The world of a seed."""
        draw = random.Random(f"{mode} {seed}")
        name = f"{mode[0]}{seed:06d}"
        return cls(name, {f"{name}{at}": _pool(draw, mode) for at in "abc"[: draw.choice((1, 1, 2, 3))]})


def _claimed(request: Plain, entries: Sequence[Plain]) -> Plain | None:
    """A request as a claim has it: of the class of the entries whose driver it names."""
    way = (request.get("firstAvailable") or [request])[0]
    text = " ".join(selector["cel"] for selector in way["selectors"])
    classes = [one["deviceClassName"] for one in entries if cluster.claimable(one) and one["driver"] in text]
    if not classes:
        return None
    return {
        "name": request["name"],
        "deviceClassName": classes[0],
        "count": way.get("count", 1),
        "selectors": way["selectors"],
    }


def entry(name: str, count: int, **attributes: Any) -> Plain:
    """GPUs as their driver publishes them."""
    typed = {"type": {"string": "gpu"}, "architecture": {"string": "Hopper"}, **attributes}
    return {
        "name": name,
        "claim": "DRA",
        "driver": GPU,
        "deviceClassName": GPU,
        "count": count,
        "attributes": {key: value for key, value in typed.items() if value},
        "capacity": {"memory": {"value": "81559Mi"}},
    }


def card(count: int, **attributes: Any) -> Plain:
    """Network cards."""
    made = {"name": "nic", "claim": "DRA", "driver": NET, "deviceClassName": "rdma.dra.net", "count": count}
    return made | {"attributes": {"rdma": {"bool": True}, **attributes}, "capacity": {}}


KEY = "example.com/root"
"""An attribute that drivers share: what a claim asks of GPUs and cards together."""


def _numbered(draw: random.Random) -> Plain:
    """What devices are said to share, perhaps nothing."""
    numa = {} if draw.random() < 0.25 else {"numa": {"int": draw.choice((0, 1))}}
    return numa | ({} if draw.random() < 0.2 else {KEY: {"int": draw.choice((0, 1))}})


def _pool(draw: random.Random, mode: str) -> tuple[int, str, list[Plain]]:
    chosen = {"node": "Node", "device": "Device"}.get(mode) or draw.choice(("Node", "Device"))
    if mode == "exclusive":
        return draw.choice((1, 2, 3, 4)), chosen, [entry("gpu", 4, **_numbered(draw)), card(8)]
    entries = [entry("gpu", draw.choice((2, 4, 8, 8)), **_numbered(draw))]
    for name in ("more", "odd")[: draw.choice((0, 0, 1, 1, 2))]:
        other = draw.choice(("Hopper", "Hopper", "Ada Lovelace", None))
        named = {"architecture": {"string": other} if other else None}
        entries.append(entry(name, draw.choice((1, 2, 4, 8)), **named, **_numbered(draw)))
        entries[-1]["capacity"]["memory"] = {"value": draw.choice(("81559Mi", "23034Mi"))}
    if draw.random() < 0.2:
        part = {"type": {"string": "mig"}, "profile": {"string": "1g.10gb"}}
        entries.append(entry("mig", draw.choice((2, 7)), **part) | {"deviceClassName": "mig.nvidia.com"})
    for name in ("nic", "fast")[: draw.choice((0, 0, 1, 2))]:
        entries.append(card(draw.choice((1, 2, 4, 8)), **_numbered(draw)) | {"name": name})
        if draw.random() < 0.2:
            entries[-1]["claim"] = "Synthetic"
            del entries[-1]["deviceClassName"]
    draw.shuffle(entries)
    return draw.choice((1, 1, 2, 3, 4)), chosen, entries


_OF_GPU = f'device.attributes["{GPU}"]'
SELECTORS = (
    f'{_OF_GPU}.architecture == "Hopper"',
    f"{_OF_GPU}.numa == 0",
    f'"numa" in {_OF_GPU} && {_OF_GPU}.numa == 0',
    f"{_OF_GPU}.?numa.orValue(1) == 1",
    f'has({_OF_GPU}.profile) || {_OF_GPU}.architecture.startsWith("Hop")',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'device.capacity["{GPU}"].memory.isLessThan(quantity("40Gi"))',
    'device.attributes["example.com"].?root.orValue(0) == 0',
)


def _selectors(draw: random.Random, driver: str) -> list[str]:
    more = draw.sample(SELECTORS, draw.choice((0, 0, 0, 1, 1, 2))) if driver == GPU else []
    return [f'device.driver == "{driver}"', *more]


def _request(draw: random.Random, name: str, driver: str, counts: Sequence[int]) -> Plain:
    ways = [build.request(way, draw.choice(counts), *_selectors(draw, driver)) for way in ("best", "second")]
    return {"name": name, "firstAvailable": ways} if draw.random() < 0.12 else ways[0] | {"name": name}


def _member(draw: random.Random, role: str, mode: str, counts: Sequence[int]) -> Plain:
    exclusive = mode == "exclusive"
    requests = [_request(draw, "gpu", GPU, (3, 4) if exclusive else counts)]
    if draw.random() < 0.3:
        requests.append(_request(draw, "nic", NET, (1, 8) if exclusive else (1, 1, 2, 3)))
    elif draw.random() < 0.2 and not exclusive:
        requests.append(_request(draw, "draft", GPU, (1, 2)))
    made = build.member(role, requests, nodes=draw.choice((1, 1, 2, 3)) if role == "Worker" else None)
    if draw.random() < (0.5 if len(requests) > 1 else 0.15):
        shared = draw.choice((KEY, KEY, f"{GPU}/numa", f"{GPU}/architecture"))
        made["nodeSelector"]["constraints"] = [{"matchAttribute": shared}]
        if shared != KEY or draw.random() < 0.3:
            made["nodeSelector"]["constraints"][0]["requests"] = ["gpu"]
    return made


def deployment(draw: random.Random, name: str, at: int, mode: str) -> Plain:
    """A random deployment."""
    counts = draw.choice(((1, 1, 2, 2, 3, 4, 8), (1,), (1, 2), (2, 4), (3, 5), (4, 8)))
    made = build.deployment(name, draw.choice((1, 2, 3)), _engines(draw, mode, counts))
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:{at:02d}:00Z"
    inner = made["spec"]["template"]["spec"]
    if draw.random() < 0.1:
        inner["alternatives"] = [{"name": "smaller", "engines": _engines(draw, mode, (1, 2))}]
    if draw.random() < 0.2:
        made["spec"]["placement"] = {"strategy": "BinPack"}
    if mode == "lost" and draw.random() < 0.4:
        for request in (one for engine in inner["engines"] for one in _requests(engine)):
            request["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    return made


def _requests(engine: Plain) -> Iterator[Plain]:
    """Every way of every request of an engine."""
    for member in engine["members"]:
        for request in member.get("nodeSelector", {}).get("devices", ()):
            yield from request.get("firstAvailable") or [request]


def _engines(draw: random.Random, mode: str, counts: Sequence[int]) -> list[Plain]:
    engines = []
    for number in range(draw.choice((1, 1, 1, 2))):
        roles = ("Leader", "Worker") if draw.random() < 0.3 else ("Standalone",)
        members = [_member(draw, role, mode, counts) for role in roles]
        if len(members) > 1 and draw.random() < 0.15:
            del members[0]["nodeSelector"]
        engines.append(build.engine(f"e{number}", members, copies=draw.choice((1, 1, 2, 3))))
    return engines


def edited(draw: random.Random, deployment: Plain, mode: str) -> tuple[str, Plain]:
    """Another image, another number of replicas, or other requests; and which it is."""
    made = copy.deepcopy(deployment)
    what = draw.choice(("image", "replicas", "requests"))
    if what == "replicas":
        made["spec"]["replicas"] = draw.choice((1, 2, 4))
        return what, made
    for engine in made["spec"]["template"]["spec"]["engines"]:
        for member in engine["members"]:
            if what == "image":
                member["template"]["spec"]["containers"][0]["image"] = f"engine:v{draw.randrange(10**6)}"
            elif "nodeSelector" in member:
                again = _member(draw, member["role"], mode, (1, 2, 4))
                member["nodeSelector"] = again["nodeSelector"]
    return what, made


def mappings(deployment: Plain, pools: Sequence[str], most: int = 4) -> Iterator[tuple[str, ...]]:
    """Ways to put the engines of a deployment on pools."""
    engines = deployment["spec"]["template"]["spec"]["engines"]
    return islice(product(pools, repeat=len(engines)), most)
