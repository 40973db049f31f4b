"""Device lists of one equivalence class match the same, and are refused in the same words."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from function.api.cluster import Pool
from function.api.devices import Device, SharedDevices
from function.scheduler.budget import Budget
from function.scheduler.matching.devices import Match, Refusal, resolve, resolve_every
from function.scheduler.matching.matcher import MAX_COMPARED, DeviceEquivalence
from tests.support import build
from tests.support.cases import ask, one, single
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from function.scheduler.selectors import Evaluations

Plain = dict[str, Any]
GPU, OTHER = "gpu.nvidia.com", "other.example.com"
SELECTORS = (
    "true",
    f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].architecture == "Hopper"',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    f'device.attributes["{GPU}"].driverVersion.isGreaterThan(semver("575.0.0"))',
    f'"rack" in device.attributes["{GPU}"]',
    f'device.attributes["{GPU}"].exists(name, name == "rack")',
    f'device.attributes["{OTHER}"].rack == "a"',
    f'device.attributes["{OTHER}"].id == "a"',
    f'"{OTHER}" in device.attributes',
    "device.allowMultipleAllocations",
)
TEXTS = {
    "architecture": ("Hopper", "Ampere"),
    "rack": ("a", "b"),
    f"{OTHER}/rack": ("a", "b"),
    f"{GPU}/zone": ("a",),
}
ATTRIBUTES = (*TEXTS, "driverVersion")


def device(draw: Random) -> Plain:
    """A device entry; now and then with a value that no selector can be asked about."""
    attributes: Plain = {
        name: {"string": draw.choice(values)} for name, values in TEXTS.items() if draw.random() < 0.5
    }
    if draw.random() < 0.5:
        attributes["driverVersion"] = {"version": draw.choice(("570.1.0", "580.1.0", "580.2.0", "old"))}
    return {
        "name": draw.choice(("gpu", "nic", "")),
        "driver": draw.choice((GPU, GPU, OTHER)),
        "claim": draw.choice(("DRA", "DRA", "Synthetic")),
        "deviceClassName": draw.choice((GPU, "mig")),
        "count": draw.choice((2, 4)),
        "attributes": attributes,
        "capacity": {"memory": {"value": draw.choice(("24Gi", "80Gi", "80Gi", "much"))}},
        "allowMultipleAllocations": draw.random() < 0.5,
    }


def changed(draw: Random, one: Plain) -> Plain:
    """The same entry with one part of another."""
    other, made = device(draw), {**one, "attributes": dict(one["attributes"])}
    part = draw.choice((*made, *ATTRIBUTES))
    if part in made:
        made[part] = other[part]
    elif part in other["attributes"]:
        made["attributes"][part] = other["attributes"][part]
    else:
        made["attributes"].pop(part, None)
    return made


REQUESTS = st.builds(
    lambda count, selectors: build.request("", count, *selectors),
    st.sampled_from((1, 3, 4)),
    st.lists(st.sampled_from(SELECTORS), min_size=1, max_size=3, unique=True),
)
CONSTRAINTS = st.sampled_from(([], [{"matchAttribute": "rack"}], [{"matchAttribute": f"{OTHER}/rack"}]))


def essence(verdict: Match | Refusal, evaluations: Evaluations) -> object:
    """What anybody learns of a match or a refusal."""
    if isinstance(verdict, Refusal):
        return verdict.explained(evaluations)
    return [
        (item.request, item.rank, item.count, item.selectors, item.claimed, item.device.device_class_name)
        for item in verdict.resolved
    ]


def pool(devices: tuple[Device, ...]) -> Pool:
    """A pool with these devices, which it shares with no other."""
    return Pool("p", 1, devices, "", {}, "Node", ("", ""), shared=SharedDevices(devices, 0))


@given(st.lists(REQUESTS, min_size=1, max_size=2), CONSTRAINTS, st.integers(0, 2**32))
def test_lists_that_are_alike_match_alike(requests: list[Plain], constraints: list[Plain], seed: int) -> None:
    draw = Random(seed)
    named = [{**request, "name": name} for name, request in zip(("gpu", "nic"), requests, strict=False)]
    engine = single(*named, constraints=constraints)
    inputs = decide(World(ask(engines=[engine]), [one("a")])).inputs
    [member] = inputs.deployment.shapes[0].engines[0].members
    classes = DeviceEquivalence(inputs)

    def every(devices: tuple[Device, ...]) -> list[object]:
        ways, _ = resolve_every(inputs.evaluations, member, devices, budget=Budget(1_000))
        first = resolve(inputs.evaluations, member, devices, budget=Budget(1_000))
        return [essence(way, inputs.evaluations) for way in (first, *ways)]

    shared = 0
    for _ in range(100):
        first = [device(draw) for _ in range(draw.choice((1, 2)))]
        second = [changed(draw, item) for item in first]
        one_list, other = (tuple(map(Device.parse, listed)) for listed in (first, second))
        if first != second and classes.of(pool(one_list)) == classes.of(pool(other)):
            shared += 1
            assert every(one_list) == every(other), (first, second)
    event(f"{min(shared, 10)} of 100, or more, differ and are alike")


def test_a_long_list_is_like_no_other() -> None:
    """Comparing hundreds of entries under every selector would take longer than is saved."""
    inputs = decide(World(ask(engines=[single(build.request("gpu", 1))]), [one("a")])).inputs
    long, again, short = (
        tuple(Device.parse({**build.gpu(8), "name": f"gpu{at}"}) for at in range(number))
        for number in (MAX_COMPARED + 1, MAX_COMPARED + 1, MAX_COMPARED)
    )
    classes = DeviceEquivalence(inputs)
    first = pool(long)
    assert classes.of(first) == classes.of(first)
    assert classes.of(first) != classes.of(pool(again))
    assert classes.of(pool(short)) == classes.of(pool(again[:MAX_COMPARED]))
