"""What a broken client, a scanner or an unlucky night sends: the next call is served as usual."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb

from bench.encode import field
from tests.serve.server import PATIENCE, V1, Server, health, request, run, runner, until
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEBI = 1024 * 1024
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INPUT, CONTEXT, REQUIRED = 4, 5, 8
"""Fields of a RunFunctionRequest."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--insecure", "--metrics-address", "127.0.0.1:0") as running:
        yield running


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    """A client whose calls are answered before and after a test in the same way."""
    with server.channel() as opened:
        usual = run(opened)
        yield opened
        assert run(opened) == usual
        assert health(opened) == "SERVING"
    assert server.process.poll() is None


def raw(server: Server, port: int = 0) -> socket.socket:
    host, server_port = server.address.split(":")
    return socket.create_connection((host, port or int(server_port)), timeout=PATIENCE)


@pytest.mark.parametrize(
    "said", [b"", PREFACE, PREFACE + b"\x00\x00\x04\x08"], ids=["", "http2", "half a frame"]
)
def test_connections_that_say_no_more_keep_nobody_waiting(
    server: Server, channel: grpc.Channel, said: bytes
) -> None:
    idle = [raw(server) for _ in range(200)]
    for replica in idle:
        replica.sendall(said)
    assert run(channel).meta.tag == "tested"
    for replica in idle:
        replica.close()


def test_calls_given_up_by_their_client_leave_room_for_others(tmp_path: Path) -> None:
    """Many more of them, one after the other, than may be worked on and wait."""
    gated = Server.gated(tmp_path, "--max-concurrency", "1", "--max-waiting", "8")
    with gated as server, server.channel() as channel:
        first = runner(channel).future(request(), timeout=PATIENCE)
        server.wait_for("deciding")
        for _ in range(40):
            until(lambda: waits_until_given_up(channel), "room for another call")
        (tmp_path / "open").touch()
        assert first.result()
        assert run(channel).meta.tag == "tested"


