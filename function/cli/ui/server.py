"""Follow a fleet, and serve what is seen of it on loopback: four files, events, and two questions.

A control plane is listed at every look; files are read again when one of them was written. Where nothing is
different, nothing is computed. A look that fails is said on the page, and the last good one stays. One lock
guards everything that is computed: a page that asks `why` waits for a look that is under way.

All that is served is GET.

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
import time
from collections import deque
from dataclasses import field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import function.cli.render
from function.boundary import frozen
from function.cli.bad_input import BadInput
from function.cli.ui.view import Entries, Look, difference, happenings, look_at
from function.cli.worlds.changes import AddNodes, Change, Drain, Replicas
from function.cli.worlds.inputs import FLEET, Inputs, Source, gather, taken, title_of
from function.cli.worlds.settling import explained
from function.cli.worlds.simulate import forecast_both, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from function.cli.worlds.world import PlannedAdapter, Simulation

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
KEPT = 500
"""Happenings that are kept: a page shows those since it was opened."""
DIGITS = 7
"""Digits of a number that a page may ask with."""


@frozen
class Revision:
    """The state after a look, as pages get it."""

    number: int = 0
    entries: Entries = field(default_factory=dict)
    problem: str = ""
    """Why the last look failed; empty when it did not."""
    happened: int = 0
    """How many things happened since the start."""


class Follower:
    """Follows one source. `look` is called by one thread, the rest by any."""

    def __init__(self, source: Source) -> None:
        """Look at nothing yet."""
        self.revision = Revision()
        self._source = source
        self._computing = threading.Lock()
        self._news = threading.Condition()
        self._log: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._last = Look()
        self._signature: object = None
        self._read: tuple[Inputs, Simulation] | None = None
        self._adapters: list[PlannedAdapter] = []

    def look(self) -> None:
        """Look once. Raises BadInput when the first look fails; later ones only say so on the page.

        An entry that says the same stays the same object, so the next comparison is cheap.
        """
        first = self._read is None
        try:
            look, problem = self._looked(quietly=not first), ""
        except BadInput as error:
            if first:
                raise
            look, problem = None, str(error)
        with self._news:
            before = self.revision
            if look is None and problem == before.problem:
                return
            happened = before.happened
            if look is not None and not first:
                for happening in happenings(self._last, look):
                    happened += 1
                    self._log.append((happened, {"at": round(time.time(), 3), **happening._asdict()}))
            entries = before.entries
            if look is not None:
                # An entry that says the same stays the same object: comparing looks is then cheap.
                entries = {
                    key: entries[key] if entries.get(key) == value else value
                    for key, value in look.entries.items()
                }
                self._last = look
            self.revision = Revision(before.number + 1, entries, problem, happened)
            self._news.notify_all()

    def _looked(self, *, quietly: bool) -> Look | None:
        """Read and describe the fleet; None where it is as it was.

        Files are compared by their stamps before they are read; a control plane has to be read to be
        compared.
        """
        signature = _signature(self._source)
        if signature is not None and signature == self._signature:
            return None
        manifests, origin = gather(self._source)
        if signature is None:
            signature = {kind: [one.content for one in ones] for kind, ones in manifests.by_kind.items()}
            if signature == self._signature:
                return None
        with self._computing:
            inputs = taken(manifests, origin, quietly=quietly, needs=FLEET)
            settled = settle(inputs.world)
            adapters: list[PlannedAdapter] = []
            if manifests["ModelAdapter"]:
                from function.cli.worlds.adapters import adapters_of  # noqa: PLC0415 - all handlers are needed

                adapters = adapters_of(manifests, inputs.world.endpoints, settled.rounds[0], origin.only)
            look = look_at(inputs, settled, origin.where, adapters)
            self._signature, self._read, self._adapters = signature, (inputs, settled), adapters
            return look

    def wait(self, number: int, seconds: float) -> Revision:
        """Return the revision once it is another than this one, or when the time is over."""
        with self._news:
            self._news.wait_for(lambda: self.revision.number != number, seconds)
            return self.revision

    def since(self, happened: int) -> list[dict[str, Any]]:
        """Return the happenings after the first so many, the oldest first."""
        with self._news:
            return [entry for number, entry in self._log if number > happened]

    def why(self, title: str) -> dict[str, Any]:
        """Explain a deployment, as `why -o json` does. Raises BadInput."""
        with self._computing:
            inputs, settled = self._state()
            [name] = inputs.titles([title])
            plan = next(plan for plan in settled.rounds[0] if plan.title == name)
            if not plan.forecast.readable:
                raise BadInput(plan.response.conditions[0].message)
            return {**explained(plan), "summary": plan.forecast.summary}

    def why_adapter(self, title: str) -> dict[str, Any]:
        """Explain an adapter, as `why --adapter -o json` does. Raises BadInput."""
        with self._computing:
            inputs, _ = self._state()
            by_title = {adapter.title: adapter for adapter in self._adapters}
            return by_title[title_of(title, [*by_title], inputs.origin, "ModelAdapter")].explained

    def whatif(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Forecast one change, as `whatif -o json` does. Raises BadInput."""
        change = _change(asked)
        with self._computing:
            inputs, _ = self._state()
            answer, _ = forecast_both(inputs.manifests, (change,), inputs.origin, quietly=True)
            return answer.as_data

    def _state(self) -> tuple[Inputs, Simulation]:
        """The fleet of the last look. Raises BadInput before the first."""
        if self._read is None:
            raise BadInput("nothing was read yet")
        return self._read


