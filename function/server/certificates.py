"""The server's certificate, its key and the authority its clients must come from: three files in a folder.

Crossplane rotates them, so they are looked at again at every new connection.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import grpc

from function.server.settings import CannotStart

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = ("tls.key", "tls.crt", "ca.crt")


class Certificates:
    """The three files, read whenever they have changed."""

    def __init__(self, folder: Path, log: Any) -> None:
        """Read the files for the first time. Raises `CannotStart` when they are missing or do not fit."""
        self._folder = folder
        self._log = log
        try:
            self._signature = self._look()
            self._first = self._load()
        except (OSError, ValueError) as error:  # An SSLError is an OSError.
            raise CannotStart(f"certificates in {folder}: {_reason(error)}") from None

    def credentials(self) -> Any:
        """Return gRPC credentials that demand a client certificate and follow the files."""
        return grpc.dynamic_ssl_server_credentials(
            self._first, self.changed, require_client_authentication=True
        )

    def changed(self) -> Any:
        """Return the new configuration when the files have changed, None when they have not.

        Files that are missing or do not fit (a rotation under way) leave the earlier ones in force.
        """
        try:
            signature = self._look()
            if signature == self._signature:
                return None
            configuration = self._load()
            if self._look() != signature:
                return None  # They changed while we read: the next connection reads them whole.
        except (OSError, ValueError) as error:
            self._log.warning("certificates kept", reason=_reason(error))
            return None
        self._signature = signature
        self._log.info("certificates reloaded")
        return configuration

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        """Return what changes when a file changes."""
        stats = [(self._folder / name).stat() for name in _NAMES]
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in stats)

    def _load(self) -> Any:
        """Read the files and check that they fit together."""
        key, certificate, authority = ((self._folder / name).read_bytes() for name in _NAMES)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
        context.load_verify_locations(cadata=authority.decode("ascii"))
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)


def _reason(error: Exception) -> str:
    """Say in a few words what is wrong, without anything a file contains."""
    match error:
        case FileNotFoundError():
            return f"{error.filename} does not exist"
        case ssl.SSLError():
            text = (error.reason or "no certificate").replace("_", " ").lower()
            return f"tls.crt, tls.key and ca.crt are not valid together: {text}"
        case OSError():
            return f"{error.filename}: {error.strerror}"
    return "not PEM files"
