"""What may go wrong between a server and its hosts."""

from __future__ import annotations

__all__ = ["LostError", "RefusedError"]


class RefusedError(ValueError):
    """A host does not do what it is asked, for a reason in words without a full stop.

    Parameters
    ----------
    reason : str
        Why; "it" is the host.
    final : bool, default True
        Whether asking again is of no use.
    """

    def __init__(self, reason: str, *, final: bool = True) -> None:
        super().__init__(reason)
        self.final = final


class LostError(ValueError):
    """Clients without which a run cannot go on did not answer; the sentence names host, round and reason."""
