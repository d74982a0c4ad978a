"""Offsets: numbers of the rows that are added to their predictors, and exposures, of which they are the logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace
from dualopt.losses import Loss
from dualopt.problem.inputs._row_weights import as_row_numbers

__all__ = ["OffsetOrigin", "as_offset", "require_one_offset", "require_takes"]


@dataclass(frozen=True)
class OffsetOrigin:
    """Where the offsets of rows come from.

    Attributes
    ----------
    kind : {"offset", "exposure"}
        Whether they are given as they are, or as numbers whose logarithms they are.
    column : str, optional
        The column of tables that holds them.
    """

    kind: str
    column: str | None = None

    @classmethod
    def of(cls, offset: Any, exposure: Any) -> OffsetOrigin | None:
        """Return the origin of what is given, vectors or names of columns; None of nothing."""
        require_one_offset(offset, exposure)
        kind, given = ("offset", offset) if exposure is None else ("exposure", exposure)
        return None if given is None else cls(kind, given if isinstance(given, str) else None)

    def pair(self, values: Any) -> tuple[Any, Any]:
        """Return values of this kind as offset and exposure, one of which is None."""
        return (values, None) if self.kind == "offset" else (None, values)


def as_offset(offset: Any, exposure: Any, like: Array, rows: int) -> Array | None:
    r"""Return the numbers :math:`o_i` of the rows, in the library, the type and on the device of the features.

    Parameters
    ----------
    offset : vector of any kind, shape (m,), optional
        The :math:`o_i`.
    exposure : vector of any kind, shape (m,), optional
        Positive numbers :math:`t_i`, such as days under observation: :math:`o_i = \log t_i`.
    like : array
        Features, or an array of their library, type and device.
    rows : int
        The number ``m`` of rows.

    Raises
    ------
    ValueError
        If both are given, or one is no vector of such numbers; the sentence names it.

    Examples
    --------
    >>> import numpy as np
    >>> as_offset(None, [1, 2], np.ones(1), 2).round(3).tolist()
    [0.0, 0.693]
    >>> as_offset(None, [1, 0], np.ones(1), 2)
    Traceback (most recent call last):
    ValueError: exposure must be 2 positive finite numbers, one for each row of X.
    """
    require_one_offset(offset, exposure)
    if offset is None and exposure is None:
        return None
    name, given = ("offset", offset) if exposure is None else ("exposure", exposure)
    xp, found = array_namespace(like), as_row_numbers(given, name, like)
    fits = tuple(found.shape) == (rows,) and bool(xp.all(xp.isfinite(found)))
    if name == "offset":
        require(fits, f"offset must be {rows} finite numbers, one for each row of X")
        return found
    positive = fits and bool(xp.all(found > 0))
    require(positive, f"exposure must be {rows} positive finite numbers, one for each row of X")
    return xp.log(found)


def require_one_offset(offset: Any, exposure: Any) -> None:
    """Refuse an offset and an exposure together."""
    one = offset is None or exposure is None
    require(one, "exposure must not be given beside offset: add its logarithm to the offset")


def require_takes(loss: Loss, *, exposure: bool) -> None:
    """Refuse a loss whose predictors have no offset, or no exposure.

    >>> from dualopt.losses import Squared
    >>> require_takes(Squared(), exposure=True)
    Traceback (most recent call last):
    ValueError: exposure must be given with a loss whose link is the logarithm, such as poisson, not Squared().
    """
    logarithmic = not exposure or getattr(loss, "link", None) == "log"
    require(logarithmic, f"exposure must be given with a loss whose link is the logarithm, such as poisson, not {loss}")
    name = "exposure" if exposure else "offset"
    require(loss.outputs == 1, f"{name} must not be given with the loss {loss}, which has a predictor for each class")
