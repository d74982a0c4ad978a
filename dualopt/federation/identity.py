"""How sites show one another that public keys for secure sums are theirs: with the certificates that FLARE has made.

The server passes these keys on. With keys of its own in their place it could read what a site sends to others, so that
a site signs its keys with the private key of its certificate, and takes those of others if their certificates are
signed by the root of the federation and made out to them. Whoever has run ``nvflare provision`` can make certificates.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dualopt.arrays._extras import optional

__all__ = ["CERTIFICATE", "PRIVATE_KEY", "ROOT", "KitIdentity"]

CERTIFICATE, PRIVATE_KEY, ROOT = (Path("startup", name) for name in ("client.crt", "client.key", "rootCA.pem"))
SALT = 32  # bytes, as many as SHA-256 has
LENGTH = 4  # bytes that say how long the certificate is, which comes before the signature


class KitIdentity:
    """The identity of a site, from the folder that it got from ``nvflare provision``.

    Parameters
    ----------
    kit : str or Path
        The folder.
    """

    def __init__(self, kit: str | Path) -> None:
        optional("cryptography", "the identity of a site")
        from cryptography import x509  # pyright: ignore[reportMissingImports]
        from cryptography.hazmat.primitives.serialization import (  # pyright: ignore[reportMissingImports]
            Encoding,
            load_pem_private_key,
        )

        own = x509.load_pem_x509_certificate(Path(kit, CERTIFICATE).read_bytes())
        self._certificate = own.public_bytes(Encoding.DER)
        self._private: Any = load_pem_private_key(Path(kit, PRIVATE_KEY).read_bytes(), None)
        self._root = x509.load_pem_x509_certificate(Path(kit, ROOT).read_bytes())
        self._known: dict[tuple[str, bytes], Any] = {}  # public keys of hosts, by their certificates

    def sign(self, data: bytes) -> bytes:
        """Return the certificate and a signature."""
        how = _how(self._private.public_key())
        return len(self._certificate).to_bytes(LENGTH, "big") + self._certificate + self._private.sign(data, *how)

    def holds(self, host: str, data: bytes, signature: bytes) -> bool:
        """Tell whether a host of this name, with a certificate of the same root, has signed the data."""
        from cryptography.exceptions import InvalidSignature  # pyright: ignore[reportMissingImports]

        end = LENGTH + int.from_bytes(signature[:LENGTH], "big")
        try:
            public = self._public_key(host, signature[LENGTH:end])
            public.verify(signature[end:], data, *_how(public))
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    def _public_key(self, host: str, certificate: bytes) -> Any:
        from cryptography import x509  # pyright: ignore[reportMissingImports]

        if (found := self._known.get((host, certificate))) is not None:
            return found
        its = x509.load_der_x509_certificate(certificate)
        its.verify_directly_issued_by(self._root)
        names = [x.value for x in its.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
        if names != [host] or not its.not_valid_before_utc <= datetime.now(UTC) <= its.not_valid_after_utc:
            raise ValueError("certificate is not one of this host, or not one of today.")
        self._known[host, certificate] = its.public_key()
        return its.public_key()


def _how(public: Any) -> tuple[Any, ...]:
    """Return how a key signs."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA  # pyright: ignore[reportMissingImports]
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS  # pyright: ignore[reportMissingImports]
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # pyright: ignore[reportMissingImports]
    from cryptography.hazmat.primitives.hashes import SHA256  # pyright: ignore[reportMissingImports]

    if isinstance(public, RSAPublicKey):
        return PSS(mgf=MGF1(SHA256()), salt_length=SALT), SHA256()
    return (ECDSA(SHA256()),)
