"""Adapters on the command line: where they go, why not elsewhere, and what would be different."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.adapters import EAST, NEWER, OLDER, WEST, adapter, placement, running
from tests.cli.answers import VALIDATOR
from tests.cli.command import completed, run, write
from tests.support import apiserver, build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]


def fleet(slots: int | None = 1) -> list[Plain]:
    """Return a deployment of two replicas that have a place, and its cluster."""
    parent = build.deployment("chat", 2)
    if slots is not None:
        parent["spec"]["template"]["spec"]["engines"][0]["adapters"] = {"slots": slots}
    return [build.cluster("east", [build.pool("h100", 2)]), parent]


def test_each_adapter_sees_the_slots_that_the_older_ones_took(tmp_path: Path) -> None:
    files = write(tmp_path / "f.yaml", [*fleet(), adapter("b", OLDER), adapter("a", NEWER)])
    ran = run("plan", files, "-o", "json")
    assert ran.code == 0
    first, second = ran.data["adapters"]
    assert (first["name"], second["name"]) == ("b", "a")
    places = [answer["replicas"][0]["name"] for answer in (first, second)]
    assert places == sorted(places)
    assert len(set(places)) == 2
    assert first["replicas"][0]["cluster"] == "east"


def test_an_adapter_without_a_place_is_said_and_counts(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", [*fleet(None), adapter("a", OLDER)]))
    assert ran.code == 2
    assert "ml-team/a (adapter)" in ran.out
    assert "2 without room for adapters" in " ".join(ran.out.split())


def test_what_would_be_applied_is_part_of_the_yaml(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", [*fleet(), adapter("a", OLDER)]), "-o", "yaml")
    kinds = [resource["kind"] for resource in yaml.safe_load_all(ran.out)]
    assert kinds == ["ModelReplica", "ModelReplica", "ModelAdapterPlacement"]


def test_files_without_adapters_are_answered_as_before(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", fleet(None)), "-o", "json")
    assert "adapters" not in ran.data


def test_why_says_what_holds_the_slots_and_what_would_help(tmp_path: Path) -> None:
    """Two hold both slots, so the third has no place; with one slot more it would."""
    adapters = [adapter("a", OLDER), adapter("b", OLDER), adapter("c", NEWER)]
    ran = run("why", "c", write(tmp_path / "f.yaml", [*running(), *adapters]))
    text = " ".join(ran.out.split())
    assert ran.code == 2
    assert "ml-team/c (adapter): Placed on 0 of 1 replica" in text
    assert "one slot more on each replica, and 1 more place" in text
    assert "1 of 1 slots Rejected no free slot: 1 of 1 taken by a" in text
    assert "1 of 1 slots Rejected no free slot: 1 of 1 taken by b" in text


REASONS = [
    ("another slot decides", {"east": 1, "west": 2}, {}, "it has 2 free slots, {other} has 1"),
    ("else the name", {"east": 1, "west": 1}, {}, "as good as {other}, and first by name"),
    (
        "what is loaded comes first",
        {"east": 9, "west": 1},
        {"status": {"adapters": [{"name": "a"}]}},
        "its engine has the adapter already, that of {other} does not",
    ),
]


@pytest.mark.parametrize(("reason", "slots", "west", "because"), REASONS, ids=lambda value: str(value)[:30])
def test_why_says_what_decided_for_a_place(
    tmp_path: Path, reason: str, slots: dict[str, int], west: Plain, because: str
) -> None:
    fleet = running()
    for item in fleet:
        if item["kind"] == "ModelReplica":
            item["spec"]["engines"][0]["adapters"] = {"slots": slots[item["spec"]["clusterName"]]}
            if item["spec"]["clusterName"] == "west":
                item["status"] = {**item["status"], **west.get("status", {})}
    del fleet[2]  # Without the deployment its replicas stand as they are.
    other = build.deployment("other", 0)
    ran = run(
        "why",
        "a",
        "--adapter",
        write(tmp_path / "f.yaml", [*fleet, other, adapter("a", OLDER)]),
        "-o",
        "json",
    )
    (chosen,) = (row for row in ran.data["replicas"] if row["action"] == "Placed")
    (left,) = (row for row in ran.data["replicas"] if row["action"] == "Eligible")
    assert chosen["why"] == because.format(other=left["name"]), reason
    assert VALIDATOR.is_valid(ran.data)


def test_a_name_that_a_deployment_has_is_its_own(tmp_path: Path) -> None:
    files = write(tmp_path / "f.yaml", [*running(), adapter("chat", OLDER)])
    assert "(adapter)" not in run("why", "chat", files).out
    assert "(adapter)" in run("why", "chat", "--adapter", files).out
    assert 'no ModelAdapter "nothing"' in run("why", "nothing", "--adapter", files).err
    assert (
        "there is no ModelAdapter" in run("why", "x", "--adapter", write(tmp_path / "g.yaml", running())).err
    )


def test_verify_certifies_what_plan_places(tmp_path: Path) -> None:
    files = write(tmp_path / "f.yaml", [*running(2), adapter("a", OLDER, replicas=2), adapter("b", NEWER)])
    ran = run("verify", files)
    assert (ran.code, "3 places of 2 adapters: every placement follows the rules" in ran.out) == (0, True)


STANDING = [
    ("more adapters than slots", [placement("a", EAST), placement("b", EAST)], "Slots"),
    ("a replica that is not there", [placement("a", "gone")], "NoSuchReplica"),
    ("an adapter that is not there", [placement("z", EAST)], "NoSuchAdapter"),
    ("a rank above what its engine takes", [placement("large", EAST)], "CannotLoad"),
]


@pytest.mark.parametrize(("reason", "places", "rule"), STANDING, ids=lambda value: str(value)[:30])
def test_verify_checks_adapters_as_they_stand(
    tmp_path: Path, reason: str, places: list[Plain], rule: str
) -> None:
    adapters = [adapter("a", OLDER), adapter("b", OLDER), adapter("large", OLDER, rank=64)]
    files = write(tmp_path / "f.yaml", [*running(), *adapters, *places])
    ran = run("verify", files, "--standing", "-o", "json")
    assert ([finding["rule"] for finding in ran.data["state"]], ran.code) == ([rule], 2), reason


DECISIONS: list[tuple[str, list[Plain], list[str]]] = [
    ("the last slot twice", [placement("a", EAST), placement("b", EAST)], ["Slots"]),
    ("nowhere, though there is room", [placement("a", EAST)], ["LeftOut"]),
    (
        "on what is no replica of its base",
        [placement("a", EAST), placement("b", "other")],
        ["Base", "LeftOut"],
    ),
    (
        "on more replicas than are wanted",
        [placement("a", EAST), placement("a", WEST), placement("b", WEST)],
        ["Slots", "TooMany"],
    ),
]


@pytest.mark.parametrize(("reason", "places", "rules"), DECISIONS, ids=lambda value: str(value)[:30])
def test_verify_finds_a_decision_that_breaks_a_rule(
    tmp_path: Path, reason: str, places: list[Plain], rules: list[str]
) -> None:
    fleet = running()
    files = write(tmp_path / "f.yaml", [*fleet, adapter("a", OLDER), adapter("b", NEWER)])
    decision = write(tmp_path / "d.yaml", [*fleet[3:], *places])
    ran = run("verify", files, "--decision", decision, "-o", "json")
    assert sorted({finding["rule"] for finding in ran.data["decision"]}) == rules, reason


def test_what_if_a_cluster_goes_shows_the_places_that_move(tmp_path: Path) -> None:
    """The replica has nowhere to go, so its adapter takes the free slot of the other one."""
    fleet = [*running(2), adapter("a", OLDER), placement("a", EAST)]
    ran = run("whatif", write(tmp_path / "f.yaml", fleet), "--drain", "east", "-o", "json")
    (moved,) = ran.data["adapters"]
    assert [place["name"] for place in moved["leaving"]] == [EAST]
    assert [place["name"] for place in moved["arriving"]] == [WEST]
    assert moved["worse"] is False
    assert VALIDATOR.is_valid(ran.data)


def test_what_if_the_base_has_less_room_names_the_adapter_that_loses(tmp_path: Path) -> None:
    fleet = [*running(2), *(adapter(name, OLDER, replicas=2) for name in "ab")]
    edited = build.deployment("chat", 2)
    edited["spec"]["template"]["spec"]["engines"][0]["adapters"] = {"slots": 1}
    file = write(tmp_path / "f.yaml", fleet)
    ran = run("whatif", file, "--apply", write(tmp_path / "edit.yaml", [edited]))
    assert ran.code == 2
    assert "\n\n✗ ml-team/b (adapter)  2 of 2 → 0 of 2 places" in ran.out
    assert "1 adapter is not concerned." in ran.out


def test_the_map_has_adapters_on_replicas(tmp_path: Path) -> None:
    page = run("map", write(tmp_path / "f.yaml", [*running(), adapter("a", OLDER)])).out
    assert f'<div class="adapters soft">ml-team/{EAST}: ml-team/a</div>' in page or (
        f'<div class="adapters soft">ml-team/{WEST}: ml-team/a</div>' in page
    )
    assert "<h2>Adapters</h2>" in page
    assert "<h2>Adapters</h2>" not in run("map", write(tmp_path / "g.yaml", running())).out


def test_the_picture_has_adapters_on_replicas_and_in_its_legend(tmp_path: Path) -> None:
    adapters = [adapter("a", OLDER), adapter("b", NEWER, replicas=2)]
    picture = run("map", write(tmp_path / "f.yaml", [*running(), *adapters]), "-o", "svg").out
    lines = re.findall(r"<title>(chat-[^<]*)</title>", picture)
    assert sorted(line.partition(": ")[0] for line in lines) == sorted((EAST, WEST))
    assert sorted(line.partition(": ")[2] for line in lines) == ["a", "b"]
    assert 'ml-team/a <tspan class="s">adapter, 1 of 1<' in picture
    assert 'ml-team/b <tspan class="s x">adapter, 1 of 2<' in picture
    described = picture.partition("<desc")[2].partition("</desc>")[0]
    assert f"Adapters on {EAST}: " in described
    assert "dapter" not in run("map", write(tmp_path / "g.yaml", running()), "-o", "svg").out


def test_a_control_plane_is_read_with_its_adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role of before may not read them: deployments are planned as ever, and it is said."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    objects = [*running(), adapter("a", OLDER), placement("a", WEST)]
    with apiserver.serving(objects) as (address, table):
        kubeconfig = apiserver.kubeconfig(tmp_path / "kubeconfig", address)
        ran = run("why", "a", "--kubeconfig", kubeconfig)
        assert ran.code == 0
        assert "Retained" in ran.out
        snapshot = tmp_path / "snapshot.yaml"
        snapshot.write_text(run("snapshot", "--live", "--kubeconfig", kubeconfig).out)
        assert run("why", "a", snapshot).out == ran.out
        assert "acme/a" not in snapshot.read_text()
        words = ["why", "--kubeconfig", str(kubeconfig)]
        assert completed(words, "") == ["ml-team/a", "ml-team/chat"]
        table.forbidden.add("ModelAdapter")
        assert completed(words, "") == ["ml-team/chat"]
        ran = run("plan", "--kubeconfig", kubeconfig)
        assert ran.code == 0
        assert "note: adapters are not read: " in ran.err
        assert "list modeladapters.modelplane.ai: forbidden" in ran.err
        table.forbidden = {"ModelAdapterPlacement"}
        ran = run("plan", "--kubeconfig", kubeconfig)
        assert "note: adapters are not read: " in ran.err
        assert "ml-team/a (adapter)" not in ran.out, "whose slots are held is not known"
