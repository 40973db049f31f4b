"""`history` puts objects, events and recordings of a deployment in the order of their times."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.answers import held
from tests.cli.command import run, write
from tests.support import apiserver, build
from tests.support.recordings import recorded, secret_request

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]
NAMESPACE = build.NAMESPACE


def _at(plain: Plain, time: str) -> Plain:
    plain["metadata"]["creationTimestamp"] = time
    return plain


def _event(kind: str, name: str, time: str, **more: Any) -> Plain:
    about = {"kind": kind, "namespace": more.pop("namespace", NAMESPACE), "name": name}
    head = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"{name}.{time}"}}
    head["metadata"]["namespace"] = NAMESPACE
    return {**head, "regarding": about, "eventTime": time, "reason": "Composed", "note": "done", **more}


def _objects() -> list[Plain]:
    chat = _at(build.deployment("chat", 1), "2026-03-01T08:00:00Z")
    condition = build.condition("ReplicasScheduled", status=True, reason="ReplicasCreated")
    chat["status"] = {"conditions": [condition | {"lastTransitionTime": "2026-03-01T08:00:05Z"}]}
    replica = _at(build.replica(chat, "east", 0, ready=True), "2026-03-01T08:00:04Z")
    replica["status"]["conditions"][0]["lastTransitionTime"] = "2026-03-01T08:03:00Z"
    other = _at(build.replica(build.deployment("search", 1), "east", 0, ready=True), "2026-03-01T08:00:01Z")
    return [chat, replica, other, build.deployment("search", 1), build.cluster("east", [])]


def _texts(*words: object) -> list[str]:
    ran = run("history", "chat", *words, "-o", "json")
    assert ran.code == 0, ran.err
    held(ran.data)
    return [f"{moment['at'][11:19]} {moment['name']}: {moment['text']}" for moment in ran.data["moments"]]


def test_a_deployment_of_which_nothing_is_kept(tmp_path: Path) -> None:
    """An empty answer looks like one that was lost on its way."""
    chat = build.deployment("chat", 1)
    del chat["metadata"]["creationTimestamp"]
    ran = run("history", "chat", write(tmp_path / "f.yaml", [chat]))
    assert (ran.code, ran.out) == (0, "")
    assert f"nothing is kept of ModelDeployment {NAMESPACE}/chat" in ran.err


def test_objects_and_conditions_in_the_order_of_their_times(tmp_path: Path) -> None:
    replica = f"ModelReplica {build.composed_name('chat', 'east', 0)}"
    assert _texts(write(tmp_path / "f.yaml", _objects())) == [
        "08:00:00 ModelDeployment chat: created",
        f"08:00:04 {replica}: created on east",
        "08:00:05 ModelDeployment chat: ReplicasScheduled: True: ReplicasCreated",
        f"08:03:00 {replica}: Ready: True: Tested",
    ]


@pytest.mark.parametrize(
    ("event", "expected", "reason"),
    [
        (
            _event("ModelDeployment", "chat", "2026-03-01T09:00:00Z"),
            "09:00:00 ModelDeployment chat",
            "its own",
        ),
        (_event("ModelReplica", "chat-0a1b2", "2026-03-01T09:00:00.5Z"), "09:00:00 ModelReplica", "one gone"),
        (_event("ModelReplica", "search-0a1b2", "2026-03-01T09:00:00Z"), "", "of another"),
        (_event("ModelDeployment", "chat", "2026-03-01T09:00:00Z", namespace="other"), "", "elsewhere"),
        (_event("Pod", "chat-0a1b2", "2026-03-01T09:00:00Z"), "", "of another kind"),
        (_event("ModelDeployment", "chat", "yesterday"), "", "no time"),
    ],
)
def test_events_of_the_deployment_are_taken(event: Plain, expected: str, reason: str, tmp_path: Path) -> None:
    texts = _texts(write(tmp_path / "f.yaml", [*_objects(), event]))
    events = [text for text in texts if text.endswith(": Composed: done")]
    assert len(events) == bool(expected), reason
    assert all(text.startswith(expected) for text in events)


def test_an_event_of_the_core_group_counts_its_times(tmp_path: Path) -> None:
    about = {"kind": "ModelDeployment", "namespace": NAMESPACE, "name": "chat"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": NAMESPACE},
        "involvedObject": about,
        "lastTimestamp": "2026-03-01T09:30:00Z",
        "count": 3,
        "reason": "Refused",
        "message": "no",
    }
    texts = _texts(write(tmp_path / "f.yaml", [*_objects(), event]))
    assert texts[-1] == "09:30:00 ModelDeployment chat: Refused: no (3 times)"


def _adapters(name: str) -> list[Plain]:
    """Two adapters on one replica, of which `name` has an event and a condition."""
    version, made = "modelplane.ai/v1alpha1", []
    for adapter in (name, "other"):
        plain = {
            "apiVersion": version,
            "kind": "ModelAdapter",
            "metadata": {"name": adapter, "namespace": NAMESPACE},
            "spec": {"base": {"deploymentName": "chat"}, "source": "acme/x", "replicas": 1, "rank": 8},
        }
        placement = {
            "apiVersion": version,
            "kind": "ModelAdapterPlacement",
            "metadata": {"name": f"{adapter}-chat-0a1b2-01234567", "namespace": NAMESPACE},
            "spec": {"adapter": adapter, "replica": "chat-0a1b2", "source": "acme/x", "rank": 8},
        }
        made += [_at(plain, "2026-03-01T09:00:00Z"), _at(placement, "2026-03-01T09:00:02Z")]
    condition = build.condition("AdapterScheduled", status=True, reason="FullyScheduled")
    made[0]["status"] = {"conditions": [condition | {"lastTransitionTime": "2026-03-01T09:00:01Z"}]}
    of_part = _event("ModelAdapterPlacement", f"{name}-chat-0a1b2-01234567", "2026-03-01T09:00:03Z")
    return [*made, of_part, _event("ModelAdapter", "other", "2026-03-01T09:00:04Z")]


@pytest.mark.parametrize(
    ("name", "words", "reason"),
    [
        ("support", ("support",), "a name that only an adapter has"),
        ("chat", ("chat", "--adapter"), "one that a deployment has too, by the flag"),
    ],
)
def test_an_adapter_has_a_history_of_its_places(
    name: str, words: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "f.yaml", [*_objects(), *_adapters(name)])
    ran = run("history", *words, file, "-o", "json")
    assert ran.code == 0, ran.err
    held(ran.data)
    place = f"ModelAdapterPlacement {name}-chat-0a1b2-01234567"
    assert ran.data["adapter"] == f"{NAMESPACE}/{name}", reason
    assert [f"{moment['name']}: {moment['text']}" for moment in ran.data["moments"]] == [
        f"ModelAdapter {name}: created",
        f"ModelAdapter {name}: AdapterScheduled: True: FullyScheduled",
        f"{place}: created on chat-0a1b2",
        f"{place}: Composed: done",
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("chta", "did you mean chat"), (f"{NAMESPACE}/chta", f"did you mean {NAMESPACE}/chat")],
)
def test_a_name_that_is_not_there_is_compared_with_names_as_it_is_written(
    name: str, hint: str, tmp_path: Path
) -> None:
    ran = run("history", name, write(tmp_path / "f.yaml", _objects()))
    assert (ran.code, hint in ran.err) == (1, True)


def test_a_name_that_both_have_means_the_deployment(tmp_path: Path) -> None:
    texts = _texts(write(tmp_path / "f.yaml", [*_objects(), *_adapters("chat")]))
    assert [text for text in texts if "Adapter" in text] == []


def test_a_recorded_call_is_a_decision(tmp_path: Path) -> None:
    recorded(tmp_path / "calls", secret_request())
    [call] = (tmp_path / "calls").glob("*.json")
    os.utime(call, (1_772_360_000, 1_772_360_000))
    file = write(tmp_path / "f.yaml", _objects())
    texts = [text for text in _texts(file, "--recordings", tmp_path / "calls") if call.name in text]
    assert f"10:13:20 {call.name}: replicas on east, east" in texts
    assert any("ReplicasScheduled: " in text for text in texts)
    objects = [plain for plain in _objects() if plain["metadata"]["name"] != "chat"]
    alone = run("history", "search", write(tmp_path / "g.yaml", objects), "--recordings", call, "-o", "json")
    assert call.name not in alone.out, "the call of another deployment"


def test_a_damaged_recording_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "call.json").write_text("{}")
    file = write(tmp_path / "f.yaml", _objects())
    ran = run("history", "chat", file, "--recordings", tmp_path / "call.json")
    assert (ran.code, "call.json: not a recording" in ran.err) == (1, True)


def test_a_control_plane_is_read_with_its_events(tmp_path: Path) -> None:
    event = _event("ModelDeployment", "chat", "2026-03-01T09:00:00Z")
    served = (*apiserver.FLEET, "Composition", "Event")
    with apiserver.serving([*_objects(), event], served) as (address, table):
        file = apiserver.kubeconfig(tmp_path / "kubeconfig", address)
        assert "Composed: done" in run("history", "chat", "--kubeconfig", file).out
        table.forbidden = {"Event"}
        ran = run("history", "chat", "--kubeconfig", file)
        assert (ran.code, "events are not shown" in ran.err) == (0, True)
        assert "ModelDeployment chat: created" in ran.out


def test_a_name_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    ran = run("history", "chta", write(tmp_path / "f.yaml", _objects()))
    assert (ran.code, 'no ModelDeployment "chta"' in ran.err) == (1, True)
