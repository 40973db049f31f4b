"""`watch` prints what changes, once, and ends when the deployment has settled."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from function.cli.commands import watch as module
from function.cli.worlds.settling import LATE, Standing, adapter_standing, changes, standing
from tests.cli.answers import held
from tests.cli.command import Ran, completed, run
from tests.support import apiserver, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain = dict[str, Any]
TRUE = {"ReplicasScheduled": "True", "ReplicasReady": "True"}


def _deployment(wanted: int, seen: int = 1, **conditions: str) -> Plain:
    plain = build.deployment("chat", wanted)
    plain["metadata"]["generation"] = 1
    listed = [build.condition(kind, status=status) for kind, status in conditions.items()]
    synced = {**build.condition("Synced", status=True), "observedGeneration": seen}
    plain["status"] = {"conditions": [synced, *listed]}
    return plain


def _replica(index: int, *, ready: bool | None = True, deleting: bool = False) -> Plain:
    plain = build.replica(build.deployment("chat", 1), "east", index, ready=ready)
    if deleting:
        plain["metadata"]["deletionTimestamp"] = build.CREATED
    return plain


@pytest.mark.parametrize(
    ("deployment", "replicas", "settled", "reason"),
    [
        (_deployment(1, **TRUE), [_replica(0)], True, "all is there"),
        (_deployment(1, seen=0, **TRUE), [_replica(0)], False, "the conditions are of an older spec"),
        (_deployment(2, **TRUE), [_replica(0)], False, "one is missing, whatever conditions say"),
        (_deployment(1, **TRUE), [_replica(0), _replica(1, deleting=True)], False, "one is leaving"),
        (_deployment(1, **TRUE), [_replica(0, ready=None)], False, "one is starting"),
        (_deployment(1, **TRUE, ReplicasUpdated="False"), [_replica(0)], False, "a rollout goes on"),
        (_deployment(1, **TRUE, CapacityRespected="True"), [_replica(0)], True, "an opt-in condition"),
        (_deployment(1, **TRUE, Ready="False"), [_replica(0)], False, "an endpoint is not Ready"),
        (_deployment(0, ReplicasScheduled="True", Ready="False"), [], False, "something is still there"),
        (_deployment(1, **TRUE, Responsive="False"), [_replica(0)], True, "it serves; edits show late"),
        (_deployment(1, ReplicasScheduled="True"), [_replica(0)], False, "nothing says that it serves"),
        (_deployment(0, ReplicasScheduled="True", ReplicasReady="False"), [], True, "none is wanted"),
        (build.deployment("chat", 1), [], False, "nothing was said about it yet"),
    ],
)
def test_settled_is_what_serves_as_wanted(
    deployment: Plain, replicas: list[Plain], settled: object, reason: str
) -> None:
    assert standing(deployment, replicas).is_settled is settled, reason


class Watched:
    """A served deployment, watched without pauses."""

    def __init__(self, kubeconfig: Path, table: apiserver.Table) -> None:
        self.kubeconfig, self.table = kubeconfig, table

    def run(self, *words: object) -> Ran:
        return run("watch", "chat", *words, "--kubeconfig", self.kubeconfig)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(module, "sleep", lambda _: None)
    start = [_deployment(1, ReplicasScheduled="False"), build.cluster("east", [])]
    with apiserver.serving(start) as (address, table):
        yield Watched(apiserver.kubeconfig(tmp_path / "kubeconfig", address), table)


def _moments() -> list[list[Plain]]:
    starting = [_deployment(1, ReplicasScheduled="True"), _replica(0, ready=None)]
    return [
        [_deployment(1, ReplicasScheduled="False")],
        starting,
        deepcopy(starting),
        [_deployment(1, **TRUE), _replica(0)],
    ]


def test_each_change_is_one_line(watched: Watched) -> None:
    watched.table.moments = _moments()
    ran = watched.run()
    name = build.composed_name("chat", "east", 0)
    assert [line.split("  ", 1)[1] for line in ran.out.splitlines()] == [
        "deployment  wants 1 replica",
        "condition  Synced: True: Tested",
        "condition  ReplicasScheduled: False: Tested",
        f"replica  {name}: starting on east",
        "condition  ReplicasScheduled: True: Tested",
        f"replica  {name}: ready on east",
        "condition  ReplicasReady: True: Tested",
    ]
    assert (ran.code, ran.err) == (0, "settled: 1 of 1 replicas ready\n")


def test_what_a_starting_replica_says_of_itself_is_said(watched: Watched) -> None:
    waits = _replica(0, ready=False)
    refused = build.condition("ModelReady", status=False, reason="Unschedulable")
    waits["status"]["conditions"].append({**refused, "message": "no node has 8 GPUs"})
    watched.table.moments = [[_deployment(1, ReplicasScheduled="True"), waits]]
    name = build.composed_name("chat", "east", 0)
    said = f"{name}: starting on east: ModelReady: Unschedulable: no node has 8 GPUs\n"
    assert said in watched.run("--timeout", "0").out


def test_lines_of_json_are_one_object_each(watched: Watched) -> None:
    watched.table.moments = _moments()
    lines = [json.loads(line) for line in watched.run("-o", "json").out.splitlines()]
    for line in lines:
        held(line)
    assert lines[0]["text"] == "wants 1 replica"


def test_it_ends_with_what_is_missing(watched: Watched) -> None:
    ran = watched.run("--timeout", "0")
    assert (ran.code, ran.err) == (2, "not settled after 0 s: ReplicasScheduled: Tested\n")


def test_a_call_that_failed_is_what_is_missing() -> None:
    plain = _deployment(1, ReplicasScheduled="Unknown", ReplicasReady="Unknown")
    plain["status"]["conditions"][0] |= {"status": "False", "reason": "ReconcileError", "message": "refused"}
    assert standing(plain, [_replica(0)]).unsettled == "Synced: ReconcileError: refused"


def test_an_edit_that_was_not_acted_on_is_what_is_missing() -> None:
    """The function is stopped: every condition is well, and of before."""
    edited = standing(_deployment(2, seen=0, **TRUE), [_replica(0)])
    assert edited.unsettled == "Crossplane has not acted on the last edit yet: generation 1, seen 0"
    assert edited.stalled == [edited.unsettled]


def test_what_crossplane_says_of_it_is_said() -> None:
    """All that is ours is well: only Crossplane's own conditions say what is not."""
    unready = _deployment(1, **TRUE, Ready="False")
    unready["status"]["conditions"][-1] |= {"reason": "Creating", "message": "Unready resources: chat"}
    assert standing(unready, [_replica(0)]).unsettled == "Ready: Creating: Unready resources: chat"
    late = standing(_deployment(1, **TRUE, Responsive="False"), [_replica(0)])
    assert late.summary == f"1 of 1 replicas ready; but Responsive: Tested ({LATE})"


