"""A client of HTTP/2 that stops in the middle of a message, as one that died, or one that wants harm."""

from __future__ import annotations

import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_HEADERS, ACK = 0x4, 0x1
INITIAL_WINDOW = 0x4
MAX_FRAME = 16_384
"""Bytes of a frame."""
QUIET = 1.0
"""Seconds without a frame of the server after which it is taken to have no more to say."""


def frame(kind: int, stream: int, content: bytes = b"", flags: int = 0) -> bytes:
    return struct.pack(">I", len(content))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + content


def header(name: bytes, value: bytes) -> bytes:
    """A header field, literally (RFC 7541, 6.2.2)."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


@dataclass
class Stream:
    """One call: what is left to be sent of it, and how much the server takes."""

    window: int
    left: int
    sent: int = 0
    ended: bool = False


@dataclass
class Client:
    """A connection whose calls send a message in part, as far as the server's windows allow."""

    address: str
    streams: dict[int, Stream] = field(default_factory=dict)
    window: int = 65_535
    initial: int = 65_535
    ended: bool = False
    taken: int = 0
    """The most bytes that the server has taken at a time, of calls that it has not ended."""

    def __enter__(self) -> Self:
        host, port = self.address.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall(PREFACE + frame(SETTINGS, 0))
        self._received = b""
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, path: str, size: int, announced: int) -> int:
        """Start a call that sends `size` bytes of a message said to have `announced`; return its stream."""
        number = 2 * len(self.streams) + 1
        fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()))
        fields += ((b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers"))
        block = b"".join(header(name, value) for name, value in fields)
        self.streams[number] = Stream(self.initial, size)
        self.socket.sendall(frame(HEADERS, number, block, END_HEADERS))
        self._send(number, b"\x00" + struct.pack(">I", announced))
        return number

    def pump(self, seconds: float, *, quiet: float = QUIET) -> None:
        """Send what may be sent and read what comes, until nothing has come for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.ended:
            progress = sum(self._more(number) for number in self.streams) > 0
            readable, _, _ = select.select([self.socket], [], [], 0 if progress else quiet)
            if readable:
                self._read()
            elif not progress:
                return

    def _more(self, number: int) -> bool:
        stream = self.streams[number]
        size = min(MAX_FRAME, stream.left, stream.window, self.window)
        if stream.ended or size <= 0:
            return False
        stream.left -= size
        self._send(number, bytes(size))
        return True

    def _send(self, number: int, content: bytes) -> None:
        stream = self.streams[number]
        stream.window -= len(content)
        stream.sent += len(content)
        self.window -= len(content)
        self.taken = max(self.taken, sum(call.sent for call in self.streams.values() if not call.ended))
        try:
            self.socket.sendall(frame(DATA, number, content))
        except OSError:
            self.ended = True

    def _read(self) -> None:
        try:
            content = self.socket.recv(1 << 16)
        except OSError:
            content = b""
        self.ended = self.ended or not content
        self._received += content
        while len(self._received) >= 9:
            size = int.from_bytes(self._received[:3], "big")
            if len(self._received) < 9 + size:
                return
            kind, flags, stream = self._received[3], self._received[4], self._received[5:9]
            payload, self._received = self._received[9 : 9 + size], self._received[9 + size :]
            self._take(kind, flags, int.from_bytes(stream, "big") & 0x7FFFFFFF, payload)

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            self._set(dict(struct.iter_unpack(">HI", payload)))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, 0, payload, ACK))
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if number == 0:
                self.window += more
            elif number in self.streams:
                self.streams[number].window += more
        elif kind == RST_STREAM or (kind == HEADERS and flags & 0x1):
            self.streams[number].ended = True
        elif kind == GOAWAY:
            self.ended = True

    def _set(self, settings: dict[int, int]) -> None:
        initial = settings.get(INITIAL_WINDOW, self.initial)
        for stream in self.streams.values():
            stream.window += initial - self.initial
        self.initial = initial
        self.socket.sendall(frame(SETTINGS, 0, flags=ACK))
