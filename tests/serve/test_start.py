"""What cannot start says why in one line, and ends."""

from __future__ import annotations

import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.serve.certificates import Authority, install
from tests.serve.server import PATIENCE, ROOT, Server, command, environment, run

if TYPE_CHECKING:
    from pathlib import Path


def failed(*flags: str, env: dict[str, str] | None = None) -> str:
    """Start the server, which must fail; return its only line."""
    ended = subprocess.run(
        command(*flags),
        cwd=ROOT,
        env=environment(env or {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode != 0
    assert ended.stdout == ""
    line, end, more = ended.stderr.partition("\n")
    assert (end, more) == ("\n", "")
    return line


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    authority = Authority("ours")
    install(tmp_path / "certs", authority.signs("localhost"), authority)
    return tmp_path / "certs"


def test_neither_certificates_nor_insecure() -> None:
    assert failed() == "function: cannot start: neither --tls-certs-dir nor --insecure was given"


def test_no_folder(tmp_path: Path) -> None:
    assert "tls.key does not exist" in failed("--tls-certs-dir", str(tmp_path / "none"))


@pytest.mark.parametrize("name", ["tls.key", "tls.crt", "ca.crt"])
def test_a_file_that_is_missing(certs: Path, name: str) -> None:
    (certs / name).unlink()
    assert f"{name} does not exist" in failed(env={"TLS_SERVER_CERTS_DIR": str(certs)})


@pytest.mark.parametrize(
    ("name", "content"),
    [("tls.key", b""), ("tls.crt", b"garbage"), ("ca.crt", b""), ("ca.crt", b"\xff\x00\xfe")],
)
def test_a_file_that_is_garbled(certs: Path, name: str, content: bytes) -> None:
    (certs / name).write_bytes(content)
    assert f"certificates in {certs}: " in failed("--tls-certs-dir", str(certs))


def test_a_key_that_is_not_the_certificates_own(certs: Path) -> None:
    (certs / "tls.key").write_bytes(Authority("other").signs("localhost").key)
    assert "not valid together" in failed("--tls-certs-dir", str(certs))


@pytest.mark.parametrize("address", ["9443", "localhost:", "localhost:port", "localhost:65536"])
def test_an_address_that_is_none(address: str) -> None:
    assert f"{address!r} is not host:port" in failed("--insecure", "--address", address)


def test_a_port_that_is_taken() -> None:
    with Server("--insecure") as first:
        assert f"cannot listen on {first.address}" in failed("--insecure", "--address", first.address)
        with first.channel() as channel:
            assert run(channel).meta.tag == "tested", "the first one is not disturbed"


def test_a_metrics_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = ("--insecure", "--address", "127.0.0.1:0", "--metrics-address", address)
        assert f"cannot serve metrics on {address}" in failed(*flags)


def test_every_flag_is_an_environment_variable() -> None:
    env = {"FLEET_SCHEDULER_INSECURE": "true", "FLEET_SCHEDULER_TTL_PENDING": "7"}
    with Server(env=env) as server, server.channel() as channel:
        assert run(channel).meta.ttl.seconds == 7
