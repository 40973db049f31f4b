"""How to serve, as the flags say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MEBI = 1024 * 1024


class CannotStart(Exception):
    """The server cannot start; the text is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes in MB are counted in 1024 x 1024 bytes, times are seconds."""

    address: str = "0.0.0.0:9443"
    certificates: Path | None = None
    insecure: bool = False
    max_receive: int = 64
    """MB one request may have."""
    max_concurrency: int = 2
    """Requests worked on at a time. Python runs one at a time anyway: more only share its time."""
    max_waiting: int = 128
    """Requests that may wait for a worker; the next one is refused, and Crossplane tries again."""
    max_held: int = 512
    """MB that the requests worked on and waiting may have together. One alone may have more."""
    metrics_address: str | None = None
    reuse_size: int = 256
    """MB of parsed objects to remember, 0 for none."""
    ttl_pending: float = 15.0
    ttl_settled: float = 60.0
    max_connection_age: float = 300.0
    """Seconds until a client is told to connect anew (gRPC varies it by a tenth)."""
    grace: float = 20.0
    """How long calls in flight may take after a signal to stop."""
    record: Path | None = None
    """Folder to record calls in."""

    @property
    def reuse_bytes(self) -> int:
        """`reuse_size` in bytes."""
        return self.reuse_size * MEBI


def host_and_port(address: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host is bracketed. Raises `CannotStart`."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004 - the last port
        raise CannotStart(f"address {address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)
