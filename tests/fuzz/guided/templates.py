"""Requests that use every field of the API, as plain trees: what the fuzzer's mutations start from.

A tree has the keys of `EMPTY`. The corpus means what it means by these trees: a change here makes it less
telling, never wrong.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support import build

Plain = dict[str, Any]

EMPTY: Plain = {"composite": {}, "observed": {}, "required": {}, "input": {}, "desired": {}}
INPUT: Plain = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}


def _tree(
    deployment: Plain, clusters: list[Plain], *own_replicas: Plain, others: tuple[Plain, ...] = ()
) -> Plain:
    endpoints = [build.endpoint(replica) for replica in own_replicas if "status" in replica]
    return EMPTY | {
        "composite": deployment,
        "observed": build.observed(*own_replicas, endpoints=endpoints),
        "required": {"clusters": clusters, "all-replicas": [*own_replicas, *others]},
    }


def plain() -> Plain:
    """Two clusters, one replica that runs, one more wanted, somebody else's replica."""
    parent = build.deployment(replicas=2)
    other = build.replica(build.deployment("other", namespace="ads"), "b", 0)
    clusters = [build.cluster("a", [build.pool("h100", 2)]), build.cluster("b", [build.pool("h100", 3)])]
    return _tree(parent, clusters, build.replica(parent, "a", 0, ready=True), others=(other,))


def gang() -> Plain:
    """A gang and a single pod, a cache, taints, tolerations, labels; more run than are wanted."""
    engines = [build.gang("prefill", nodes=2, gpus=4), build.engine("decode", phase="Decode")]
    engines[0]["phase"] = "Prefill"
    parent = build.deployment(
        replicas=1,
        engines=engines,
        labels={"team": "ml"},
        match={"tier": "prod"},
        cache="weights",
        tolerations=[{"key": "spot", "operator": "Exists", "effect": "NoExecute"}],
        conditions=[build.condition("ReplicasScheduled", status=True, reason="ReplicasCreated")],
    )
    parent["spec"]["template"]["spec"]["serving"] = {"mode": "PrefillDecode"}
    clusters = [
        build.cluster("a", [build.pool("h100", 8)], labels={"tier": "prod"}),
        build.cluster(
            "b",
            [build.pool("p0", 8, [build.gpu(4, name="d0"), build.nic(2, name="d1")]), build.pool("h100", 8)],
            labels={"tier": "prod", "region": "eu"},
            taints=[build.taint("spot", "NoExecute", "true"), build.taint("odd")],
        ),
        build.cluster("c", [], ready=None, gateway=None, deleting=True),
    ]
    own_replicas = [build.replica(parent, "a", 0, ready=True), build.replica(parent, "b", 1, ready=False)]
    made = _tree(parent, clusters, *own_replicas, build.replica(parent, "a", 2, terminating=True))
    made["required"]["cache"] = [build.cache("weights", {"region": "eu"})]
    return made


