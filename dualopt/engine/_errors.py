"""What may go wrong between a server and its hosts."""

from __future__ import annotations

__all__ = ["ContradictionError", "LostError", "RefusedError"]


class RefusedError(ValueError):
    """A host does not do what it is asked.

    Parameters
    ----------
    reason : str
        Why, in words without a full stop; "it" is the host. They may quote what no other party may see.
    code : str
        The kind of reason, in a word. A host that keeps its data to itself sends this alone.
    final : bool, default True
        Whether asking again is of no use.
    """

    def __init__(self, reason: str, *, code: str, final: bool = True) -> None:
        super().__init__(reason)
        self.code, self.final = code, final


class LostError(ValueError):
    """Clients without which a run cannot go on did not answer; the sentence names host, round and reason."""


class ContradictionError(ValueError):
    """What a host has said cannot all be true, so that no certificate of the run holds; the sentence names the host."""
