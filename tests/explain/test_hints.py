"""Hints: one change of each kind, as small as it can be, and none where none helps."""

from __future__ import annotations

from typing import Any

import pytest

from example.caller import ROOT
from function.deployment.explain.hints import SHOWN, TRIES, hints
from tests.support import build, drive, scarce
from tests.support.rejected import CASES, EIGHTY, here, one, placing, wants
from tests.support.world import World

Plain = dict[str, Any]


def hint_rows(world: World) -> list[tuple[str, str, int]]:
    """Return kind, message and what it unlocks, of every hint."""
    decision = scarce.decide(world)
    made_hints = [hint.plain for hint in hints(decision, decision.survey())]
    return [(hint["change"], hint["message"], hint["unlocks"]) for hint in made_hints]


BY_REASON = {
    "InsufficientNodes": ("AddNodes", "add 1 node to pool p of cluster here (2 to 3)", 1),
    "InsufficientDevices": ("AddNodes", "add 1 node to pool p of cluster here (1 to 2)", 1),
    "PoolOvercommitted": (
        "FreeNodes",
        "free 2 nodes of pool p of cluster here, held by ml-team/stranger",
        1,
    ),
    "JointCapacity": ("AddNodes", "add 1 node to pool p of cluster here (2 to 3)", 1),
    "UntoleratedTaint": ("TolerateTaint", "tolerate the taint maintenance=soon:NoSchedule (here)", 1),
    "OutsideCacheFootprint": (
        "WidenCache",
        "stage the ModelCache weights without region=eu too (here)",
        1,
    ),
    "CacheNotReady": (
        "PreferCache",
        "set placement.cache to Prefer: replicas then start where the cache is not Ready yet",
        1,
    ),
    "NoGatewayAddress": ("ClusterGateway", "once cluster here has a gateway address", 1),
    "ClusterNotReady": ("ClusterReady", "once cluster here is Ready", 1),
    "ClusterSelectorMismatch": ("SelectLabel", "select tier=dev instead of prod (here)", 1),
    "UntoleratedDeviceTaint": (
        "TolerateDeviceTaint",
        "tolerate the device taint burn-in=yes:NoSchedule in request gpu (here)",
        1,
    ),
    "DeviceCountShort": ("LowerCount", "ask for 4 instead of 8 devices in request gpu", 1),
    "NoMatchingDevice": (
        "RelaxSelector",
        (
            "make do with memory 40Gi instead of 80Gi per device: "
            f"change the selector {EIGHTY} to {EIGHTY.replace('80Gi', '40Gi')}"
        ),
        1,
    ),
    "ClaimTooLarge": ("LowerCount", "ask for 32 instead of 33 devices in request gpu", 1),
    "MaxReplicasPerCluster": ("RaiseLimit", "raise placement.maxReplicasPerCluster to 2", 1),
    "SearchBudgetExceeded": ("RaiseLimit", "raise searchBudget in the function's input to 10", 1),
}


@pytest.mark.parametrize("reason", BY_REASON)
def test_the_smallest_change_for_a_reason(reason: str) -> None:
    assert hint_rows(CASES[reason]().world)[0] == BY_REASON[reason]


def test_the_page_lists_every_kind_of_hint() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    (listed,) = (line for line in page.splitlines() if line.startswith("A hint is"))
    kinds = {kind for kind, _, _ in BY_REASON.values()} | {"CorrectSelector", "GuardSelector"}
    assert sorted(kind for kind in kinds if f"`{kind}`" not in listed) == []


def test_freeing_what_another_deployment_holds() -> None:
    stranger = build.deployment("stranger", namespace="ads")
    taking = [build.replica(stranger, "here", index, pools="p") for index in range(2)]
    hints_made = hint_rows(one(wants(build.request()), replicas=taking))
    assert ("FreeNodes", "free 1 node of pool p of cluster here, held by ads/stranger", 1) in hints_made


def test_lowering_min_replicas_to_what_fits() -> None:
    made = wants(build.request(), replicas=4)
    made["spec"]["minReplicas"] = 3
    assert ("RaiseLimit", "lower minReplicas from 3 to 2", 2) in hint_rows(one(made))


def test_as_much_more_skew_as_it_takes() -> None:
    spread = [{"topologyKey": "region", "maxSkew": 1}, {"topologyKey": "zone", "maxSkew": 9}]
    made = placing(wants(build.request(), replicas=4), topologySpread=spread)
    full = build.cluster("there", [build.pool("p", 1)], labels={"region": "us", "zone": "b"})
    hints_made = hint_rows(one(made, here(build.pool("p", 8), labels={"region": "eu", "zone": "a"}), full))
    assert ("RaiseLimit", "raise maxSkew of the topologySpread over region from 1 to 2", 1) in hints_made
    assert not any("zone" in message for _, message, _ in hints_made)


NAME = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{}")) >= 0'


