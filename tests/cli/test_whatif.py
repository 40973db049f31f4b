"""`whatif` is `plan` on changed files, pass after pass: compared with really changing them."""

from __future__ import annotations

import copy
import json
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.command import run, write
from tests.cli.fleets import SEEDS, fleet, settled
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Plain = dict[str, Any]


def _named(objects: list[Plain], kind: str, name: str) -> Plain:
    return next(
        manifest for manifest in objects if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name)
    )


def _drain(objects: list[Plain], name: str) -> list[Plain]:
    _named(objects, "InferenceCluster", name)["spec"].setdefault("taints", []).append(
        {"key": "fleet-scheduler.whatif/drain", "effect": "NoExecute"}
    )
    return objects


def _delete(objects: list[Plain], name: str) -> list[Plain]:
    return [
        manifest
        for manifest in objects
        if (manifest["kind"], manifest["metadata"]["name"]) != ("InferenceCluster", name)
    ]


def _add(objects: list[Plain], name: str, pool: str, nodes: int) -> list[Plain]:
    cluster = _named(objects, "InferenceCluster", name)
    for entry in cluster["spec"]["nodePools"]:
        entry["nodeCount"] += nodes if entry["name"] == pool else 0
    for entry in cluster["status"]["gpuPools"]:
        entry["nodes"] += nodes if entry["name"] == pool else 0
    return objects


def _scale(objects: list[Plain], name: str, replicas: int) -> list[Plain]:
    _named(objects, "ModelDeployment", name)["spec"]["replicas"] = replicas
    return objects


def _change(draw: random.Random, objects: list[Plain]) -> tuple[list[str], list[Plain]]:
    """Draw some changes: as options, and made by hand."""
    clusters = [manifest for manifest in objects if manifest["kind"] == "InferenceCluster"]
    deployments = [
        manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "ModelDeployment"
    ]
    options: list[str] = []
    changed = copy.deepcopy(objects)
    if draw.random() < 0.4:
        name, count = draw.choice(deployments), draw.randint(0, 6)
        options += ["--replicas", f"{build.NAMESPACE}/{name}={count}"]
        changed = _scale(changed, name, count)
    on = draw.choice(clusters)
    name, pool = on["metadata"]["name"], draw.choice(on["status"]["gpuPools"])["name"]
    if draw.random() < 0.4:
        options += ["--add-nodes", f"{name}/{pool}=2"]
        changed = _add(changed, name, pool, 2)
    if draw.random() < 0.5 or not options:
        name = draw.choice(clusters)["metadata"]["name"]
        option, edit = draw.choice((("--drain", _drain), ("--delete", _delete)))
        options += [option, name]
        changed = edit(changed, name)
    return options, changed


def _placements(desired: Mapping[tuple[str, str, str], Plain]) -> dict[str, set[tuple[str, str]]]:
    placements: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for (kind, namespace, name), manifest in desired.items():
        if kind == "ModelReplica":
            owner = manifest["metadata"]["labels"]["modelplane.ai/deployment"]
            placements[f"{namespace}/{owner}"].add((name, manifest["spec"]["clusterName"]))
    return placements


@pytest.mark.parametrize("seed", SEEDS)
def test_whatif_equals_changing_the_yaml_and_running_plan(seed: int, tmp_path: Path) -> None:
    objects = fleet(seed)
    options, changed = _change(random.Random(seed), objects)
    said = run("whatif", write(tmp_path / "fleet.yaml", objects), *options, "-o", "json")
    assert said.code in (0, 2), said.err
    _, before = settled(tmp_path / "before.yaml", objects)
    _, after = settled(tmp_path / "after.yaml", changed)
    for deployment in said.data["deployments"]:
        for side, desired in (("before", before), ("after", after)):
            placements = {(one["name"], one["cluster"]) for one in deployment[side]["replicas"]}
            assert placements == _placements(desired)[deployment["deployment"]], (seed, options, side)


def _two_clusters(nodes: int = 2) -> list[Plain]:
    clusters = [build.cluster(name, [build.pool("h100", nodes)]) for name in ("east", "west")]
    parent = build.deployment("chat", 2)
    running = [build.replica(parent, name, 0, ready=True) for name in ("east", "west")]
    return [*clusters, parent, *running, *(build.endpoint(replica) for replica in running)]


