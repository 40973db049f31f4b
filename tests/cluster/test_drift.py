"""Drift on ResourceSlices in the shape that the NVIDIA, AMD, TPU and network drivers publish."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from example.caller import ROOT
from function.cluster import drift as drift_module
from function.cluster.classes import NothingPublished, describe
from function.cluster.drift import LiveRules, drift
from tests.support.slices import AMD, H200, MIG, NIC, TPU, devices, node, resource_slice

if TYPE_CHECKING:
    from collections.abc import Iterable

Plain = dict[str, Any]


def _entry(stated: Plain | None = None) -> Plain:
    return {"name": "gpu", "claim": "DRA", "driver": "gpu.nvidia.com", "count": 2, **H200, **(stated or {})}


def published(entry: Plain | None = None, nodes: int = 1, **spec: Any) -> Plain:
    pool = {"name": "h200", "nodes": nodes, "devices": [_entry(entry)]}
    return {"spec": {"nodePools": [{"name": "h200", **spec}]}, "status": {"gpuPools": [pool]}}


def kinds(cluster: Plain, slices: list[Plain], nodes: list[Plain]) -> set[str]:
    (pool,) = drift(cluster, slices, nodes)
    return {finding.kind for finding in pool.findings}


NODE = [node("n1")]
WHOLE = [resource_slice("n1", devices(H200, 2))]


@pytest.mark.parametrize(
    ("cluster", "slices", "nodes", "expected", "reason"),
    [
        (published(), WHOLE, NODE, set(), "everything is as the class says"),
        (published(), [], NODE, {"DriverMissing"}, "no slice on a labelled node"),
        (
            published(),
            [resource_slice("n1", devices(AMD, 2), "gpu.amd.com")],
            NODE,
            {"DriverMissing"},
            "another driver's slice",
        ),
        (
            published(),
            [resource_slice("n1", devices(H200, 1))],
            NODE,
            {"DeviceCountShort"},
            "one of two devices",
        ),
        (
            published(),
            [resource_slice("n1", devices(H200, 2, taints=[{"key": "broken", "effect": "NoSchedule"}]))],
            NODE,
            {"DeviceCountShort"},
            "tainted devices do not count",
        ),
        (
            published({"taints": [{"key": "broken", "effect": "NoSchedule"}]}),
            [resource_slice("n1", devices(H200, 2, taints=[{"key": "broken", "effect": "NoSchedule"}]))],
            NODE,
            set(),
            "nor are they missing where the class says that they have the taint",
        ),
        (
            published({"taints": [{"key": "broken", "effect": "NoSchedule"}]}),
            WHOLE,
            NODE,
            {"TaintMissing"},
            "the class has a taint that no device has",
        ),
        (
            published({"capacity": {"memory": {"value": "141Gi"}}}),
            WHOLE,
            NODE,
            {"CapacityShort", "DeviceCountShort"},
            "the number on the box: selectors match in the fleet and never bind",
        ),
        (
            published({"attributes": {"architecture": {"string": "Blackwell"}}}),
            WHOLE,
            NODE,
            {"AttributeDiffers", "DeviceCountShort", "Undeclared"},
            "another value",
        ),
        (
            published({"attributes": {**H200["attributes"], "architecture": {"version": "1.0.0"}}}),
            WHOLE,
            NODE,
            {"AttributeDiffers", "DeviceCountShort"},
            "another type",
        ),
        (published(nodes=2), WHOLE, NODE, {"NodesShort"}, "one of two nodes"),
        (published(nodes=8, nodeCount=1), WHOLE, NODE, set(), "it may grow to eight"),
        (published(nodes=8, nodeCount=2), WHOLE, NODE, {"NodesShort"}, "fewer than its least"),
        (published(nodes=2), WHOLE, [node("n1", None)], {"NodesUnlabelled"}, "no label matches"),
        (published(nodes=2), [], [], set(), "scaled to zero is no drift"),
        (
            published({"attributes": {"type": {"string": "gpu"}}}),
            WHOLE,
            NODE,
            {"Undeclared"},
            "the class could say more; a uuid it could not",
        ),
        (
            published(),
            [resource_slice("n1", devices(H200, 2), of=2)],
            NODE,
            set(),
            "half of the slices: nothing is said of the node",
        ),
        (
            published(),
            [
                resource_slice("n1", devices(H200, 1), generation=1),
                resource_slice("n1", devices(H200, 2), generation=2),
            ],
            NODE,
            set(),
            "only the newest generation counts",
        ),
        (
            published(nodeSelector={"cloud.example.com/pool": "a"}),
            WHOLE,
            [{"metadata": {"name": "n1", "labels": {"cloud.example.com/pool": "a"}}}],
            set(),
            "a pool's own label",
        ),
        (
            published(),
            [resource_slice("n1", [*devices(H200, 2), *devices(MIG, 3)])],
            NODE,
            set(),
            "partitions beside whole GPUs are no drift of them",
        ),
        (
            published({"attributes": {"productName": {"string": "NVIDIA H200"}}, "capacity": {}}),
            [resource_slice("n1", [*devices(H200, 2), *devices(MIG, 3)])],
            NODE,
            {"Undeclared"},
            "nor where the class does not say which type it means",
        ),
        (
            published(),
            [resource_slice("n1", devices(H200, 2, taints=[{"key": "aging", "effect": "None"}]))],
            NODE,
            set(),
            "a taint of effect None is information",
        ),
        (
            published({"claim": "Synthetic", "driver": "nic.example.com"}),
            [],
            NODE,
            set(),
            "what is never claimed is never looked for",
        ),
        (
            published({"driver": "gpu.amd.com", **AMD}),
            [resource_slice("n1", devices(AMD, 2), "gpu.amd.com")],
            NODE,
            set(),
            "AMD",
        ),
        (
            published({"driver": "tpu.google.com", "capacity": {}, **TPU}),
            [resource_slice("n1", devices(TPU, 2), "tpu.google.com")],
            NODE,
            set(),
            "TPU",
        ),
        (
            published({"driver": "dra.net", "capacity": {}, "attributes": {"rdma": {"bool": True}}}),
            [resource_slice("n1", devices(NIC, 2), "dra.net")],
            NODE,
            set(),
            "a network card; its PCI address is its own",
        ),
    ],
)
def test_each_finding_once(
    cluster: Plain, slices: list[Plain], nodes: list[Plain], expected: set[str], reason: str
) -> None:
    assert kinds(cluster, slices, nodes) == expected, reason


def test_the_line_names_the_worst_first() -> None:
    (pool,) = drift(published({"capacity": {"memory": {"value": "141Gi"}}}, nodes=4), WHOLE, NODE)
    assert pool.phrase().startswith(
        "h200: 1 of 4 nodes seen; CapacityShort memory: class 141Gi, smallest 143771Mi (node n1); DeviceCount"
    )
    assert pool.drifts


def test_the_page_shows_what_the_command_prints() -> None:
    number_on_the_box = published({"capacity": {"memory": {"value": "141Gi"}}, "count": 8})
    (pool,) = drift(number_on_the_box, [resource_slice("gpu-7", devices(H200, 8))], [node("gpu-7")])
    assert f"✗ {pool.phrase()}\n" in (ROOT / "docs" / "clusters.md").read_text()


def test_a_name_with_the_drivers_domain_is_the_same_name() -> None:
    qualified = {f"gpu.nvidia.com/{name}": value for name, value in H200["attributes"].items()}
    assert kinds(published({"attributes": qualified}), WHOLE, NODE) == set()


def test_before_v1_the_content_of_a_device_was_in_basic() -> None:
    old = [{"name": device.pop("name"), "basic": device} for device in devices(H200, 2)]
    assert kinds(published(), [resource_slice("n1", old)], NODE) == set()


def test_a_class_is_what_most_nodes_have_and_drifts_from_none_of_them() -> None:
    slices = [
        *(resource_slice(f"n{at}", devices(H200, 8)) for at in range(3)),
        *(resource_slice(f"n{at}", devices(NIC, 4), "dra.net") for at in range(3)),
        resource_slice("odd", devices(H200, 7)),
    ]
    made = describe(slices)
    assert (made.nodes, made.others) == (3, 1)
    entries = {entry["name"]: entry for entry in made.spec["devices"]}
    assert entries.keys() == {"gpu", "nic"}
    assert entries["gpu"]["count"] == 8
    assert "uuid" not in entries["gpu"]["attributes"]
    pool = {"name": "h200", "nodes": 3, "devices": made.spec["devices"]}
    (pool_drift,) = drift({"status": {"gpuPools": [pool]}}, slices, [node(f"n{at}") for at in range(3)])
    assert not pool_drift.drifts


GPUS, MIGS, OURS = (
    {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    for name, expression in (
        ("gpu.nvidia.com", 'device.attributes["gpu.nvidia.com"].type == "gpu"'),
        ("mig.nvidia.com", 'device.attributes["gpu.nvidia.com"].type == "mig"'),
        ("ours", 'device.driver == "gpu.nvidia.com"'),
    )
)


@pytest.mark.parametrize(
    ("classes", "named", "reason"),
    [
        ([], "mig.nvidia.com", "the class that NVIDIA's driver brings for parts of a GPU"),
        ([GPUS, MIGS, OURS], "mig.nvidia.com", "the one that the driver brings, though another selects them"),
        ([GPUS, OURS], "ours", "the only one there that selects them"),
        ([GPUS], "mig.nvidia.com", "none there selects them"),
    ],
)
def test_a_claim_names_a_device_class_that_selects_the_devices(
    classes: list[dict[str, Any]], named: str, reason: str
) -> None:
    (entry,) = describe([resource_slice("n1", devices(MIG, 4))], classes).spec["devices"]
    assert entry["deviceClassName"] == named, reason


def test_nothing_published_is_said() -> None:
    with pytest.raises(NothingPublished):
        describe([resource_slice("n1", devices(H200, 1), of=2)])


def test_a_pool_at_zero_does_not_claim_the_nodes_of_another() -> None:
    """Both have labels of their own, which is as good as ours."""
    cluster = published(nodeSelector={"pool": "a"})
    cluster["spec"]["nodePools"].append({"name": "b", "nodeSelector": {"pool": "b"}})
    on_b = [{"metadata": {"name": "n1", "labels": {"pool": "b"}}}]
    assert kinds(cluster, WHOLE, on_b) == set()
    on_none = [{"metadata": {"name": "n1", "labels": {"pool": "c"}}}]
    assert kinds(cluster, WHOLE, on_none) == {"NodesUnlabelled"}


def test_a_value_reads_the_same_in_every_order() -> None:
    odd: Plain = {"attributes": {"architecture": {"string": {"b": 1, "a": [2]}}}}
    turned: Plain = {"attributes": {"architecture": {"string": {"a": [2], "b": 1}}}}
    (first,), (second,) = (drift(published(entry), WHOLE, NODE) for entry in (odd, turned))
    assert first.phrase() == second.phrase()
    assert 'class string {"a": [2], "b": 1}, device string "Hopper"' in first.phrase()


GPUS = 'device.driver == "gpu.nvidia.com"'
READS = 'device.attributes["gpu.nvidia.com"].numa == 0'


def device_class(name: str, *expressions: str) -> Plain:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


def template(*expressions: str, device_class: str = "gpu.nvidia.com") -> Plain:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    way = {"deviceClassName": device_class, "count": 1, "selectors": selectors}
    devices = {"requests": [{"name": "gpu", "exactly": way}]}
    return {"metadata": {"namespace": "ml", "name": "t"}, "spec": {"spec": {"devices": devices}}}


def taint_rule(selector: Plain | None, effect: str = "NoSchedule") -> Plain:
    spec = {"taint": {"key": "example.com/broken", "effect": effect}}
    return {
        "metadata": {"name": "r"},
        "spec": spec | ({"deviceSelector": selector} if selector is not None else {}),
    }


NUMBERED = {**H200, "attributes": {**H200["attributes"], "numa": {"int": 0}}}
BESIDE = [resource_slice("n1", [*devices(NUMBERED, 2), {"name": "odd", **H200}])]
CLASS = device_class("gpu.nvidia.com", GPUS)
NAMED = {"deviceClassName": "gpu.nvidia.com"}


@pytest.mark.parametrize(
    ("entry", "slices", "nodes", "rules", "expected", "reason"),
    [
        (
            NAMED,
            BESIDE,
            NODE,
            LiveRules([template(READS)], [CLASS]),
            {"SelectorErrs"},
            "beside what it selects",
        ),
        (
            NAMED,
            BESIDE,
            NODE,
            LiveRules([template(READS)]),
            set(),
            "of a class that is not read, nothing is known",
        ),
        (
            NAMED,
            BESIDE,
            NODE,
            LiveRules([template(f'"numa" in device.attributes["gpu.nvidia.com"] && {READS}')], [CLASS]),
            set(),
            "a guarded selector does not err",
        ),
        (
            NAMED,
            BESIDE,
            NODE,
            LiveRules([template(READS)], [device_class("gpu.nvidia.com", 'device.driver == "other"')]),
            {"ClassNarrower"},
            "the allocator asks no device that the class leaves out, and the class is wrong",
        ),
        (
            NAMED,
            WHOLE,
            NODE,
            LiveRules([template(READS)], [CLASS]),
            set(),
            "it selects nothing here: another pool's",
        ),
        (
            NAMED,
            WHOLE,
            NODE,
            LiveRules(taints=[taint_rule({"driver": "gpu.nvidia.com", "device": "device-0"})]),
            {"DevicesTainted", "DeviceCountShort"},
            "a rule taints one of two",
        ),
        (NAMED, WHOLE, NODE, LiveRules(taints=[taint_rule({"device": "x"})]), set(), "another device"),
        (NAMED, WHOLE, NODE, LiveRules(taints=[taint_rule(None)]), set(), "no selector is about no device"),
        (NAMED, WHOLE, NODE, LiveRules(taints=[taint_rule({}, "None")]), set(), "this effect only tells"),
        (
            NAMED,
            WHOLE,
            [node("n1") | {"spec": {"unschedulable": True}}],
            LiveRules(),
            {"NodesCordoned"},
            "a cordoned node takes no pod",
        ),
    ],
)
def test_what_keeps_pods_off_the_devices(
    entry: Plain, slices: list[Plain], nodes: list[Plain], rules: LiveRules, expected: set[str], reason: str
) -> None:
    (pool,) = drift(published(entry), slices, nodes, rules)
    found_kinds = {finding.kind for finding in pool.findings} - {"Undeclared"}
    assert found_kinds == expected, (reason, pool.findings)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The kinds of the devices that were held against an entry so far."""
    counted, kinds_fit = list[tuple[str, ...]](), drift_module.kinds_fit

    def counting(wanted: tuple[str, ...], kind: tuple[str, ...]) -> bool:
        counted.append(kind)
        return kinds_fit(wanted, kind)

    monkeypatch.setattr(drift_module, "kinds_fit", counting)
    return counted


