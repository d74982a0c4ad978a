r"""The bound behind Theorems 3.2 and 3.3, exact and inexact, with every constant.

Derivation, for a proximal gradient method with step :math:`\nu` on :math:`E_d = F_d + G_d`, where
:math:`F_d` is :math:`1/\nu`-smooth and :math:`G_d` is :math:`m`-strongly convex with
:math:`\nu m = \rho/(1-\rho)`; write :math:`c = 1 + \nu m = 1/(1-\rho)`. If :math:`x` minimises the proximal problem
at :math:`y` up to :math:`\varepsilon`, then strong convexity of that problem gives for every :math:`z`

.. math:: E_d(x) - E_d(z) \le \tfrac{1}{2\nu}\bigl(|y-z|^2 - c\,|x-z|^2\bigr) + \varepsilon
          + \tfrac{1}{\nu} |x-z| \sqrt{2\nu c\,\varepsilon}.

Put :math:`z = (1 - 1/t)\,x^{k} + \xi^*/t`. The momentum (3.4) is made so that the terms telescope: with
:math:`w^{k+1} = x^{k} - \xi^* + t_k (x^{k+1} - x^{k})` and the dual error :math:`d^k`,

.. math:: t_k^2 d^{k+1} + \tfrac{c}{2\nu}|w^{k+1}|^2 \le (1 - \rho t_k)
          \bigl( t_{k-1}^2 d^{k} + \tfrac{c}{2\nu}|w^{k}|^2 \bigr) + t_k^2 \varepsilon_{k+1}
          + \tfrac{t_k}{\nu} |w^{k+1}| \sqrt{2\nu c\,\varepsilon_{k+1}},

and the first round, where :math:`t_0 = 1`, starts from :math:`|\xi^*|^2/(2\nu)`. As
:math:`(1 - \rho t_k)\,t_{k-1}^2 = t_k^2 - t_k`, the product of the factors over :math:`t_{n-1}^2` is

.. math:: R_n = \prod_{k=1}^{n-1} (1 - 1/t_k) \le \min\{(1-\sqrt\rho)^{n-1},\; 4/(n+1)^2\},

because :math:`1 + k/2 \le t_k` for :math:`\rho = 0`, the momentum decreases in :math:`\rho`, and
:math:`t_k \le 1/\sqrt\rho`. Solving the quadratic inequality for the errors (the lemma of Schmidt, Le Roux and Bach
2011, whose result this is for :math:`\rho = 0`) gives, for :math:`0 \le \rho \le \nu/L`,

.. math:: E_d(\xi^{n}) - E_d^* \le \frac{R_n}{2\nu}
          \Bigl( a_n + \sqrt{|\xi^*|^2 + 2\nu\, e_n + a_n^2} \Bigr)^2, \qquad
          a_n = \sum_{i \le n} \sqrt{2\nu\varepsilon_i / R_i}, \quad e_n = \sum_{i \le n} \varepsilon_i / R_i.

Without errors it is :math:`R_n |\xi^*|^2/(2\nu)` (Chambolle and Pock 2016, Theorem B.1); no initial dual value enters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from dualopt.algorithms.dualfl import momentum

__all__ = ["contractions", "inexact"]


def contractions(rho: float) -> Iterator[float]:
    r"""Yield :math:`R_1 = 1, R_2, \ldots` without end.

    Examples
    --------
    >>> from itertools import islice
    >>> [round(r, 4) for r in islice(contractions(0.0), 3)]
    [1.0, 0.382, 0.2078]
    """
    t, product = 1.0, 1.0
    while True:
        yield product
        t, _ = momentum(t, rho)
        product *= 1.0 - 1.0 / t


def inexact(errors: Iterable[float], *, rho: float, nu: float, squared: float) -> Iterator[float]:
    r"""Yield the bound of :math:`E_d(\xi^{n}) - E_d^*` after every round.

    Parameters
    ----------
    errors : iterable of float
        :math:`\varepsilon_n`, by how much round ``n`` misses the minimum of its proximal problem.
    rho, nu : float
        Parameters of the method.
    squared : float
        :math:`|\xi^*|^2`.

    Examples
    --------
    >>> [round(b, 3) for b in inexact([0.0, 0.0], rho=0.0, nu=0.5, squared=1.0)]
    [1.0, 0.382]
    """
    a = e = 0.0
    for error, R in zip(errors, contractions(rho), strict=False):
        a += math.sqrt(2.0 * nu * error / R)
        e += error / R
        yield R / (2.0 * nu) * (a + math.sqrt(squared + 2.0 * nu * e + a * a)) ** 2
