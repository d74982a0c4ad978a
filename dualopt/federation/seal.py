"""A mark on each message between the server and a site, made with a key that only these two have.

FLARE lets every party of a job call every other, and what it says of a caller can be forged: a site gets, in the
headers of what the server sends, the token with which the server is believed to be the sender. A site therefore answers
only what carries the mark of the server, and the server counts only answers with the mark of the site that it asked.

========  =====================================================================
bytes     what they are
========  =====================================================================
32        HMAC-SHA256 of the kind of message, of what it answers, and of the rest
others    the message
========  =====================================================================
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from pathlib import Path

__all__ = ["KEY_FILE", "MARK", "SERVER_KEY", "Seal", "site_key"]

KEY_FILE = Path("startup", "dualopt.key")  # in the folder that the site got from "nvflare provision"
SERVER_KEY = Path("startup", "server.key")  # in that of the server
MARK = 32  # bytes


def site_key(server_key: bytes, site: str) -> bytes:
    """Derive the key of a site from the private key of the server, which thus has the keys of all and keeps none.

    Examples
    --------
    >>> site_key(b"secret", "lyon") == site_key(b"secret", "basel")
    False
    """
    return hmac.digest(server_key, b"dualopt site " + site.encode(), "sha256").hex().encode()


class Seal:
    """Marks messages, and tells those that the other end has marked.

    Parameters
    ----------
    key : bytes
        What both ends have, and nobody else.

    Examples
    --------
    >>> server, site, stranger = Seal(b"k"), Seal(b"k"), Seal(b"another")
    >>> asked = server.request(b"your census")
    >>> site.opened_request(asked), stranger.opened_request(asked)
    (b'your census', None)
    >>> answer = site.answer(asked, b"300 rows")
    >>> server.opened_answer(asked, answer), server.opened_answer(server.request(b"your gradient"), answer)
    (b'300 rows', None)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def request(self, data: bytes) -> bytes:
        """Return a request with the mark."""
        return self._mark(b"request", b"", data) + data

    def opened_request(self, sealed: bytes) -> bytes | None:
        """Return the request without the mark; None where it is another's."""
        return self._opened(b"request", b"", sealed)

    def answer(self, sealed_request: bytes, data: bytes) -> bytes:
        """Return an answer with the mark, which belongs to this request alone."""
        return self._mark(b"answer", sealed_request, data) + data

    def opened_answer(self, sealed_request: bytes, sealed: bytes) -> bytes | None:
        """Return the answer without the mark; None where it is another's, or to another request."""
        return self._opened(b"answer", sealed_request, sealed)

    def _opened(self, kind: bytes, asked: bytes, sealed: bytes) -> bytes | None:
        if not isinstance(sealed, bytes):
            return None
        data = sealed[MARK:]
        return data if hmac.compare_digest(sealed[:MARK], self._mark(kind, asked, data)) else None

    def _mark(self, kind: bytes, asked: bytes, data: bytes) -> bytes:
        return hmac.digest(self._key, kind + sha256(asked).digest() + sha256(data).digest(), "sha256")