def test_a_device_is_held_against_an_entry_once(compared: list[tuple[str, ...]]) -> None:
    """3,000 nodes and a class of 16 entries took nearly six CPU seconds."""
    assert kinds(published(), WHOLE, NODE) == set()
    assert len(compared) == len(devices(H200, 2))


def _several_pools(names: Iterable[str], entries: list[Plain]) -> Plain:
    """A cluster whose pools all select the nodes of one label."""
    pools = [{"name": name, "nodes": 3, "devices": entries} for name in names]
    declared = [{"name": name, "nodeSelector": {"role": "gpu"}} for name in names]
    return {"spec": {"nodePools": declared}, "status": {"gpuPools": pools}}


def _labelled(name: str) -> Plain:
    return {"metadata": {"name": name, "labels": {"role": "gpu"}}}


def test_nodes_of_a_kind_are_held_against_an_entry_once(compared: list[tuple[str, ...]]) -> None:
    """Eight pools that select the same 3,000 nodes took 15 CPU seconds: every device was compared again."""
    names = [f"n{number}" for number in range(20)]
    slices = [resource_slice(name, devices(H200, 8)) for name in names]
    pools = [f"p{number}" for number in range(3)]
    drift(_several_pools(pools, [_entry()]), slices, map(_labelled, names))
    assert len(compared) == len(pools) * len(devices(H200, 8))