@pytest.mark.parametrize(
    ("selector", "instead", "reason"),
    [
        (NAME.replace("architecture", "architecure"), NAME, "a name that nobody publishes"),
        (NAME.replace("Hopper", "Hoper"), NAME, "a value that is nearly the published one"),
        (NAME.replace("gpu.nvidia.com", "nvidia.com/gpu"), NAME, "the device plugin's name for a domain"),
        (NAME.replace("gpu.nvidia.com", "gpu.nvida.com"), NAME, "a misspelt domain"),
        ('device.driver == "nvidia.com/gpu"', 'device.driver == "gpu.nvidia.com"', "and for a driver"),
        ('device.driver == "gpu.nvidia.con"', 'device.driver == "gpu.nvidia.com"', "a misspelt driver"),
        (NAME.replace('"].', "/").replace(" ==", '"] =='), NAME, "a flat key, which does not compile"),
    ],
)
def test_what_is_misspelt_is_corrected(selector: str, instead: str, reason: str) -> None:
    amd = build.cluster("amd", [build.pool("p", 2, [build.gpu() | {"driver": "gpu.amd.com"}])])
    hints_told = hint_rows(World(wants(build.request("gpu", 1, selector)), [amd, here()], [], {}))
    text = f"correct the spelling: change the selector {selector} to {instead}"
    assert hints_told[0] == ("CorrectSelector", text, 1), reason


READS = 'device.attributes["gpu.nvidia.com"]'


@pytest.mark.parametrize(
    ("selector", "guarded", "reason"),
    [
        (NAME, f'"architecture" in {READS} && {NAME}', "the device that lacks it is asked no more"),
        (
            f"{NAME} || {READS}.numa == 0",
            f'"architecture" in {READS} && "numa" in {READS} && ({NAME} || {READS}.numa == 0)',
            "as a whole",
        ),
    ],
)
def test_a_selector_that_errs_beside_is_guarded(selector: str, guarded: str, reason: str) -> None:
    knowing = build.gpu(4, name="knowing")
    knowing["attributes"]["numa"] = {"int": 0}
    mixed = here(build.pool("p", 2, [knowing, build.gpu(4, name="odd", architecture=None)]))
    hints_told = hint_rows(one(wants(build.request("gpu", 1, selector)), mixed))
    assert [kind for kind, _, _ in hints_told] == ["GuardSelector"], reason
    assert hints_told[0][1].endswith(f"change the selector {selector} to {guarded}"), reason


@pytest.mark.parametrize(
    ("value", "published", "hints", "reason"),
    [
        ("Ada", ["Ada Lovelace", "Hopper"], [("Ada", "Ada Lovelace")], "the one value that has the word"),
        ("lovelace ada", ["Ada Lovelace"], [("lovelace ada", "Ada Lovelace")], "in whatever order"),
        (
            "Adda Lovelace",
            ["Ada Lovelace", "Hopper"],
            [("Adda Lovelace", "Ada Lovelace")],
            "nearly, anywhere",
        ),
        ("Ada", ["Ada Lovelace", "Ada Next"], [], "which of the two is meant is not known"),
        ("Ad", ["Ada Lovelace"], [], "half a word may be any"),
    ],
)
def test_a_value_that_another_device_publishes_nearly_is_corrected_to_it(
    value: str, published: list[str], hints: list[tuple[str, str]], reason: str
) -> None:
    pools = [
        build.pool(f"p{at}", 2, [build.gpu() | {"attributes": {"architecture": {"string": one}}}])
        for at, one in enumerate(published)
    ]
    texts = [
        text for kind, text, _ in hint_rows(one(wants(build.request("gpu", 1, of(value))), here(*pools)))
    ]
    spelt = [text for text in texts if text.startswith("correct the spelling")]
    assert spelt == [
        f"correct the spelling: change the selector {of(old)} to {of(new)}" for old, new in hints
    ], reason


def of(architecture: str) -> str:
    return NAME.replace("Hopper", architecture)


@pytest.mark.parametrize(
    "selector",
    ['device.attributes["architecture"] == "Hopper"', 'device.attributes.architecture == "Hopper"'],
)
def test_a_name_without_its_domain_is_corrected_where_one_publishes_it(selector: str) -> None:
    made = wants(build.request("gpu", 1, selector))
    text = f"correct the spelling: change the selector {selector} to {NAME}"
    assert hint_rows(one(made))[0] == ("CorrectSelector", text, 1)
    amd = build.cluster("amd", [build.pool("p", 2, [build.gpu() | {"driver": "gpu.amd.com"}])])
    assert hint_rows(World(made, [amd, here()], [], {})) == [], "which of the two is meant is not known"


@pytest.mark.parametrize(
    ("memory", "asked", "unit"),
    [
        ("143771Mi", "141GB", "141G"),
        ("96Gi", "80gib", "80Gi"),
        ("96Gi", "80 Gi", "80Gi"),
        ("1Mi", "9KB", "9k"),
    ],
)
def test_a_wrong_unit_is_mended_as_a_unit(memory: str, asked: str, unit: str) -> None:
    """And not by asking for what the device happens to have."""
    fleet = here(build.pool("p", 2, [build.gpu(memory=memory)]))
    old, new = MEMORY.format(asked), MEMORY.format(unit)
    text = f"correct the unit, {unit} for {asked}: change the selector {old} to {new}"
    assert hint_rows(one(wants(build.request("gpu", 1, old)), fleet))[0] == ("CorrectSelector", text, 1)


