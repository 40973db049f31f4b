"""The commands that `whatif` and `advise` print: applied to the objects, they do what was forecast."""

from __future__ import annotations

import copy
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from function.cli.worlds.changes import AddNodes, Change, Delete, Drain, Replicas, SetTaint
from function.cli.worlds.manifest import Manifest, Manifests
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]


def _objects(taints: list[Plain]) -> list[Plain]:
    cluster = build.cluster("east", [build.pool("h100", 4), build.pool("l4", 2)], taints=taints)
    return [cluster, build.deployment("chat", 2)]


def _manifests(objects: list[Plain]) -> Manifests:
    manifests = Manifests()
    for plain in objects:
        manifests.by_kind[plain["kind"]].append(Manifest(plain, "f.yaml"))
    return manifests


def _patched(plain: Plain, operations: list[Plain]) -> Plain:
    """Apply a JSON patch (RFC 6902), as far as it is used here."""
    made = copy.deepcopy(plain)
    for operation in operations:
        *parents, last = operation["path"].split("/")[1:]
        holder: Any = made
        for step in parents:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        at: Any = (len(holder) if last == "-" else int(last)) if isinstance(holder, list) else last
        if operation["op"] == "test":
            value = holder.get(at) if isinstance(holder, dict) else holder[at]
            assert value == operation["value"]
        elif operation["op"] == "remove":
            del holder[at]
        elif operation["op"] == "add" and isinstance(holder, list):
            holder.insert(at, operation["value"])
        else:
            holder[at] = operation["value"]
    return made


def _ran(objects: list[Plain], command: str) -> list[Plain]:
    """Run one printed command on objects."""
    kubectl, verb, resource, name, *rest = shlex.split(command)
    assert kubectl == "kubectl"
    kind = {"inferenceclusters": "InferenceCluster", "modeldeployments": "ModelDeployment"}
    wanted = kind[resource.removesuffix(".modelplane.ai")], name
    (before,) = (
        manifest for manifest in objects if (manifest["kind"], manifest["metadata"]["name"]) == wanted
    )
    if verb == "patch":
        after = _patched(before, json.loads(rest[rest.index("-p") + 1]))
    else:
        assert verb == "scale"
        assert rest[rest.index("-n") + 1] == before["metadata"]["namespace"]
        after = copy.deepcopy(before)
        after["spec"]["replicas"] = int(rest[-1].removeprefix("--replicas="))
    return [after if manifest is before else manifest for manifest in objects]


OTHER, MINE = build.taint("other"), build.taint("maintenance", "NoSchedule", "yes")


@pytest.mark.parametrize(
    ("taints", "change", "reason"),
    [
        ([], SetTaint("east", "maintenance", "", "NoSchedule"), "the first taint"),
        ([OTHER], SetTaint("east", "maintenance", "x", "NoExecute"), "one more"),
        ([MINE, OTHER], SetTaint("east", "maintenance", "no", "NoSchedule"), "another value"),
        ([OTHER, MINE], SetTaint("east", "maintenance", "", "NoSchedule", remove=True), "one less"),
        ([OTHER], Drain("east"), "a drain is a taint"),
        ([], AddNodes("east", "l4", 3), "more nodes"),
        ([], AddNodes("east", "h100", -1), "fewer nodes"),
        ([], Replicas(build.NAMESPACE, "chat", 7), "another number of replicas"),
    ],
)
def test_the_commands_make_the_change_and_take_it_back(
    taints: list[Plain], change: Change, reason: str
) -> None:
    objects = _objects(taints)
    manifests = _manifests(objects)
    commands = change.commands(manifests)
    (there,), (back,) = commands.apply, commands.revert
    made, changed = _ran(objects, there), change.apply(manifests)
    forecast = [item.content for kind in ("InferenceCluster", "ModelDeployment") for item in changed[kind]]
    specs = ([_ordered(manifest["spec"]) for manifest in those] for those in (made, forecast))
    assert next(specs) == next(specs), reason
    without = [
        manifest if manifest["spec"].get("taints") else _untainted(manifest) for manifest in _ran(made, back)
    ]
    assert without == [_untainted(manifest) if not taints else manifest for manifest in objects], reason


def _ordered(spec: Plain) -> Plain:
    """A spec whose taints are in one order: which order, decides nothing."""
    return {**spec, "taints": sorted(spec.get("taints", []), key=str)}


