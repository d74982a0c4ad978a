"""Methods as a user asks for them, refused before there is an objective where they do not support what is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dualopt.methods._base import Algorithm
from dualopt.methods.participation import as_participation
from dualopt.spec import Spec, names

__all__ = ["supported"]


def supported(
    spec: Spec,
    *,
    participation: str = "full",
    regulariser: bool = False,
    compressor: str = "identity",
    types: Iterable[type] | None = None,
) -> Algorithm:
    """Return the method of a spec, with what is not given left open.

    Parameters
    ----------
    spec : Spec
        The method.
    participation : str, default "full"
        Who takes part, as :func:`dualopt.methods.participation.as_participation` reads it.
    regulariser : bool, default False
        Whether the objective will have a regulariser.
    compressor : str, default "identity"
        What uploads go through.
    types : iterable of type, optional
        As in :meth:`dualopt.spec.Spec.build`.

    Raises
    ------
    ValueError
        If a name is unknown, a value is out of range, or the method does not support what is asked of it; then the
        sentence names those that do.

    Examples
    --------
    >>> supported(Spec.parse("dualfl"), participation="subset=2")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: algorithm dualfl does not support participation subset=2; a-fedpd, ... do.
    """
    spec = spec.expanded("algorithm")
    kind: Any = spec.target("algorithm", types)

    def require(needs: Iterable[str], what: str) -> None:
        if not set(needs) <= kind.supports:
            able = [name for name, other in names("algorithm").items() if set(needs) <= other.supports]
            raise ValueError(f"algorithm {spec.name} does not support {what}; {', '.join(able)} do.")

    Spec.parse(compressor, "compressor").build("compressor", types)  # refused here, before there is an objective
    algorithm = spec.build("algorithm", types)
    require(as_participation(participation).needs(), f"participation {participation}")
    if regulariser:
        require({"regulariser"}, "a regulariser")
    return algorithm