def waits_until_given_up(channel: grpc.Channel) -> bool:
    """Make a call and give it up; False when it was refused: others are not known to be given up yet."""
    with pytest.raises(grpc.RpcError) as ended:
        runner(channel)(request(), timeout=0.05)
    assert ended.value.code() in {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    return ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_thousand_calls_at_once_are_answered_or_told_to_come_again(channel: grpc.Channel) -> None:
    calls = [runner(channel).future(request(), timeout=PATIENCE) for _ in range(1_000)]
    codes = {call.code() for call in calls}
    assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert sum(call.code() is grpc.StatusCode.OK for call in calls) >= 128


def packed(channel: grpc.Channel, mebibytes: int) -> bytes:
    message = pb.RunFunctionRequest.FromString(request())
    message.credentials["pad"].credential_data.data["pad"] = bytes(mebibytes * MEBI)
    content, gzip = message.SerializeToString(), grpc.Compression.Gzip
    return bytes(runner(channel)(content, timeout=PATIENCE, compression=gzip))


def test_a_compressed_request_counts_by_its_size_unpacked(channel: grpc.Channel) -> None:
    """65 MiB of zeros pack into 65 kB."""
    assert packed(channel, 60)
    with pytest.raises(grpc.RpcError) as refused:
        packed(channel, 65)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_metadata_beyond_what_grpc_takes_is_refused(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        runner(channel)(request(), metadata=[("x-pad", "x" * MEBI)], timeout=PATIENCE)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("method", ["/nothing.At/All", f"/{V1}/Other", "/"])
def test_a_method_that_is_none_is_refused(channel: grpc.Channel, method: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(method)(b"", timeout=PATIENCE)  # type: ignore[call-arg]
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def nested(levels: int) -> bytes:
    """Return a Struct of so many levels."""
    value = field(3, b"x")
    for _ in range(levels):
        value = field(5, field(1, field(1, b"a") + field(2, value)))
    return field(1, field(1, b"spec") + field(2, value))


def listed(name: str, content: bytes) -> bytes:
    return field(REQUIRED, field(1, name.encode()) + field(2, content))


FLEET = listed("clusters", b"") + listed("all-replicas", b"")
ODD = (
    (
        "a cluster nested 3,000 deep",
        listed("clusters", field(1, field(1, nested(3_000)))) + listed("all-replicas", b""),
    ),
    ("an input nested 3,000 deep", FLEET + field(INPUT, nested(3_000))),
    ("a context nested 3,000 deep", FLEET + field(CONTEXT, nested(3_000))),
    ("50,000 requirements nobody asked for", b"".join(listed(f"r{n}", b"") for n in range(50_000)) + FLEET),
    ("200,000 empty clusters", listed("clusters", field(1, b"") * 200_000) + listed("all-replicas", b"")),
    ("the clusters listed 50,000 times", FLEET * 50_000),
    ("200,000 fields of a later version", FLEET + b"\xa0\x06\x01" * 200_000),
)


@pytest.mark.parametrize(("reason", "more"), ODD, ids=[item for item, _ in ODD])
def test_odd_shapes_of_a_request_are_answered(channel: grpc.Channel, reason: str, more: bytes) -> None:
    answer = bytes(runner(channel)(request() + more, timeout=PATIENCE))
    assert b"tested" in answer, reason
    assert b"failed on this request" not in answer, reason


LONG = 2_000_000
CLUSTERS: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    (
        "an endless version",
        ("status", "gpuPools", 0, "devices", 0, "attributes", "v"),
        {"version": "1.0.0-" + "9" * LONG},
    ),
    (
        "an endless list in a version",
        ("status", "gpuPools", 0, "devices", 0, "attributes", "v"),
        {"version": "1.0.0-" + "a." * LONG},
    ),
    (
        "an endless quantity",
        ("status", "gpuPools", 0, "devices", 0, "capacity", "memory"),
        {"value": "9" * LONG},
    ),
    ("an endless label", ("metadata", "labels"), {"l": "x" * LONG}),
    ("20,000 labels", ("metadata", "labels"), {f"l{number}": "x" for number in range(20_000)}),
    ("20,000 taints", ("spec", "taints"), [{"key": f"k{n}", "effect": "NoSchedule"} for n in range(20_000)]),
    (
        "20,000 conditions",
        ("status", "conditions"),
        [{"type": f"t{n}", "status": "True"} for n in range(20_000)],
    ),
)


@pytest.mark.parametrize(("reason", "path", "value"), CLUSTERS, ids=[item for item, *_ in CLUSTERS])
def test_a_cluster_with_a_giant_value_costs_nobody_else(
    channel: grpc.Channel, reason: str, path: tuple[Any, ...], value: Any
) -> None:
    odd, good = build.cluster("odd", [build.pool("h100")]), build.cluster("good", [build.pool("h100")])
    holder: Any = odd
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    message = pb.RunFunctionRequest()
    message.observed.composite.resource.update(build.deployment(replicas=1))
    message.required_resources["all-replicas"].SetInParent()
    for item in (odd, good):
        message.required_resources["clusters"].items.add().resource.update(item)
    answer = run(channel, message.SerializeToString())
    placed = [resource for resource in answer.desired.resources if resource.startswith("replica-")]
    assert len(placed) == 1, reason
    assert answer.ByteSize() < MEBI, reason


@pytest.mark.parametrize("replicas", [100_000, 2**53, -1, 1e300])
def test_a_number_of_replicas_beyond_reason_is_refused_with_its_field(
    channel: grpc.Channel, replicas: float
) -> None:
    message = pb.RunFunctionRequest.FromString(request() + FLEET + listed("own-replicas/tiny", b""))
    message.observed.composite.resource["spec"]["replicas"] = replicas
    (event,) = run(channel, message.SerializeToString()).results
    assert "spec.replicas: " in event.message


def test_a_metrics_port_under_fire_does_not_slow_calls(server: Server, channel: grpc.Channel) -> None:
    idle = [raw(server, server.started["metrics_port"]) for _ in range(4)]
    for replica in idle:
        replica.sendall(b"GET /" + b"a" * 1_000)
    assert run(channel).meta.tag == "tested"
    for replica in idle:
        replica.close()
