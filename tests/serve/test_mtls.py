"""One listener: mTLS, or plaintext when told so, never both by accident."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import grpc
import pytest

from tests.serve.certificates import Authority, Pair, install
from tests.serve.server import Server, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OURS, FOREIGN = Authority("ours"), Authority("foreign")
SERVER = OURS.signs("localhost")
REFUSED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tls") / "certs"
    install(folder, SERVER, OURS)
    with Server("--tls-certs-dir", str(folder)) as running:
        yield running


def secure(address: str, authority: Authority, pair: Pair | None) -> grpc.Channel:
    identity = () if pair is None else (pair.key, pair.certificate)
    credentials = grpc.ssl_channel_credentials(authority.certificate, *identity)
    return grpc.secure_channel(
        address.replace("127.0.0.1", "localhost"), credentials, [("grpc.use_local_subchannel_pool", 1)]
    )


def served(channel: grpc.Channel) -> bool:
    with channel:
        try:
            run(channel)
        except grpc.RpcError as error:
            if error.code() in REFUSED:
                return False
            raise
    return True


def test_crossplane_is_served(server: Server) -> None:
    assert served(secure(server.address, OURS, OURS.signs("crossplane")))


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (None, "no certificate"),
        (FOREIGN.signs("crossplane"), "a certificate of another authority"),
        (OURS.signs("crossplane", age=timedelta(days=3)), "an expired certificate"),
        (
            Pair(OURS.signs("other").key, OURS.signs("crossplane").certificate),
            "a certificate with another's key",
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_nobody_else_is(server: Server, pair: Pair | None, reason: str) -> None:
    assert not served(secure(server.address, OURS, pair)), reason


def test_plaintext_is_refused(server: Server) -> None:
    assert not served(server.channel())


def test_new_certificates_are_used_without_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    install(folder, SERVER, OURS)
    with Server("--tls-certs-dir", str(folder)) as server:
        before, after = OURS.signs("crossplane"), FOREIGN.signs("crossplane")
        assert served(secure(server.address, OURS, before))

        (folder / "tls.crt").write_bytes(b"half written")
        assert served(secure(server.address, OURS, before)), "a rotation under way changes nothing"
        server.wait_for("certificates kept")

        install(folder, FOREIGN.signs("localhost"), FOREIGN)
        assert served(secure(server.address, FOREIGN, after))
        server.wait_for("certificates reloaded")
        assert not served(secure(server.address, FOREIGN, before)), "the old authority is gone"


@pytest.mark.parametrize(
    ("pair", "authority", "reason"),
    [
        (OURS.signs("localhost", age=timedelta(days=3)), OURS, "tls.crt: certificate has expired"),
        (OURS.signs("localhost", age=timedelta(days=-3)), OURS, "tls.crt: certificate is not yet valid"),
        (SERVER, Authority("old", age=timedelta(days=3)), "ca.crt: certificate has expired"),
    ],
)
def test_certificates_that_are_not_valid_now_replace_no_good_ones(
    pair: Pair, authority: Authority, reason: str, tmp_path: Path
) -> None:
    folder = tmp_path / "certs"
    install(folder, SERVER, OURS)
    with Server("--tls-certs-dir", str(folder)) as server:
        install(folder, pair, authority)
        for _ in range(3):
            assert served(secure(server.address, OURS, OURS.signs("crossplane")))
        assert server.wait_for("certificates kept")["reason"] == reason
        install(folder, FOREIGN.signs("localhost"), FOREIGN)
        assert served(secure(server.address, FOREIGN, FOREIGN.signs("crossplane")))
        server.wait_for("certificates reloaded")
    assert sum("certificates kept" in line for line in server.output) == 1, "said once"


def test_a_server_starts_with_an_expired_certificate_and_says_so(tmp_path: Path) -> None:
    """It serves nobody with it, but takes up a rotated one; a crash loop would take longer."""
    folder = tmp_path / "certs"
    install(folder, OURS.signs("localhost", age=timedelta(days=3)), OURS)
    with Server("--tls-certs-dir", str(folder)) as server:
        assert any("certificates are not valid now" in line for line in server.output)
        assert not served(secure(server.address, OURS, OURS.signs("crossplane")))
        install(folder, SERVER, OURS)
        assert served(secure(server.address, OURS, OURS.signs("crossplane")))


def test_insecure_means_plaintext_whatever_certificates_there_are(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    install(folder, SERVER, OURS)
    with Server("--insecure", env={"TLS_SERVER_CERTS_DIR": str(folder)}) as server:
        assert all(served(server.channel()) for _ in range(100))
        assert not served(secure(server.address, OURS, OURS.signs("crossplane")))