def _untainted(plain: Plain) -> Plain:
    return {**plain, "spec": {key: value for key, value in plain["spec"].items() if key != "taints"}}


def test_a_deleted_cluster_is_kept_in_a_file() -> None:
    commands = Delete("east").commands(_manifests(_objects([])))
    assert commands.apply == (
        "kubectl get inferenceclusters.modelplane.ai east -o yaml > east.yaml",
        "kubectl delete inferenceclusters.modelplane.ai east",
    )
    assert commands.revert == ("kubectl create -f east.yaml",)


def test_several_changes_are_taken_back_from_the_last_to_the_first(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _objects([]))
    changes = ("--taint", "east=a:NoSchedule", "--taint", "east=b:NoSchedule", "--replicas", "ml-team/chat=3")
    commands = run("whatif", path, *changes, "-o", "json").data["commands"]
    made = _objects([])
    for command in (*commands["apply"], *commands["revert"]):
        made = _ran(made, command)
    assert [_untainted(manifest) for manifest in made] == [_untainted(manifest) for manifest in _objects([])]
    assert "To take it back:" in run("whatif", path, *changes).out


def test_applied_files_are_kept_replaced_and_deleted(tmp_path: Path) -> None:
    path = write(tmp_path / "f.yaml", _objects([]))
    new = write(tmp_path / "new.yaml", [build.deployment("chat", 3), build.deployment("search", 1)])
    commands = run("whatif", path, "--apply", new, "-o", "json").data["commands"]
    before = "before-modeldeployment-ml-team-chat.yaml"
    kubectl = "kubectl get modeldeployments.modelplane.ai chat -n ml-team -o yaml"
    kept = f"{kubectl} | sed '/^  resourceVersion:/d' > {before}"
    assert commands["apply"] == [kept, f"kubectl apply -f {new}"]
    assert commands["revert"] == [
        "kubectl delete modeldeployments.modelplane.ai search -n ml-team",
        f"kubectl replace -f {before}",
    ]


def test_an_edit_that_the_api_server_would_refuse_is_refused(tmp_path: Path) -> None:
    ran = run("whatif", write(tmp_path / "f.yaml", _objects([])), "--replicas", "ml-team/chat=500")
    assert ran.err == ("error: ModelDeployment ml-team/chat: spec.replicas: must be at most 200, found 500\n")
    assert ran.code == 1


def test_what_is_wrong_with_an_applied_file_is_said_once_with_its_line(tmp_path: Path) -> None:
    wrong = build.deployment("chat", 3)
    wrong["spec"]["replicas"] = "three"
    del wrong["metadata"]["uid"]
    path = write(tmp_path / "f.yaml", _objects([]))
    ran = run("whatif", path, "--apply", write(tmp_path / "new.yaml", [wrong]))
    file = re.escape(str(tmp_path / "new.yaml"))
    said = "ModelDeployment ml-team/chat: spec.replicas: expected a whole number, found"
    assert re.fullmatch(rf"error: {file}:\d+: {said} .*\n", ran.err)
    assert ran.code == 1


def test_advised_moves_end_with_every_deployment_resumed(tmp_path: Path) -> None:
    small = build.deployment("small", 2)
    big = build.deployment("big", 1, [build.gang(nodes=1)])
    big["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    east, west = build.cluster("east", [build.pool("h100", 2)]), build.cluster("west", [build.pool("l4", 2)])
    west["status"]["gpuPools"][0]["devices"] = [build.gpu(4)]
    held = [build.replica(small, "east", index, ready=True) for index in range(2)]
    ran = run("advise", write(tmp_path / "f.yaml", [east, west, small, big, *held]), "-o", "json")
    (advice,) = ran.data["advice"]
    assert (advice["before"], advice["after"], advice["wanted"]) == (0, 1, 1)
    apply = advice["commands"]["apply"]
    pause = "kubectl annotate modeldeployments.modelplane.ai small -n ml-team crossplane.io/paused"
    assert apply[0] == f"{pause}=true --overwrite"
    assert [line.split()[1] for line in apply] == [
        "annotate",
        "delete",
        "delete",
        "annotate",
        "wait",
        "annotate",
    ]
    assert apply[-1] == f"{pause}-"
    assert advice["commands"]["revert"] == [f"{pause}-"]
