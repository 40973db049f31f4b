"""A recorded call gives the same bytes again, holds no secret, and a changed answer is told apart."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from function import wire
from function.recording.file import Recording, dumped, loaded
from function.recording.request import redacted_request
from function.runner import Function
from function.server.record import Recorder
from tests.cli.command import run
from tests.support import build
from tests.support.generate import world
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-77e1"


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def _say(self, event: str, **more: Any) -> None:
        self.said.append((event, more))

    info = warning = error = _say


def _recorded(folder: Path, *requests: bytes, log: Log | None = None, **limits: int) -> Recorder:
    recorder = Recorder(folder, log or Log(), "tested", **limits)
    function = Function(Log(), recorder=recorder)
    for request in requests:
        function.answer(request)
    return recorder


def _secret_world() -> World:
    parent = build.deployment("chat", 2)
    container = parent["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"][
        "containers"
    ][0]
    container["env"] = [{"name": "HF_TOKEN", "value": CANARY}]
    container["args"] = [f"--key={CANARY}"]
    parent["metadata"]["annotations"] = {"note": CANARY}
    running = build.replica(parent, "east", 0, ready=True)
    clusters = [build.cluster("east", [build.pool("h100", 3)])]
    return World(parent, clusters, [running], build.observed(running))


def _request() -> bytes:
    message = _secret_world().message()
    message.context.update({"secret": CANARY})
    message.observed.resources["replica-east-0"].connection_details["password"] = CANARY.encode()
    return message.SerializeToString()


@pytest.mark.parametrize("seed", range(40))
def test_a_recording_replays_to_the_same_bytes(seed: int, tmp_path: Path) -> None:
    _recorded(tmp_path / "calls", world(seed).message().SerializeToString())
    ran = run("replay", tmp_path / "calls", "-o", "json")
    assert ran.code == 0, ran.data
    assert [recording["same"] for recording in ran.data["recordings"]] == [True]


def test_no_secret_is_recorded(tmp_path: Path) -> None:
    request = _request()
    assert CANARY.encode() in request
    _recorded(tmp_path / "calls", request)
    (file,) = (tmp_path / "calls").glob("*.json")
    found = loaded(file.read_bytes())
    assert CANARY.encode() not in found.request + found.response
    assert b"replica-east-0" in found.request
    assert run("replay", file).code == 0


def test_redacting_twice_changes_nothing() -> None:
    once = redacted_request(_request())
    assert once is not None
    assert redacted_request(once) == once


def test_what_cannot_be_decoded_stays_so_and_is_not_written(tmp_path: Path) -> None:
    message = _secret_world().message()
    sliced = wire.messages.Request.FromString(message.SerializeToString())
    sliced.required_resources["clusters"].items[0].resource = b"\x0a\x05" + CANARY.encode()
    _recorded(tmp_path / "calls", sliced.SerializeToString())
    (file,) = (tmp_path / "calls").glob("*.json")
    assert CANARY.encode() not in loaded(file.read_bytes()).request
    assert run("replay", file).code == 0


def test_a_different_answer_is_told_by_its_path(tmp_path: Path) -> None:
    _recorded(tmp_path / "calls", _request())
    (file,) = (tmp_path / "calls").glob("*.json")
    found = loaded(file.read_bytes())
    answer = wire.messages.Response.FromString(found.response)
    answer.conditions[0].reason = "Another"
    changed = Recording("0.0.1", found.ttl, found.request, answer.SerializeToString(deterministic=True))
    file.write_bytes(dumped(changed))
    ran = run("replay", file)
    assert ran.code == 2
    assert "recorded by 0.0.1, 1 differences" in ran.out
    assert "conditions.ReplicasScheduled.reason" in ran.out


def test_the_folder_is_bounded_in_files_and_bytes(tmp_path: Path) -> None:
    requests = [world(seed).message().SerializeToString() for seed in range(7)]
    _recorded(tmp_path / "few", *requests, max_files=3)
    assert sorted(path.name for path in (tmp_path / "few").iterdir()) == [
        "call-0000.json",
        "call-0001.json",
        "call-0002.json",
    ]
    log = Log()
    _recorded(tmp_path / "small", *requests, log=log, max_files=2, max_bytes=200)
    assert list((tmp_path / "small").iterdir()) == []
    assert {event for event, _ in log.said} == {"not recorded"}


def test_a_folder_that_is_gone_fails_no_call(tmp_path: Path) -> None:
    log = Log()
    recorder = _recorded(tmp_path / "calls", log=log)
    (tmp_path / "calls").rmdir()
    assert Function(Log(), recorder=recorder).answer(_request())
    assert [event for event, _ in log.said] == ["not recorded"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bytes = type(tmp_path).write_bytes

    def full(path: Path, content: bytes) -> int:
        write_bytes(path, content[:0])
        raise OSError(errno.ENOSPC, "No space left on device")

    log = Log()
    recorder = Recorder(tmp_path / "calls", log, "tested")
    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "write_bytes", full)
        assert Function(Log(), recorder=recorder).answer(_request())
    assert list((tmp_path / "calls").iterdir()) == []
    assert [event for event, _ in log.said] == ["not recorded"]
    Function(Log(), recorder=recorder).answer(_request())
    assert [file.name for file in (tmp_path / "calls").iterdir()] == ["call-0001.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a recording"),
        ("[]", "not a recording"),
        (json.dumps({"format": 9}), "format 9 is not known here"),
        (
            json.dumps({"format": 1, "ttl": [1, 2], "request": "?", "response": "", "version": ""}),
            "not a recording",
        ),
        (
            json.dumps({"format": 1, "ttl": [1, 2], "request": "/w==", "response": "", "version": ""}),
            "not a RunFunctionRequest",
        ),
    ],
)
def test_what_is_no_recording_is_named(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "call.json").write_text(content)
    ran = run("replay", tmp_path / "call.json")
    assert ran.code == 1
    assert message in ran.err


def test_an_empty_folder_is_bad_input(tmp_path: Path) -> None:
    assert "there are no recordings" in run("replay", tmp_path).err
