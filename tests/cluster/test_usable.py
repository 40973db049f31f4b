"""status.gpuPools[].usable: the nodes that new replicas can count on, from what is observed of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from function.api.taints import MAX_READ_TAINTS, Taint, Toleration, read_taints
from function.boundary import PlainDocument, Request, Response
from function.cluster import drift, handler
from function.cluster.drift import LiveRules
from function.cluster.names import CLAIMS, NODES, PROVIDER_CONFIG, REQUIRED, SLICES, TAINT_RULES
from function.cluster.usable import MAX_OWNERS, PREFIX, SERVICE_PREFIX, read_slice
from function.replica import names
from function.wire import WireDocument, write
from tests.cluster.build import Case, cluster, inference_class, replica
from tests.support.slices import H200, devices, resource_claim, resource_slice

Plain = dict[str, Any]
INPUT: Plain = {"kind": "ClusterConfig", "publish": "Attributes", "capacity": "Usable"}
POOL: Plain = {"name": "gpu", "className": "h200", "nodeCount": 4}
GROWING: Plain = {**POOL, "nodeCount": 2, "maxNodeCount": 8}
SYNCED: Plain = {"type": "Synced", "status": "True"}
READY: Plain = {"type": "Ready", "status": "True"}
GONE: Plain = {
    "type": "Synced",
    "status": "False",
    "message": "external resource does not exist",
}
CUT_OFF: Plain = {"type": "Synced", "status": "False", "message": "connect failed: no route to host"}


def node(name: str, *, pool: str = "gpu", ready: str = "True", deleted: bool = False, **spec: Any) -> Plain:
    metadata: Plain = {"name": name, "labels": {"modelplane.ai/pool": pool}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def seen(manifest: Plain | None, condition: Plain = SYNCED) -> Plain:
    """Return an Object of a collection, with what it saw."""
    at_provider = {} if manifest is None else {"atProvider": {"manifest": manifest}}
    return {"metadata": {"name": "o"}, "status": {"conditions": [condition], **at_provider}}


def whole(*names: str) -> list[Plain]:
    return [seen(resource_slice(name, devices(H200, 8))) for name in names]


@dataclass
class Look:
    """What was seen of one cluster. None: the collection, or what it holds, is missing."""

    nodes: list[Plain] | None = field(default_factory=lambda: [seen(node(name)) for name in "abcd"])
    slices: list[Plain] | None = field(default_factory=lambda: whole(*"abcd"))
    collections: Plain = field(default_factory=lambda: {NODES: [SYNCED, READY], SLICES: [SYNCED, READY]})
    pool: Plain = field(default_factory=lambda: POOL)
    replicas: list[Plain] | None = field(default_factory=list)
    last: Plain | None = None
    claims: list[Plain] | None = None
    rules: list[Plain] | None = None
    release: str = ""

    def request(self) -> Request:
        made = cluster(self.pool, gateway={"address": "203.0.113.7"})
        if self.release:
            made["spec"]["celVersion"] = self.release
        if self.last is not None:
            made["status"] = {"gpuPools": [{"name": "gpu", "nodes": 4, "usable": self.last}]}
        case = Case(made, {"h200": inference_class()}, replicas=self.replicas, input=INPUT)
        for key, conditions in self.collections.items():
            case.observed[key] = {
                "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
                "kind": "ObservedObjectCollection",
                "metadata": {"name": key, "namespace": "modelplane-system"},
                "spec": {"providerConfigRef": {"kind": "ClusterProviderConfig", "name": "p"}},
                "status": {"conditions": conditions},
            }
        request = case.request()
        content = {"nodes": self.nodes, "slices": self.slices, "claims": self.claims}
        content |= {"taint-rules": self.rules}
        delivered = {
            name: tuple(map(PlainDocument, items)) for name, items in content.items() if items is not None
        }
        required = {**request.required, **delivered}
        input_ = INPUT | ({} if self.claims is None else {"tenants": "Charge"})
        return Request(request.composite, request.observed, required, input_, frozenset(), {})

    def answer(self) -> Response:
        return handler.run(self.request())


def usable(response: Response) -> Any:
    return response.status["gpuPools"][0].get("usable")


def condition(response: Response) -> tuple[str, str]:
    row = next(row for row in response.conditions if row.type == "CapacityUsable")
    return row.reason, row.message


TAINT = {"key": "maintenance", "value": "yes", "effect": "NoSchedule"}
TAINTED = [
    seen(
        resource_slice(
            "a",
            devices(H200, 7)
            + devices(H200, 1, taints=[{"key": "xid", "value": "79", "effect": "NoSchedule"}]),
        )
    )
]
COUNTS: list[tuple[Look, int, str, str]] = [
    (Look(), 4, "", "all is well"),
    (Look(nodes=[seen(node(name)) for name in "abc"]), 3, "1 node missing", "a node is gone"),
    (
        Look(nodes=[seen(node("a", ready="False")), *(seen(node(name)) for name in "bcd")]),
        3,
        "a is not Ready",
        "a node died",
    ),
    (
        Look(nodes=[seen(node("a", ready="Unknown")), *(seen(node(name)) for name in "bcd")]),
        3,
        "a is not Ready",
        "the cluster has not heard of it: that is what a dead node looks like",
    ),
    (
        Look(nodes=[seen(node("a", unschedulable=True)), *(seen(node(name)) for name in "bcd")]),
        3,
        "a is cordoned",
        "cordoned",
    ),
    (
        Look(nodes=[seen(node("a", taints=[TAINT])), *(seen(node(name)) for name in "bcd")]),
        3,
        "a has the taint maintenance=yes:NoSchedule",
        "a taint that no pod tolerates",
    ),
    (
        Look(
            nodes=[seen(node("a", taints=[TAINT])), *(seen(node(name)) for name in "bcd")],
            pool={**POOL, "tolerations": [{"key": "maintenance", "operator": "Exists"}]},
        ),
        4,
        "",
        "the pool's pods tolerate it",
    ),
    (
        Look(
            nodes=[
                seen(node("a", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])),
                *(seen(node(name)) for name in "bcd"),
            ]
        ),
        4,
        "",
        "the mark that keeps others off GPUs, which all our pods tolerate",
    ),
    (
        Look(
            nodes=[
                seen(node("a", taints=[{**TAINT, "effect": "PreferNoSchedule"}])),
                *(seen(node(name)) for name in "bcd"),
            ]
        ),
        4,
        "",
        "a taint that only prefers",
    ),
    (
        Look(nodes=[seen(node("a", deleted=True)), *(seen(node(name)) for name in "bcd")]),
        3,
        "a is being deleted",
        "on its way out",
    ),
    (
        Look(nodes=[seen(node("a"), GONE), *(seen(node(name)) for name in "bcd")]),
        3,
        "1 node missing",
        "gone since the collection was listed",
    ),
    (
        Look(slices=[*TAINTED, *whole(*"bcd")]),
        3,
        "a has 7 of 8 gpu.nvidia.com, others have the taint xid=79:NoSchedule",
        "a device with a fault",
    ),
    (
        Look(slices=[seen(resource_slice("a", devices(H200, 7))), *whole(*"bcd")]),
        3,
        "a has 7 of 8 gpu.nvidia.com",
        "a driver that publishes one device too few",
    ),
    (Look(slices=whole(*"bcd")), 3, "a has no ResourceSlice of gpu.nvidia.com", "no driver on a node"),
    (
        Look(nodes=[seen(node(name, pool="other")) for name in "abcd"]),
        0,
        "4 nodes missing",
        "no node carries the label, so no pod of ours could be put there",
    ),
    (
        Look(
            nodes=[seen(node("a", ready="False")), *(seen(node(name)) for name in "bcd"), seen(node("e"))],
            slices=whole(*"abcde"),
        ),
        4,
        "",
        "one more than declared makes up for the one that died",
    ),
    (Look(nodes=[seen(node(name)) for name in "ab"], pool=GROWING), 8, "", "nodes are added when needed"),
    (
        Look(nodes=[seen(node("a", ready="False")), seen(node("b"))], pool=GROWING),
        7,
        "a is not Ready",
        "of a pool that grows, only what is there and of no use is lost",
    ),
    (
        Look(nodes=[seen(node(name)) for name in "ab"], pool={**GROWING, "minNodeCount": 8}),
        2,
        "6 nodes missing",
        "its least is its most, so it does not grow",
    ),
]


@pytest.mark.parametrize(("look", "nodes", "said", "reason"), COUNTS, ids=[row[3] for row in COUNTS])
def test_what_is_observed_takes_nodes_away(look: Look, nodes: int, said: str, reason: str) -> None:
    response = look.answer()
    assert usable(response)["nodes"] == nodes, reason
    assert response.status["gpuPools"][0]["nodes"] == look.pool.get("maxNodeCount", 4), "what is declared"
    total = look.pool.get("maxNodeCount", 4)
    expected = (
        ("NodesUnusable", f"gpu: {nodes} of {total} nodes can be used: {said}") if said else ("Usable", "")
    )
    assert condition(response) == expected, reason


NOTHING: list[tuple[Look, str, str]] = [
    (Look(collections={}), "The nodes of the cluster are not observed yet", "nothing was composed yet"),
    (Look(nodes=None), "No nodes of the cluster were delivered", "undelivered"),
    (Look(nodes=[]), "No nodes of the cluster were delivered", "an emptied list is doubt"),
    (Look(slices=[]), "No ResourceSlices of the cluster were delivered", "an emptied list is doubt"),
    (Look(nodes=[seen(None)] * 4), "No node of the cluster could be read", "nothing was read yet"),
    (
        Look(nodes=[seen(node(name), GONE) for name in "abcd"]),
        "No node of the cluster could be read",
        "all gone",
    ),
    (
        Look(collections={NODES: [CUT_OFF, READY], SLICES: [SYNCED, READY]}),
        "The nodes of the cluster cannot be listed: connect failed: no route to host",
        "an old list",
    ),
    (
        Look(collections={NODES: [SYNCED], SLICES: [SYNCED, READY]}),
        "The nodes of the cluster are not all observed yet",
        "the collection is being filled",
    ),
]


@pytest.mark.parametrize(("look", "said", "reason"), NOTHING, ids=[row[2] for row in NOTHING])
def test_without_an_observation_the_declared_number_counts_and_it_is_said(
    look: Look, said: str, reason: str
) -> None:
    look.last = {"nodes": 1}
    response = look.answer()
    assert usable(response) is None, reason
    assert condition(response) == ("NotObserved", f"{said}; every declared node counts")


PARTS: list[tuple[Look, int, str]] = [
    (Look(nodes=[seen(node("a", ready="False"), CUT_OFF), *(seen(node(name)) for name in "bcd")]), 4, "old"),
    (Look(nodes=[seen(None), *(seen(node(name)) for name in "bcd")]), 4, "never read: it may be of any pool"),
    (Look(nodes=[seen("x"), *(seen(node(name)) for name in "bcd")]), 4, "absurd"),
    (Look(nodes=[seen(node("a", ready="Perhaps")), *(seen(node(name)) for name in "bcd")]), 4, "absurd"),
    (Look(slices=[seen(None), *whole(*"bcd")]), 4, "a slice that was never read may be that node's"),
    (Look(slices=[seen(resource_slice("a", [], of=2)), *whole(*"bcd")]), 4, "half of a node's slices"),
    (Look(slices=[seen(resource_slice("a", devices(H200, 1)), CUT_OFF), *whole(*"bcd")]), 4, "an old slice"),
    (
        Look(slices=[seen({"spec": {"driver": "gpu.nvidia.com", "allNodes": True, "devices": []}})]),
        4,
        "a driver whose devices are not a node's",
    ),
]


@pytest.mark.parametrize(("look", "nodes", "reason"), PARTS, ids=[row[2] for row in PARTS])
def test_a_node_in_doubt_counts(look: Look, nodes: int, reason: str) -> None:
    assert usable(look.answer()) == {"nodes": nodes}, reason


BURN: Plain = {"key": "burn-in", "effect": "NoSchedule"}
XID: Plain = {"key": "xid", "value": "79", "effect": "NoExecute"}


def with_taints(*names: str, taints: list[Plain]) -> list[Plain]:
    return [seen(resource_slice(name, devices(H200, 8, taints=taints))) for name in names]


def rule(**selector: str) -> Plain:
    spec = {"deviceSelector": {"driver": "gpu.nvidia.com", **selector}, "taint": BURN}
    return seen({"metadata": {"name": "burn"}, "spec": spec})


EVERYWHERE: list[tuple[Look, Plain, list[Plain], str, str]] = [
    (
        Look(slices=with_taints(*"abcd", taints=[BURN])),
        {"nodes": 4},
        [BURN],
        "gpu: all gpu have the taint burn-in:NoSchedule",
        "all of them: requests that tolerate it may come",
    ),
    (
        Look(slices=[*with_taints(*"abc", taints=[BURN, XID]), *with_taints("d", taints=[BURN])]),
        {"nodes": 1},
        [BURN],
        (
            "gpu: 1 of 4 nodes can be used: a has 0 of 8 gpu.nvidia.com, others have the taint"
            " xid=79:NoExecute, b has 0 of 8 gpu.nvidia.com, others have the taint xid=79:NoExecute, c has 0"
            " of 8 gpu.nvidia.com, others have the taint xid=79:NoExecute. gpu: all gpu have the taint"
            " burn-in:NoSchedule"
        ),
        "what is not on all of them takes nodes away",
    ),
    (
        Look(
            slices=[
                seen(
                    resource_slice(at, devices(H200, 7, taints=[BURN]) + devices(H200, 1, taints=[BURN, XID]))
                )
                for at in "abcd"
            ]
        ),
        {"nodes": 0},
        [BURN],
        (
            "gpu: 0 of 4 nodes can be used: a has 7 of 8 gpu.nvidia.com, others have the taint"
            " xid=79:NoExecute, b has 7 of 8 gpu.nvidia.com, others have the taint xid=79:NoExecute, c has 7"
            " of 8 gpu.nvidia.com, others have the taint xid=79:NoExecute and 1 more. gpu: all gpu have the"
            " taint burn-in:NoSchedule"
        ),
        "a device of a slice has taints of its own",
    ),
    (
        Look(slices=with_taints(*"ab", taints=[BURN]), nodes=[seen(node(at)) for at in "ab"], pool=GROWING),
        {"nodes": 6, "toCome": 6},
        [],
        (
            "gpu: 6 of 8 nodes can be used: a has 0 of 8 gpu.nvidia.com, others have the taint"
            " burn-in:NoSchedule, b has 0 of 8 gpu.nvidia.com, others have the taint burn-in:NoSchedule"
        ),
        "nodes that are added may come without it",
    ),
    (
        Look(slices=with_taints(*"abcd", taints=[{"key": "aging", "effect": "None"}])),
        {"nodes": 4},
        [],
        "",
        "an effect that only informs",
    ),
    (
        Look(rules=[rule()], release="1.37"),
        {"nodes": 4},
        [BURN],
        "gpu: all gpu have the taint burn-in:NoSchedule",
        "a rule about the driver",
    ),
    (Look(rules=[rule()]), {"nodes": 4}, [], "", "a release that does not serve rules"),
    (
        Look(rules=[rule(pool="a", device="device-3")], release="1.37"),
        {"nodes": 3},
        [],
        (
            "gpu: 3 of 4 nodes can be used: a has 7 of 8 gpu.nvidia.com, others have the taint"
            " burn-in:NoSchedule"
        ),
        "a rule about one device",
    ),
]


@pytest.mark.parametrize(
    ("look", "expected", "taints", "said", "reason"), EVERYWHERE, ids=[row[4] for row in EVERYWHERE]
)
def test_a_taint_of_all_devices_is_published_with_them(
    look: Look, expected: Plain, taints: list[Plain], said: str, reason: str
) -> None:
    look.collections = {key: [SYNCED, READY] for key in REQUIRED}
    response = look.answer()
    assert usable(response) == expected, reason
    assert response.status["gpuPools"][0]["devices"][0].get("taints", []) == taints, reason
    assert condition(response)[1] == said, reason


def claim(pod: str, pool: str, number: int = 1, **result: Any) -> Plain:
    return seen(resource_claim(pod, pool, number, **result))


OURS = replica()["metadata"]["name"]
TENANTS: list[tuple[list[Plain], int, str, str]] = [
    ([], 4, "", "nobody claims anything"),
    ([claim("notebook", "a", 2)], 3, "a has 2 devices that others claim", "a tenant's"),
    (
        [claim("notebook", "a"), claim("other", "a", shareID="b2f1")],
        3,
        "a has 1 device that others claim",
        "shares of a device are one",
    ),
    ([claim(f"{OURS}-main-7d9-x", "a", 8), claim(f"{OURS}-main-0", "b", 8)], 4, "", "our replica's"),
    ([claim("notebook", "a", adminAccess=True)], 4, "", "administrative access takes nothing"),
    ([claim("notebook", "elsewhere")], 4, "", "no node of the pool"),
    ([claim("notebook", "a", driver="other")], 4, "", "another driver"),
    (
        [seen({"metadata": {"name": "mine"}, "status": {"allocation": {"devices": {"results": 7}}}})],
        4,
        "",
        "absurd",
    ),
    ([seen(None)], 4, "", "never read"),
]


@pytest.mark.parametrize(("claims", "nodes", "said", "reason"), TENANTS, ids=[row[3] for row in TENANTS])
def test_nodes_on_which_others_claim_devices_do_not_count(
    claims: list[Plain], nodes: int, said: str, reason: str
) -> None:
    look = Look(claims=claims, replicas=[replica()])
    look.collections[CLAIMS] = [SYNCED, READY]
    assert usable(look.answer()) == {"nodes": nodes}, reason
    assert condition(look.answer())[1] == (f"gpu: {nodes} of 4 nodes can be used: {said}" if said else ""), (
        reason
    )


def test_names_of_our_pods_begin_with_their_replicas() -> None:
    """However long a replica's name is, and whatever makes its pods."""
    draw = random.Random(4)
    for _ in range(500):
        length = draw.randint(1, 63)
        name = "".join(draw.choice("abc123-.") for _ in range(length)).strip("-.") or "a"
        engine = "".join(draw.choice("ab1-") for _ in range(draw.randint(1, 30))).strip("-") or "e"
        made = [(names.deployment_name(name, engine), PREFIX), (names.gang_name(name, engine), PREFIX)]
        for pod, prefix in [*made, (names.service_name(name), SERVICE_PREFIX)]:
            begin = name[:prefix].replace(".", "-").rstrip("-")
            assert pod.removeprefix("m-").replace(".", "-").startswith(begin), (name, engine, pod)


