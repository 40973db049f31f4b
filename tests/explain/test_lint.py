"""Lint tells what nobody in the fleet could ever give, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from function.deployment.explain.lint import lint
from tests.support import build, scarce
from tests.support.rejected import EIGHTY, here, one, wants

Plain = dict[str, Any]

CASES = [
    (
        'device.driver == "gpu.nvidai.com"',
        "UnknownDriver",
        'no device of the fleet has the driver "gpu.nvidai.com"; the nearest is gpu.nvidia.com',
    ),
    (
        'device.driver == "nic.nvidia.com"',
        "UnknownDriver",
        'no device of the fleet has the driver "nic.nvidia.com"; its drivers are gpu.nvidia.com',
    ),
    (
        'device.attributes["gpu.nvidia.com"].architecure == "Hopper"',
        "UnknownAttribute",
        (
            "no device of the fleet publishes the attribute gpu.nvidia.com/architecure; "
            'the nearest is device.attributes["gpu.nvidia.com"].architecture'
        ),
    ),
    (
        'device.attributes["gpu.nvidia.com"].memory == "80Gi"',
        "UnknownAttribute",
        (
            "no device of the fleet publishes the attribute gpu.nvidia.com/memory; "
            'the nearest is device.capacity["gpu.nvidia.com"].memory'
        ),
    ),
    (
        'device.capacity["nvidia.com"].memory.compareTo(quantity("1Gi")) >= 0',
        "UnknownCapacity",
        (
            "no device of the fleet publishes the capacity nvidia.com/memory; "
            'the nearest is device.capacity["gpu.nvidia.com"].memory'
        ),
    ),
    (
        'device.attributes["gpu.nvidia.com"].architecture == "Blackwell"',
        "NeverSatisfied",
        'no device of the fleet satisfies request gpu: architecture is "Hopper", not "Blackwell"',
    ),
    (
        EIGHTY,
        "BelowTheBox",
        (
            "asks for memory 80Gi and leaves out devices that publish 81559Mi: drivers report a little less "
            "than the number on the box"
        ),
    ),
    (
        'device.capacity["gpu.nvidia.com"].memory != quantity("1Gi")',
        "MayBeRefused",
        ("the API server may refuse this selector: estimated cost 1844674407370955269 exceeds 1000000"),
    ),
    (
        'device.attributes["gpu.nvidia.com"].architecture.includes("Hopper")',
        "NeedsFeatureGate",
        (
            "your API server will refuse this claim unless its feature gate DRAListTypeAttributes is on: "
            "it has includes()"
        ),
    ),
]


def findings(made: Plain, *clusters: Plain) -> list[tuple[str, str]]:
    """Return codes and messages of the findings."""
    return [(finding.code, finding.message) for finding in lint(scarce.decide(one(made, *clusters)).inputs)]


@pytest.mark.parametrize(("selector", "code", "message"), CASES, ids=[case[1] for case in CASES])
def test_each_finding(selector: str, code: str, message: str) -> None:
    fleet = here(build.pool("p", 2, [build.gpu(memory="81559Mi")]))
    assert findings(wants(build.request("gpu", 1, selector)), fleet) == [(code, message)]


@pytest.mark.parametrize(
    ("wanted", "published", "codes", "reason"),
    [
        ("24Gi", "23034Mi", ["BelowTheBox"], "an L4, whose driver keeps the most back"),
        ("141G", "131G", [], "further off than any box is"),
        ("141G", "134000M", ["BelowTheBox"], "gigabytes of either kind"),
        ("87Gi", "81559Mi", [], "what `size` estimates is no number on a box"),
        ("84Gi", "81559Mi", [], "nor is what it estimates near one"),
    ],
)
def test_below_the_box_is_nearer_than_any_driver_keeps_back(
    wanted: str, published: str, codes: list[str], reason: str
) -> None:
    selector = f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{wanted}")) >= 0'
    fleet = here(build.pool("p", 2, [build.gpu(memory=published), build.gpu(name="big", memory="143771Mi")]))
    reported = findings(wants(build.request("gpu", 1, selector)), fleet)
    assert [code for code, _ in reported] == codes, reason


@pytest.mark.parametrize(
    ("term", "said", "reason"),
    [
        ('cc >= "9.0"', 'cc is 9.0.0, a version: compare it with .compareTo(semver("9.0.0")) >= 0', "a text"),
        (
            "cc >= 10.0",
            'cc is 9.0.0, a version: compare it with .compareTo(semver("10.0.0")) >= 0',
            "a number",
        ),
        ('cc.compareTo(semver("10.1")) >= 0', '"10.1" is no version: write "10.1.0"', "two of three numbers"),
        ('cc.compareTo(semver("10.0.0")) >= 0', "", "a version is right, and no device has it"),
        ('rdma == "true"', "rdma is true, a boolean: write true without quotes", "a text for a boolean"),
        ('ports == "4"', "ports is 4, a number: write it without quotes", "a text for a number"),
        ("ports > 8", "", "a number is right"),
        ('kind == "x"', 'kind is "y", not "x"', "a text is right"),
    ],
)
def test_a_value_of_another_type_is_said_with_how_it_is_compared(term: str, said: str, reason: str) -> None:
    device = build.gpu()
    device["attributes"] = {
        "cc": {"version": "9.0.0"},
        "rdma": {"bool": True},
        "ports": {"int": 4},
        "kind": {"string": "y"},
    }
    made = wants(build.request("gpu", 1, f'device.attributes["gpu.nvidia.com"].{term}'))
    message = "no device of the fleet satisfies request gpu"
    expected = [("NeverSatisfied", f"{message}: {said}" if said else message)]
    assert findings(made, here(build.pool("p", 2, [device]))) == expected, reason


AMD = build.gpu(name="amd") | {"driver": "gpu.amd.com"}
AMD["attributes"] = {"vram": {"string": "HBM3"}}


@pytest.mark.parametrize(
    ("selectors", "message", "reason"),
    [
        (
            ['device.attributes["gpu.nvidia.com"].vram == "HBM3"'],
            "no device of the fleet publishes the attribute gpu.nvidia.com/vram",
            "another vendor's attribute is not what is meant",
        ),
        (
            ['device.driver == "gpu.nvidia.com"', 'device.capacity["gpu.nvida.com"].memory != quantity("1")'],
            (
                "no device of the fleet publishes the capacity gpu.nvida.com/memory; "
                'the nearest is device.capacity["gpu.nvidia.com"].memory'
            ),
            "the selector beside it names the vendor",
        ),
        (
            ['device.driver == "gpu.amd.com"', 'device.capacity["gpu.com"].memory != quantity("1")'],
            (
                "no device of the fleet publishes the capacity gpu.com/memory; "
                'the nearest is device.capacity["gpu.amd.com"].memory'
            ),
            "whichever it is",
        ),
        (
            ['device.driver == "nvidia.com/gpu"'],
            'no device of the fleet has the driver "nvidia.com/gpu"; the nearest is gpu.nvidia.com',
            "the device plugin's name",
        ),
        (
            ['device.attributes["gpu.nvidia.com/architecture"].string == "Hopper"'],
            (
                "no device of the fleet publishes the attribute gpu.nvidia.com/architecture/string; "
                'the nearest is device.attributes["gpu.nvidia.com"].architecture'
            ),
            "a flat key that compiles",
        ),
        (
            ['device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("40GB"))'],
            '"40GB" is no quantity of Kubernetes; write 40G',
            "a unit that Kubernetes does not know",
        ),
        (
            ['device.attributes["gpu.nvidia.com/architecture"] == "Hopper"'],
            (
                "1:50: found no matching overload for '_==_' applied to '(map(string, dyn), string)'; "
                'did you mean device.attributes["gpu.nvidia.com"].architecture?'
            ),
            "a flat key that does not compile",
        ),
        (
            ['node.attributes["a/b"] == "x"'],
            (
                "1:1: undeclared reference to 'node' (in container ''); "
                "it selects node pools: write it under nodeSelector.selectors"
            ),
            "a selector in the wrong place",
        ),
    ],
)
def test_what_is_meant_is_told_and_never_another_vendors(
    selectors: list[str], message: str, reason: str
) -> None:
    fleet = here(build.pool("p", 2, [build.gpu(), AMD]))
    meant = [
        text
        for code, text in findings(wants(build.request("gpu", 1, *selectors)), fleet)
        if code != "MayBeRefused"
    ]
    assert meant[0] == message, reason


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (
            "node",
            (
                "no device of the fleet publishes the attribute node; all devices of a pod are on one node "
                "anyway: leave the constraint out"
            ),
        ),
        (
            "gpu.nvidia.com/architecure",
            (
                "no device of the fleet publishes the attribute gpu.nvidia.com/architecure; "
                "the nearest is gpu.nvidia.com/architecture"
            ),
        ),
        ("gpu.nvidia.com/architecture", ""),
        ("architecture", ""),
    ],
)
def test_a_constraint_on_what_nobody_publishes(attribute: str, message: str) -> None:
    made = wants(build.request())
    node = made["spec"]["template"]["spec"]["engines"][0]["members"][0]["nodeSelector"]
    node["constraints"] = [{"matchAttribute": attribute}]
    assert findings(made) == ([("UnknownAttribute", message)] if message else [])


NEVER = "request gpu asks for {} devices of one node, but no node of the fleet has more than {} that match"
BOUND = "a claim holds 32"


@pytest.mark.parametrize(
    ("requests", "devices", "expected", "reason"),
    [
        (
            [("gpu", 9)],
            [build.gpu(4), build.gpu(4, name="b")],
            [("CountNeverCovered", NEVER.format(9, 8))],
            "nobody",
        ),
        ([("gpu", 8)], [build.gpu(4), build.gpu(4, name="b")], [], "two entries of one class together"),
        (
            [("gpu", 8)],
            [build.gpu(4), build.gpu(4, name="b", claim="Synthetic")],
            [("CountNeverCovered", NEVER.format(8, 4))],
            "only what can be claimed",
        ),
        (
            [("gpu", 33)],
            [build.gpu(64)],
            [("ClaimTooLarge", f"request gpu asks for 33 devices, but {BOUND} for all its requests")],
            "no claim has so many",
        ),
        ([("gpu", 33)], [build.gpu(64, claim="Synthetic")], [], "what is Synthetic is in none"),
        (
            [("x", 17), ("y", 16)],
            [build.gpu(64)],
            [("ClaimTooLarge", f"{BOUND} devices for all its requests, but x takes 17, y takes 16")],
            "nor all together",
        ),
    ],
)
def test_counts_that_no_node_and_no_claim_covers(
    requests: list[tuple[str, int]],
    devices: list[Plain],
    expected: list[tuple[str, str]],
    reason: str,
) -> None:
    asked = wants(*(build.request(*request) for request in requests))
    assert findings(asked, here(build.pool("p", 2, devices))) == expected, reason


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"tier": "dev"}, "no cluster has tier=prod; its values are dev"),
        ({"teir": "prod"}, "no cluster has the label tier; the nearest is teir"),
        ({}, "no cluster has the label tier"),
    ],
)
def test_a_label_that_no_cluster_carries(labels: dict[str, str], message: str) -> None:
    made = wants(build.request(), match={"tier": "prod"})
    assert findings(made, here(labels=labels)) == [("UnknownLabel", message)]


def test_values_beyond_those_that_are_named_are_counted() -> None:
    fleet = [build.cluster(f"c{at}", [build.pool("p", 1)], labels={"tier": f"t{at}"}) for at in range(7)]
    said = findings(wants(build.request(), match={"tier": "prod"}), *fleet)
    assert said == [
        ("UnknownLabel", "no cluster has tier=prod; its values are t0, t1, t2, t3, t4 and 2 more")
    ]


def test_busy_is_not_never() -> None:
    """A fleet that is full, tainted or not ready is no matter of lint."""
    full = here(build.pool("p", 0), taints=[build.taint("x")], ready=False)
    assert findings(wants(build.request("gpu", 8, build.GPUS, EIGHTY)), full) == []


def test_the_same_mistake_in_two_places_is_told_once() -> None:
    typo = build.request("gpu", 1, 'device.attributes["gpu.nvidia.com"].arch == "Hopper"')
    gang = build.engine(members=[build.member("Leader", [typo]), build.member("Worker", [typo], nodes=1)])
    assert len(findings(build.deployment(engines=[gang]))) == 1
