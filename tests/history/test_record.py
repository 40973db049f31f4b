"""The recorder against a server that ends watches, forgets what they missed, and is away."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.history.lives import read
from tests.history.record import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain = dict[str, Any]

KIND, WHERE = "ModelReplica", "/replicas"
ENOUGH = 60.0
"""Seconds until what must be recorded is given up on."""


def replica(name: str, version: int) -> Plain:
    metadata = {"name": name, "uid": name, "resourceVersion": str(version), "managedFields": [{}]}
    return {"kind": KIND, "metadata": metadata, "status": {"placement": {"summary": ""}, "conditions": []}}


def event(kind: str, name: str, version: int) -> Plain:
    return {"type": kind, "object": replica(name, version)}


EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "40"}}}


@dataclass
class Script:
    """What the server answers in turn: a status, a list, or the events of a watch."""

    answers: list[int | tuple[int, list[Plain]] | list[Plain | str]]
    asked: list[str] = field(default_factory=list)
    """The versions that watches began from, "" for a list."""


def handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            script.asked.append(query.get("resourceVersion", [""])[0])
            answer = script.answers.pop(0) if script.answers else 500
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            if isinstance(answer, tuple):
                version, items = answer
                body = {"metadata": {"resourceVersion": str(version)}, "items": items}
                self.wfile.write(json.dumps(body).encode())
            elif isinstance(answer, list):
                for line in answer:
                    text = line if isinstance(line, str) else json.dumps(line) + "\n"
                    self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def serving(script: Script) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(script)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def recorded(script: Script, path: Path) -> list[Plain]:
    """Record until the script is at its end, and return the lines."""
    with serving(script) as address:
        recorder = Recorder(address, "token", path.open("w"), {KIND: WHERE})
        recorder.start()
        deadline = time.monotonic() + ENOUGH
        while script.answers and time.monotonic() < deadline:
            time.sleep(0.01)
        asked = len(script.asked)
        while len(script.asked) <= asked and time.monotonic() < deadline:
            time.sleep(0.01)  # Once more: what was answered last has been written.
        recorder.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_watch_goes_on_where_it_ended_whatever_ended_it(tmp_path: Path) -> None:
    script = Script(
        [
            404,
            (10, [replica("a", 7)]),
            [event("ADDED", "b", 11), event("MODIFIED", "b", 12)],
            503,
            [event("DELETED", "a", 13), '{"type": "ADD'],
            [event("MODIFIED", "b", 14), BOOKMARK],
            [event("MODIFIED", "b", 41)],
        ]
    )
    lines = recorded(script, tmp_path / "recording")
    assert script.asked[:8] == ["", "", "10", "12", "12", "13", "40", "41"]
    assert [line["type"] for line in lines] == [
        "LISTED",
        "ADDED",
        "MODIFIED",
        "DELETED",
        "MODIFIED",
        "MODIFIED",
        "END",
    ]
    assert [at["at"] for at in lines] == sorted(at["at"] for at in lines)


def test_what_a_server_forgot_is_listed_anew(tmp_path: Path) -> None:
    """410 Gone comes as a status, or as an event; `a` left between the lists, and nothing says when."""
    script = Script(
        [
            (10, [replica("a", 7), replica("b", 8)]),
            410,
            (20, [replica("a", 7), replica("b", 19)]),
            [EXPIRED],
            (30, [replica("b", 19)]),
        ]
    )
    path = tmp_path / "recording"
    lines = recorded(script, path)
    assert [line["type"] for line in lines] == ["LISTED"] * 3 + ["END"]
    history = read(path)
    assert history.closed
    a, b = history.lives["a"], history.lives["b"]
    assert (a.unseen, a.ended is not None) == (True, True)
    assert (b.unseen, b.ended, len(b.versions)) == (False, None, 2)


def test_what_no_judgement_reads_is_left_out(tmp_path: Path) -> None:
    lines = recorded(Script([(10, [replica("a", 7)])]), tmp_path / "recording")
    (plain,) = lines[0]["objects"]
    assert "managedFields" not in plain["metadata"]
    assert plain["status"] == {"conditions": []}


def test_a_recording_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    recorded(Script([(10, [replica("a", 7)]), [event("MODIFIED", "a", 11)]]), path)
    path.write_text(path.read_text()[:-5])
    history = read(path)
    assert not history.closed
    assert len(history.lives["a"].versions) == 2