def test_others_are_charged_only_while_they_can_be_told_from_ours() -> None:
    look = Look(claims=[claim("notebook", "a")], replicas=None)
    look.collections[CLAIMS] = [SYNCED, READY]
    assert usable(look.answer()) == {"nodes": 4}, "replicas are not delivered"
    look = Look(claims=[claim("notebook", "a")])
    look.collections[CLAIMS] = [CUT_OFF, READY]
    assert usable(look.answer()) == {"nodes": 4}, "the list is old"
    assert condition(look.answer()) == (
        "NotObserved",
        (
            "The ResourceClaims of the cluster cannot be listed: connect failed: no route to host;"
            " nothing is taken away for them"
        ),
    )


def test_claims_and_rules_are_collected_only_where_somebody_asks() -> None:
    def composed(look: Look) -> set[str]:
        return {CLAIMS, TAINT_RULES} & set(look.answer().desired)

    assert composed(Look()) == set()
    assert composed(Look(claims=[])) == {CLAIMS}
    assert composed(Look(release="1.37")) == {TAINT_RULES}
    assert composed(Look(release="1.36")) == set()


def test_what_is_held_beyond_what_can_be_used_is_said_and_stays() -> None:
    three = [seen(node(name)) for name in "abc"]
    full = [replica(f"chat-{at}") for at in range(4)]
    response = Look(nodes=three, replicas=full).answer()
    assert usable(response) == {"nodes": 3, "exceeded": True}
    assert "overcommitted" not in response.status["gpuPools"][0], "that goes by what is declared"
    assert usable(Look(nodes=three, replicas=full[:3]).answer()) == {"nodes": 3}
    unknown = Look(nodes=three, replicas=None, last={"nodes": 3, "exceeded": True})
    assert usable(unknown.answer()) == {"nodes": 3, "exceeded": True}, (
        "the last word while replicas are unknown"
    )


