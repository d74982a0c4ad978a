r"""Random linear models with known weights: regression, logistic and multinomial.

Features are Gaussian with variances that decay, :math:`x_i \sim N(0, \mathrm{diag}(k^{-\mathrm{decay}}))` for
:math:`k = 1..d`; weights are standard normal.

* ``synthetic-regression``: :math:`y_i = \langle w, x_i\rangle + \mathrm{noise}\, e_i` with standard normal
  :math:`e_i`;
* ``synthetic-logistic``: :math:`y_i = \mathrm{sign}(\langle w, x_i\rangle + \mathrm{noise}\, e_i)` with
  standard logistic :math:`e_i`, so that
  :math:`P(y_i = 1) = 1/(1 + \exp(-\langle w, x_i\rangle / \mathrm{noise}))`;
* ``synthetic-multinomial``: :math:`y_i = \arg\max_c (\langle w_c, x_i\rangle + \mathrm{noise}\, e_{ic})`
  with standard Gumbel :math:`e_{ic}`, so that :math:`P(y_i = c)` is the softmax of
  :math:`W x_i / \mathrm{noise}`.

``noise=1`` is therefore exactly the model behind the logistic loss, and ``noise=0`` makes the classes
separable.
"""

from __future__ import annotations

import numpy as np

from dualopt.arrays._checks import at_least, nonnegative
from dualopt.arrays.streams import SYNTHETIC_STREAM, generator
from dualopt.problem.data._dataset import RawData

NAMES = {
    "synthetic-regression": "linear regression with Gaussian noise (options m, d, noise, decay)",
    "synthetic-logistic": "labels -1 and +1 of a logistic model (options m, d, noise, decay)",
    "synthetic-multinomial": "labels 0..k-1 of a softmax model (options m, d, classes, noise, decay)",
}
_DEFAULT_NOISE = {"synthetic-regression": 0.1, "synthetic-logistic": 1.0, "synthetic-multinomial": 1.0}


def load(
    name: str,
    *,
    seed: int,
    m: int = 1000,
    d: int = 20,
    classes: int | None = None,
    noise: float | None = None,
    decay: float = 1.2,
) -> RawData:
    r"""Draw a data set from a linear model; the formulas are at the top of this module.

    Parameters
    ----------
    name : str
        One of the names in ``NAMES``.
    seed : int
        Seed of features, weights and noise.
    m, d : int
        Number of rows and of features.
    classes : int, optional
        Number of classes of ``synthetic-multinomial``, 10 by default; the other models refuse it.
    noise : float, optional
        Scale of the noise; 0.1 for regression and 1 for the two classifications by default.
    decay : float
        Exponent of the decay of the variances: 0 gives isotropic features.

    Raises
    ------
    ValueError
        If an option is out of its range.
    """
    m, d = at_least(1, "m", m), at_least(1, "d", d)
    if classes is not None and name != "synthetic-multinomial":
        raise ValueError(f"classes = {classes!r} is an option of synthetic-multinomial only, not of {name}.")
    k = at_least(2, "classes", 10 if classes is None else classes)
    level = nonnegative("noise", _DEFAULT_NOISE[name] if noise is None else noise)
    deviations = np.arange(1, d + 1) ** (-nonnegative("decay", decay) / 2)

    rng = generator(seed, SYNTHETIC_STREAM)
    X = rng.standard_normal((m, d)) * deviations
    if name == "synthetic-multinomial":
        y = np.argmax(X @ rng.standard_normal((d, k)) + level * rng.gumbel(size=(m, k)), axis=1)
    elif name == "synthetic-logistic":
        y = np.where(X @ rng.standard_normal(d) + level * rng.logistic(size=m) > 0, 1, -1)
    else:
        y = X @ rng.standard_normal(d) + level * rng.standard_normal(m)
    return RawData(X=X, y=y, scale="none", description=f"{NAMES[name].partition(' (')[0]}, seed {seed}")
