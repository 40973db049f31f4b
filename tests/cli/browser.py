"""A real headless browser, driven over the WebDriver protocol with nothing but the standard library."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hack.screenshots import HEADLESS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
PATIENCE = 180
"""Seconds until something that must come about is given up."""
FLAGS = (*HEADLESS, "--disable-dev-shm-usage", "--window-size=1280,860")

needed = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="no chromium and chromedriver on this machine: no page is tried in a browser",
)


class Browser:
    """One browser session."""

    def __init__(self, port: int, session: str) -> None:
        self._port, self._session = port, session

    def open(self, url: str) -> None:
        _call(self._port, "POST", f"/session/{self._session}/url", {"url": url})

    def run(self, script: str) -> Any:
        """Run the body of a function in the page, and return what it returns."""
        return _call(
            self._port, "POST", f"/session/{self._session}/execute/sync", {"script": script, "args": []}
        )

    def until(self, script: str) -> None:
        """Run the body of a function in the page until it returns something true."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.1)

    def wait_for(self, script: str) -> Any:
        """Run the body of an async function in the page, and return what it gives to `done`."""
        body = f"const done = arguments[0]; {script}"
        return _call(
            self._port, "POST", f"/session/{self._session}/execute/async", {"script": body, "args": []}
        )


def _call(port: int, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as answer:
        return json.load(answer)["value"]


def _up(port: int) -> bool:
    try:
        return bool(_call(port, "GET", "/status")["ready"])
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def browsing(profile: Path, *, scheme: str = "light") -> Iterator[Browser]:
    """Start a browser with an empty profile, and end it."""
    settings = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    arguments = [*FLAGS, settings, f"--user-data-dir={profile}"]
    options = {"goog:chromeOptions": {"binary": CHROMIUM, "args": arguments}}
    port = free_port()
    driver = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while not _up(port):
            assert time.monotonic() < until, "chromedriver does not answer"
            time.sleep(0.1)
        session = _call(port, "POST", "/session", {"capabilities": {"alwaysMatch": options}})["sessionId"]
        try:
            yield Browser(port, session)
        finally:
            _call(port, "DELETE", f"/session/{session}")
    finally:
        driver.terminate()
        driver.wait(timeout=PATIENCE)
