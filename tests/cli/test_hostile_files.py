"""Files that are no manifests: each is answered with a line that names the file, the place, what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import run, write
from tests.support import build

Plain = dict[str, Any]
FLEET = [build.cluster("east", [build.pool("h100", 1)]), build.deployment("chat", 1)]
OURS = "apiVersion: modelplane.ai/v1alpha1\nkind: ModelDeployment\n"
HELM = "it looks like a Helm template, which has to be rendered first (helm template)"

FILES = [
    ("[1]", "expected an object, found a list", "a list of objects is no manifest"),
    ("text", "expected an object, found a string", "text"),
    ("kind: List\nitems: {a: 1}", "List: items: expected a list, found a map", "a list that is none"),
    ("kind: List\nitems: [1]", "items[0]: expected an object, found a number", "an item that is none"),
    (
        "kind: List\nitems:\n- {kind: List, items: [null]}",
        "items[0].items[0]: expected an object, found null",
        "an item that is nothing",
    ),
    ("kind: 7", "object 1: kind: expected a string, found a number", "a kind that is no text"),
    (f"{OURS}metadata: hello", "metadata: expected a map, found a string", "metadata that are text"),
    (f"{OURS}metadata: {{name: {{{{ .Name }}}}}}", HELM, "a template for a value"),
    (f"{{{{ if .Values.x }}}}\n{OURS}{{{{ end }}}}", HELM, "a template for a block"),
    (f"{OURS}metadata:\n  name: x\n  {{{{- include }}}}\n", HELM, "a template for a part"),
    (f"<<<<<<< HEAD\n{OURS}=======\n", "a merge conflict is not resolved", "an unresolved merge"),
    (f"```yaml\n{OURS}```\n", "a fence of Markdown is no YAML", "copied with its fence"),
    ("<html>\n<body>404: Not Found</body>\n", "it looks like a web page", "what a download saved"),
    (
        f"{OURS}metadata:\n  name: x\nspec:\n\u00a0 replicas: 3\n  paused: true\n",
        "it has a no-break space",
        "copied from a page",
    ),
    ("kind: A\n\ufeff---\nkind: B\n", "the mark that files of Windows begin with", "two files of Windows"),
    (OURS.replace("k", "\0k"), "it is no text, or UTF-16 without its mark", "bytes"),
    ("error: no rights\n", "kind: required, but missing; the object has error", "what kubectl said"),
    (f"{OURS}x: !!binary aGVsbG8=", "line 3: !!binary is nothing that JSON has", "bytes"),
    (f"{OURS}x: !!set {{a}}", "line 3: !!set is nothing that JSON has", "a set"),
    (f"{OURS}x: .nan", "line 3: .nan is no number of JSON", "no number"),
    (f"{OURS}x: -.inf", "line 3: -.inf is no number of JSON", "more than any number"),
    (f"{OURS}x: {'1' * 5_000}", 'line 3: expected a whole number, found "111', "more digits than are read"),
    ('{"kind": ' + "1" * 5_000 + "}", "a number of 5000 digits: 111", "more digits than are read, in JSON"),
    (f"{OURS}x: !!int some", 'line 3: expected a whole number, found "some"', "a tag that is not true"),
    (f"{OURS}x: !!float some", 'line 3: expected a number, found "some"', "a tag that is not true"),
    (f"{OURS}x: !!bool some", 'line 3: expected true or false, found "some"', "a tag that is not true"),
    (f"{OURS}x: !!map [a]", "line 3: !!map takes a map", "a tag that is not true"),
    ('{"kind": NaN}', "NaN is no number of JSON", "no number in JSON"),
]


@pytest.mark.parametrize("words", [("plan",), ("snapshot",), ("lint", "-o", "json")])
@pytest.mark.parametrize(("text", "expected", "reason"), FILES)
def test_what_is_no_manifest_is_named(
    text: str, expected: str, reason: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    ran = run(*words, path)
    assert ran.code == 1, reason
    said = ran.data["problems"][0]["message"] if ran.out else ran.err.removeprefix(f"error: {path}: ")
    assert expected in said, reason


FOREIGN = {
    "Chart.yaml": "apiVersion: v2\nname: chat\n",
    "values.yaml": "replicas: 3\n",
    "kustomization.yaml": "resources: [chat.yaml]\n",
    ".github/workflows/ci.yml": "on: push\njobs: {}\n",
    "package.json": '{"name": "x"}',
}


@pytest.mark.parametrize("command", ["plan", "lint", "headroom"])
def test_a_whole_repository_may_be_given(command: str, tmp_path: Path) -> None:
    """What has no Kubernetes object in it is left out, as objects of other kinds are, and said."""
    write(tmp_path / "chat.yaml", FLEET)
    before = run(command, tmp_path)
    for name, text in FOREIGN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = run(command, tmp_path)
    listed = ".github/workflows/ci.yml, Chart.yaml, kustomization.yaml, 2 more"
    assert (ran.code, ran.out) == (before.code, before.out)
    assert (
        ran.err == f"note: {tmp_path}: left out 5 files without a Kubernetes object ({listed})\n{before.err}"
    )


@pytest.mark.parametrize(
    "text", ["metadata: {name: x}\n", "Kind: ModelCache\n", '{"spec": {}}', "- kind: [\n", "k\0i\0n\0d\0"]
)
def test_of_a_directory_what_may_be_an_object_is_not_left_out(text: str, tmp_path: Path) -> None:
    write(tmp_path / "chat.yaml", FLEET)
    (tmp_path / "odd.yaml").write_text(text)
    assert run("plan", tmp_path).code == 1


def test_a_file_that_is_named_is_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    assert "kind: required, but missing; the object has replicas" in run("plan", tmp_path / "values.yaml").err


def test_a_kind_that_ends_in_list_and_has_no_items_is_an_object(tmp_path: Path) -> None:
    path = write(
        tmp_path / "fleet.yaml", [*FLEET, {"apiVersion": "x.io/v1", "kind": "AllowList", "spec": {}}]
    )
    assert "ignored 1 object of a kind that is not read: 1 AllowList.x.io" in run("plan", path).err


def test_a_name_that_is_a_number_of_many_digits_is_no_crash(tmp_path: Path) -> None:
    path = write(tmp_path / "fleet.yaml", FLEET)
    path.write_text(f"{path.read_text()}\n---\nkind: ConfigMap\nmetadata: {{name: 0x{'f' * 5000}}}\n")
    assert "ignored 1 object of a kind that is not read: 1 ConfigMap" in run("plan", path).err


@pytest.mark.parametrize("between", ["\n", "", "\n\n  "])
def test_objects_of_json_may_follow_each_other(between: str, tmp_path: Path) -> None:
    """`kubectl get -o json | jq -c '.items[]'` writes a line for each object."""
    path = tmp_path / "fleet.json"
    path.write_text(between.join(map(json.dumps, FLEET)) + between)
    assert run("plan", path) == run("plan", write(tmp_path / "fleet.yaml", FLEET))


def test_a_folder_without_manifests_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    assert run("lint", tmp_path).code == 1, "nothing was looked at"
    assert f"note: {tmp_path}: has no file that ends in .json, .yaml, .yml" in run("plan", tmp_path).err


def test_what_is_no_file_in_a_folder_is_said(tmp_path: Path) -> None:
    write(tmp_path / "fleet.yaml", FLEET)
    os.mkfifo(tmp_path / "pipe.yaml")
    ran = run("plan", tmp_path)
    assert ran.code == 0
    assert f"note: {tmp_path}/pipe.yaml: left out, as it is no file" in ran.err


def test_a_link_to_nothing_in_a_folder_is_said(tmp_path: Path) -> None:
    write(tmp_path / "fleet.yaml", FLEET)
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    ran = run("plan", tmp_path)
    assert (ran.code, ran.err) == (
        1,
        f"error: {tmp_path}/gone.yaml: cannot be read: No such file or directory\n",
    )


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs this may be root, for whom every folder can be read."""
    write(tmp_path / "fleet.yaml", FLEET)
    (tmp_path / "below").mkdir()
    scan = os.scandir

    def scandir(path: str) -> Any:
        if str(path).endswith("below"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    ran = run("plan", tmp_path)
    assert (ran.code, ran.err) == (1, f"error: {tmp_path}/below: cannot be read: Permission denied\n")


def test_a_named_pipe_that_is_given_is_read(tmp_path: Path) -> None:
    pipe, path = tmp_path / "pipe", write(tmp_path / "fleet.yaml", FLEET)
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(path.read_text()), daemon=True)
    writer.start()
    assert run("plan", pipe).out.startswith("ml-team/chat")
    writer.join()


