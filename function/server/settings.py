"""The settings of the server, as its flags say.

Plain values with their defaults: `function.main` reads the flags, everything below takes a `Settings`. The
one rule here is `reuse_bytes`: whether remembering parsed objects is safe depends on who asks.
"""

from __future__ import annotations

from pathlib import Path

from function.boundary import frozen

MEBI = 1024 * 1024
REUSE_SIZE = 256
"""MB of parsed objects that are remembered where nothing else is said."""


class CannotStart(Exception):
    """The server cannot start; the text is one line for the operator."""


@frozen
class Settings:
    """Sizes in MB are counted in 1024 x 1024 bytes, times are seconds. Fields are called as the flags are."""

    address: str = "0.0.0.0:9443"
    certificates: Path | None = None
    insecure: bool = False
    max_recv_message_size: int = 64
    """MB one request may have."""
    max_concurrency: int = 2
    """Requests worked on at a time. Python runs one at a time anyway: more only share its time."""
    max_waiting: int = 128
    """Requests that may wait for a worker; the next one is refused, and Crossplane tries again."""
    max_held_size: int = 512
    """MB that the requests worked on and waiting may have together. One alone may have more."""
    metrics_address: str | None = None
    reuse_size: int | None = None
    """MB of parsed objects to remember, 0 for none. None: as many as is usual, and none where `insecure`."""
    ttl_pending: float = 15.0
    ttl_settled: float = 60.0
    ttl_watched: float = 600.0
    max_connection_age: float = 300.0
    """Seconds until a client is told to connect anew (gRPC varies it by a tenth)."""
    grace: float = 20.0
    """How long calls in flight may take after a signal to stop."""
    record: Path | None = None
    """Folder to record calls in."""

    @property
    def reuse_bytes(self) -> int:
        """Bytes of parsed objects to remember.

        What is asked over plaintext comes from files as often as not, whose uid and resourceVersion may
        stay the same while their content changes: there, remembering must be asked for.
        """
        usual = 0 if self.insecure else REUSE_SIZE
        return (usual if self.reuse_size is None else self.reuse_size) * MEBI


def host_and_port(address: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host is bracketed. Raises `CannotStart`."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004 - the last port
        raise CannotStart(f"address {address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)
