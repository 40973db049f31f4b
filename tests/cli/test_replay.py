"""A recorded call gives the same bytes again, holds no secret, and a changed answer is told apart."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from function import wire
from function.recording import Recording, dumped, loaded, redacted_request
from function.runner import Function
from function.server.services import Recorder
from function.wire import write
from tests.cli.command import run
from tests.support.generate import world
from tests.support.recordings import CANARY, Log, recorded, secret_request, secret_world

if TYPE_CHECKING:
    from pathlib import Path


def nested(levels: int) -> bytes:
    content: dict[str, Any] = {}
    for _ in range(levels):
        content = {"a": content}
    return write.struct(content)


@pytest.mark.parametrize("seed", range(40))
def test_a_recording_replays_to_the_same_bytes(seed: int, tmp_path: Path) -> None:
    recorded(tmp_path / "calls", world(seed).message().SerializeToString())
    ran = run("replay", tmp_path / "calls", "-o", "json")
    assert ran.code == 0, ran.data
    assert [recording["same"] for recording in ran.data["recordings"]] == [True]


def test_no_secret_is_recorded(tmp_path: Path) -> None:
    request = secret_request()
    assert CANARY.encode() in request
    recorded(tmp_path / "calls", request)
    (file,) = (tmp_path / "calls").glob("*.json")
    recording = loaded(file.read_bytes())
    assert CANARY.encode() not in recording.request + recording.response
    assert b"replica-east-0" in recording.request
    assert run("replay", file).code == 0


def test_redacting_twice_changes_nothing() -> None:
    once = redacted_request(secret_request())
    assert once is not None
    assert redacted_request(once) == once


@pytest.mark.parametrize(
    "damage", [b"\x0a\x05" + CANARY.encode(), nested(120)], ids=["no Struct", "too deep"]
)
def test_a_call_with_an_object_that_cannot_be_decoded_is_not_recorded(damage: bytes, tmp_path: Path) -> None:
    """No API server holds one, and nothing in it is known to be harmless."""
    sliced = wire.messages.Request.FromString(secret_world().message().SerializeToString())
    sliced.required_resources["clusters"].items[0].resource = damage
    log = Log()
    recorded(tmp_path / "calls", sliced.SerializeToString(), log=log)
    assert list((tmp_path / "calls").glob("*.json")) == []
    assert log.said == [("not recorded", {"reason": "Unreadable"})]


def test_a_different_answer_is_told_by_its_path(tmp_path: Path) -> None:
    recorded(tmp_path / "calls", secret_request())
    (file,) = (tmp_path / "calls").glob("*.json")
    recording = loaded(file.read_bytes())
    answer = wire.messages.Response.FromString(recording.response)
    answer.conditions[0].reason = "Another"
    changed = Recording(
        "0.0.1", recording.ttl, recording.request, answer.SerializeToString(deterministic=True)
    )
    file.write_bytes(dumped(changed))
    ran = run("replay", file)
    assert ran.code == 2
    assert "recorded by 0.0.1, 1 differences" in ran.out
    assert "conditions.ReplicasScheduled.reason" in ran.out


def test_the_folder_is_bounded_in_files_and_bytes(tmp_path: Path) -> None:
    requests = [world(seed).message().SerializeToString() for seed in range(7)]
    recorded(tmp_path / "few", *requests, max_files=3)
    assert sorted(path.name for path in (tmp_path / "few").iterdir()) == [
        "call-0000.json",
        "call-0001.json",
        "call-0002.json",
    ]
    log = Log()
    recorded(tmp_path / "small", *requests, log=log, max_files=2, max_bytes=200)
    assert list((tmp_path / "small").iterdir()) == []
    assert {event for event, _ in log.said} == {"not recorded"}


def test_a_folder_that_is_gone_fails_no_call(tmp_path: Path) -> None:
    log = Log()
    recorder = recorded(tmp_path / "calls", log=log)
    (tmp_path / "calls").rmdir()
    assert Function(Log(), recorder=recorder).answer(secret_request())
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
        assert Function(Log(), recorder=recorder).answer(secret_request())
    assert list((tmp_path / "calls").iterdir()) == []
    assert [event for event, _ in log.said] == ["not recorded"]
    Function(Log(), recorder=recorder).answer(secret_request())
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