@pytest.mark.parametrize("words", [("plan",), ("why", "chat"), ("verify",), ("plan", "-o", "json")])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_answers_are_utf_8_in_every_locale(encoding: str, words: tuple[str, ...], tmp_path: Path) -> None:
    path = write(tmp_path / "fleet.yaml", FLEET)
    ran = subprocess.run(
        [sys.executable, "-c", "from function.cli import main; main()", *words, path],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert ran.stdout.decode() == run(*words, path).out
    assert b"Traceback" not in ran.stderr


def test_without_a_command_the_manual_page_is_bad_input() -> None:
    ran = run()
    assert ran.code == 1
    assert "Usage: " in ran.err
    assert run("--help").code == 0


SLICE: Plain = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "one"},
}
POOL = {"name": "n", "generation": 1, "resourceSliceCount": 1}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (7, "spec: expected a map, found a number"),
        ({"pool": 7}, "spec.pool: expected a map, found a number"),
        (
            {"pool": {**POOL, "generation": "x"}},
            "spec.pool.generation: expected a whole number, found a string",
        ),
        ({"pool": POOL, "devices": {}}, "spec.devices: expected a list, found a map"),
        ({"pool": POOL, "devices": [7]}, "spec.devices[0]: expected a map, found a number"),
        (
            {"pool": POOL, "devices": [{"basic": {"attributes": [1]}}]},
            "spec.devices[0].basic.attributes: expected a map, found a list",
        ),
        (
            {"pool": POOL, "devices": [{"capacity": {"memory": 3}}]},
            "spec.devices[0].capacity.memory: expected a map, found a number",
        ),
    ],
)
def test_a_slice_that_no_driver_publishes_is_no_slice_without_devices(
    spec: object, expected: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "slices.yaml", [{**SLICE, "spec": spec}])
    fleet = write(tmp_path / "fleet.yaml", FLEET)
    for words in (("class", path), ("drift", fleet, path)):
        ran = run(*words)
        assert (ran.code, ran.out) == (1, "")
        assert f"ResourceSlice one: {expected}" in ran.err


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("class", "aws/p5.48xlarge", "--name", "Bad Name"), "InferenceClass: metadata.name: "),
        (("size", "llama-3.1-70b", "--manifest", "-n", "Bad Name"), "ModelDeployment: metadata.namespace: "),
        (("size", "llama-3.1-70b", "--manifest", "--name", "Bad"), "ModelDeployment: metadata.name: "),
    ],
)
def test_what_is_written_is_what_an_api_server_takes(words: tuple[str, ...], field: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {field}")


def test_nothing_to_apply_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("---\n")
    ran = run("whatif", write(tmp_path / "fleet.yaml", FLEET), "--apply", tmp_path / "empty.yaml")
    assert ran.code == 1
    assert f"there is no object to apply in {tmp_path}/empty.yaml" in ran.err


def test_a_model_of_absurd_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 10**20}))
    ran = run("size", path)
    assert ran.code == 1
    assert "num_hidden_layers: expected at most 10000, found 100000000000000000000" in ran.err


