"""The commands read the control plane themselves, with no more rights than the example role has."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from example.caller import ROOT
from function.cli import live as connection
from function.cli.live import Target
from function.cli.ui.server import Follower
from function.cli.worlds.inputs import Source
from tests.cli.command import run
from tests.live import fleet, plane as living_plane
from tests.live.account import kubeconfig
from tests.live.plane import until
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.day import Day
    from tests.live.plane import ControlPlane

pytestmark = pytest.mark.live

NAMESPACE = "tools"
MODEL = fleet.small_deployment("model", "tools", 3, NAMESPACE)
READER = "reader"
ROLE = "fleet-scheduler-reader"


@pytest.fixture(scope="module")
def reader(living: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fleet.create_namespace(living, NAMESPACE)
    fleet.create_fleet(
        living, [fleet.small_cluster(f"tools-{number}", "tools", nodes=2) for number in (1, 2, 3)]
    )
    living.apply(MODEL)
    fleet.until_placed(living, MODEL, 3)
    yield kubeconfig(living, tmp_path_factory.mktemp("reader"), NAMESPACE, READER)
    living.kubectl("delete", "clusterrolebinding", "tools-readers", "--ignore-not-found")
    fleet.leave(living, NAMESPACE)


def test_what_may_not_be_read_is_named_with_the_role(living: ControlPlane, reader: Path) -> None:
    ran = run("plan", "--kubeconfig", reader)
    assert ran.code == 1
    who = f"system:serviceaccount:{NAMESPACE}:{READER}"
    assert (
        f'list modeldeployments.modelplane.ai: forbidden for user "{who}"; example/operate/reader.yaml'
        in ran.err
    )
    living.kubectl("apply", "-f", "example/operate/reader.yaml")
    account = f"--serviceaccount={NAMESPACE}:{READER}"
    living.kubectl("create", "clusterrolebinding", "tools-readers", f"--clusterrole={ROLE}", account)
    living_plane.until(
        lambda: "forbidden" not in run("plan", "--kubeconfig", reader).err, "the role is in effect"
    )


def test_the_answer_is_the_one_on_the_dump(
    living: ControlPlane, reader: Path, day: Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages of two, and with nothing but the role: the order of both lists is the server's."""
    monkeypatch.setattr(connection, "PAGE", 2)
    dump = tmp_path / "dump.yaml"
    kinds = "modeldeployments,inferenceclusters,modelreplicas,inferenceclasses,modelendpoints,modelcaches"
    config = yaml.safe_load((ROOT / "apis" / "modeldeployments" / "composition.yaml").read_text())
    given = tmp_path / "config.yaml"
    given.write_text(yaml.safe_dump(config["spec"]["pipeline"][0]["input"]))
    dump.write_text(living.kubectl("get", kinds, "-A", "-o", "yaml"))
    for words in (["plan"], ["why", f"{NAMESPACE}/model"], ["headroom"], ["whatif", "--drain", "tools-1"]):
        there, here = run(*words, "--kubeconfig", reader), run(*words, dump, given)
        answers = [
            [
                line.replace(f"kubectl --kubeconfig {reader}", "kubectl")
                for line in ran.out.splitlines()
                if not line.startswith("  More: ")
            ]
            for ran in (there, here)
        ]  # Where to ask on, and what a printed command acts on, is where it was asked.
        assert (there.code, answers[0]) == (here.code, answers[1]), words
    with day.step("fleet-scheduler plan, from the control plane", "the answer of its dump"):
        assert run("plan", "--kubeconfig", reader).code in (0, 2)


def test_as_a_plugin_of_kubectl(living: ControlPlane, reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")
    out = living.shell(f"KUBECONFIG={reader} kubectl fleet why model -n {NAMESPACE}")
    assert out.startswith(f"{NAMESPACE}/model: ")


def test_a_file_is_put_over_the_control_plane(reader: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text(yaml.safe_dump({**MODEL, "spec": {**MODEL["spec"], "replicas": 5}}))
    ran = run("plan", more, "--kubeconfig", reader, "-n", NAMESPACE, "-o", "json")
    (model,) = ran.data["deployments"]
    actions = [row["action"] for row in model["placement"]["replicas"]]
    assert len(actions) == 5
    assert actions.count("Placed") == 2, "what runs is kept: the uid is that of the live object"


def test_a_deployment_is_watched_until_it_has_settled(living: ControlPlane, reader: Path) -> None:
    words = ("watch", "model", "-n", NAMESPACE, "--kubeconfig", reader, "--timeout")
    early = run(*words, "0")
    assert (early.code, early.out.count("starting on")) == (2, 3)
    fleet.until_serving(living, MODEL)
    late = run(*words, "120")
    assert late.code == 0, late.err
    assert late.err.startswith("settled: 3 of 3 replicas ready"), late.out
    words_added = late.err.removeprefix("settled: 3 of 3 replicas ready").strip()
    assert not words_added or "WatchCircuitOpen" in words_added, "three replicas at once may open the breaker"


def test_history_has_what_the_control_plane_keeps(living: ControlPlane, reader: Path) -> None:
    ran = run("history", "model", "-n", NAMESPACE, "--kubeconfig", reader, "-o", "json")
    assert ran.code == 0, ran.err
    moments = [(moment["name"], moment["text"]) for moment in ran.data["moments"]]
    assert ("ModelDeployment model", "created") in moments
    for replica in fleet.replicas(living, MODEL):
        title = f"ModelReplica {replica['metadata']['name']}"
        assert (title, f"created on {replica['spec']['clusterName']}") in moments


def test_the_page_follows_a_drain(living: ControlPlane, reader: Path) -> None:
    """With nothing but the role. It comes last, because a replica leaves its cluster."""
    cluster = fleet.replicas(living, MODEL)[0]["spec"]["clusterName"]
    follower = Follower(Source(target=Target(kubeconfig=str(reader))))
    follower.look()

    def leaving() -> list[str]:
        follower.look()
        return [happening["text"] for happening in follower.since(0) if f" {cluster}" in happening["text"]]

    fleet.taint(living, cluster, build.taint("tools/drain", "NoExecute"))
    until(leaving, f"the page says that a replica leaves {cluster}")
    fleet.taint(living, cluster)