def _policy() -> Plain:
    return {
        "strategy": "BinPack",
        "tieBreak": "MostFree",
        "topologySpread": [
            {"topologyKey": "region", "maxSkew": 1, "minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "maxReplicasPerCluster": 2,
        "preferences": [
            {"weight": 10, "matchLabels": {"tier": "prod"}},
            {"weight": 5, "cel": 'cluster.attributes["example.com/pricing"] == "reserved"'},
        ],
        "disruption": {"maxUnavailable": 1},
        "alternativePolicy": "ClusterFirst",
    }


def _wide() -> Plain:
    """A gang on one fabric, with a prioritized list, a constraint and a selector of its node."""
    ways = [build.request("all", 8), build.request("some", 2, build.HOPPER)]
    asked = {"name": "gpu", "firstAvailable": ways}
    selector = {
        "selectors": [{"cel": 'node.attributes["example.com/net"].startsWith("ib-")'}],
        "devices": [asked, build.request("nic", 1, 'device.driver == "dra.net"')],
        "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    }
    leader = build.member("Leader") | {"nodeSelector": selector}
    worker = build.member("Worker", nodes=1) | {"nodeSelector": selector}
    return build.engine("main", [leader, worker]) | {"poolPolicy": "SameFabric"}


def _fabric(name: str, nodes: int, *, accounting: str) -> Plain:
    root = {"resource.kubernetes.io/pcieRoot": {"strings": ["r0", "r1"]}}
    gpu, nic = build.gpu(name="d0"), build.nic(2, name="d1", claim="DRA")
    devices = [item | {"attributes": item["attributes"] | root} for item in (gpu, nic)]
    return build.pool(name, nodes, devices) | {
        "attributes": {"example.com/net": {"string": "ib-2"}},
        "accounting": accounting,
        "fabric": {"type": "InfiniBand", "infiniband": {"fabric": "f0"}},
    }


def wide() -> Plain:
    """All opt-in fields but coordination: policies, alternatives, one fabric, device accounting."""
    parent = build.deployment(replicas=3, engines=[_wide()])
    parent["spec"] |= {"minReplicas": 1, "placement": _policy()}
    inner = parent["spec"]["template"]["spec"]
    inner["alternatives"] = [{"name": "small", "engines": [build.engine()]}]
    inner["clusterSelector"] = {
        "matchExpressions": [{"key": "region", "operator": "In", "values": ["eu", "us"]}],
        "cel": ['"soc2" in cluster.attributes["example.com/compliance"]'],
    }
    facts = {
        "example.com/compliance": {"list": {"string": ["soc2", "iso"]}},
        "example.com/pricing": {"string": "reserved"},
    }
    clusters = []
    for name, region in (("a", "eu"), ("b", "us")):
        pools = [_fabric("p0", 1, accounting="Node"), _fabric("p1", 3, accounting="Device")]
        made = build.cluster(name, pools, labels={"region": region, "tier": "prod"})
        made["spec"]["attributes"] = facts
        clusters.append(made)
    own_replica = build.replica(parent, "a", 0, [build.engine()], pools="p1", ready=True)
    own_replica["metadata"]["labels"]["modelplane.ai/alternative"] = "small"
    made = _tree(parent, clusters, own_replica)
    return made | {"input": INPUT | {"explain": "Status", "searchBudget": 2000, "ttl": {"pending": "5s"}}}


def crowded() -> Plain:
    """A pool that holds more than it has, the other deployments listed, somebody to yield."""
    parent, other = build.deployment(replicas=1), build.deployment("other")
    pool = [build.cluster("a", [build.pool("h100", 1)]), build.cluster("b", [build.pool("h100", 1)])]
    own_replica = build.replica(parent, "a", 0)
    theirs = build.replica(other, "a", 0, ready=True)
    theirs["metadata"]["annotations"] = {"modelplane.ai/was-ready": "true"}
    made = _tree(parent, pool, own_replica, others=(theirs,))
    made["required"] |= {"all-deployments": [parent, other], "all-caches": [build.cache()]}
    defaults = {"placement": {"strategy": "Spread", "tieBreak": "Hash"}}
    asked = {"coordination": "GlobalOrder", "overcommit": "Yield", "defaults": defaults}
    return made | {"input": INPUT | asked}


def between() -> Plain:
    """An earlier step desires things, one replica is mismatched, one cluster is gone."""
    parent = build.deployment(replicas=2)
    older = [build.engine(members=[build.member(devices=[build.request("gpu", 2)])])]
    own_replicas = [
        build.replica(parent, "a", 0, older, ready=True),
        build.replica(parent, "gone", 0, ready="Unknown"),
    ]
    made = _tree(parent, [build.cluster("a", [build.pool("h100", 1)]), build.cluster("b")], *own_replicas)
    theirs = build.replica(parent, "b", 0)
    return made | {"desired": {"replica-b-0": theirs, "bucket": {"kind": "Bucket", "spec": {"size": 1}}}}


TEXTS = tuple(json.dumps(make()) for make in (plain, gang, wide, crowded, between))
"""Each tree as a text: reading it makes a fresh one."""


def _words(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_words, value.values()))
    if isinstance(value, list):
        return set().union(*map(_words, value))
    return {value} if isinstance(value, str) else set()


WORDS = tuple(sorted(set().union(*(_words(json.loads(text)) for text in TEXTS))))
"""Every name of a field and every text in the trees."""