LONG = "n" * 300


@pytest.mark.parametrize(
    ("words", "expected", "reason"),
    [
        (("chat.yaml",), "name a command before the files: main plan chat.yaml", "no verb"),
        (("why", "chat.yaml"), "chat.yaml is a file; the name of a deployment comes before it", "no name"),
        (("history", "chat.yaml"), "chat.yaml is a file", "no name"),
        (("plan", "chat.yam"), "chat.yam: no such file or directory; did you mean chat.yaml?", "a slip"),
        (("plan", "none/chat.yaml"), "none/chat.yaml: no such file or directory\n", "no folder to look in"),
        (("lint", "https://x.io/a.yaml"), "pipe it in: curl -L https://x.io/a.yaml |", "as kubectl takes it"),
        ((f"{LONG}.yaml",), f"No such command '{LONG}.yaml'", "more than a path may have, no verb"),
        (
            ("plan", f"{LONG}.yaml"),
            f"{LONG}.yaml: no such file or directory",
            "as it is where names are quoted",
        ),
        (("plan", f"{LONG}/a.yaml"), f"{LONG}/a.yaml: no such file or directory", "a folder of that length"),
        (("why", f"{LONG}.yaml", "chat.yaml"), "in the files; there is chat", "a name of that length"),
        (("size", "a.json"), "a.json: cannot be read: No such file or directory", "no file"),
        (("size", "llama"), "there is Llama-3.1-405B-Instruct, Llama-3.1-70B", "what has it in its name"),
    ],
)
def test_what_is_missing_on_a_command_line_is_named(
    words: tuple[str, ...], expected: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "chat.yaml", FLEET)
    ran = run(*words)
    assert ran.code == 1
    assert expected in ran.err, reason


@pytest.mark.parametrize("index", ["\u00b2", "1" * 5_000], ids=["no number", "more digits than are read"])
def test_an_index_that_is_no_number_ends_no_command(index: str, tmp_path: Path) -> None:
    replica = build.replica_object(FLEET[1], "east", 0, {"clusterName": "east", "engines": []})
    replica["metadata"]["labels"]["modelplane.ai/replica-index"] = index
    ran = run("plan", write(tmp_path / "f.yaml", [*FLEET, replica]))
    assert "replica-index: must be a label value" in ran.err
