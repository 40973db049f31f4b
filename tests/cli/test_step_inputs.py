"""The inputs of our steps: from a Composition as from their own objects, and named where they are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.dispatch import run as answer
from tests.cli.command import run, write
from tests.support import build
from tests.support.optins import INPUT
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]

FLEET = [
    build.cluster("east", [build.pool("h100", 1)]),
    build.deployment("chat", 1),
]


def composition(name: str = "fleet", *, of: str = "ModelDeployment", **settings: object) -> Plain:
    """A Composition whose second step is ours."""
    steps = [
        {
            "step": "other",
            "functionRef": {"name": "x"},
            "input": {"apiVersion": "x.io/v1", "kind": "Resources"},
        },
        {"step": "place", "functionRef": {"name": "fleet-scheduler"}, "input": {**INPUT, **settings}},
    ]
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {"compositeTypeRef": {"kind": of}, "mode": "Pipeline", "pipeline": steps},
    }


def test_a_composition_in_the_files_says_what_its_step_is_given(tmp_path: Path) -> None:
    given = write(tmp_path / "input.yaml", [*FLEET, {**INPUT, "explain": "Status"}])
    composed = write(tmp_path / "composition.yaml", [*FLEET, composition(explain="Status")])
    without = write(tmp_path / "none.yaml", FLEET)
    words = ("plan", "-o", "json")
    assert run(*words, composed).out == run(*words, given).out
    assert run("snapshot", composed).out == run("snapshot", given).out
    assert run("snapshot", composed).out != run("snapshot", without).out
    assert "ignored" not in run("plan", composed).err


def test_an_object_of_its_own_counts_before_a_composition(tmp_path: Path) -> None:
    path = write(tmp_path / "fleet.yaml", [*FLEET, composition(capacity="Published"), INPUT])
    assert "capacity: Published" not in run("snapshot", path).out


def test_the_composition_of_the_deployments_counts_before_others(tmp_path: Path) -> None:
    deployment = build.deployment("chat", 1)
    deployment["spec"]["crossplane"] = {"compositionRef": {"name": "second"}}
    others = [composition("first", capacity="Replicas"), composition("second", capacity="Published")]
    ran = run("snapshot", write(tmp_path / "fleet.yaml", [FLEET[0], deployment, *others]))
    assert "capacity: Published" in ran.out
    assert "different" not in ran.err


def test_compositions_that_differ_are_said(tmp_path: Path) -> None:
    others = [composition("first", capacity="Replicas"), composition("second", capacity="Published")]
    ran = run("plan", write(tmp_path / "fleet.yaml", [*FLEET, *others]))
    assert "the Compositions first, second have different SchedulerConfigs; the first is taken" in ran.err


def test_several_inputs_are_said(tmp_path: Path) -> None:
    several = [{**INPUT, "metadata": {"name": name}} for name in ("one", "two")]
    ran = run("plan", write(tmp_path / "fleet.yaml", [*FLEET, *several]))
    assert "2 SchedulerConfigs are given" in ran.err
    assert "SchedulerConfig default/one" in ran.err


def test_two_compositions_of_one_name_contradict(tmp_path: Path) -> None:
    others = [composition(capacity="Replicas"), composition(capacity="Published")]
    ran = run("plan", write(tmp_path / "fleet.yaml", [*FLEET, *others]))
    assert ran.code == 1
    assert "Composition fleet: stands in" in ran.err


COMMANDS = (("plan",), ("why", "chat"), ("verify",), ("headroom",), ("lint",), ("snapshot",), ("map",))


@pytest.mark.parametrize("words", COMMANDS)
def test_a_wrong_value_names_composition_step_field_value_and_line(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    path = write(tmp_path / "fleet.yaml", [*FLEET, composition(capacity="Some")])
    ran = run(*words, path)
    assert ran.code == 1
    line = path.read_text().splitlines().index("      capacity: Some") + 1
    said = ran.out + ran.err
    assert f"{path}:{line}:" in said
    subject = "SchedulerConfig of Composition fleet, step place: capacity: expected 'Replicas' or 'Published'"
    assert f'{subject}, found "Some"' in said


def test_a_slip_in_the_kind_of_an_input_is_said(tmp_path: Path) -> None:
    wrong = composition(kind="SchedulerConfi")
    ran = run("lint", write(tmp_path / "fleet.yaml", [*FLEET, wrong]))
    assert "SchedulerConfi of Composition fleet, step place: kind:" in ran.out
    assert "SchedulerConfig" in ran.out


def test_an_invalid_input_is_no_reason_to_call_the_decision_wrong(tmp_path: Path) -> None:
    """While it is invalid nothing new is placed: nobody is left out."""
    path = write(tmp_path / "fleet.yaml", [*FLEET, {**INPUT, "capacity": "Some"}])
    ran = run("verify", path, "-o", "json")
    assert (ran.code, ran.data["decision"]) == (1, [])


def test_a_placement_under_an_invalid_input_breaks_a_rule(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(run("plan", "-o", "yaml", write(tmp_path / "good.yaml", FLEET)).out)
    path = write(tmp_path / "fleet.yaml", [*FLEET, {**INPUT, "capacity": "Some"}])
    ran = run("verify", path, "--decision", plan, "-o", "json")
    assert [finding["rule"] for finding in ran.data["decision"]] == ["InvalidInput"]


def test_a_request_names_the_composition_that_crossplane_chose() -> None:
    deployment = build.deployment("chat", 1)
    deployment["spec"]["crossplane"] = {"compositionRef": {"name": "production"}}
    world = World(deployment, clusters=[FLEET[0]], replicas=[], input={**INPUT, "capacity": "Some"})
    (scheduled,) = (
        condition for condition in answer(world.request()).conditions if condition.type == "ReplicasScheduled"
    )
    assert scheduled.message.startswith(
        'The function\'s input is invalid: SchedulerConfig of Composition "production": capacity: expected '
    )
    assert 'found "Some"' in scheduled.message
