"""Shares of a secret: enough of them give it, and fewer say nothing of it (Shamir, 1979)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from dualopt.arrays._checks import require

__all__ = ["SHARE", "SharesError", "combined", "split"]

PRIME = 2**521 - 1
SECRET = 32  # bytes
SHARE = 66  # bytes, of a number below the prime


class SharesError(ValueError):
    """Shares are too few, or are none of one secret."""


def split(secret: bytes, n: int, threshold: int) -> list[bytes]:
    """Return ``n`` shares of 32 bytes: values at 1, ..., n of a random polynomial whose value at 0 is the secret.

    Examples
    --------
    >>> shares = split(bytes(range(32)), 5, 3)
    >>> combined({0: shares[0], 4: shares[4], 2: shares[2]}, 3) == bytes(range(32))
    True
    """
    require(len(secret) == SECRET, f"secret must have {SECRET} bytes", len(secret))
    require(1 <= threshold <= n, f"threshold must be between 1 and the {n} shares", threshold)
    coefficients = [int.from_bytes(secret, "little"), *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    return [_value(coefficients, x).to_bytes(SHARE, "little") for x in range(1, n + 1)]


def combined(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """Return the secret from shares by their places, which are counted from 0; those beyond the threshold must agree.

    Raises
    ------
    SharesError
        If they are fewer than the threshold, or are not those of one secret.
    """
    if len(shares) < threshold:
        raise SharesError(f"there are {len(shares)} shares, and {threshold} are needed")
    points = [(place + 1, int.from_bytes(share, "little")) for place, share in sorted(shares.items())]
    if any(len(share) != SHARE for share in shares.values()) or any(y >= PRIME for _, y in points):
        raise SharesError("a share is damaged")
    own, others = points[:threshold], points[threshold:]
    if any(_through(own, x) != y for x, y in others):
        raise SharesError("the shares are not those of one secret")
    found = _through(own, 0)
    if found >= 2 ** (8 * SECRET):
        raise SharesError("the shares are not those of one secret")
    return found.to_bytes(SECRET, "little")


def _value(coefficients: list[int], x: int) -> int:
    found = 0
    for c in reversed(coefficients):
        found = (found * x + c) % PRIME
    return found


def _through(points: list[tuple[int, int]], at: int) -> int:
    """Return the value of the polynomial of least degree through some points."""
    found = 0
    for j, (x, y) in enumerate(points):
        over = under = 1
        for k, (other, _) in enumerate(points):
            if k != j:
                over, under = over * (at - other) % PRIME, under * (x - other) % PRIME
        found += y * over * pow(under, -1, PRIME)
    return found % PRIME
