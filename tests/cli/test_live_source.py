"""Commands read a control plane: the same answers as on its dump, and failures that say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from function import start
from function.cli import live as connection
from tests.cli.command import Ran, completed, run, write
from tests.support import apiserver, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain = dict[str, Any]
KUBECONFIG = """
clusters: [{name: c, cluster: {server: %s}}]
users: [{name: u, user: {}}]
contexts: [{name: k, context: {cluster: c, user: u}}]
current-context: k
"""
VERBS = ("plan", "headroom", "advise", "verify", "map", "why chat", "whatif --drain east")


def _fleet() -> list[Plain]:
    chat, search = build.deployment("chat", 4), build.deployment("search", 1)
    north = build.cluster("north", [build.pool("h100", 1)], ready=None, gateway=None)
    north["status"]["gpuPools"] = []
    return [
        build.cluster("east", [build.pool("h100", 3)]),
        build.cluster("west", [build.pool("h100", 2)]),
        north,
        chat,
        search,
        build.replica(chat, "east", 0, ready=True),
        build.replica(search, "west", 0, ready=True),
    ]


def _class(name: str) -> Plain:
    spec = {"devices": [build.gpu()]}
    return {"apiVersion": build.API, "kind": "InferenceClass", "metadata": {"name": name}, "spec": spec}


def _composition(name: str, config: Plain) -> Plain:
    head = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
    step = {"step": "schedule", "input": {**head, **config}}
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {"compositeTypeRef": {"kind": "ModelDeployment"}, "mode": "Pipeline", "pipeline": [step]},
    }


class Live:
    """A served fleet, and commands that ask about it."""

    def __init__(self, folder: Path, address: str, table: apiserver.Table) -> None:
        self.folder, self.table = folder, table
        self.kubeconfig = apiserver.kubeconfig(folder / "kubeconfig", address)

    def run(self, *words: object) -> Ran:
        return run(*words, "--kubeconfig", self.kubeconfig)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(connection, "PAGE", 2)
    with apiserver.serving(_fleet()) as (address, table):
        yield Live(tmp_path, address, table)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"just a text"', "is no kubeconfig"),
        ("clusters: 3", "is no kubeconfig"),
        (KUBECONFIG % "gpu-1", 'context k: server: expected https://..., found "gpu-1"'),
    ],
)
def test_what_is_no_kubeconfig_is_said(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    ran = run("plan", "--kubeconfig", path)
    assert (ran.code, ran.err) == (1, f"error: {path}: {expected}\n")


@pytest.mark.parametrize("words", VERBS)
def test_the_answer_is_the_one_on_the_dump(words: str, live: Live) -> None:
    dump = write(live.folder / "dump.yaml", live.table.objects)
    there, here = live.run(*words.split()), run(*words.split(), dump)
    # A map of everything is large; whether it is equal is all that matters of it.
    answer = there.out.replace(f"kubectl --kubeconfig {live.kubeconfig} ", "kubectl ")
    assert (there.code, answer == here.out, there.err) == (here.code, True, here.err)


def test_what_plan_says_to_run_next_asks_the_same(live: Live) -> None:
    """Of a control plane its context, of files the files; many files are only hinted at."""
    live.table.objects = [entry for entry in live.table.objects if entry["metadata"]["name"] != "west"]
    dump = write(live.folder / "a dump.yaml", live.table.objects)
    more = "  More: fleet-scheduler why ml-team/chat"
    there = live.run("plan", "--context", "production").out
    assert f"{more} --context production --kubeconfig {live.kubeconfig}\n" in there
    assert f"{more} '{dump}'\n" in run("plan", dump).out
    assert f"{more} FILE...\n" in run("plan", *[dump] * 4).out


def test_lists_come_in_pages(live: Live) -> None:
    live.run("plan")
    clusters = [path for path in live.table.asked if "/inferenceclusters" in path]
    assert [("limit=2" in path, "continue=" in path) for path in clusters] == [(True, False), (True, True)]


def test_a_list_that_the_server_forgot_begins_anew(live: Live) -> None:
    whole = live.run("plan").out
    live.table.expire = 1
    assert live.run("plan").out == whole
    live.table.expire = 100
    ran = live.run("plan")
    assert (ran.code, "410" in ran.err) == (1, True), ran.err


def test_a_busy_server_is_asked_again(live: Live) -> None:
    live.table.busy = 2
    assert live.run("plan").code in (0, 2)


def test_only_what_is_read_is_asked_for(live: Live) -> None:
    live.run("plan")
    kinds = {path.partition("?")[0].rpartition("/")[2] for path in live.table.asked}
    assert kinds == {apiserver.PLURALS[kind] for kind in (*apiserver.FLEET, "Composition")}


def test_a_cluster_that_publishes_nothing_has_nothing(live: Live) -> None:
    """In a file, a missing status is assumed to be Ready; in a control plane it is not there yet."""
    new = build.cluster("new", [build.pool("h100", 9)])
    del new["status"]
    live.table.objects += [new, _class("any")]
    assert "new" not in {
        row["cluster"]
        for row in live.run("headroom", "-o", "json").data["deployments"][0]["clusters"]
        if row["more"]
    }


def test_files_are_put_over_the_control_plane(live: Live) -> None:
    """The uid stays that of the live object, so its replicas stay its own."""
    grown = {**build.deployment("search", 3), "metadata": {"name": "search", "namespace": build.NAMESPACE}}
    new = build.cluster("south", [build.pool("h100", 9)])
    ran = live.run("plan", write(live.folder / "f.yaml", [grown, new]), "-o", "json")
    (search,) = (deployment for deployment in ran.data["deployments"] if deployment["name"] == "search")
    rows = search["placement"]["replicas"]
    assert len(rows) == 3
    assert [row["name"] for row in rows if row["cluster"] == "west"] == [
        build.composed_name("search", "west", 0)
    ]
    assert "south" in {row["cluster"] for row in rows}


def test_the_config_of_the_composition_decides_as_in_the_cluster(live: Live) -> None:
    live.table.objects.append(_composition("ours", {"coordination": "GlobalOrder", "overcommit": "Yield"}))
    assert "CapacityRespected" in live.run("plan").out


def test_compositions_that_differ_are_said(live: Live) -> None:
    live.table.objects += [
        _composition("a", {"coordination": "GlobalOrder", "overcommit": "Yield"}),
        _composition("b", {}),
    ]
    ran = live.run("plan")
    assert "Compositions a, b have different SchedulerConfigs" in ran.err
    assert "CapacityRespected" in ran.out
    for plain in live.table.objects:
        if plain["kind"] == "ModelDeployment":
            plain["spec"]["crossplane"] = {"compositionRef": {"name": "b"}}
    ran = live.run("plan")
    assert (ran.err, "CapacityRespected" in ran.out) == ("", False), "those in use decide"


def test_a_namespace_is_asked_about(live: Live) -> None:
    live.table.objects.append(build.deployment("chat", 1, namespace="other"))
    assert "other/chat" in live.run("plan").out
    assert "other/chat" not in live.run("plan", "-n", "ml-team").out
    assert [
        deployment["name"] for deployment in live.run("plan", "-n", "other", "-o", "json").data["deployments"]
    ] == ["chat"]
    assert live.run("why", "chat").out.startswith("ml-team/chat"), "the namespace of the context comes first"
    assert live.run("why", "chat", "-n", "other").out.startswith("other/chat")
    ran = live.run("headroom", "-n", "othr")
    assert (
        ran.code,
        'no ModelDeployment in namespace "othr" of context production; did you mean other?' in ran.err,
    ) == (
        1,
        True,
    )


def test_the_map_of_a_namespace_lists_its_deployments(live: Live) -> None:
    live.table.objects.append(build.deployment("chat", 1, namespace="other"))
    page = live.run("map", "-n", "other").out
    assert "<option>other/chat</option>" in page
    assert "<option>ml-team/chat</option>" not in page
    assert "ml-team/chat <span" in page, "who holds nodes is shown all the same"


def test_a_snapshot_is_the_answer_of_the_control_plane(live: Live) -> None:
    live.table.objects.append(_composition("ours", {"coordination": "GlobalOrder", "overcommit": "Yield"}))
    ran = live.run("snapshot", "--live")
    assert ran.code == 0
    (live.folder / "snapshot.yaml").write_text(ran.out)
    here = run("plan", live.folder / "snapshot.yaml")
    assert (here.err, here.out) == ("", live.run("plan").out)


def test_reconcile_reads_and_prints(live: Live) -> None:
    ran = live.run("reconcile", "--live", "--cluster", "east")
    assert ran.code == 0
    assert "annotate modeldeployments.modelplane.ai chat -n ml-team" in ran.out


def test_an_exec_plugin_that_fails_is_said_and_nothing_is_asked_without_credentials(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    plugin = "{apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}"
    path.write_text((KUBECONFIG % "https://127.0.0.1:1").replace("user: {}", f"user: {{exec: {plugin}}}"))
    ran = run("plan", "--kubeconfig", path)
    assert ran.code == 1
    assert ran.err.startswith(f"error: {path}: context k: no credentials: ")
    assert "no-such-plugin" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_live_and_files_are_one_or_the_other(live: Live) -> None:
    assert "leave the files out" in live.run("snapshot", "--live", "-").err


def test_a_command_line_that_collects_names_the_control_plane(live: Live) -> None:
    for words in (("snapshot",), ("reconcile", "--cluster", "east")):
        ran = run(*words, "--context", "a b", "--kubeconfig", live.kubeconfig)
        assert ran.code == 0
        assert ran.out.startswith(f"kubectl --context 'a b' --kubeconfig {live.kubeconfig} get ")
    assert f"- --cluster east --context 'a b' --kubeconfig {live.kubeconfig}" in ran.out


def test_commands_reach_the_control_plane_that_was_asked(live: Live) -> None:
    drain = live.run("whatif", "--drain", "east", "-o", "json")
    lines = [*drain.data["commands"]["apply"], *drain.data["commands"]["revert"]]
    assert lines
    assert all(line.startswith(f"kubectl --kubeconfig {live.kubeconfig} patch ") for line in lines)
    asked = live.run("reconcile", "--live", "--cluster", "east").out.splitlines()
    assert asked
    assert all(line.startswith(f"kubectl --kubeconfig {live.kubeconfig} annotate ") for line in asked)


def test_below_the_clusters_only_where_it_may_be_read(live: Live) -> None:
    live.table.served |= {"Object", "ObservedObjectCollection"}
    live.table.forbidden = {"Object"}
    ran = live.run("why", "chat")
    assert "note: what runs below the clusters is not shown" in ran.err
    assert ran.out.startswith("ml-team/chat")


FORBIDDEN = (
    f'list modeldeployments.modelplane.ai: forbidden for user "{apiserver.USER}"; '
    "example/operate/reader.yaml has a ClusterRole that allows it"
)


def test_forbidden_names_the_verb_the_resource_and_the_role(live: Live) -> None:
    live.table.forbidden = {"ModelDeployment"}
    ran = live.run("plan")
    assert ran.code == 1
    assert FORBIDDEN in ran.err


def test_a_kind_that_is_not_served_is_named(live: Live) -> None:
    live.table.served.remove("ModelReplica")
    assert (
        "the CRD modelreplicas.modelplane.ai with version v1alpha1 is not installed" in live.run("plan").err
    )


def test_a_kind_that_may_be_missing_may_be_missing(live: Live) -> None:
    live.table.served -= {"ModelCache", "ModelEndpoint", "Composition"}
    assert live.run("plan").code in (0, 2)


def test_bad_credentials_are_said(live: Live) -> None:
    live.kubeconfig = apiserver.kubeconfig(live.kubeconfig, f"http://{_address(live)}", token="old")  # noqa: S106 - it opens nothing
    assert "the credentials are not accepted, or have expired" in live.run("plan").err


def _address(live: Live) -> str:
    return live.kubeconfig.read_text().partition("http://")[2].split()[0]


def test_a_slow_server_is_given_up(live: Live) -> None:
    live.table.seconds = 1.0
    ran = live.run("plan", "--request-timeout", "0.05")
    assert ran.code == 1
    assert "no answer in time" in ran.err
    assert "--request-timeout" in ran.err


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    ran = run("plan", "--kubeconfig", apiserver.kubeconfig(tmp_path / "k", "http://127.0.0.1:1"))
    assert ran.code == 1
    assert (
        "context production (http://127.0.0.1:1): list modeldeployments.modelplane.ai: cannot be reached"
        in ran.err
    )
    assert "object at 0x" not in ran.err


def test_kubeconfigs_are_found_and_checked(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(live.kubeconfig))
    assert run("plan").code in (0, 2)
    assert 'no context "productoin"; did you mean production?' in run("plan", "--context", "productoin").err
    monkeypatch.setenv("KUBECONFIG", str(live.folder / "none"))
    missing = run("plan").err
    assert f"no kubeconfig: {live.folder}/none is not there" in missing
    assert "name files to read: fleet-scheduler plan fleet.yaml" in missing
    (live.folder / "none").write_text("{")
    assert run("plan").code == 1


def test_without_the_client_files_still_work(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = write(live.folder / "dump.yaml", live.table.objects)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    ran = live.run("plan")
    assert ran.code == 1
    assert "pip install 'function-fleet-scheduler[cli]'" in ran.err
    assert run("plan", dump).code in (0, 2)


def test_completing_a_name_imports_no_scheduler(live: Live) -> None:
    at = {"COMP_WORDS": "kubectl-fleet why ", "COMP_CWORD": "2", "KUBECONFIG": str(live.kubeconfig)}
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from function.cli import main; main([], prog_name='fleet-scheduler')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **at, "_FLEET_SCHEDULER_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "plain,ml-team/chat\nplain,ml-team/search\n"
    modules = ended.stderr.split()
    assert not [name for name in modules if name.startswith(("function.scheduler", "celpy"))]
    # Its models take half a second, and only nodes and events are read with them.
    assert "kubernetes.client" in modules
    assert "kubernetes.client.api.core_v1_api" not in modules


def test_names_are_completed_from_the_control_plane(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(live.kubeconfig))
    assert completed(["whatif", "--drain"], "e") == ["east"]
    assert completed(["headroom", "-d"], "") == ["ml-team/chat", "ml-team/search"]
    assert completed(["why"], "") == ["ml-team/chat", "ml-team/search"]


@pytest.mark.parametrize(
    ("words", "printed", "reason"),
    [
        (["wh"], ["whatif\twhat would this change do to everybody?", ":4"], "a command, with its question"),
        (["plan", "-o", "j"], ["json", ":4"], "a choice"),
        (["plan", ""], [":0"], "files are the shell's"),
    ],
)
def test_kubectl_completes(
    words: list[str],
    printed: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-fleet", *words])
    start.kubectl_complete()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("why\t")] == printed, reason


def test_as_a_plugin_it_has_the_name_that_was_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-fleet", "why", "--help"])
    with pytest.raises(SystemExit):
        start.kubectl_fleet()
    assert capsys.readouterr().out.startswith("Usage: kubectl fleet why ")