COMING: list[tuple[int, int, Plain, str]] = [
    (2, 0, {"toCome": 6}, "a pool that grows says how many of its nodes are not there yet"),
    (2, 2, {"toCome": 6}, "what is held is there"),
    (2, 3, {"toCome": 6, "awaiting": True}, "one replica waits for a node: no shortage"),
    (8, 8, {}, "it is as large as it gets"),
]


@pytest.mark.parametrize(("there", "held", "more", "reason"), COMING, ids=[row[3] for row in COMING])
def test_nodes_that_are_not_there_yet_are_told_from_those_that_are(
    there: int, held: int, more: Plain, reason: str
) -> None:
    names = "abcdefgh"[:there]
    replicas = [replica(f"chat-{at}") for at in range(held)]
    look = Look([seen(node(name)) for name in names], whole(*names), pool=GROWING, replicas=replicas)
    assert usable(look.answer()) == {"nodes": 8, **more}, reason


def test_nothing_is_looked_at_or_published_unless_asked_for() -> None:
    request = Look(nodes=[seen(node("a"))]).request()
    response = handler.run(Request(request.composite, {}, request.required, {}, frozenset(), {}))
    assert not {NODES, SLICES} & set(response.desired)
    assert usable(response) is None
    assert "CapacityUsable" not in {row.type for row in response.conditions}


