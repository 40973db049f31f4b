"""The invariant: no bytes end the server, keep it from answering the next request, or stay in its memory."""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING

import grpc

from function.fail_static import INTERNAL_ERROR_TEXT
from tests.fuzz.mutate import mutated_bytes
from tests.serve.server import PATIENCE, Server, health, request, run, runner
from tests.support import drive, generate, scale

if TYPE_CHECKING:
    from collections.abc import Callable

BUSY = generate.Taste(doubt=0.1, oddity=0.1, own_replicas=1.0)
WARM = 0.25
"""Share of the requests after which a server holds all that it will ever hold."""
BOUND = 20.0
"""MiB it may grow after that: what refused calls leave lies about until the collector comes by."""
EVERY = 50
"""After so many requests a good one is sent, whose answer must be the usual one."""
EXPECTED = {"answered", "INVALID_ARGUMENT"}
"""Answered, or refused as no request."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def outcome(call: Callable[..., bytes], content: bytes) -> str:
    """Send bytes; say what came back."""
    try:
        answer = call(content, timeout=PATIENCE)
    except grpc.RpcError as error:
        return str(error.code().name)
    response = drive.pb.RunFunctionResponse.FromString(answer)
    return (
        "failed" if any(result.message == INTERNAL_ERROR_TEXT for result in response.results) else "answered"
    )


def test_mutated_requests_leave_the_server_as_it_was() -> None:
    seeds = scale.seeds(quick=100, gate=2_000, soak=20_000)
    warm = seeds[int(len(seeds) * WARM)]
    seen: set[str] = set()
    with Server("--insecure", "--reuse-size", "1") as server, server.channel() as channel:
        call, usual = runner(channel), run(channel)
        for seed in seeds:
            content = generate.world(seed, BUSY).message().SerializeToString()
            seen.add(said := outcome(call, mutated_bytes(random.Random(seed), content)))
            assert said in EXPECTED, f"seed {seed}"
            if seed == warm:
                before = server.resident
            if seed % EVERY == 0:
                assert run(channel) == usual, f"seed {seed}"
        after = server.resident
        assert run(channel) == usual
        assert health(channel) == "SERVING"
    print(f"{before:.1f} MiB at seed {warm}, {after:.1f} MiB at the end")  # noqa: T201 - see -s
    assert seen == EXPECTED
    assert after - before <= BOUND


def test_bytes_that_are_no_grpc_leave_the_server_as_it_was() -> None:
    """Straight into the socket: noise, the start of HTTP/2 and then noise, or nothing at all."""
    with Server("--insecure") as server, server.channel() as channel:
        usual = run(channel)
        host, port = server.address.split(":")
        for seed in scale.seeds(quick=50, gate=2_000, soak=20_000):
            draw = random.Random(seed)
            noise = draw.randbytes(draw.choice((0, 1, 9, 100, 5_000)))
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as raw:
                raw.sendall(draw.choice((b"", PREFACE, request())) + noise)
        assert run(channel) == usual
        assert server.process.poll() is None
