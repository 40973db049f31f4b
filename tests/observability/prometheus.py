"""A real Prometheus on loopback, with a configuration of its own, and its answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from tests.cli.browser import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
PATIENCE = 60
"""Seconds until something that must come about is given up."""

needed = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL),
    reason="no prometheus and promtool: on Debian, apt-get install prometheus",
)

Plain = dict[str, Any]


class Prometheus(NamedTuple):
    """A Prometheus that runs."""

    address: str

    def get(self, path: str, **words: str) -> Plain:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            plain: Plain = json.load(answer)
        return dict(plain["data"])

    def query(self, expression: str) -> list[Plain]:
        """Every series that an expression gives now, with its labels and its value."""
        return list(self.get("query", query=expression)["result"])

    def until(self, expression: str) -> list[Plain]:
        """The same, once there is any."""
        return until(lambda: self.query(expression), expression)


def until(look: Callable[[], Any], what: str) -> Any:
    """Return what a look sees once it sees something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if value := look():
                return value
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


@contextmanager
def exposing(text: str) -> Iterator[str]:
    """Expose metrics over HTTP; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *words: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def scraping(folder: Path, targets: dict[str, str], rules: Plain) -> Iterator[Prometheus]:
    """Start a Prometheus that scrapes each job's address every second; yield it once it answers."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {"job_name": job, "honor_labels": True, "static_configs": [{"targets": [address]}]}
            for job, address in targets.items()
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(PROMETHEUS),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            started = Prometheus(address)
            until(lambda: started.query("up"), "Prometheus answers")
            yield started
        finally:
            running.terminate()