def test_nodes_of_which_nothing_was_read_are_nodes_in_doubt() -> None:
    """An observed manifest that is empty says nothing of its node."""
    response = handler.run(Look(nodes=[seen({}) for _ in "abcd"]).request())
    assert condition(response)[0] == "NotObserved"


def test_what_nodes_lack_is_told_the_same_in_any_order() -> None:
    """A node whose driver publishes no device is not like one without the driver."""
    other = seen(
        resource_slice("b", []) | {"spec": {**resource_slice("b", [])["spec"], "driver": "nic.example.com"}}
    )
    slices = [*whole("c", "d"), seen(resource_slice("a", [])), other]
    texts = {
        condition(handler.run(Look(nodes=[seen(node(name)) for name in order], slices=slices).request()))
        for order in ("abcd", "badc")
    }
    assert len(texts) == 1


def test_no_observation_takes_anything_away_in_whatever_order() -> None:
    """Law C, Law 2: whatever is seen, late or wrong, all is desired and nothing above the declared."""
    draw = random.Random(5)
    odd: list[Any] = [
        seen(None),
        seen(node("x"), GONE),
        seen(node("y"), CUT_OFF),
        {},
        {"status": "x"},
        {"status": {"atProvider": 7}},
        seen(node("z", taints="x", unschedulable="true")),
        seen({"metadata": {"name": 7}}),
        seen(node("w", taints=[{}, 7])),
    ]
    desired = set(Look().answer().desired)
    for _ in range(400):
        nodes = [
            *(seen(node(name)) for name in draw.sample("abcd", draw.randint(0, 4))),
            *draw.sample(odd, 3),
        ]
        slices = [*whole(*draw.sample("abcd", draw.randint(0, 4))), *draw.sample(odd, 2)]
        pool = draw.choice([POOL, GROWING, {**POOL, "tolerations": "x"}, {**POOL, "minNodeCount": "x"}])
        conditions = {key: draw.choice([[SYNCED, READY], [CUT_OFF], [], "x"]) for key in REQUIRED}
        if draw.random() < 0.7:
            conditions = {key: [SYNCED, READY] for key in REQUIRED}
        look = Look(nodes, slices, conditions, pool, draw.choice([None, [replica()] * 3]))
        look.claims = draw.choice([None, [claim("tenant", "a"), *draw.sample(odd, 2)]])
        look.rules, look.release = [rule(), *draw.sample(odd, 2)], draw.choice(["", "1.37"])
        answer = look.answer()
        assert desired <= set(answer.desired)
        published = answer.status["gpuPools"][0]
        assert 0 <= published.get("usable", {}).get("nodes", 0) <= published["nodes"]
        draw.shuffle(nodes)
        draw.shuffle(slices)
        assert look.answer() == answer


