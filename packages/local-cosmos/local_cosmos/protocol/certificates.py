"""A certificate of the emulator's own, for https on this machine. Its key is never kept anywhere."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_HOST: Final = "localhost"
_ADDRESS: Final = "127.0.0.1"
_VALID: Final = timedelta(days=365)
_CLOCK_SKEW: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A self-signed certificate for `localhost` and 127.0.0.1.

    Attributes:
        pem: The certificate, for clients that want to check it.
        context: What a server needs to present it.
    """

    pem: bytes
    context: ssl.SSLContext

    @classmethod
    def make(cls) -> OwnCertificate:
        """A new one."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = _self_signed(key).public_bytes(serialization.Encoding.PEM)
        return cls(pem, _server_context(pem, key))


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Local Cosmos DB, for development and tests")])
    names = x509.SubjectAlternativeName([x509.DNSName(_HOST), x509.IPAddress(IPv4Address(_ADDRESS))])
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)  # It is its own authority.
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )


def _server_context(pem: bytes, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with TemporaryDirectory() as directory:  # A context reads its key from files only.
        chain = Path(directory) / "chain.pem"
        chain.touch(mode=0o600)
        chain.write_bytes(text + pem)
        context.load_cert_chain(chain)
    return context