def test_less_than_was_asked_for_is_never_proposed_as_if_it_were_free() -> None:
    """141 GB are asked for and nobody has them: the unit does not help, and the price is named."""
    small = here(build.pool("p", 2, [build.gpu(memory="81559Mi")]))
    [(kind, text, _)] = hint_rows(one(wants(build.request("gpu", 1, MEMORY.format("141GB"))), small))
    assert kind == "RelaxSelector"
    assert text.startswith("make do with memory 81559Mi instead of 141GB per device: ")


def test_hints_come_in_the_order_of_what_they_cost() -> None:
    stranger = build.deployment("stranger")
    made = wants(build.request("gpu", 1, MEMORY.format("80Gi")), match={"tier": "prod"})
    prod = {"labels": {"tier": "prod"}}
    fleet = [
        build.cluster("bare", [build.pool("p", 2)], labels={"tier": "dev"}),
        build.cluster("tainted", [build.pool("p", 2)], taints=[build.taint("spot")], **prod),
        build.cluster("full", [build.pool("p", 1)], **prod),
        build.cluster("small", [build.pool("p", 2, [build.gpu(memory="40Gi")])], **prod),
        build.cluster("broken", [build.pool("p", 2)], ready=False, **prod),
    ]
    held = [build.replica(stranger, "full", 0, pools="p")]
    kinds = [kind for kind, _, _ in hint_rows(World(made, fleet, held, {}))]
    assert kinds == ["SelectLabel", "TolerateTaint", "FreeNodes", "RelaxSelector", "ClusterReady"]


def test_room_elsewhere_comes_before_staying_on_a_cluster_that_is_drained() -> None:
    """Who drains a cluster wants it empty: tolerating that is the last resort, and named as such."""
    drained = build.cluster("drained", [build.pool("p", 2)], taints=[build.taint("upgrade", "NoExecute")])
    full = build.cluster("full", [build.pool("p", 1)])
    fleet, made = [drained, full], wants(build.request(), replicas=2)
    rows = hint_rows(World(made, fleet, [build.replica(made, "full", 0, pools="p")], {}))
    assert [kind for kind, _, _ in rows] == ["AddNodes", "TolerateTaint"]
    assert rows[1][1] == "tolerate the taint upgrade:NoExecute and run where it drains (drained)"


def test_less_of_the_same_comes_before_another_thing() -> None:
    """A little less memory on the right GPU before another GPU, whichever opens more clusters."""
    made = wants(build.request("gpu", 1, build.HOPPER, EIGHTY))
    other = [
        build.cluster(f"ada-{n}", [build.pool("p", 2, [build.gpu(architecture="Ada")])]) for n in range(3)
    ]
    right = here(build.pool("p", 2, [build.gpu(memory="81559Mi")]))
    assert "81559Mi" in hint_rows(one(made, *other, right))[0][1]


def test_what_two_changes_would_be_needed_for_is_no_hint() -> None:
    tainted = here(build.pool("p", 0), taints=[build.taint("a")], ready=False)
    assert hint_rows(one(wants(build.request()), tainted)) == []


def test_none_when_nothing_is_missing() -> None:
    assert hint_rows(one(wants(build.request()))) == []


def test_few_are_tried_and_fewer_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from function.deployment.explain import hints as module

    tried = []
    real = module.schedule  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "schedule", lambda asked, **more: tried.append(1) or real(asked, **more))
    clusters = [build.cluster(f"c{n}", [build.pool(f"p{m}", n) for m in range(4)]) for n in range(30)]
    spread = placing(wants(build.request("gpu", 8), replicas=200), maxReplicasPerCluster=1)
    hints_made = hint_rows(World(spread, clusters, [], {}))
    assert 0 < len(tried) <= TRIES
    assert len(hints_made) <= SHOWN


def test_trying_changes_out_changes_nothing() -> None:
    made = CASES["InsufficientNodes"]().world
    plain, status = drive.run(made), drive.run(made.but(input={"explain": "Status"}))
    assert (plain.desired, plain.conditions) == (status.desired, status.conditions)
    assert plain.counts == status.counts


def test_as_few_nodes_as_will_do() -> None:
    """Two of the three engines fit with one node more, the third goes to the other pool."""
    engines = [build.engine(name, copies=copies) for name, copies in (("a", 2), ("b", 1), ("c", 2))]
    pools = here(build.pool("p", 2), build.pool("q", 2))
    assert hint_rows(one(build.deployment(engines=engines), pools))[0] == (
        "AddNodes",
        "add 1 node to pool p of cluster here (2 to 3)",
        1,
    )