def test_a_deleted_deployment_ends_it(watched: Watched) -> None:
    watched.table.moments = [watched.table.objects, [build.deployment("other", 1)]]
    ran = watched.run()
    assert (ran.code, ran.err) == (2, "ml-team/chat was deleted\n")
    assert "deployment  deleted" in ran.out


def _two(*settled: str) -> list[Plain]:
    """Two deployments, of which those named have settled."""
    objects: list[Plain] = []
    for name in ("chat", "search"):
        one = _deployment(1, **(TRUE if name in settled else {"ReplicasScheduled": "False"}))
        one["metadata"]["name"] = name
        replica = build.replica(build.deployment(name, 1), "east", 0, ready=True)
        objects += [one, replica] if name in settled else [one]
    return objects


def test_several_are_watched_until_all_have_settled(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.table.objects = [*_two("chat"), build.cluster("east", [])]
    steps = iter([_two("chat"), _two("chat", "search")])
    monkeypatch.setattr(module, "sleep", lambda _: setattr(watched.table, "objects", next(steps)))
    for words in ((), ("chat", "search"), ("-n", "ml-team")):
        steps = iter([_two("chat"), _two("chat", "search")])
        watched.table.objects = _two("chat")
        ran = run("watch", *words, "--kubeconfig", watched.kubeconfig)
        assert (ran.code, ran.err) == (0, "settled: 2 deployments, 2 of 2 replicas ready\n")
        lines = [line.split("  ", 1)[1] for line in ran.out.splitlines()]
        assert "ml-team/search  deployment  wants 1 replica" in lines
        assert [line for line in lines if "ready on east" in line and line.startswith("ml-team/search")]


def test_of_several_those_that_have_not_settled_are_named(watched: Watched) -> None:
    watched.table.objects = _two("chat")
    ran = run("watch", "--timeout", "0", "--kubeconfig", watched.kubeconfig)
    assert ran.code == 2
    assert ran.err == "not settled after 0 s: \n  ml-team/search: ReplicasScheduled: Tested\n"


def test_of_several_one_that_is_deleted_is_said_and_the_others_go_on(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.table.objects = _two()
    steps = iter([_two()[:1], _two("chat")[:2]])
    monkeypatch.setattr(module, "sleep", lambda _: setattr(watched.table, "objects", next(steps)))
    ran = run("watch", "--kubeconfig", watched.kubeconfig)
    assert (ran.code, ran.err) == (2, "ml-team/search was deleted\n")
    assert "ml-team/search  deployment  deleted" in ran.out
    assert "ml-team/chat  replica" in ran.out


def test_several_are_read_with_two_lists_a_look(watched: Watched) -> None:
    watched.table.objects = _two("chat", "search")
    run("watch", "--kubeconfig", watched.kubeconfig)
    assert len(watched.table.asked) == 3, "the names, then deployments and replicas"


def test_a_server_that_is_away_for_a_while_is_waited_for(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.table.moments = _moments()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        watched.table.forbidden = {"ModelReplica"} if len(pauses) in (1, 2) else set()

    monkeypatch.setattr(module, "sleep", pause)
    ran = watched.run()
    assert ran.code == 0
    assert ran.err.count("the watch goes on") == 1


def test_ctrl_c_ends_it_as_shells_expect(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "sleep", interrupted)
    assert watched.run().code == 130


def test_a_name_that_is_not_there_is_bad_input(watched: Watched) -> None:
    ran = run("watch", "chta", "--kubeconfig", watched.kubeconfig)
    assert (ran.code, 'no ModelDeployment "chta" in context production; did you mean' in ran.err) == (1, True)


def _adapter(wanted: int = 1, *, scheduled: bool = True, ready: bool = False) -> Plain:
    metadata = {"name": "support", "namespace": "ml-team", "generation": 1}
    states = {"AdapterScheduled": scheduled, "AdapterReady": ready, "Ready": ready}
    synced = {**build.condition("Synced", status=True), "observedGeneration": 1}
    listed = [build.condition(kind, status=status) for kind, status in states.items()]
    spec = {"base": {"deploymentName": "chat"}, "source": "acme/support", "replicas": wanted}
    status = {"conditions": [synced, *listed]}
    return {
        "apiVersion": build.API,
        "kind": "ModelAdapter",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _place(replica: Plain, *, deleting: bool = False) -> Plain:
    name = replica["metadata"]["name"]
    metadata = {"name": f"support-{name}", "namespace": "ml-team"}
    gone = {"deletionTimestamp": build.CREATED} if deleting else {}
    spec = {"adapter": "support", "replica": name, "source": "acme/support"}
    return {
        "apiVersion": build.API,
        "kind": "ModelAdapterPlacement",
        "metadata": metadata | gone,
        "spec": spec,
    }


def _base(index: int, *, loaded: bool, ready: bool = True) -> Plain:
    replica = _replica(index, ready=ready)
    replica["status"]["adapters"] = [{"name": "support"}] if loaded else []
    return replica


LOADED, EMPTY = _base(0, loaded=True), _base(1, loaded=False)
STATES: list[tuple[Plain, list[Plain], list[Plain], str, bool, str]] = [
    (_adapter(ready=True), [_place(LOADED)], [LOADED], "ready on east", True, "its replica has it"),
    (_adapter(), [_place(EMPTY)], [EMPTY], "starting on east: not configured yet", False, "not yet"),
    (
        _adapter(ready=True),
        [_place(_replica(0))],
        [_base(0, loaded=True, ready=False)],
        "starting on east: Ready: Tested",
        False,
        "the replica is not Ready",
    ),
    (_adapter(ready=True), [_place(LOADED, deleting=True)], [LOADED], "leaving on east", False, "it leaves"),
    (
        _adapter(ready=True),
        [_place(_replica(0))],
        [_replica(0, deleting=True)],
        "leaving on east",
        False,
        "its replica leaves",
    ),
    (_adapter(2, ready=True), [_place(LOADED)], [LOADED], "ready on east", False, "two are wanted"),
]


@pytest.mark.parametrize(("adapter", "places", "replicas", "said", "settled", "reason"), STATES)
def test_an_adapter_settles_when_as_many_replicas_have_it(
    adapter: Plain, places: list[Plain], replicas: list[Plain], said: str, settled: object, reason: str
) -> None:
    other = {**_place(EMPTY), "spec": {"adapter": "other", "replica": EMPTY["metadata"]["name"]}}
    now = adapter_standing(adapter, [other, *places], replicas)
    texts = [change.text for change in changes(Standing(), now) if change.kind == "Replica"]
    assert texts == [said], reason
    assert now.is_settled is settled, reason


def test_an_adapter_is_watched_until_its_replica_has_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that no deployment has is that of an adapter; `--adapter` says so of any."""
    start = [*watched.table.objects, _adapter(scheduled=False), EMPTY]
    moments = [
        [*watched.table.objects, _adapter(), EMPTY, _place(EMPTY)],
        [*watched.table.objects, _adapter(ready=True), _base(1, loaded=True), _place(EMPTY)],
    ]
    for words in (("support",), ("--adapter",), ("support", "--adapter")):
        steps = iter(moments)
        monkeypatch.setattr(module, "sleep", lambda _: setattr(watched.table, "objects", next(steps)))  # noqa: B023
        watched.table.objects = start
        ran = run("watch", *words, "--kubeconfig", watched.kubeconfig)
        name = EMPTY["metadata"]["name"]
        lines = [line.split("  ", 1)[1] for line in ran.out.splitlines()]
        assert lines[0] == "adapter  wants 1 replica"
        assert [line for line in lines if line.startswith("replica")] == [
            f"replica  {name}: starting on east: not configured yet",
            f"replica  {name}: ready on east",
        ]
        assert (ran.code, ran.err) == (0, "settled: 1 of 1 replicas ready\n")


def test_an_adapter_and_a_deployment_are_watched_together(watched: Watched) -> None:
    watched.table.objects = [_deployment(1, **TRUE), LOADED, _adapter(ready=True), _place(LOADED)]
    ran = watched.run("support")
    assert (ran.code, ran.err) == (0, "settled: 1 deployment, 1 adapter, 2 of 2 replicas ready\n")
    assert "ml-team/support (adapter)  replica" in ran.out
    for line in watched.run("support", "-o", "json").out.splitlines():
        held(json.loads(line))
    watched.table.objects = watched.table.objects[:2]
    assert 'no ModelDeployment "support" in' in watched.run("support").err
    ran = run("watch", "--adapter", "--kubeconfig", watched.kubeconfig)
    assert "there is no ModelAdapter in context production" in ran.err


def test_an_adapter_that_is_deleted_ends_it(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.table.objects = [*(before := watched.table.objects), _adapter()]
    monkeypatch.setattr(module, "sleep", lambda _: setattr(watched.table, "objects", before))
    ran = run("watch", "support", "--kubeconfig", watched.kubeconfig)
    assert (ran.code, ran.err) == (2, "ml-team/support (adapter) was deleted\n")
    assert "adapter  deleted" in ran.out
    words = ["watch", "--kubeconfig", str(watched.kubeconfig)]
    watched.table.objects = [*before, _adapter()]
    assert completed(words, "ml-team/s") == ["ml-team/support"]