def _signature(source: Source) -> object:
    """When the files were written, and how long they are; None for a control plane."""
    if source.target.context or source.target.kubeconfig or not source.files:
        return None
    given = map(Path, source.files)
    paths = [file for path in given for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return [(str(path), *_stamp(path)) for path in paths]


def _stamp(path: Path) -> tuple[int, int]:
    """Time and size of a file; zeros where it is gone, so that its return is a change."""
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def _change(asked: Mapping[str, str]) -> Change:
    """The change that a page asks about. Raises BadInput."""
    if "drain" in asked:
        return Drain(asked["drain"])
    if "pool" in asked:
        return AddNodes(asked.get("cluster", ""), asked["pool"], _number(asked, "nodes"))
    if "deployment" in asked:
        namespace, _, name = asked["deployment"].partition("/")
        replicas = _number(asked, "replicas")
        if replicas < 0:
            raise BadInput(f"replicas: expected 0 or more, found {replicas}")
        return Replicas(namespace, name, replicas)
    raise BadInput("expected drain=CLUSTER, cluster=, pool= and nodes=, or deployment= and replicas=")


def _number(asked: Mapping[str, str], name: str) -> int:
    """A whole number that a page asks with. Raises BadInput."""
    text = asked.get(name, "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS):
        raise BadInput(f'{name}: expected a number, found "{text}"')
    return int(text)


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
        """Answer.

        Two checks come before any answer: a name that somebody's DNS points here, and the page of another
        site, must not read a fleet.
        """
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
        elif target.path == "/why" and "adapter" in asked:
            self._answer(lambda: follower.why_adapter(asked["adapter"]))
        elif target.path == "/why":
            self._answer(lambda: follower.why(asked.get("deployment", "")))
        elif target.path == "/whatif":
            self._answer(lambda: follower.whatif(asked))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _answer(self, compute: Any) -> None:
        """Send what a question computes, or its error as data, which the page shows."""
        try:
            data, status = compute(), HTTPStatus.OK
        except BadInput as error:
            data, status = {"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY
        self._send(status, json.dumps(data).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Send why a request is not answered."""
        self._send(status, json.dumps({"error": text}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        """Send one answer as a whole."""
        self._begin(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        self.wfile.write(body)

    def _begin(self, status: HTTPStatus, headers: Iterable[tuple[str, str]]) -> None:
        """Send the status, and the headers that every answer has."""
        self.send_response(status)
        for name, value in (*HEADERS.items(), *headers):
            self.send_header(name, value)
        self.end_headers()

    def _stream(self) -> None:
        """Follow the fleet for one page; MAX_STREAMS of them may do so at a time."""
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
        """Send the state, then every change, until the page goes away.

        Without news a comment is sent now and then: writing is how a page that has left is noticed.
        """
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
        """Send one event of a stream."""
        text = json.dumps(data, separators=(",", ":"))
        self.wfile.write(f"event: {kind}\ndata: {text}\n\n".encode())
