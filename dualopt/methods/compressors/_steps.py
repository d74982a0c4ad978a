"""How methods use a compressor: to take a step that both ends know."""

from __future__ import annotations

from dualopt.arrays.xp import Array
from dualopt.methods.compressors._protocol import Compressor
from dualopt.methods.compressors.identity import Identity
from dualopt.methods.participation import Round

__all__ = ["damped", "kept", "received"]


def kept(compressor: Compressor, shape: tuple[int, ...], round: Round) -> float:
    r"""Return :math:`1/(1 + \omega)`: which part of a step a method takes with this compressor.

    Examples
    --------
    >>> from dualopt.methods.compressors import RandK
    >>> from dualopt.methods.participation import first_round
    >>> kept(RandK(size=1), (4,), first_round(3))
    0.25
    """
    return 1.0 / (1.0 + compressor.omega(shape, round.n_clients))


def damped(compressor: Compressor, x: Array, round: Round) -> Array:
    r"""Return :math:`C(x)/(1 + \omega)`, the step that both ends add to what they hold; ``x`` itself if uncompressed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import RandK
    >>> from dualopt.methods.participation import first_round
    >>> damped(RandK(size=1), np.array([[4.0, 8.0]]), first_round(1)).tolist()
    [[0.0, 8.0]]
    """
    return kept(compressor, tuple(x.shape[1:]), round) * compressor.compress(x, round)


def received(compressor: Compressor, center: Array, x: Array, round: Round) -> Array:
    r"""Return :math:`\text{center} + C(x - \text{center})`, what arrives of ``x`` where the server knows ``center``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.compressors import RandK
    >>> from dualopt.methods.participation import first_round
    >>> received(RandK(size=1), np.array([1.0, 1.0]), np.array([[4.0, 8.0]]), first_round(1)).tolist()
    [[1.0, 15.0]]
    """
    return x if isinstance(compressor, Identity) else center + compressor.compress(x - center, round)