def test_no_device_is_held_against_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 DeviceTaintRules on 500 nodes took 15 seconds."""
    looks = []
    original = drift._selected
    monkeypatch.setattr(drift, "_selected", lambda rule: looks.append(rule) or original(rule))
    taint = {"key": "burn-in", "effect": "NoSchedule"}
    others = [{"spec": {"deviceSelector": {"pool": f"n{at}"}, "taint": taint}} for at in range(30)]
    hit = {"spec": {"deviceSelector": {"driver": None, "pool": "a", "device": "device-1"}, "taint": taint}}
    newer = {"spec": {"deviceSelector": {"pool": "b", "selectors": []}, "taint": taint}}
    rules = [seen(rule) for rule in (*others, hit, newer)]
    collections = {key: [SYNCED, READY] for key in (NODES, SLICES, TAINT_RULES)}
    answer = Look(rules=rules, release="1.37", collections=collections).answer()
    assert usable(answer) == {"nodes": 3}
    assert "a has 7 of 8 gpu.nvidia.com, others have the taint burn-in:NoSchedule" in condition(answer)[1]
    assert len(looks) == len(rules)


@pytest.mark.parametrize("selector", [{}, {"driver": "gpu.nvidia.com"}])
def test_the_taints_of_rules_are_read_once(selector: Plain, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 rules about the driver of 3,000 nodes took 29 CPU seconds: each device read all of them."""
    read: list[object] = []

    def counting(stated: object) -> tuple[Taint, ...]:
        read.extend(stated if isinstance(stated, list) else ())
        return read_taints(stated)

    monkeypatch.setattr(drift, "read_taints", counting)
    taints = [{"key": f"k{at}", "effect": "NoSchedule"} for at in range(30)]
    rules = [seen({"spec": {"deviceSelector": selector, "taint": taint}}) for taint in taints]
    collections = {key: [SYNCED, READY] for key in (NODES, SLICES, TAINT_RULES)}
    answer = Look(rules=rules, release="1.37", collections=collections).answer()
    assert "others have the taint k24:NoSchedule" in condition(answer)[1], "beyond the 16 of an entry"
    assert len(read) <= len(rules)


