"""The server's certificate, its key and the authority its clients must come from: three files in a folder.

Crossplane rotates them, so they are looked at again at every new connection. Files that do not fit together
(a rotation under way) or have expired leave the earlier ones in force; the log says so once. No message has
anything in it that a file contains.
"""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from function.server.settings import CannotStart

_NAMES = ("tls.key", "tls.crt", "ca.crt")


class Certificates:
    """The three files, read whenever they have changed."""

    def __init__(self, folder: Path, log: Any) -> None:
        """Read the files for the first time. Raises `CannotStart` when they are missing or do not fit."""
        self._folder = folder
        self._log = log
        self._kept: object = None
        """The files that were last said to be no better than those in force."""
        try:
            self._signature = self._look()
            self._first = self._load()
            fault = self._fault()
        except (OSError, ValueError) as error:  # An SSLError is an OSError.
            raise CannotStart(f"certificates in {folder}: {_reason(error)}") from None
        if fault:  # Whoever rotates them mends that without a restart.
            log.warning("certificates are not valid now", reason=fault)

    def credentials(self) -> Any:
        """Return gRPC credentials that demand a client certificate and follow the files."""
        return grpc.dynamic_ssl_server_credentials(
            self._first, self.changed, require_client_authentication=True
        )

    def changed(self) -> Any:
        """Return the new configuration when the files have changed, None when they have not.

        Files that are missing, do not fit (a rotation under way) or are not valid now leave the earlier ones
        in force; they are looked at again, for they may become valid.
        """
        signature: tuple[tuple[int, int, int], ...] = ()
        try:
            signature = self._look()
            if signature == self._signature:
                return None
            configuration = self._load()
            fault = self._fault()
            if self._look() != signature:
                return None  # They changed while we read: the next connection reads them whole.
        except (OSError, ValueError) as error:
            fault = _reason(error)
        if fault:
            if self._kept != (signature, fault):  # It is said once why files are not taken.
                self._kept = (signature, fault)
                self._log.warning("certificates kept", reason=fault)
            return None
        self._signature, self._kept = signature, None
        self._log.info("certificates reloaded")
        return configuration

    def _fault(self) -> str:
        """Return why the certificate or the authority is not valid now, "" where both are. Raises OSError.

        The certificate is shown to a client that trusts it and nothing else, in memory: what remains to be
        found wrong is its time.
        """
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = False
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        client.load_verify_locations(self._folder / "tls.crt")
        try:
            _shake_hands(client, server)
        except ssl.SSLCertVerificationError as error:
            return f"tls.crt: {error.verify_message}"
        authorities = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authorities.load_verify_locations(self._folder / "ca.crt")
        ends = [str(held["notAfter"]) for held in authorities.get_ca_certs()]
        if ends and all(ssl.cert_time_to_seconds(end) < time.time() for end in ends):
            return "ca.crt: certificate has expired"
        return ""

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        """Return what changes when a file changes."""
        stats = [(self._folder / name).stat() for name in _NAMES]
        return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)

    def _load(self) -> Any:
        """Read the files and check that they fit together."""
        key, certificate, authority = ((self._folder / name).read_bytes() for name in _NAMES)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
        context.load_verify_locations(cadata=authority.decode("ascii"))
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Let two contexts talk to each other in memory. Raises what the client finds wrong."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, answering = client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)
    for side in (asking, answering, asking):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()


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
