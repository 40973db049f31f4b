"""Certificates made for a test: an authority, and what it signs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A private key and its certificate, as PEM."""

    key: bytes
    certificate: bytes


class Authority:
    """A certificate authority that lives as long as a test."""

    def __init__(self, name: str, *, age: timedelta = timedelta(0)) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        authority = x509.BasicConstraints(ca=True, path_length=0)
        signed = self._builder(self._name, self._key, DAY - age).add_extension(authority, critical=True)
        self.certificate = _pem(signed.sign(self._key, hashes.SHA256()))

    def signs(self, name: str, *, age: timedelta = timedelta(0)) -> Pair:
        """Return a pair valid on localhost from a day ago to tomorrow, less its age."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))])
        signed = self._builder(subject, key, DAY - age).add_extension(names, critical=False)
        return Pair(_private(key), _pem(signed.sign(self._key, hashes.SHA256())))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, left: timedelta
    ) -> x509.CertificateBuilder:
        end = datetime.now(UTC) + left
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - 2 * DAY)
            .not_valid_after(end)
        )


def install(folder: Path, pair: Pair, authority: Authority) -> None:
    """Write the three files as Crossplane mounts them."""
    folder.mkdir(exist_ok=True)
    for name, content in (
        ("tls.key", pair.key),
        ("tls.crt", pair.certificate),
        ("ca.crt", authority.certificate),
    ):
        (folder / name).write_bytes(content)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
