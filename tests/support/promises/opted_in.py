"""The promises, on worlds whose deployments, clusters and inputs use opt-in fields.

The oracle of `tests/oracle` knows few of them, so here the promises are read without it: `law` for what may
leave, `function.verify`, which shares no code with the scheduler, for capacity, gates, pools and names.
P10, P11 and P15 are about what these fields change on purpose; `tests/placement` and `tests/accounting` hold
the rules one by one.
"""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from function.api import InferenceCluster, Malformed, ModelCache, ModelDeployment, SchedulerConfig
from function.api.inputs import Quota
from function.api.replica import parse
from function.boundary import PlainDocument
from function.cli.commands.verify import with_defaults
from function.scheduler.outcomes import Cause
from function.verify import Decided, State, check
from tests.oracle import facts as read_facts
from tests.support import build, generate, law
from tests.support.apply import apply
from tests.support.drive import Answer, run
from tests.support.promises.identity import pools
from tests.support.promises.ledger import stamped
from tests.support.promises.settled import doubles, outlives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelReplica
    from tests.support.world import World

Plain = dict[str, Any]

OPTED = generate.Taste(opted=True)
DOUBTFUL = generate.Taste(doubt=0.5, oddity=0.25, own_replicas=1.0, opted=True)
CROWDED = generate.Taste(doubt=0.0, own_replicas=1.0, edits=0.0, opted=True)
BUSY = generate.Taste(doubt=0.0, oddity=0.1, own_replicas=1.0, opted=True)


def replica(plain: Plain) -> ModelReplica:
    return parse(PlainDocument(plain))


def state(world: World) -> State:
    """Return what exists, as the checker sees it; an observed replica as it is observed."""
    listed = {_place(running_replica): running_replica for running_replica in world.replicas or ()}
    listed |= {
        _place(manifest): manifest
        for manifest in world.observed.values()
        if manifest["kind"] == "ModelReplica"
    }
    delivered = {name: items for name, items in world.required.items() if "cache" in name}
    caches = [ModelCache.parse(item) for items in delivered.values() for item in items]
    return State(
        {cluster["metadata"]["name"]: InferenceCluster.parse(cluster) for cluster in world.clusters or ()},
        tuple(replica(item) for item in listed.values()),
        {(cache.metadata.namespace, cache.metadata.name): cache for cache in caches},
        yields=_yields(world),
        quotas=tuple(Quota.parse(quota) for quota in (world.input or {}).get("quotas", ())),
    )


def _place(manifest: Plain) -> tuple[str, str]:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def unexplained(world: World, answer: Answer) -> Iterator[str]:
    yield from law.unexplained(world, answer)


def blind(world: World, _: Answer) -> Iterator[str]:
    """Nothing leaves while the fleet, the list or what coordination needs is not delivered."""
    for cluster in (
        world.but(clusters=None),
        world.but(replicas=None),
        world.but(clusters=()),
        world.but(more={}),
    ):
        yield from law.unexplained(cluster, run(cluster))


def uncertified(world: World, answer: Answer) -> Iterator[str]:
    """Yield what the independent checker has to say.

    Of the function's input it knows what `verify` does, so it cannot say who was left out. It adds up what
    pods ask for, also those that ask for more than a node has and so hold nothing.
    """
    if world.clusters is None or world.replicas is None:
        return
    own_replicas = [
        document.plain for document in read_facts.read(world).own_replicas if not document.terminating
    ]
    settings = SchedulerConfig()
    with suppress(Malformed):  # Of an input that cannot be read, the defaults hold.
        settings = SchedulerConfig.parse(world.input or {})
    parent = with_defaults(ModelDeployment.parse(world.deployment), settings)
    seen = state(world)
    decided = Decided(
        parent, tuple(map(replica, own_replicas)), tuple(map(replica, answer.replicas.values()))
    )
    for item in check(seen, [decided]):
        by_input = item.rule in ("LeftOut", "Spread") and world.input is not None
        impossible = item.rule == "Overcommit" and _too_large(seen, *item.where.split("/"))
        if not (by_input or impossible):
            yield str(item)


def _too_large(seen: State, cluster: str, pool: str) -> bool:
    """Say whether some pod on a pool accounted by devices asks for more of a class than a node has."""
    published = seen.clusters[cluster].by_name[pool]
    has: Counter[str] = Counter()
    for device in published.devices or ():
        has[device.device_class_name] += device.count
    pods = [
        sum((Counter({one.device_class: one.count}) for one in member.requests), Counter())
        for placement in seen.replicas
        for engine in placement.engines
        for member in engine.members
        if (placement.cluster, member.pool) == (cluster, pool)
    ]
    return published.accounting == "Device" and any(asked - has for asked in pods)


