"""`plan` on files as people really write them: what is wrong is named by file, object, field and value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from function.cli.worlds.parsing import parse_documents
from function.cli.worlds.settling import LATE
from tests.cli.command import run, write
from tests.support import build

Plain = dict[str, Any]
ROOT = Path(__file__).parents[2]

LEVEL = "{0}: &{0} [" + ", ".join(["*{1}"] * 10) + "]\n"
FUSE = "kind: A\na: &a [1]\n" + "".join(LEVEL.format(*pair) for pair in ("ba", "cb", "dc", "ed"))
BOMB = FUSE + "".join(LEVEL.format(*pair) for pair in ("fe", "gf", "hg"))
MERGED = [", ".join([f"*b{n - 1}"] * 9) for n in range(1, 12)]
MERGES = "b0: &b0 {x: 1}\n" + "".join(f"b{n}: &b{n} {{<<: [{text}]}}\n" for n, text in enumerate(MERGED, 1))

STAIRS = "".join(f"{' ' * (800 * step)}{'- ' * 400}\n" for step in range(100)) + f"{' ' * 80_000}x\n"


def _fleet(nodes: int = 2, replicas: int = 2) -> list[Plain]:
    return [build.cluster("east", [build.pool("h100", nodes)]), build.deployment("chat", replicas)]


def _set(target: Any, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target[part]
    target[last] = value


@pytest.mark.parametrize(
    ("nodes", "code", "reason"),
    [(2, 0, "everything is placed"), (1, 2, "one replica has no place"), (0, 2, "none has a place")],
)
def test_exit_codes(nodes: int, code: int, reason: str, tmp_path: Path) -> None:
    assert run("plan", write(tmp_path / "f.yaml", _fleet(nodes))).code == code, reason


def test_a_coordinated_plan_has_all_its_inputs(tmp_path: Path) -> None:
    config = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
    ran = run("plan", write(tmp_path / "f.yaml", [*_fleet(), config | {"coordination": "GlobalOrder"}]))
    assert ran.code == 0, "both replicas are placed; nothing is waited for"


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        (
            1,
            "spec.replicas",
            "two",
            'ModelDeployment ml-team/chat: spec.replicas: expected a whole number, found "two"',
        ),
        (1, "spec.replicas", 1.5, "spec.replicas: expected a whole number, found 1.5"),
        (1, "spec.replicas", True, "spec.replicas: expected a whole number, found true"),
        (1, "spec.replicas", -1, "spec.replicas"),
        (1, "spec.template.spec.engines", [], "spec.template.spec.engines"),
        (1, "spec.template.spec.engines", "main", "spec.template.spec.engines: expected a list"),
        (0, "status.gpuPools", {"a": 1}, "InferenceCluster east: status.gpuPools: expected a list"),
        (0, "status.gpuPools.0.nodes", "many", "status.gpuPools[0].nodes"),
        (0, "spec.taints", [{"key": "k", "effect": "Never"}], "spec.taints[0].effect"),
        (0, "metadata.labels", {"tier": 1}, "metadata.labels.tier: expected a string, found 1"),
    ],
)
def test_a_wrong_value_is_named_by_file_object_field_and_value(
    kind: int, path: str, value: object, message: str, tmp_path: Path
) -> None:
    objects = _fleet()
    _set(objects[kind], path, value)
    file = write(tmp_path / "f.yaml", objects)
    ran = run("plan", file)
    assert ran.code == 1
    assert re.match(rf"error: {re.escape(str(file))}:\d+: ", ran.err)
    assert message in ran.err


@pytest.mark.parametrize(
    ("text", "message", "reason"),
    [
        ("", "there is no ModelDeployment in the files", "an empty file holds nothing to plan"),
        ("---\n---\n", "there is no ModelDeployment in the files", "empty documents are no objects"),
        ("a: [", "f.yaml: ", "broken YAML names the file"),
        ("a: 1\na: 2\n", 'line 2: the key "a" is given twice', "a key given twice hides one of the values"),
        (
            "kind: A\nkind: B\n",
            'line 2: the key "kind" is given twice; is a line --- missing between two objects?',
            "what `cat a.yaml b.yaml` makes of two files",
        ),
        ('{"a": 1, "a": 2}', 'the key "a" is given twice', "JSON is read as strictly"),
        ("1: 2\n", "line 1: a key must be a string, found 1", "Kubernetes has string keys only"),
        ("- 1\n", "expected an object, found a list", "a list is no object"),
        ("hello\n", "expected an object, found a string", "text is no object"),
        ("metadata: {name: x}\n", "kind: required, but missing", "an object without a kind"),
        ("a: &a [*a]\n", "recursive node", "an alias of itself"),
        ("a: &a {b: *a}\n", "recursive node", "or by way of a map"),
        (
            BOMB,
            "aliases expand 20 values to 23456800; write them out",
            "a kilobyte that is 23 million values",
        ),
        (MERGES, "aliases expand", "a kilobyte of maps merged into one another"),
        ("---\n".join([FUSE] * 30), "aliases expand", "many documents, none of which is too much"),
        ("a: 1\nb: {<<: 1}\n", "line 2: << takes a map, or a list of maps", "nothing to merge"),
        ("b: {<<: {a: 1}, c: 1, c: 2}\n", 'the key "c" is given twice', "beside a merge as well"),
        ('{"a": "\\ud800"}', "half a surrogate pair is no text", "JSON can escape what is no character"),
        ("[" * 3_000, "nested too deeply", "absurd nesting"),
        ("a: " + "[" * 300_000 + "]" * 300_000, "nested too deeply", "however deep and well formed"),
        ("- " * 300_000 + "x", "nested too deeply", "or without a bracket"),
        (STAIRS, "nested too deeply", "or over several lines, which ended Python"),
        *(
            (STAIRS.replace("\n", end), "nested too deeply", "or over lines that end otherwise")
            for end in ("\r\n", "\x85", "\u2028", "\u2029")
        ),
        (
            "apiVersion: modelplane.ai/v1alpha1\nkind: InferenceCluster\n",
            "metadata.name: required, but missing",
            "an object without a name",
        ),
        ("a: !!python/object/apply:os.getcwd []\n", "could not determine a constructor", "no code in YAML"),
        ("kind: A\n\x00", "f.yaml: ", "a control character"),
    ],
)
def test_odd_yaml_is_refused_with_its_place(text: str, message: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    ran = run("plan", file)
    assert ran.code == 1, reason
    assert message in ran.err, reason
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("b: &b {a: 1}\nc: {<<: *b, a: 2}\n", {"a": 2}, "what a map says itself wins"),
        ("b: &b {a: 1}\nc: {a: 2, <<: *b}\n", {"a": 2}, "wherever it stands"),
        ("b: &b {a: 1}\nd: &d {a: 2, e: 3}\nc: {<<: [*b, *d]}\n", {"a": 1, "e": 3}, "the first source wins"),
        ("b: &b {a: {x: 1}}\nc: {<<: *b, a: {y: 2}}\n", {"a": {"y": 2}}, "maps below are not merged"),
        ("b: &b {a: 1}\nd: &d {<<: *b, e: 2}\nc: {<<: *d}\n", {"a": 1, "e": 2}, "a merge of a merge"),
        ('c: {"<<": {a: 1}}\n', {"<<": {"a": 1}}, "a quoted key is a key"),
    ],
)
def test_maps_are_merged_as_yaml_says(text: str, value: Plain, reason: str) -> None:
    (document,) = parse_documents("f.yaml", text)
    assert isinstance(document, dict)
    assert document["c"] == value, reason


def test_aliases_that_save_writing_are_read() -> None:
    shared = "classes:\n- &h100 " + json.dumps({"devices": [{"count": n} for n in range(50)]}) + "\n"
    text = shared + "pools:\n" + "- *h100\n" * 500
    (document,) = parse_documents("f.yaml", text)
    assert isinstance(document, dict)
    assert len(document["pools"]) == 500


def test_files_that_are_not_there_or_not_text(tmp_path: Path) -> None:
    missing = run("plan", tmp_path / "nowhere.yaml")
    assert missing.code == 1
    assert "nowhere.yaml: no such file or directory" in missing.err
    (tmp_path / "f.yaml").write_bytes(b"\xff\xfe\x00")  # The mark of UTF-16, and half a character.
    assert "is not UTF-16: save the file as UTF-8" in run("plan", tmp_path / "f.yaml").err
    (tmp_path / "f.yaml").write_bytes(b"a: \xff")
    assert "is not UTF-8" in run("plan", tmp_path / "f.yaml").err


def test_the_same_object_twice_must_be_the_same(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.yaml", _fleet()), write(tmp_path / "b.yaml", _fleet())
    assert run("plan", first, second).code == 0
    write(tmp_path / "b.yaml", _fleet(nodes=7))
    ran = run("plan", first, second)
    assert ran.code == 1
    said = f"InferenceCluster east: stands in {first}:1 too, with other content: keep one of the two"
    assert f"{second}: line 1: {said}\n" in ran.err


def test_lists_directories_json_and_kinds_of_others_are_read(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": _fleet()}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    (tmp_path / "other.yml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
    (tmp_path / "notes.txt").write_text("not read")
    assert run("plan", tmp_path).code == 0
    assert run("plan", "-", stdin=(tmp_path / "list.json").read_text()).code == 0


def test_a_byte_order_mark_and_times_are_text(tmp_path: Path) -> None:
    text = yaml.safe_dump_all(_fleet()).replace("'2026-03-01T08:00:00Z'", "2026-03-01T08:00:00Z")
    (tmp_path / "f.yaml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    ran = run("plan", tmp_path / "f.yaml")
    assert (ran.code, ran.err) == (0, "")


def test_an_empty_fleet_places_nothing_and_says_so(tmp_path: Path) -> None:
    ran = run("plan", write(tmp_path / "f.yaml", [build.deployment("chat", 1)]))
    assert ran.code == 2
    assert "NoClusters" in ran.out
    assert "note: the files have no InferenceCluster; --context" in ran.err, "kubectl's users expect theirs"


def test_a_fleet_without_deployments_is_a_fleet(tmp_path: Path) -> None:
    """What a platform team has on its first day."""
    path = write(tmp_path / "f.yaml", [build.cluster("east", [build.pool("h100", 2)])])
    planned = run("plan", path)
    assert (planned.code, planned.out) == (0, "")
    assert "note: there is no ModelDeployment in the files: nothing is to be placed" in planned.err
    drawn = run("map", path, "-o", "svg")
    assert (drawn.code, "east" in drawn.out) == (0, True), drawn.err
    standing = run("verify", "--standing", path)
    assert (standing.code, "0 replicas on 1 cluster: nothing is overcommitted" in standing.out) == (0, True)
    assert run("whatif", path, "--drain", "east").code == 0
    assert "there is no ModelDeployment in the files" in run("verify", path).err, "a decision is about some"


def test_a_gateway_that_a_cluster_declares_is_its_address(tmp_path: Path) -> None:
    """Without a status, as its handler would publish it."""
    cluster = build.cluster("east", [build.pool("h100", 2)])
    del cluster["status"]
    cluster["spec"]["cluster"]["existing"] = {"gateway": {"address": "203.0.113.77"}}
    kind = {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": "any"}}
    inference_class = {**kind, "spec": {"devices": [build.gpu()]}}
    parent = build.deployment("chat", 1)
    replica = build.replica(parent, "east", 0, pools="h100", ready=True)
    ran = run("plan", write(tmp_path / "f.yaml", [cluster, inference_class, parent, replica]), "-o", "yaml")
    assert "assumed Ready, with the declared gateway" in ran.err
    assert "http://203.0.113.77/" in ran.out


def test_one_bad_cluster_costs_only_itself(tmp_path: Path) -> None:
    bad = build.cluster("bad", [build.pool("h100", 9)])
    bad["spec"]["taints"] = "none"
    ran = run("plan", write(tmp_path / "f.yaml", [*_fleet(), bad]))
    assert ran.code == 1
    assert "InferenceCluster bad: spec.taints: expected a list" in ran.err
    assert "Scheduled 2 of 2 replicas" in ran.out


def test_clusters_without_a_status_are_completed_from_their_classes(tmp_path: Path) -> None:
    cluster = build.cluster("east", [build.pool("h100", 2)])
    del cluster["status"]
    kind = {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": "any"}}
    inference_class = {**kind, "spec": {"devices": [build.gpu()]}}
    parent = build.deployment("chat", 2)
    ran = run("plan", write(tmp_path / "f.yaml", [cluster, inference_class, parent]))
    assert ran.code == 0
    assert "note: cluster east has no status: assumed Ready" in ran.err
    assert "derived from nodePools and their classes" in ran.err
    missing = run("plan", write(tmp_path / "f.yaml", [cluster, parent]))
    assert missing.code == 1
    assert 'spec.nodePools[0].className: no InferenceClass "any" in the files' in missing.err


@pytest.mark.parametrize(
    ("pool", "nodes", "reason"),
    [
        ({"nodeCount": 2, "maxNodeCount": 5}, 5, "nodes are maxNodeCount"),
        ({"nodeCount": 2}, 2, "else nodeCount"),
        ({}, 1, "else one, the default of the XRD"),
        ({"nodeCount": None}, 1, "null is not set"),
        ({"nodeCount": 0}, 0, "none is none"),
    ],
)
def test_published_nodes(pool: Plain, nodes: int, reason: str, tmp_path: Path) -> None:
    cluster = build.cluster("east", [build.pool("h100", 1)])
    del cluster["status"]
    cluster["spec"]["nodePools"] = [{"name": "h100", "className": "any", **pool}]
    kind = {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": "any"}}
    inference_class = {**kind, "spec": {"devices": [build.gpu()]}}
    ran = run("plan", write(tmp_path / "f.yaml", [cluster, inference_class, build.deployment("chat", 9)]))
    assert f"Scheduled {nodes} of 9 replicas" in ran.out, reason


def test_a_plan_that_places_all_says_that_it_is_done_and_what_is_waited_for(tmp_path: Path) -> None:
    """The condition is that of the contract, False `Scheduling`; on its own it reads like a failure."""
    file = write(tmp_path / "f.yaml", [build.cluster("a", [build.pool("h100", 1)]), build.deployment()])
    ran = run("plan", file)
    line = (
        "ReplicasScheduled: Scheduling: Scheduled 1 of 1 replica (placement is done; waiting for the replicas"
    )
    assert (ran.code, line in ran.out) == (0, True), ran.out


UNREADY = [
    ([], "nothing was said of it yet", "its Composition has not looked at it"),
    ([("Synced", "ReconcileError"), ("Ready", "Creating")], "Synced: ReconcileError", "the cause"),
    ([("Ready", "Creating"), ("ModelReady", "Unschedulable")], "ModelReady: Unschedulable", "its handler"),
]


@pytest.mark.parametrize(("conditions", "expected", "reason"), UNREADY)
def test_a_replica_that_is_not_ready_is_named_with_what_it_says(
    conditions: list[tuple[str, str]], expected: str, reason: str, tmp_path: Path
) -> None:
    objects = _fleet()
    replicas = [build.replica(objects[1], "east", index, ready=index == 0 or None) for index in range(2)]
    replicas[1]["status"] = {
        "conditions": [build.condition(kind, status=False, reason=why) for kind, why in conditions]
    }
    path, name = write(tmp_path / "f.yaml", [*objects, *replicas]), replicas[1]["metadata"]["name"]
    for words in (("plan",), ("why", "chat")):
        out = run(*words, path).out
        assert f"    not Ready: {name} on east: {expected}\n" in out, reason
        assert out.count("not Ready: ") == 1, reason
    other = build.replica(objects[1], "east", 2, ready=None)
    both = write(tmp_path / "both.yaml", [*objects, *replicas, {**other, "status": replicas[1]["status"]}])
    assert run("plan", both).out.count("not Ready: ") == 1, "alike ones are one line"
    (unready,) = run("why", "chat", path, "-o", "json").data["unready"]
    assert (unready["name"], unready["cluster"]) == (name, "east")


def test_what_keeps_the_control_plane_from_acting_is_said(tmp_path: Path) -> None:
    """What is planned here is not what happens there, and nothing else would tell."""
    objects = _fleet()
    refused = {**build.condition("Synced", status=False, reason="ReconcileError"), "message": "no answer"}
    late = build.condition("Responsive", status=False, reason="WatchCircuitOpen")
    objects[1]["metadata"] |= {"generation": 3}
    objects[1]["status"] = {"conditions": [{**refused, "observedGeneration": 2}, late]}
    path, stalled = (
        write(tmp_path / "f.yaml", objects),
        [
            "Synced: ReconcileError: no answer",
            "Crossplane has not acted on the last edit yet: generation 3, seen 2",
            f"Responsive: WatchCircuitOpen ({LATE})",
        ],
    )
    for words in (("plan",), ("why", "chat")):
        out = run(*words, path).out
        assert [line for line in out.splitlines() if line[4:] in stalled] == [
            f"  ✗ {text}" for text in stalled
        ]
    assert run("why", "chat", path, "-o", "json").data["stalled"] == stalled


def test_older_deployments_come_first_and_later_ones_see_what_they_took(tmp_path: Path) -> None:
    young, old = build.deployment("aaa", 2), build.deployment("zzz", 2)
    young["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    ran = run(
        "plan", write(tmp_path / "f.yaml", [build.cluster("east", [build.pool("h100", 3)]), young, old])
    )
    assert ran.out.index("ml-team/zzz") < ran.out.index("ml-team/aaa")
    assert "Scheduled 1 of 2 replicas" in ran.out.split("ml-team/aaa")[1]


def test_the_desired_resources_as_yaml_can_be_fed_back(tmp_path: Path) -> None:
    objects = _fleet()
    first = run("plan", write(tmp_path / "f.yaml", objects), "-o", "yaml")
    desired = [document for document in yaml.safe_load_all(first.out) if document]
    assert [manifest["kind"] for manifest in desired] == ["ModelReplica", "ModelReplica"]
    again = run("plan", write(tmp_path / "f.yaml", [*objects, *desired]), "-o", "yaml")
    assert again.out == first.out


@pytest.mark.parametrize("arguments", [["nope"], ["drift"], ["plan", "--nope", "x"], ["--nope"]])
def test_wrong_usage_is_bad_input(arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.code == 1
    assert "Usage: " in ran.err


def test_every_command_explains_itself_with_exit_codes_and_an_example() -> None:
    listed = run("--help").out.split("Commands:")[1]
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]
    assert {"plan", "whatif", "headroom", "snapshot"} <= set(names)
    for name in names:
        help_text = run(name, "--help").out
        assert "Exit codes:" in help_text, name
        assert "Example:" in help_text or "Examples:" in help_text or name == "completion", name
        assert r"\b" not in help_text, name


def test_the_example_is_planned_as_it_stands() -> None:
    ran = run("plan", ROOT / "example")
    lines = ran.err.splitlines()
    assert lines[0].endswith("have different SchedulerConfigs; the first is taken for all")
    assert lines[1].startswith("note: ignored ")
    assert all("(gpu-east, gpu-west)" in line for line in lines[2:]), "nobody has published those two yet"
    assert ran.code == 2


def test_what_a_file_says_never_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    objects = _fleet()
    _set(objects[1], "metadata.name", "x\x1b[31m\ny")
    ran = run("plan", write(tmp_path / "f.yaml", objects))
    assert "\x1b" not in ran.out
    assert r"x\x1b[31m\ny" in ran.out


def test_long_names_keep_their_telling_end_and_no_column_is_lost(tmp_path: Path) -> None:
    objects = _fleet()
    _set(objects[1], "metadata.name", "m" * 253)
    _set(objects[0], "metadata.name", "c" * 253)
    lines = run("plan", write(tmp_path / "f.yaml", objects)).out.splitlines()
    header = next(line for line in lines if line.startswith("REPLICA"))
    assert header.split() == ["REPLICA", "CLUSTER", "INDEX", "POOLS", "ACTION", "WHY"]
    row = lines[lines.index(header) + 1]
    assert re.match(r"m+…m*-[0-9a-f]{5}  c+…c{12}  0 +\S", row)


def test_a_value_no_selector_can_read_names_the_pool_and_the_device(tmp_path: Path) -> None:
    objects = _fleet()
    pools = objects[0]["status"]["gpuPools"]
    pools[0]["devices"][0]["capacity"] = {"memory": {"value": "80 GB"}}
    ran = run("plan", write(tmp_path / "f.yaml", objects))
    assert ran.code == 1
    assert "capacity memory: not a quantity: '80 GB'" in ran.err


def test_an_object_of_ours_without_an_api_version_is_not_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("kind: ModelDeployment\nmetadata: {name: x}\n")
    ran = run("plan", file)
    assert ran.code == 1
    assert "ModelDeployment (object 1): apiVersion: required, but missing" in ran.err
