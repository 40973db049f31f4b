"""Serve the page on loopback: four files, the fleet as events, and two questions. All of it is GET.

Who can reach it is decided three times. The socket listens on loopback, unless another address was asked for
and allowed. The Host header must be `localhost` or an address: a name that somebody else's DNS points here
(DNS rebinding) is refused. And a request that another site's page makes is refused by `Sec-Fetch-Site`.

The page loads nothing from anywhere else, which its Content-Security-Policy holds: no inline script or
style, no other origin, no frame around it.

`/events` is a stream of server-sent events: `state` with every entry, then `change` with those that differ.
A browser that loses the stream connects again by itself, and gets the state anew.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import function.cli.render
from function.cli.bad_input import BadInput
from function.cli.ui.view import difference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.cli.ui.follow import Follower

HERE, MAP = Path(__file__).parent, Path(function.cli.render.__file__).parent
SCRIPT, STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
ASSETS = {
    "/": (HERE / "index.html", "text/html; charset=utf-8"),
    "/ui.js": (HERE / "ui.js", SCRIPT),
    "/ui.css": (HERE / "ui.css", STYLE),
    "/fleet.css": (MAP / "fleet.css", STYLE),
}
"""What there is to load. The style of the map is that of the page too."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
MAX_STREAMS = 32
"""Pages that follow at the same time; one more is asked to come again later."""
HEARTBEAT = 15.0
"""Seconds until a stream without news sends a comment: a page that has left is noticed by it."""
IDLE = 30.0
"""Seconds that a client may take to send its request, or to take an answer."""


def is_loopback(address: str) -> bool:
    """Tell whether an address is one that only this machine reaches."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def is_own_host(header: str | None) -> bool:
    """Tell whether a Host header names this server by an address, or as `localhost`.

    DNS rebinding needs a name: the browser sends it in this header, whatever address it led to.
    """
    try:
        host = urlsplit(f"//{header or ''}").hostname or ""
        return host == "localhost" or bool(ipaddress.ip_address(host))
    except ValueError:
        return False


class Server(ThreadingTCPServer):
    """The listener, with what it serves. Unlike `HTTPServer`, it asks no DNS for the name of its address."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = MAX_STREAMS

    def __init__(self, address: str, port: int, follower: Follower) -> None:
        """Listen. Raises BadInput where that is not possible."""
        self.follower = follower
        self.streams = threading.BoundedSemaphore(MAX_STREAMS)
        if ":" in address:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((address, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadInput(f"cannot listen on {address}, port {port}: {reason}") from None

    @property
    def url(self) -> str:
        """The address for a browser."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no fault."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE

    def version_string(self) -> str:
        """Name no versions."""
        return "fleet-scheduler"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class has it
        """Log nothing: standard error is for what is wrong with the fleet."""

    def do_GET(self) -> None:
        """Answer."""
        if not is_own_host(self.headers.get("Host")):
            self._refuse(
                HTTPStatus.MISDIRECTED_REQUEST, "the Host header is neither localhost nor an address"
            )
            return
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._refuse(HTTPStatus.FORBIDDEN, "asked for by the page of another site")
            return
        target = urlsplit(self.path)
        asked = dict(parse_qsl(target.query))
        follower = self.server.follower
        if target.path in ASSETS:
            path, kind = ASSETS[target.path]
            self._send(HTTPStatus.OK, path.read_bytes(), kind)
        elif target.path == "/events":
            self._stream()
        elif target.path == "/why":
            self._answer(lambda: follower.why(asked.get("deployment", "")))
        elif target.path == "/whatif":
            self._answer(lambda: follower.whatif(asked))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _answer(self, compute: Any) -> None:
        try:
            data, status = compute(), HTTPStatus.OK
        except BadInput as error:
            data, status = {"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY
        self._send(status, json.dumps(data).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._send(status, json.dumps({"error": text}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self._begin(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        self.wfile.write(body)

    def _begin(self, status: HTTPStatus, headers: Iterable[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in (*HEADERS.items(), *headers):
            self.send_header(name, value)
        self.end_headers()

    def _stream(self) -> None:
        if not self.server.streams.acquire(blocking=False):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages follow already")
            return
        try:
            self.close_connection = True
            self._begin(HTTPStatus.OK, [("Content-Type", "text/event-stream"), ("Connection", "close")])
            self._follow()
        finally:
            self.server.streams.release()

    def _follow(self) -> None:
        """Send the state, then every change, until the page goes away."""
        follower = self.server.follower
        last = follower.revision
        self._event("state", {"entries": last.entries, "problem": last.problem})
        while True:
            now = follower.wait(last.number, HEARTBEAT)
            if now is last:
                self.wfile.write(b": still here\n\n")
                continue
            changed, gone = difference(last.entries, now.entries)
            news = follower.since(last.happened) if now.happened != last.happened else []
            data = {"set": changed, "gone": gone, "problem": now.problem, "happened": news}
            self._event("change", data)
            last = now

    def _event(self, kind: str, data: object) -> None:
        text = json.dumps(data, separators=(",", ":"))
        self.wfile.write(f"event: {kind}\ndata: {text}\n\n".encode())