def test_a_drain_with_room_elsewhere_moves_and_nobody_is_worse_off(tmp_path: Path) -> None:
    ran = run("whatif", write(tmp_path / "f.yaml", _two_clusters()), "--drain", "east", "-o", "json")
    (chat,) = ran.data["deployments"]
    assert ran.code == 0
    assert (chat["moves"], chat["shortfall"], chat["servingAtWorst"]) == (1, 0, 1)
    assert [replica["cluster"] for replica in chat["leaving"]] == ["east"]
    assert chat["leaving"][0]["why"].startswith("its cluster has an untolerated NoExecute taint")
    assert [item["cluster"] for item in chat["arriving"]] == ["west"]
    assert len(chat["endpointsGone"]) == 1
    assert ran.data["settles"]


def test_a_drain_without_room_is_stuck_and_says_why(tmp_path: Path) -> None:
    ran = run("whatif", write(tmp_path / "f.yaml", _two_clusters(nodes=1)), "--drain", "east")
    assert ran.code == 2
    assert "2 of 2 → 1 of 2" in ran.out
    assert "stuck: PartiallyScheduled" in ran.out
    assert "insufficient nodes" in ran.out


def test_an_object_that_cannot_be_read_hides_no_change_of_the_others(tmp_path: Path) -> None:
    unreadable = build.deployment("other", 1)
    unreadable["spec"]["replicas"] = "two"
    path = write(tmp_path / "f.yaml", [*_two_clusters(nodes=1), unreadable])
    ran = run("whatif", path, "--drain", "east", "-o", "json")
    chat = next(entry for entry in ran.data["deployments"] if entry["deployment"].endswith("/chat"))
    assert ran.code == 1, "something cannot be read"
    assert (chat["worse"], chat["before"]["placed"], chat["after"]["placed"]) == (True, 2, 1)


def test_added_nodes_unstick_it(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _two_clusters(nodes=1))
    ran = run("whatif", path, "--drain", "east", "--add-nodes", "west/h100=1")
    assert ran.code == 0
    assert "2 of 2 → 2 of 2" in ran.out


def test_the_last_cluster_deleted_is_doubt_and_keeps_everything(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _two_clusters())
    ran = run("whatif", path, "--delete", "east", "--delete", "west", "-o", "json")
    assert ran.data["deployments"][0]["leaving"] == []


def test_a_taint_is_taken_off(tmp_path: Path) -> None:
    objects = _drain(_two_clusters(nodes=1), "east")
    path = write(tmp_path / "f.yaml", objects)
    ran = run("whatif", path, "--taint", "east=fleet-scheduler.whatif/drain:NoExecute-", "-o", "json")
    (chat,) = ran.data["deployments"]
    assert (chat["before"]["placed"], chat["after"]["placed"]) == (1, 2)


def test_an_applied_object_replaces_its_spec_and_others_are_added(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _two_clusters())
    changed = build.deployment("chat", 1)
    new = build.cluster("north", [build.pool("h100", 1)])
    applied = write(tmp_path / "c.yaml", [changed, new])
    ran = run("whatif", path, "--apply", applied, "--drain", "east", "--drain", "west", "-o", "json")
    (chat,) = ran.data["deployments"]
    assert [replica["cluster"] for replica in chat["after"]["replicas"]] == ["north"]


TAINT = [build.taint("maintenance", "NoExecute")]
LAST_APPLIED: list[tuple[Any, int, str]] = [
    (lambda _: None, 2, "not known whose the taint is: the manifest is taken as a whole"),
    (json.dumps, 1, "somebody else tainted it since: kubectl leaves the taint"),
    (
        lambda bare: json.dumps({**bare, "spec": {**bare["spec"], "taints": TAINT}}),
        2,
        "it was applied with the taint, and is now without",
    ),
    (lambda _: "{", 2, "an annotation that is no JSON"),
]


@pytest.mark.parametrize(("last", "placed", "reason"), LAST_APPLIED, ids=[case[2] for case in LAST_APPLIED])
def test_what_others_set_since_the_last_apply_stays(
    last: Callable[[Plain], str | None], placed: int, reason: str, tmp_path: Path
) -> None:
    objects = _two_clusters(nodes=1)
    bare = copy.deepcopy(objects[0])
    objects[0]["spec"]["taints"] = TAINT
    if (text := last(bare)) is not None:
        objects[0]["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": text}
    applied = write(tmp_path / "c.yaml", [bare])
    ran = run("whatif", write(tmp_path / "f.yaml", objects), "--apply", applied, "-o", "json")
    (chat,) = ran.data["deployments"] or [{"after": {"placed": 1}}]
    assert chat["after"]["placed"] == placed, reason