def test_of_many_taints_no_more_than_can_be_tolerated_are_read() -> None:
    """40 nodes of 20,000 taints each took ten CPU seconds."""
    stated = [{"key": f"k{at}", "effect": "NoSchedule"} for at in range(200)]
    assert len(read_taints(stated)) == MAX_READ_TAINTS
    assert read_taints(stated) == read_taints(stated[::-1]), "in whatever order they are listed"
    more = [{"key": f"m{at}", "effect": "NoSchedule"} for at in range(200)]
    selected = [({}, stated), ({"driver": "gpu.nvidia.com"}, more)]
    rules = LiveRules(
        taints=[
            {"spec": {"deviceSelector": selector, "taint": taint}}
            for selector, taints in selected
            for taint in taints
        ]
    )
    of_node = drift.read_nodes([drift.PublishedSlice.read(resource_slice("a", devices(H200, 1)))])["a"]
    [[device]] = drift.TaintRules(rules).tainted(of_node).by_driver.values()
    assert device.taints == read_taints(stated)
    tolerations = [{"key": f"k{at}", "operator": "Exists"} for at in range(16)]
    tainted = [seen(node(name, taints=stated)) for name in "abcd"]
    for tolerated, nodes in ((tolerations, 0), ([{"operator": "Exists"}], 4)):
        assert usable(Look(pool={**POOL, "tolerations": tolerated}, nodes=tainted).answer())["nodes"] == nodes


