"""Keys, boxes and streams, all of them from the package ``cryptography``; nothing here is a cipher of our own."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._extras import optional

__all__ = [
    "KEY",
    "KeyPair",
    "commitment",
    "common_secret",
    "derived",
    "key_pair",
    "opened",
    "public_key",
    "require_package",
    "sealed",
    "stream",
]

KEY = 32  # bytes of every key


class KeyPair(NamedTuple):
    """Of X25519 (RFC 7748)."""

    private: bytes
    public: bytes


def require_package() -> None:
    """Refuse to begin without the package.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.
    """
    optional("cryptography", "a secure sum")


def key_pair() -> KeyPair:
    """Return a new one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import (  # pyright: ignore[reportMissingImports]
        X25519PrivateKey,
    )

    private = X25519PrivateKey.generate()
    return KeyPair(private.private_bytes_raw(), private.public_key().public_bytes_raw())


def public_key(private: bytes) -> bytes:
    """Return the public key that belongs to a private one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import (  # pyright: ignore[reportMissingImports]
        X25519PrivateKey,
    )

    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def common_secret(private: bytes, public: bytes) -> bytes:
    """Return what two parties can compute, each from its private and the other's public key.

    Raises
    ------
    ValueError
        If the public key is none.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import (  # pyright: ignore[reportMissingImports]
        X25519PrivateKey,
        X25519PublicKey,
    )

    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))


def derived(secret: bytes, *about: Any) -> bytes:
    """Return a key for one purpose, of a common secret (HKDF-SHA256, RFC 5869)."""
    from cryptography.hazmat.primitives.hashes import SHA256  # pyright: ignore[reportMissingImports]
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # pyright: ignore[reportMissingImports]

    return HKDF(algorithm=SHA256(), length=KEY, salt=None, info=_text(about)).derive(secret)


def sealed(key: bytes, data: bytes) -> bytes:
    """Return a box that the key opens (ChaCha20-Poly1305, RFC 8439); a key must not close two boxes."""
    from cryptography.hazmat.primitives.ciphers.aead import (  # pyright: ignore[reportMissingImports]
        ChaCha20Poly1305,
    )

    return ChaCha20Poly1305(key).encrypt(bytes(12), data, None)


def opened(key: bytes, box: bytes) -> bytes | None:
    """Return what is in a box; None where the key is another, or the box was changed."""
    from cryptography.exceptions import InvalidTag  # pyright: ignore[reportMissingImports]
    from cryptography.hazmat.primitives.ciphers.aead import (  # pyright: ignore[reportMissingImports]
        ChaCha20Poly1305,
    )

    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), box, None)
    except InvalidTag:
        return None


def stream(key: bytes, n: int) -> np.ndarray:
    """Return ``n`` integers modulo 2^64 from the stream of ChaCha20; a key must not be used for two masks."""
    from cryptography.hazmat.primitives.ciphers import Cipher  # pyright: ignore[reportMissingImports]
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20  # pyright: ignore[reportMissingImports]

    numbers = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * n))
    return np.frombuffer(numbers, dtype="<u8").astype(np.uint64)


def commitment(seed: bytes, *about: Any) -> bytes:
    """Return what tells whether a seed is the one that was meant.

    Examples
    --------
    >>> commitment(bytes(32), "a sum") == commitment(bytes(32), "another")
    False
    """
    return hashlib.sha256(_text(about) + seed).digest()


def _text(about: tuple[Any, ...]) -> bytes:
    return json.dumps(["dualopt secure sum", *about]).encode()