@pytest.mark.parametrize(
    ("last", "placed", "reason"),
    [({}, 1, "somebody else's label stays"), ({"region": "here"}, 0, "one that the manifest had is gone")],
)
def test_a_label_goes_with_the_manifest_that_gave_it(
    last: Plain, placed: int, reason: str, tmp_path: Path
) -> None:
    bare = build.cluster("east", [build.pool("h100", 1)])
    cluster = copy.deepcopy(bare)
    text = json.dumps({**bare, "metadata": {**bare["metadata"], "labels": last}})
    cluster["metadata"] |= {
        "labels": {"region": "here"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": text},
    }
    deployment = build.deployment("chat", 1)
    deployment["spec"]["template"]["spec"]["clusterSelector"] = {"matchLabels": {"region": "here"}}
    path = write(tmp_path / "f.yaml", [cluster, deployment])
    ran = run("whatif", path, "--apply", write(tmp_path / "c.yaml", [bare]), "-o", "json")
    (chat,) = ran.data["deployments"] or [{"after": {"placed": 1}}]
    assert chat["after"]["placed"] == placed, reason


def test_a_changed_class_is_published_anew(tmp_path: Path) -> None:
    device = build.gpu(8)
    kind = {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": "any"}}
    objects = [*_two_clusters(), {**kind, "spec": {"devices": [device]}}]
    weaker = {**kind, "spec": {"devices": [{**device, "driver": "other.example.com"}]}}
    path, applied = write(tmp_path / "f.yaml", objects), write(tmp_path / "c.yaml", [weaker])
    ran = run("whatif", path, "--apply", applied, "-o", "json")
    (chat,) = ran.data["deployments"]
    assert ran.code == 2
    assert chat["after"]["reason"] == "ReplacementBlocked"
    assert chat["after"]["held"] == 2


def test_replicas_of_deployments_that_are_not_given_are_named(tmp_path: Path) -> None:
    stranger = build.replica(build.deployment("other", 1), "east", 0)
    path = write(tmp_path / "f.yaml", [*_two_clusters(), stranger])
    ran = run("whatif", path, "--drain", "east")
    assert "other-" in ran.out
    assert "is not forecast" in ran.out


@pytest.mark.parametrize(
    ("options", "message", "reason"),
    [
        ([], "nothing to change", "a question without a change has no answer"),
        (
            ["--drain", "eats"],
            'there is no InferenceCluster "eats"; did you mean east',
            "a typo is named",
        ),
        (["--delete", "x"], 'no InferenceCluster "x"', "an unknown cluster cannot be deleted"),
        (["--add-nodes", "east/h200=1"], 'has no pool "h200"; did you mean h100', "an unknown pool"),
        (["--add-nodes", "east/h100"], "expected CLUSTER/POOL=N", "the form of the option is said"),
        (["--add-nodes", "east/h100=-9"], "has only 2 nodes to take away", "nodes cannot go below none"),
        (["--replicas", "ml-team/chta=1"], "did you mean ml-team/chat", "an unknown deployment"),
        (["--replicas", "ml-team/chat=999"], "spec.replicas", "the API allows at most 200"),
        (
            ["--taint", "east=k:Never"],
            ":NoSchedule|NoExecute[-]",
            "an unknown effect",
        ),
        (["--taint", "east=k:NoExecute-"], "has no taint k:NoExecute", "a taint that is not there"),
        (["--apply", "/nowhere.yaml"], "/nowhere.yaml: no such file", "a file that is not there"),
    ],
)
def test_bad_questions_are_refused_by_name(
    options: list[str], message: str, reason: str, tmp_path: Path
) -> None:
    ran = run("whatif", write(tmp_path / "f.yaml", _two_clusters()), *options)
    assert ran.code == 1, reason
    assert message in ran.err, reason


ONE: Plain = {"rollout": {"maxUnavailable": 1}}
BY_SURGE: Plain = {
    "disruption": {"maxUnavailable": 0, "maxSurge": 1},
    "rollout": {"maxUnavailable": 0},
}


def _edited(tmp_path: Path, placement: Plain | None, image: str = "vllm/vllm-openai:v0.24.0") -> list[Any]:
    """Write a fleet and an edit of its one deployment's image; return the arguments of whatif."""
    objects = _two_clusters()
    parent = objects[2]
    if placement is not None:
        parent["spec"]["placement"] = placement
    edited = copy.deepcopy(parent)
    edited["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"] = build.template(image)
    return [write(tmp_path / "f.yaml", objects), "--apply", write(tmp_path / "edit.yaml", [edited])]


NAMED = ("updates", "places", "leaves")
EDITS = [
    (ONE, [(["west"], [], [], 1), (["east"], [], [], 0)], 1, "one after the other"),
    (None, [(["east", "west"], [], [], 0)], 0, "without a rollout all at once: an outage"),
    (
        BY_SURGE,
        [([], ["west"], [], 2), ([], ["east"], ["west"], 1), ([], [], ["east"], 0)],
        2,
        "by surge another is in service before one leaves",
    ),
]


@pytest.mark.parametrize(("placement", "steps", "least", "reason"), EDITS, ids=[one[3] for one in EDITS])
def test_an_edit_of_the_image_is_shown_step_by_step(
    placement: Plain | None, steps: list[Any], least: int, reason: str, tmp_path: Path
) -> None:
    ran = run("whatif", *_edited(tmp_path, placement), "-o", "json")
    (chat,) = ran.data["deployments"]
    rollout = [
        (
            *([name.partition("/")[0] for name in step[key]] for key in ("updates", "places", "leaves")),
            step["waiting"],
        )
        for step in chat["rollout"]["steps"]
    ]
    assert (rollout, chat["rollout"]["paused"]) == (steps, ""), reason
    assert (chat["changed"], chat["servingAtWorst"]) == (True, least), reason
    assert (chat["worse"], ran.code) == ((False, 0) if least else (True, 2)), reason
    assert ran.data["settles"]


def test_the_steps_in_words(tmp_path: Path) -> None:
    ran = run("whatif", *_edited(tmp_path, ONE))
    east, west = (f"{on}/{build.composed_name('chat', on, 0)}" for on in ("east", "west"))
    assert "its template, step by step, each when what the one before started is in service:" in ran.out
    assert f"  1. update {west}; 1 waits" in ran.out
    assert f"  2. update {east}" in ran.out
    assert "in service at worst: 1 (without the change 2)" in ran.out


def test_an_outage_on_the_way_is_worse_off(tmp_path: Path) -> None:
    """Nothing is missing in the end, and for a while nobody is served."""
    ran = run("whatif", *_edited(tmp_path, None))
    assert ran.code == 2
    assert "1 deployment is worse off" in ran.out
    assert "✗ ml-team/chat  2 of 2 → 2 of 2 replicas" in ran.out
    assert "in service at worst: 0 (without the change 2)" in ran.out
    assert "placement.rollout updates replica by replica" in ran.out
    assert run("whatif", tmp_path / "f.yaml", "--replicas", "ml-team/chat=0").code == 0, "as asked for"


def test_an_edit_of_what_has_no_replicas_in_the_files_concerns_it(tmp_path: Path) -> None:
    fleet, apply, edited = _edited(tmp_path, ONE)
    objects = [plain for plain in yaml.safe_load_all(fleet.read_text()) if plain["kind"] != "ModelReplica"]
    ran = run("whatif", write(fleet, objects), apply, edited)
    assert "✓ ml-team/chat" in ran.out
    assert "its spec is edited: the files have no replicas of it" in ran.out
    assert "not concerned" not in ran.out


def test_a_rollout_that_comes_to_no_end_says_why(tmp_path: Path) -> None:
    """A wanted replica that has no place uses the budget up."""
    arguments = _edited(tmp_path, ONE)
    ran = run("whatif", *arguments, "--replicas", "ml-team/chat=9", "-o", "json")
    (chat,) = ran.data["deployments"]
    assert [step["waiting"] for step in chat["rollout"]["steps"]] == [2]
    assert chat["rollout"]["paused"].endswith("until 5 more are placed and in service")
    ran = run("whatif", *arguments, "--replicas", "ml-team/chat=9")
    assert "and no further: 2 of 4 replicas updated; 2 wait" in ran.out


def test_an_edit_that_restarts_nothing_has_no_steps(tmp_path: Path) -> None:
    ran = run("whatif", *_edited(tmp_path, ONE, image="vllm/vllm-openai:v0.23.0"), "-o", "json")
    (chat,) = ran.data["deployments"]
    assert (chat["changed"], chat["rollout"]) == (False, {"steps": [], "paused": ""})


def test_the_help_has_effects_of_taints_as_they_are_written() -> None:
    assert "--taint CLUSTER=KEY[=VALUE]:NoSchedule|NoExecute[-]" in run("whatif", "--help").out
