"""Calls, limits, health and the end."""

from __future__ import annotations

import signal
import urllib.request
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as pb
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.serve.server import PATIENCE, V1, V1BETA1, Server, health, request, run, runner, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEBI = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--insecure", "--metrics-address", "127.0.0.1:0", "--reuse-size", "16") as running:
        yield running


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    with server.channel() as opened:
        yield opened


@pytest.mark.parametrize("service", [V1, V1BETA1])
def test_both_versions_are_served(channel: grpc.Channel, service: str) -> None:
    response = run(channel, service=service)
    assert response.meta.tag == "tested"
    assert {"fleet-clusters", "own-replicas/tiny"} <= set(response.requirements.resources)


def test_health_and_reflection(channel: grpc.Channel) -> None:
    assert health(channel) == "SERVING"
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    listed = next(stub.ServerReflectionInfo(iter([asked]), timeout=PATIENCE))
    names = {entry.name for entry in listed.list_services_response.service}
    assert {V1, V1BETA1, "grpc.health.v1.Health"} <= names


def test_bytes_that_are_no_request_are_refused_and_nothing_more(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        run(channel, b"\xff\xff")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert run(channel).meta.tag == "tested"


def large(mebibytes: float) -> bytes:
    message = pb.RunFunctionRequest.FromString(request())
    message.credentials["pad"].credential_data.data["pad"] = bytes(int(mebibytes * MEBI))
    return message.SerializeToString()


def test_a_request_beyond_the_limit_is_refused_and_the_server_lives(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        run(channel, large(65))
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in refused.value.details()
    assert run(channel).meta.tag == "tested"


def test_a_flag_raises_the_limit() -> None:
    with Server("--insecure", "--max-recv-message-size", "66") as server, server.channel() as channel:
        assert run(channel, large(65)).meta.tag == "tested"


def test_metrics_count_calls_and_say_nothing_of_contents(server: Server, channel: grpc.Channel) -> None:
    run(channel)
    with pytest.raises(grpc.RpcError):
        run(channel, b"\xff\xff")
    port = server.started["metrics_port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
        text = page.read().decode()
    assert 'fleet_scheduler_requests_total{outcome="answered"}' in text
    assert 'fleet_scheduler_requests_total{outcome="malformed"}' in text
    for name in ("request_seconds_count", "request_bytes_count", "placements_total", "reuse_bytes"):
        assert f"\nfleet_scheduler_{name}" in text
    assert "tiny" not in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/metrics", 200),
        ("/metrics?name[]=process_open_fds", 200),
    ],
)
def test_the_metrics_port_answers_scrapes(server: Server, path: str, status: int) -> None:
    page = HTTPConnection("127.0.0.1", server.started["metrics_port"], timeout=PATIENCE)
    page.request("GET", path)
    assert page.getresponse().status == status


def test_there_is_no_metrics_port_unless_asked_for() -> None:
    with Server("--insecure") as server:
        assert server.started["metrics_port"] is None


def test_one_log_line_a_call() -> None:
    with Server("--insecure") as server, server.channel() as channel:
        run(channel)
        entry = server.wait_for("answered")
        assert server.stop() == 0
    named = [entry[key] for key in ("tag", "kind", "namespace", "name")]
    assert named == ["tested", "ModelDeployment", "ml", "tiny"]
    assert sum('"answered"' in line for line in server.output) == 1


def test_who_waits_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    gated = Server.gated(tmp_path, "--max-concurrency", "1", "--max-waiting", "2")
    with gated as server, server.channel() as channel:
        calls = [runner(channel).future(request(), timeout=PATIENCE) for _ in range(8)]
        until(lambda: sum(call.done() for call in calls) >= 5, "five of eight are refused")
        early = [call for call in calls if call.done()]
        assert [call.code() for call in early] == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 5
        (tmp_path / "open").touch()
        assert all(call.result() for call in calls if call not in early)


def test_what_would_hold_too_much_memory_together_waits_for_its_turn(tmp_path: Path) -> None:
    """It is not received before there is room for it, so no client has to come again."""
    most_of_one = request(annotations={"note": "x" * 3_000_000})
    limits = ("--max-concurrency", "1", "--max-recv-message-size", "4", "--max-held-size", "6")
    with Server.gated(tmp_path, *limits) as server, server.channel() as channel:
        calls = [runner(channel).future(most_of_one, timeout=PATIENCE) for _ in range(5)]
        server.wait_for("deciding")
        assert health(channel) == "SERVING"
        (tmp_path / "open").touch()
        assert all(call.result() for call in calls)


def test_one_request_alone_may_have_more_than_may_be_held() -> None:
    with Server("--insecure", "--max-held-size", "1") as server, server.channel() as channel:
        assert run(channel, request(annotations={"note": "x" * 3_000_000}))


def test_health_answers_while_decisions_keep_the_interpreter_busy(tmp_path: Path) -> None:
    spinning = Server.gated(tmp_path, "--max-concurrency", "2", mode="spin")
    with spinning as server, server.channel() as channel, server.channel() as other:
        calls = [runner(channel).future(request(), timeout=PATIENCE) for _ in range(4)]
        for _ in range(2):
            server.wait_for("deciding")
        assert [health(other) for _ in range(10)] == ["SERVING"] * 10
        assert not any(call.done() for call in calls), "asked while they ran"
        (tmp_path / "open").touch()
        assert all(call.result() for call in calls)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_calls_in_flight_end(number: int, tmp_path: Path) -> None:
    gated = Server.gated(tmp_path, "--max-concurrency", "20", "--grace", str(PATIENCE))
    with gated as server, server.channel() as channel, server.channel() as other:
        calls = [runner(channel).future(request(), timeout=PATIENCE) for _ in range(20)]
        for _ in calls:
            server.wait_for("deciding")
        assert health(other) == "SERVING"
        server.process.send_signal(number)
        assert server.wait_for("stopping")["calls"] == 20
        assert health(other) == "NOT_SERVING", "said before anything is refused"
        (tmp_path / "noticed").touch()
        until(lambda: refused(server), "a new client is refused")
        assert not any(call.done() for call in calls), "refused while the others still ran"
        (tmp_path / "open").touch()
        assert all(call.result() for call in calls)
        assert server.process.wait(PATIENCE) == 0


def refused(server: Server) -> bool:
    """Whether a new client is refused."""
    with server.channel() as late:
        if health(late) != "UNAVAILABLE":
            return False
        with pytest.raises(grpc.RpcError) as error:
            run(late)
        return error.value.code() is grpc.StatusCode.UNAVAILABLE


def test_calls_that_outlast_the_grace_are_given_up_and_the_exit_code_says_so(tmp_path: Path) -> None:
    (tmp_path / "noticed").touch()
    with Server.gated(tmp_path, "--grace", "0.1") as server, server.channel() as channel:
        call = runner(channel).future(request(), timeout=PATIENCE)
        server.wait_for("deciding")
        assert server.stop() == 1
        assert call.exception() is not None


def test_a_connection_of_some_age_is_renewed_and_no_call_is_lost() -> None:
    seen: list[grpc.ChannelConnectivity] = []
    with Server("--insecure", "--max-connection-age", "1") as server, server.channel() as channel:
        channel.subscribe(seen.append)

        def renewed() -> bool:
            assert run(channel).meta.tag == "tested"
            return seen.count(grpc.ChannelConnectivity.READY) >= 3

        until(renewed, "two new connections")