def unsettled(world: World, answer: Answer) -> Iterator[str]:
    """As P4 is held elsewhere, with its exceptions. Every pass may make one more replica yield, and the note
    that a replica was Ready is written once it is observed. Where earlier deployments wait for places, what
    they would take next depends on what ours took, so a later pass may find room for one more.
    """
    if world.replicas is None or doubles(world) or outlives(answer) or _yields(world):
        return
    own_replicas = {
        str(document.key): stamped(document.plain) for document in read_facts.read(world).own_replicas
    }
    if any(
        own_replicas[key] - stamped(running_replica)
        for key, running_replica in answer.replicas.items()
        if key in own_replicas
    ):
        return
    before, after = _unnoted(answer), _unnoted(run(apply(world, answer)))
    may_grow = bool(answer.decision.inputs.peers.earlier)
    for key in sorted(before if may_grow else before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield f"{key}: {before.get(key)} became {after.get(key)}"


def _yields(world: World) -> bool:
    return bool(law.at(world.input, "overcommit") == "Yield")


def _unnoted(answer: Answer) -> dict[str, Plain]:
    made: dict[str, Plain] = copy.deepcopy(dict(answer.desired))
    for manifest in made.values():
        manifest["metadata"].pop("annotations", None)
    return made


def ready_yields(world: World, answer: Answer) -> Iterator[str]:
    """Only one that lives and never was Ready yields, and only where that is asked for."""
    for drop in getattr(answer.decision, "dropped", ()):
        if drop.cause is not Cause.Yielded:
            continue
        seen = drop.own_replica.replica
        if seen.ready is True or seen.was_ready or not _yields(world):
            yield f"{drop.own_replica.key} yields"


def split(world: World, answer: Answer) -> Iterator[str]:
    """P8. Several pools only under `SameFabric`; that their fabric is the same, the checker looks at."""
    own_keys = {item.key for item in read_facts.read(world).own_replicas}
    inner = world.deployment["spec"]["template"]["spec"]
    shapes = {
        alternative["name"]: alternative["engines"] for alternative in inner.get("alternatives", [])
    } | {"": inner["engines"]}
    for key, manifest in answer.replicas.items():
        if key in own_keys:
            continue
        shape = shapes[manifest["metadata"]["labels"].get("modelplane.ai/alternative", "")]
        policy = {one["name"]: one.get("poolPolicy", "SinglePool") for one in shape}
        for engine in manifest["spec"]["engines"]:
            together = len({one["nodePoolName"] for one in engine["members"]}) == 1
            if not together and policy[engine["name"]] != "SameFabric":
                yield f"{key}: engine {engine['name']} is split"
            if not any(one.get("deviceRequests") for one in engine["members"]):
                yield f"{key}: engine {engine['name']} claims nothing"


def disturbed(world: World, answer: Answer) -> Iterator[str]:
    """P12: a cluster that takes nothing and hosts nothing. It is in no domain: its taint keeps it out."""
    if not world.clusters:
        return
    shut = build.cluster("z", [build.pool("p0", 9)], ready=False, taints=[build.taint("odd")])
    if law.at(world.deployment, "spec", "template", "spec", "tolerations"):
        return
    if run(world.but(clusters=[*world.clusters, shut])).desired != answer.desired:
        yield "a cluster that takes nothing changes what is desired"


def ours(world: World, answer: Answer) -> Iterator[str]:
    """P13: a deployment of our name in another namespace has replicas everywhere."""
    if world.replicas is None:
        return
    twin = copy.deepcopy(world.deployment)
    twin["metadata"] |= {"namespace": "zz-other", "uid": build.uid("twin")}
    shape = [build.engine(members=[build.member()])]
    theirs = [
        build.replica(
            twin, cluster["metadata"]["name"], index, shape, pools="nowhere", name=f"t-{number}-{index}"
        )
        for number, cluster in enumerate(world.clusters or ())
        for index in range(3)
    ]
    if run(world.but(replicas=[*world.replicas, *theirs])).desired != answer.desired:
        yield "replicas of a deployment of the same name in another namespace change what is desired"


def survivors(world: World, answer: Answer) -> dict[str, Plain]:
    """Return what of the own replicas stays, or makes room only for its replacement."""
    replaced = {
        placement.replaces.key for placement in answer.decision.placed if placement.replaces is not None
    }
    own_replicas = {str(document.key): document.plain for document in read_facts.read(world).own_replicas}
    return {
        key: answer.desired.get(key, value)
        for key, value in own_replicas.items()
        if key in answer.desired or key in replaced
    }


def down(world: World, _: Answer) -> Iterator[str]:
    """P14: exactly the excess leaves, one after the other, and no survivor moves.

    A limit on disruptions is about how many are wanted, so with one the drained may leave in other numbers.
    """
    policy = law.at(world.deployment, "spec", "placement") or {}
    if "disruption" in policy or _yields(world) or law.at(world.input, "coordination"):
        return
    more = survivors(world, run(scaled(world, 100)))
    for to in range(len(more) - 1, -1, -1):
        answer_down = run(scaled(world, to))
        stay = survivors(world, answer_down)
        if not stay.keys() <= more.keys() or len(answer_down.replicas) != to:
            yield f"scaled to {to}: {sorted(answer_down.replicas)} stay of {sorted(more)}"
        moved_ones = [key for key, value in stay.items() if pools(value) != pools(more[key])]
        yield from (f"{key} moved when scaled to {to}" for key in moved_ones)
        more = stay


def scaled(world: World, to: int) -> World:
    made = world.copy()
    made.deployment["spec"]["replicas"] = to
    made.deployment["spec"].pop("minReplicas", None)
    return made


def up(world: World, _: Answer) -> Iterator[str]:
    """P14: when more are wanted, everything stays where it is (minReplicas aside: it holds replacements)."""
    wanted = world.deployment["spec"]["replicas"]
    answer, more = run(scaled(world, wanted)), run(scaled(world, wanted + 2))
    for key, running_replica in answer.replicas.items():
        if key in world.observed and (
            key not in more.desired or pools(more.desired[key]) != pools(running_replica)
        ):
            yield f"{key} does not stay when more are wanted"
