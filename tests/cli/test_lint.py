"""What `lint` finds, in every form, and what it leaves to others."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.command import run, write
from tests.cli.mistakes import COMPOSITION, MISTAKES, folder
from tests.schema.crds import ROOT
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]

MISTAKE = MISTAKES[0]
EXPLAIN, ADMISSION = ("deployment/explain/lint.py", "cli/admission/__init__.py")
LINT = [ROOT / "function" / file for file in (EXPLAIN, ADMISSION)]
CODE = re.compile(
    r'"((?:Unknown|Never|Decode|Invalid|Rule|Does|Count|May|Needs|Below)[A-Z][A-Za-z]*|Unreadable)"'
)
"""How a code is written in a source."""


def test_text_has_file_line_column_level_and_code(tmp_path: Path) -> None:
    ran = run("lint", folder(tmp_path, MISTAKE))
    (line,) = ran.out.splitlines()
    assert line.startswith(f"{tmp_path / 'chat.yaml'}:13:9: error: ModelDeployment ml/chat: spec.template")
    assert line.endswith(" [UnknownField]")
    assert ran.err == "14 objects in 14 files: 1 error, 0 warnings\n"


def test_a_selector_has_a_caret_under_its_mistake(tmp_path: Path) -> None:
    mistake = next(
        rejection for rejection in MISTAKES if rejection.reason == "a selector that does not compile"
    )
    _, source, caret = run("lint", folder(tmp_path, mistake)).out.splitlines()
    assert source[caret.index("^") :].startswith(".attribute[")


def test_github_gets_an_annotation_on_the_line(tmp_path: Path) -> None:
    out = run("lint", folder(tmp_path, MISTAKE), "-o", "github").out
    file = str(tmp_path / "chat.yaml").replace(":", "%3A").replace(",", "%2C")
    assert out.startswith(f"::error file={file},line=13,col=9,title=UnknownField::ModelDeployment ml/chat: ")
    assert out.count("\n") == 1


def test_an_annotation_cannot_be_ended_by_what_a_file_says(tmp_path: Path) -> None:
    parent = build.deployment("chat", 1)
    parent["spec"]["a%\n::error::forged"] = 1
    out = run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "github").out
    assert out.count("\n") == 1
    assert "%25" in out


def test_sarif_names_rules_and_places(tmp_path: Path) -> None:
    log = run("lint", folder(tmp_path, MISTAKE), "-o", "sarif").data
    assert log["version"] == "2.1.0"
    (run_,) = log["runs"]
    (result,) = run_["results"]
    assert run_["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "UnknownField"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (tmp_path / "chat.yaml").as_uri()
    assert place["region"] == {"startLine": 13, "startColumn": 9}
    assert result["level"] == "error"


def test_a_file_that_cannot_be_parsed_hides_no_other(tmp_path: Path) -> None:
    folder(tmp_path, MISTAKE)
    (tmp_path / "broken.yaml").write_text("kind: [\n")
    (tmp_path / "bytes.yaml").write_bytes(b"kind: \xff\n")
    problems = run("lint", tmp_path, "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems] == ["Unreadable", "Unreadable", "UnknownField"]
    assert problems[1]["message"] == "line 1: byte 0xff is not UTF-8: save the file as UTF-8"


def test_two_files_that_contradict_each_other_hide_nothing(tmp_path: Path) -> None:
    text = (folder(tmp_path, MISTAKE) / "chat.yaml").read_text()
    other = tmp_path / "later.yaml"
    other.write_text(text.replace("replicas: 3", "replicas: 5"))
    ran = run("lint", tmp_path)
    said = f"stands in {tmp_path / 'chat.yaml'}:1 too, with other content: keep one of the two"
    assert f"{other}:1:1: error: ModelDeployment ml/chat: {said} [Unreadable]" in ran.out
    assert "unknown field" in ran.out, "what is wrong with the first one is said too"


def test_standard_input_and_lists_have_lines_too(tmp_path: Path) -> None:
    text = (folder(tmp_path, MISTAKE) / "chat.yaml").read_text()
    listed = "apiVersion: v1\nkind: List\nitems:\n- " + text.replace("\n", "\n  ").rstrip() + "\n"
    (problem,) = run("lint", "-", "-o", "json", stdin=listed).data["problems"]
    assert (problem["file"], problem["line"], problem["column"]) == ("standard input", 16, 11)


def test_objects_of_others_are_counted_in_a_note(tmp_path: Path) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {}}
    ran = run("lint", write(tmp_path / "f.yaml", [other, other]))
    assert ran.code == 0
    assert "note: ignored 2 objects of kinds that are not read: 2 ConfigMap\n" in ran.err


def _fleet() -> list[Plain]:
    parent = build.deployment("chat", 2)
    return [parent, *(build.cluster(name, [build.pool("h100", 2)], labels={"zone": "a"}) for name in "xy")]


def _set(plain: Plain, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for step in parents:
        plain = plain.setdefault(step, {})
    plain[last] = value


@pytest.mark.parametrize(
    ("path", "value", "code", "reason"),
    [
        (
            "spec.template.spec.clusterSelector",
            {"matchLabels": {"zoen": "a"}},
            "UnknownLabel",
            "no such label",
        ),
        (
            "spec.placement",
            {"topologySpread": [{"topologyKey": "rack"}]},
            "UnknownLabel",
            "nothing to spread on",
        ),
        ("spec.placement", {"maxReplicasPerCluster": 1}, "", "two replicas on two clusters"),
        ("spec.template.spec.modelCacheRef", {"name": "w"}, "UnknownCache", "a cache of another namespace"),
    ],
)
def test_what_will_not_work_is_a_warning(
    path: str, value: Any, code: str, reason: str, tmp_path: Path
) -> None:
    objects = _fleet()
    cache = build.cache("w", {})
    cache["metadata"]["namespace"] = "elsewhere"
    _set(objects[0], path, value)
    ran = run("lint", write(tmp_path / "f.yaml", [*objects, cache]), "-o", "json")
    assert [problem["code"] for problem in ran.data["problems"]] == ([code] if code else []), reason
    assert ran.code == (2 if code else 0), reason


def test_what_was_meant_is_said_of_caches_and_labels(tmp_path: Path) -> None:
    objects = _fleet()
    _set(objects[0], "spec.template.spec.modelCacheRef", {"name": "wieghts"})
    _set(objects[0], "spec.placement", {"topologySpread": [{"topologyKey": "zoen"}]})
    ran = run("lint", write(tmp_path / "f.yaml", [*objects, build.cache("weights", {})]), "-o", "json")
    messages = [problem["message"] for problem in ran.data["problems"]]
    assert messages == [
        'no ModelCache "wieghts" in namespace ml-team in the files; did you mean weights?',
        "no cluster has the label zoen; the nearest is zone",
    ]


@pytest.mark.parametrize(
    ("selectors", "expected", "reason"),
    [
        ([{"x": "a"}, {"x": "b"}], [], "each has nodes of its own"),
        ([{"x": "a"}, {"x": "a"}], ["SharedNodes"], "one set of nodes for both"),
        ([{"x": "a"}, {"x": "a", "y": "b"}], ["SharedNodes"], "all nodes of one are the other's, too"),
        ([None, {"x": "a"}], [], "the label of the pool by default"),
        ([None, {"modelplane.ai/pool": "p0"}], ["SharedNodes"], "which another may name"),
    ],
)
def test_two_pools_select_other_nodes(
    selectors: list[Plain | None], expected: list[str], reason: str, tmp_path: Path
) -> None:
    made = build.cluster("a", [build.pool(f"p{at}") for at in range(len(selectors))])
    pools = zip(made["spec"]["nodePools"], selectors, strict=True)
    made["spec"]["nodePools"] = [
        pool | ({"nodeSelector": labels} if labels else {}) for pool, labels in pools
    ]
    problems = run("lint", write(tmp_path / "f.yaml", [made]), "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems] == expected, (reason, problems)


@pytest.mark.parametrize(
    ("quotas", "expected", "reason"),
    [
        ([("a", "", 2), ("b", "", 2)], [], "all can be had at once"),
        ([("a", "", 3), ("b", "", 2)], ["quotas[0]", "quotas[1]"], "together it is too much"),
        ([("a", 'node.name == "p0"', 3)], ["quotas[0]"], "its own pools have fewer"),
        ([("a", 'node.name == "p0"', 2), ("b", "", 2)], [], "who is on other pools, too, may go there"),
        ([("a", 'node.name == "p0"', 2), ("b", "", 3)], ["quotas[1]"], "but not to more than there is"),
    ],
)
def test_no_more_is_guaranteed_than_there_is(
    quotas: list[tuple[str, str, int]], expected: list[str], reason: str, tmp_path: Path
) -> None:
    config = {
        "apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1",
        "kind": "SchedulerConfig",
        "metadata": {"name": "input"},
        "overcommit": "Yield",
        "quotas": [
            {"name": name, "namespaces": [name], "guaranteed": {"nodes": nodes}}
            | ({"cel": cel} if cel else {})
            for name, cel, nodes in quotas
        ],
    }
    fleet = build.cluster("a", [build.pool("p0", 2), build.pool("p1", 2)])
    problems = run("lint", write(tmp_path / "f.yaml", [fleet, config]), "-o", "json").data["problems"]
    guaranteed = [problem["field"] for problem in problems if problem["code"] == "OverGuaranteed"]
    assert guaranteed == [f"{where}.guaranteed.nodes" for where in expected], (reason, problems)


@pytest.mark.parametrize(
    ("first", "second", "expected", "reason"),
    [
        ('== "gpu.nvidia.com"', '== "gpu.amd.com"', [], "each selects its own"),
        ('== "gpu.amd.com"', '== "gpu.nvidia.com"', ["ClassNarrower", "ClassWider"], "the other way round"),
        ('== "gpu.nvidia.com"', '!= ""', ["ClassWider"], "one of them selects both"),
    ],
)
def test_device_classes_select_what_names_them(
    first: str, second: str, expected: list[str], reason: str, tmp_path: Path
) -> None:
    gpus = build.gpu(8, device_class="own")
    cards = {"name": "amd", "claim": "DRA", "driver": "gpu.amd.com", "deviceClassName": "other", "count": 1}
    machine = {
        "apiVersion": build.API,
        "kind": "InferenceClass",
        "metadata": {"name": "m"},
        "spec": {"devices": [gpus, cards | {"attributes": {"x": {"int": 1}}}]},
    }
    classes = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": f"device.driver {which}"}}]},
        }
        for name, which in (("own", first), ("other", second))
    ]
    problems = run("lint", write(tmp_path / "f.yaml", [machine, *classes]), "-o", "json").data["problems"]
    assert sorted({problem["code"] for problem in problems}) == sorted(set(expected)), (reason, problems)


@pytest.mark.parametrize(
    ("cluster", "default", "expected", "reason"),
    [
        ({"scheduling": {"gangs": "PodGroup"}}, None, ["ReleaseLacks"], "1.36 is the default"),
        ({"scheduling": {"gangs": "PodGroup"}}, "1.36", ["ReleaseLacks"], "as the scheduler's input says"),
        ({"scheduling": {"gangs": "PodGroup"}}, "1.37", [], "the release of all clusters"),
        ({"scheduling": {"gangs": "PodGroup"}, "celVersion": "1.37"}, None, [], "the cluster says it"),
        ({"scheduling": {"schedulerName": "kai"}}, None, [], "no gangs"),
    ],
)
def test_gangs_are_bound_by_a_release_that_has_pod_groups(
    cluster: Plain, default: str | None, expected: list[str], reason: str, tmp_path: Path
) -> None:
    objects = _fleet()
    objects[1]["spec"] |= cluster
    if default:
        api = "fleet-scheduler.fn.modelplane.ai/v1alpha1"
        objects.append({"apiVersion": api, "kind": "SchedulerConfig", "celVersion": default})
    problems = run("lint", write(tmp_path / "f.yaml", objects), "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems] == expected, (reason, problems)


def test_a_composition_calls_the_function_once(tmp_path: Path) -> None:
    """Each of two steps places what is wanted: replicas that another step desires are not its own."""
    composition = yaml.safe_load(COMPOSITION)
    (step,) = composition["spec"]["pipeline"]
    other = {"step": "others", "functionRef": {"name": "function-auto-ready"}}
    composition["spec"]["pipeline"] = [step, other]
    assert run("lint", write(tmp_path / "f.yaml", [composition])).code == 0
    composition["spec"]["pipeline"] = [step, other, {**step, "step": "again"}]
    ran = run("lint", write(tmp_path / "f.yaml", [composition]), "-o", "json")
    (problem,) = ran.data["problems"]
    assert (problem["code"], problem["object"].endswith("step again")) == ("StepTwice", True)
    assert "replica" not in problem["message"], "the Composition of clusters may have them, too"


def test_more_replicas_than_clusters_take_are_never_placed(tmp_path: Path) -> None:
    objects = _fleet()
    objects[0]["spec"] |= {"replicas": 3, "placement": {"maxReplicasPerCluster": 1}}
    (problem,) = run("lint", write(tmp_path / "f.yaml", objects), "-o", "json").data["problems"]
    assert problem["code"] == "NeverPlaced"
    objects[0]["spec"] |= {"replicas": 2}
    objects[1]["metadata"]["labels"] = {"zone": "b"}
    objects[0]["spec"]["template"]["spec"]["clusterSelector"] = {"matchLabels": {"zone": "b"}}
    (problem,) = run("lint", write(tmp_path / "f.yaml", objects), "-o", "json").data["problems"]
    assert "1 cluster takes 1 each" in problem["message"], "those that it selects"


@pytest.mark.parametrize(
    ("args", "expected", "reason"),
    [
        (["-v"], ["DecodePort"], "the engine's own default is the sidecar's port"),
        (["--port=8000"], ["DecodePort"], "the sidecar's port"),
        (["--port", "8001"], [], "another port, as two words"),
        (["--port=$(PORT)"], [], "a port that only the pod knows"),
    ],
)
def test_a_decode_engine_listens_elsewhere(
    args: list[str], expected: list[str], reason: str, tmp_path: Path
) -> None:
    parent = build.deployment("chat", 1)
    template = parent["spec"]["template"]["spec"]
    prefill = template["engines"][0]
    decode = copy.deepcopy(prefill)
    prefill |= {"name": "prefill", "phase": "Prefill"}
    decode |= {"name": "decode", "phase": "Decode"}
    port = {"name": "PORT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['port']"}}}
    more = {"args": ["--model=small", *args], "env": [port]}
    decode["members"][0]["template"]["spec"]["containers"][0] |= more
    template |= {"serving": {"mode": "PrefillDecode"}, "engines": [prefill, decode]}
    problems = run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems] == expected, reason


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n---\n"])
def test_a_pipe_that_brings_no_object_is_no_clean_bill(text: str, tmp_path: Path) -> None:
    """`kustomize build | fleet-scheduler lint -` must not pass where kustomize printed nothing."""
    path = tmp_path / "built.yaml"
    path.write_text(text)
    ran = run("lint", path)
    assert ran.code == 1
    assert "there is no object in what was given" in ran.err


def test_a_repository_without_the_fleet_hears_nothing_of_it(tmp_path: Path) -> None:
    parent = build.deployment("chat", 2, match={"zone": "b"})
    parent["spec"]["template"]["spec"]["modelCacheRef"] = {"name": "w"}
    ran = run("lint", write(tmp_path / "f.yaml", [parent]))
    assert (ran.code, ran.out) == (0, "")


def test_a_snapshot_lacks_nothing_that_it_left_out(tmp_path: Path) -> None:
    cut = run("snapshot", folder(tmp_path)).out
    again = run("snapshot", "-", stdin=cut).out
    assert again == cut
    ran = run("lint", "-", stdin=cut)
    assert (ran.code, ran.out) == (0, "")


def test_every_code_is_in_the_docs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    codes = set()
    for number, mistake in enumerate(MISTAKES):
        path = tmp_path / str(number)
        path.mkdir()
        data = run("lint", folder(path, mistake), "-o", "json").data
        codes |= {problem["code"] for problem in data["problems"]}
    sources = [*(ROOT / "function" / "cli" / "worlds").glob("*.py"), *LINT]
    codes |= {code for source in sources for code in CODE.findall(source.read_text())}
    assert len(codes) > 15
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_code_about_selectors_is_explained() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    codes = CODE.findall((ROOT / "function" / EXPLAIN).read_text())
    assert codes
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


@pytest.mark.parametrize(
    ("args", "expected", "reason"),
    [
        (["--nnodes=01"], [], "as many as the engine has"),
        (["--nnodes=2"], ["GangSize"], "more than it has"),
        (["--nnodes=\u00b2"], ["GangSize"], "a digit that is no number"),
        ([f"--nnodes={'1' * 5_000}"], ["GangSize"], "more digits than Python reads"),
        (["--port=08000"], [], "the port that requests come to"),
        (["--port=\u00b2"], ["ServingPort"], "a digit that is no number"),
        (["--seed=$(MODELPLANE_RANK)"], ["UnknownVariable"], "only the pods of a gang have it"),
        (["--seed=$(MODELPLANE_TEAM)"], [], "its environment has it, from a Secret"),
        (["MODELPLANE_SEED=1; vllm serve --seed=$MODELPLANE_SEED"], [], "its script sets it"),
    ],
)
def test_an_engine_has_the_nodes_the_port_and_the_variables_that_it_counts_on(
    args: list[str], expected: list[str], reason: str, tmp_path: Path
) -> None:
    parent = build.deployment("chat", 1)
    pod = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"]
    secret = {"secretKeyRef": {"name": "team", "key": "name"}}
    pod["containers"][0]["env"] = [{"name": "MODELPLANE_TEAM", "valueFrom": secret}]
    pod["containers"][0]["args"] = ["--model=small", *args]
    problems = run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems if problem["code"] != "BadArgument"] == expected, reason


@pytest.mark.parametrize(
    ("container", "expected", "reason"),
    [
        (["--data-parallel-size=16", "--data-parallel-size-local=8"], [], "in all, and on this node"),
        (["--data-parallel-size=16", "-dp=8"], ["GivenTwice"], "two names of one flag"),
        (["--data-parallel-size=8", "--data-parallel-size-local=0"], [], "all ranks are on other nodes"),
        (["--data-parallel-size=0"], ["BadArgument"], "there is one rank at least"),
        (["-dp=x", "--data-parallel-size-local=2"], ["BadArgument"], "the other of two flags is a number"),
        (["--data-parallel-address=$(LWS_LEADER_ADDRESS)"], [], "LeaderWorkerSet sets it"),
        (["--data-parallel-address=$(LEADER_ADDRESS)"], ["UnknownVariable"], "nothing sets it"),
        (["--api-key=abc$DEF"], [], "a key may have a dollar sign"),
        (["--seed=$SEED"], ["BadArgument"], "only a shell knows that variable"),
        (["--api-key", "$KEY"], ["BadArgument"], "only a shell knows that variable, in a word of its own"),
        ([f"--tensor-parallel-size={'1' * 5_000}"], [], "more digits than Python reads"),
        (["sh", "-c", "vllm serve a --port 8100 & proxy --port 8000"], [], "two programs have a port each"),
    ],
)
def test_flags_and_variables_that_pods_of_several_nodes_have_are_no_mistakes(
    container: list[str], expected: list[str], reason: str, tmp_path: Path
) -> None:
    parent = build.deployment("chat", 1)
    member = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]
    starts = {"command": container} if container[0] == "sh" else {"args": ["--model=a", *container]}
    member["template"]["spec"]["containers"][0] |= {"image": "vllm/vllm-openai:v0.11.2", **starts}
    member["nodeSelector"]["devices"][0]["count"] = 16
    problems = run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems] == expected, reason


def test_values_of_a_flag_with_two_names_are_named_in_their_order(tmp_path: Path) -> None:
    parent = build.deployment("chat", 1)
    member = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]
    container = member["template"]["spec"]["containers"][0]
    container["args"] = ["--model=a", "-tp=8", "--tensor-parallel-size=1"]
    problems = run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "json").data["problems"]
    (message,) = [problem["message"] for problem in problems if problem["code"] == "GivenTwice"]
    assert "(8, 1)" in message


def test_a_mount_names_a_volume_of_its_template(tmp_path: Path) -> None:
    parent = build.deployment("chat", 1)
    pod = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"]
    pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    mount = {"name": "scratch", "mountPath": "/scratch"}
    pod["containers"][0] |= {"args": ["--model=small"], "volumeMounts": [mount]}
    assert run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "json").data["problems"] == []
    mount["name"] = "scrtach"
    (problem,) = run("lint", write(tmp_path / "f.yaml", [parent]), "-o", "json").data["problems"]
    assert (problem["code"], "did you mean scratch?" in problem["message"]) == ("UnknownVolume", True)


@pytest.mark.parametrize(
    ("spec", "name", "room", "expected", "reason"),
    [
        ({}, "support", {"slots": 2}, [], "it has a place"),
        ({"base": {"deploymentName": "caht"}}, "support", {"slots": 2}, ["UnknownBase"], "a typo"),
        ({}, "support", None, ["NeverPlaced"], "no engine has room"),
        ({"rank": 32}, "support", {"slots": 2}, ["NeverPlaced"], "above the room"),
        ({"rank": 32}, "support", {"slots": 2, "maxRank": 32}, [], "as large as the room"),
        ({}, "small", {"slots": 2}, ["NameTaken"], "as the base is served"),
        ({"source": "hf://acme/lora"}, "support", {"slots": 2}, ["UnknownSource"], "the scheme of a model"),
        ({"source": "s3://acme/lora"}, "support", {"slots": 2}, ["UnknownSource"], "a scheme of storage"),
        ({"source": "/mnt/loras/acme"}, "support", {"slots": 2}, [], "a path that is mounted"),
    ],
)
def test_an_adapter_has_a_base_with_room_and_a_name_of_its_own(
    spec: Plain, name: str, room: Plain | None, expected: list[str], reason: str, tmp_path: Path
) -> None:
    parent = build.deployment("chat", 1)
    engine = parent["spec"]["template"]["spec"]["engines"][0]
    container = engine["members"][0]["template"]["spec"]["containers"][0]
    container["args"] = ["--model=x", "--served-model-name", "small", "tiny"]
    if room is not None:
        engine["adapters"] = room
    adapter = {
        "apiVersion": build.API,
        "kind": "ModelAdapter",
        "metadata": {"name": name, "namespace": parent["metadata"]["namespace"]},
        "spec": {"base": {"deploymentName": "chat"}, "source": "acme/lora", **spec},
    }
    problems = run("lint", write(tmp_path / "f.yaml", [parent, adapter]), "-o", "json").data["problems"]
    assert [problem["code"] for problem in problems] == expected, (reason, problems)
