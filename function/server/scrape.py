"""The metrics port: `/metrics`, and nothing else."""

from __future__ import annotations

import socket
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import CollectorRegistry

PATH = "/metrics"


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each scrape, none of which keeps the process from ending."""

    daemon_threads = True


class _Server6(_Server):
    """The same on an IPv6 address."""

    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    """Scrapes are not worth a line of log each."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def serve_metrics(registry: CollectorRegistry, host: str, port: int) -> int:
    """Answer scrapes on `host:port` from a thread of its own; return the port. Raises OSError."""
    page: Callable[..., Iterable[bytes]] = make_wsgi_app(registry)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == PATH:
            return page(environ, start)
        start("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"There is only {PATH}.\n".encode()]

    kind = _Server6 if ":" in host else _Server
    server = make_server(host, port, answer, kind, handler_class=_Quiet)
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return int(server.server_port)