def test_of_many_owners_of_a_claim_the_first_are_looked_at() -> None:
    """Kubernetes gives a claim one owner, its pod. 40 claims of 18,000 took three CPU seconds."""
    ours = {"kind": "Pod", "name": f"{replica()['metadata']['name']}-main-0"}
    others = [{"kind": "Pod", "name": f"notebook-{at}"} for at in range(MAX_OWNERS)]
    for owners, nodes in (([ours, *others], 4), ([*others, ours], 3)):
        made = resource_claim("notebook", "a")
        made["metadata"]["ownerReferences"] = owners
        look = Look(claims=[seen(made)], replicas=[replica()])
        look.collections[CLAIMS] = [SYNCED, READY]
        assert usable(look.answer())["nodes"] == nodes


def test_tolerations_are_read_once_for_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    original = Toleration.parse
    monkeypatch.setattr(Toleration, "parse", lambda plain: reads.append(plain) or original(plain))
    pool = {**POOL, "tolerations": [{"key": "k", "operator": "Exists"}]}
    tainted = [seen(node(name, taints=[{"key": "k", "effect": "NoSchedule"}])) for name in "abcd"]
    assert usable(Look(pool=pool, nodes=tainted).answer()) == {"nodes": 4}
    assert len(reads) == 2, "ours, and that of the pool"


