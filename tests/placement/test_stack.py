"""A replica that KServe cannot express goes to clusters with our own stack; one that it can, anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.reasons import Reason, Rejection
from function.scheduler.filters import StackExpresses
from tests.support import build
from tests.support.cases import Case, ask, one, single
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
GPU = build.request("gpu", 1)


def on_kserve(name: str, **kserve: str) -> Plain:
    """Return a cluster that KServe serves on."""
    made = one(name, pools=[build.pool("p0", 4)])
    made["spec"] |= {"stack": "KServe", **({"kserve": kserve} if kserve else {})}
    return made


def asked(replicas: int = 1, *, uri: str = "", engines: list[Plain] | None = None) -> Plain:
    """Return a deployment, with the address of its model."""
    made = ask(replicas, engines=engines or [single(GPU)])
    if uri:
        made["spec"]["template"]["spec"]["serving"] = {"model": {"uri": uri}}
    return made


def shaped(primary: list[Plain], other: list[Plain]) -> Plain:
    """Return a deployment with an alternative."""
    made = asked(uri="hf://org/model", engines=primary)
    made["spec"]["template"]["spec"]["alternatives"] = [{"name": "small", "engines": other}]
    return made


def clusters_first(made: Plain) -> Plain:
    """Return a deployment whose shapes are no order between clusters."""
    made["spec"]["placement"] = {"alternativePolicy": "ClusterFirst"}
    return made


def labelled(replicas: int = 1, key: str = "team") -> Plain:
    """Return a deployment whose pods have a label."""
    made = asked(replicas, uri="hf://org/model")
    [member] = made["spec"]["template"]["spec"]["engines"][0]["members"]
    member["template"]["metadata"] = {"labels": {key: "ml"}}
    return made


def disaggregated(*phases: str) -> Plain:
    """Return a deployment of an engine for each of these phases."""
    engines = [
        {**build.engine(f"engine-{at}", [build.member(devices=[GPU])]), "phase": phase}
        for at, phase in enumerate(phases)
    ]
    made = asked(uri="hf://org/model", engines=engines)
    made["spec"]["template"]["spec"]["serving"]["mode"] = "PrefillDecode"
    return made


def adapting() -> Plain:
    """Return a deployment with room for adapters."""
    return asked(uri="hf://org/model", engines=[{**single(GPU), "adapters": {"slots": 1}}])


STANDARD = one("z", pools=[build.pool("p0", 4)])
TWO = [
    build.engine("main", [build.member(devices=[GPU])]),
    build.engine("draft", [build.member(devices=[GPU])]),
]
ONE = [single(GPU)]
CASES = [
    Case("KServe takes what it can express", [on_kserve("a")], asked(uri="hf://org/model"), ["a"]),
    Case("what it cannot goes elsewhere", [on_kserve("a"), STANDARD], asked(2), ["z", "z"]),
    Case("and nowhere, where there is no other", [on_kserve("a")], asked(), [], {"a": "StackCannotExpress"}),
    Case("v1alpha1 has no labels of pods", [on_kserve("a")], labelled(), [], {"a": "StackCannotExpress"}),
    Case(
        "v1alpha2 has, and each cluster has its own version",
        [on_kserve("a", apiVersion="v1alpha1"), on_kserve("b", apiVersion="v1alpha2")],
        labelled(2),
        ["b", "b"],
    ),
    Case(
        "but for those by which pods are told apart",
        [on_kserve("b", apiVersion="v1alpha2"), STANDARD],
        labelled(key="llm-d.ai/role"),
        ["z"],
    ),
    Case(
        "a model that only KServe mounts goes nowhere else",
        [on_kserve("a"), STANDARD],
        asked(2, uri="s3://bucket/model"),
        ["a", "a"],
    ),
    Case(
        "nor anywhere where there is no KServe",
        [STANDARD],
        asked(uri="s3://bucket/model"),
        [],
        {"z": "StackCannotExpress"},
    ),
    Case(
        "engines are one for each phase",
        [on_kserve("a")],
        disaggregated("Prefill", "Decode"),
        ["a"],
    ),
    Case(
        "and no phase twice",
        [on_kserve("a")],
        disaggregated("Decode", "Decode"),
        [],
        {"a": "StackCannotExpress"},
    ),
    Case("adapters have no loader there", [on_kserve("a")], adapting(), [], {"a": "StackCannotExpress"}),
    Case("another shape that can be expressed is taken", [on_kserve("a")], shaped(TWO, ONE), ["a/small"]),
    Case(
        "so it is where the clusters come before the shapes",
        [on_kserve("a"), STANDARD],
        clusters_first(shaped(TWO, ONE)),
        ["a/small"],
    ),
    Case("the first shape is taken where it can be", [on_kserve("a"), STANDARD], shaped(TWO, ONE), ["z"]),
    Case(
        "one shape is in no way where the other is full",
        [on_kserve("a")],
        shaped(TWO, [single(build.request("gpu", 99))]),
        [],
        {"a": "DeviceCountShort"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_stacks(case: Case) -> None:
    case.check()


def test_what_is_in_the_way_is_told_by_shape() -> None:
    """By the rejection of a shape, and for the digest of what a decision was made of."""
    inputs = decide(World(shaped(TWO, ONE), [on_kserve("a")])).inputs
    stacks = StackExpresses.of(inputs)
    assert stacks is not None
    text = "KServe: a Unified replica is one engine, this one has 2"
    shapes = {shape.name: shape for shape in inputs.deployment.shapes}
    (cluster,) = inputs.fleet.clusters.values()
    rejections = {name: stacks.reject_shape(shape, cluster) for name, shape in shapes.items()}
    assert rejections == {"": Rejection(Reason.StackCannotExpress, detail=text), "small": None}
    assert stacks.facts == (f" {text}",)


def test_pods_that_cannot_be_read_are_no_obstacle() -> None:
    """Neither the stand-in of a recording nor a mistake: the handler of replicas names it."""
    made = asked()
    made["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"] = {"(stripped)": "xxxx"}
    Case("read elsewhere", [on_kserve("a")], made, ["a"]).check()


def test_a_replica_that_runs_there_stays() -> None:
    """Law 2: an edit that the stack cannot express is no reason to let a replica go."""
    made = asked(1)
    running = build.replica(made, "a", 0, pools="p0")
    Case("kept", [on_kserve("a"), STANDARD], made, ["a"], running=[running]).check()


def resized(workers: int) -> Plain:
    """Return a deployment of a gang with so many workers, which says how it is spread."""
    members = [build.member("Leader", [GPU]), build.member("Worker", [GPU], nodes=workers)]
    made = asked(uri="hf://org/model", engines=[build.engine("main", members)])
    made["spec"]["template"]["spec"]["serving"]["parallelism"] = {"pipeline": 1 + workers}
    return made


@pytest.mark.parametrize(
    ("reason", "cluster", "before", "after", "index"),
    [
        ("KServe refuses another size: replaced", on_kserve("a"), 1, 2, 1),
        ("a smaller one, too", on_kserve("a"), 2, 1, 1),
        ("the same size stays", on_kserve("a"), 1, 1, 0),
        ("our own stack takes it in place", one("a", pools=[build.pool("p0", 8)]), 1, 2, 0),
    ],
)
def test_a_gang_of_another_size(reason: str, cluster: Plain, before: int, after: int, index: int) -> None:
    for holder in (cluster["spec"]["nodePools"], cluster["status"]["gpuPools"]):
        holder[0] |= {"nodeCount": 8} if "nodes" not in holder[0] else {"nodes": 8}
    running = build.replica(resized(before), "a", 0, pools="p0", ready=True)
    answer = Case(reason, [cluster], resized(after), ["a"], running=[running]).check()
    assert [
        replica["metadata"]["labels"]["modelplane.ai/replica-index"] for replica in answer.replicas.values()
    ] == [str(index)], reason


def test_a_gang_of_another_size_stays_until_there_is_a_place() -> None:
    cluster = on_kserve("a")
    running = build.replica(resized(3), "a", 0, pools="p0", ready=True)
    answer = Case("no place", [cluster], resized(4), ["a"], running=[running]).check()
    [kept] = answer.replicas.values()
    assert kept["spec"] == running["spec"]
    assert [held.detail for held in answer.decision.kept] == ["engine main: 4 workers instead of 3"]
    assert "the stack of its cluster cannot change the size of a gang" in str(answer.conditions)