@pytest.mark.parametrize("seed", range(40))
def test_a_node_is_judged_as_it_would_be_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an entry cannot tell apart leads to the same findings, whatever else a driver publishes."""
    dice = random.Random(seed)
    odd = [
        {"attributes": H200["attributes"] | {"productName": {"string": "NVIDIA H100"}}},
        {"attributes": H200["attributes"] | {"nvlink": {"bool": True}}},
        {"attributes": {"gpu.nvidia.com/type": {"string": "gpu"}}},
        {"capacity": {"memory": {"value": "16Gi"}}},
        {"taints": [{"key": "broken", "effect": "NoExecute"}]},
        {},
    ]
    names = [f"n{number}" for number in range(12)]
    slices = []
    for name in names:
        published = [{**device, **dice.choice([{}, dice.choice(odd)])} for device in devices(H200, 2)]
        slices.append(resource_slice(name, published))
    taint = {"key": "broken", "effect": "NoExecute"}
    entries = [_entry(dice.choice([{}, {"count": 1}, {"taints": [taint]}])) for _ in range(2)]
    cluster = _several_pools(("a", "b"), entries)
    together = drift(cluster, slices, map(_labelled, names))
    numbers = count()
    monkeypatch.setattr(drift_module.Likeness, "number", lambda *_: next(numbers))
    assert together == drift(cluster, slices, map(_labelled, names))