def test_nodes_are_looked_at_through_another_configuration_where_one_is_named() -> None:
    """The count of users in the composed one wakes the cluster with every new Object."""
    observer = {"name": "east-reader"}
    made = Case(cluster(observerConfigRef=observer), input=INPUT)

    def reached_through(key: str, answer: Response) -> Any:
        return answer.desired[key].resource["spec"]["providerConfigRef"]["name"]

    first = made.answer()
    composed = first.desired[PROVIDER_CONFIG].resource["metadata"]["name"]
    assert {reached_through(key, first) for key in (NODES, SLICES)} == {"east-reader"}
    assert reached_through("see-gateway", first) == composed == first.status["providerConfigRef"]["name"]
    settled = Case(cluster(), input=INPUT).settled()
    settled.cluster["spec"]["cluster"]["existing"]["observerConfigRef"] = observer
    assert reached_through(NODES, settled.answer()) == composed, "what looks already goes on as it is"
    made.cluster["spec"]["cluster"]["existing"]["observerConfigRef"] = {"name": ""}
    assert "spec.cluster.existing.observerConfigRef.name" in made.answer().conditions[0].message


def test_devices_of_a_kind_are_held_against_a_class_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 nodes of 128 devices and a class of 16 entries took two CPU seconds, one comparison at a time."""
    compared, kinds_fit = [], drift.kinds_fit

    def counting(wanted: tuple[str, ...], kind: tuple[str, ...]) -> bool:
        compared.append(kind)
        return kinds_fit(wanted, kind)

    monkeypatch.setattr(drift, "kinds_fit", counting)
    assert usable(Look().answer()) == {"nodes": 4}
    few = len(compared)
    compared.clear()
    many = [f"n{at}" for at in range(30)]
    pool = {**POOL, "nodeCount": 30}
    look = Look(nodes=[seen(node(name)) for name in many], slices=whole(*many), pool=pool)
    assert usable(look.answer()) == {"nodes": 30}
    assert len(compared) == few, "none for each node, for taints that all have, and none for each device"


def test_what_tells_the_kind_of_a_device_is_all_that_is_read_of_it() -> None:
    """Of a slice the rest is most of its bytes."""
    published = [{"name": "gpu", "basic": {"attributes": {"gpu.nvidia.com/type": {"string": "mig"}}}}]
    content = seen(resource_slice("a", devices(H200, 1) + published))
    document = WireDocument(write.struct(content))
    read = read_slice(document).content
    assert read is not None
    assert [one.attributes for one in read.devices] == [
        {"type": {"string": "gpu"}},
        {"gpu.nvidia.com/type": {"string": "mig"}},
    ]
    assert not any(one.capacity for one in read.devices)
    assert [drift.kind_of(one) for one in read.devices] == [("gpu", ""), ("mig", "")]
