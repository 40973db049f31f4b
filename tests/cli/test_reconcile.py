"""`reconcile` prints the kubectl commands for the deployments that are chosen."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import run
from tests.support import build

if TYPE_CHECKING:
    from tests.cli.command import Ran

ANNOTATION = "crossplane.io/reconcile-requested-at"
SCHEDULED = build.condition("ReplicasScheduled", status=True)
SHORT = build.condition("ReplicasScheduled", status=False)


def deployment(name: str, total: int, condition: dict[str, Any] = SCHEDULED) -> dict[str, Any]:
    made = build.deployment(name)
    made["metadata"]["resourceVersion"] = f"4{total}"
    return made | {"status": {"replicas": {"total": total}, "conditions": [condition]}}


ON_A, ON_B, WAITS = deployment("on-a", 1), deployment("on-b", 1), deployment("waits", 0, SHORT)
FLEET = [
    *(build.cluster(name, [build.pool("h100")]) for name in "ab"),
    ON_A,
    ON_B,
    WAITS,
    build.replica(ON_A, "a", 0),
    build.replica(ON_B, "b", 0),
]


def ran(*words: str, fleet: list[dict[str, Any]] = FLEET) -> Ran:
    return run("reconcile", "-", *words, stdin=json.dumps({"kind": "List", "items": fleet}))


CHOSEN = [
    ((), ["waits"], "without a name, whoever is short"),
    (("--cluster", "a"), ["on-a", "waits"], "a cluster concerns those on it, too"),
    (("--cluster", "a", "--cluster", "b"), ["on-a", "on-b", "waits"], "two clusters"),
    (("--deployment", "ml-team/on-b"), ["on-b"], "one that is named, and no other"),
    (("--all",), ["on-a", "on-b", "waits"], "everyone"),
]


@pytest.mark.parametrize(("words", "names", "reason"), CHOSEN, ids=[pair[2] for pair in CHOSEN])
def test_who_is_asked(words: tuple[str, ...], names: list[str], reason: str) -> None:
    result = ran(*words)
    assert result.code == 0, result.err
    assert [shlex.split(line)[3] for line in result.out.splitlines()] == names, reason


def test_a_replica_on_a_cluster_that_is_gone() -> None:
    left = [manifest for manifest in FLEET if manifest["metadata"]["name"] != "a"]
    assert "on-a" in ran(fleet=left).out
    assert "on-a" in ran("--cluster", "a", fleet=left).out, "and may be named"


def test_the_command_is_whole_and_its_token_new_after_every_write() -> None:
    (line,) = ran("--deployment", "ml-team/on-a", "--context", "my prod").out.splitlines()
    command = "kubectl --context 'my prod' annotate modeldeployments.modelplane.ai on-a -n ml-team"
    assert line == f"{command} {ANNOTATION}=41 --overwrite"


def test_a_hostile_name_is_one_word_for_the_shell() -> None:
    odd = deployment("x; rm -rf $HOME", 0, SHORT)
    (line,) = ran(fleet=[odd]).out.splitlines()
    assert shlex.split(line)[3] == "x; rm -rf $HOME"


BAD = [
    (("--cluster", "c"), 'no InferenceCluster "c" in the files'),
    (("--deployment", "ml-team/on-c"), "did you mean ml-team/on-"),
]


@pytest.mark.parametrize(("words", "complaint"), BAD)
def test_an_unknown_name_is_bad_input(words: tuple[str, ...], complaint: str) -> None:
    result = ran(*words)
    assert (result.code, result.out) == (1, "")
    assert complaint in result.err


def test_what_no_control_plane_gave_has_no_token() -> None:
    made = {**WAITS, "metadata": {"name": "waits", "namespace": "ml", "uid": "u"}}
    result = ran(fleet=[made])
    assert (result.code, result.out) == (1, "")
    assert "has no resourceVersion" in result.err


def test_without_files_the_command_line_that_collects_is_printed() -> None:
    result = run("reconcile", "--cluster", "a b", "--context", "prod")
    assert result.code == 0
    first, second = result.out.splitlines()
    assert first.startswith("kubectl --context prod get inferenceclusters.modelplane.ai,")
    assert second == "  | fleet-scheduler reconcile - --cluster 'a b' --context prod"


def test_what_no_control_plane_holds_is_left_out_and_said() -> None:
    stranger = deployment("stranger", 0, SHORT)
    del stranger["metadata"]["uid"]
    everyone = ran("--all", fleet=[*FLEET, stranger])
    assert "stranger" not in everyone.out
    assert "they have no uid and so come from no control plane: ml-team/stranger\n" in everyone.err
