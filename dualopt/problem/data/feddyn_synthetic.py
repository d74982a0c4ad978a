r"""The synthetic data of the FedDyn paper: classes of linear models on N clients that differ in one of three ways.

Client j has :math:`m_j` rows

.. math::
    m_j = \lfloor \exp(\ln(\mathrm{rows} + 10^{-3}) + \sigma_3 e_j) \rfloor, \quad
    x \sim N(\nu_j, \mathrm{diag}(k^{-1.2})_{k = 1..d}), \quad
    y = \arg\max_c (x W_j + b_j)_c

with standard normal :math:`e_j`. The three kinds of heterogeneity are

1. models: the entries of :math:`W_j` (d x classes) and :math:`b_j` are :math:`N(\mu_j, 1)` with
   :math:`\mu_j \sim N(0, \sigma_1^2)`; without it, all clients share one model with entries :math:`N(0, 1)`;
2. features: the entries of :math:`\nu_j` are :math:`N(\beta_j, 1)` with :math:`\beta_j \sim N(0, \sigma_2^2)`; without
   it, they are 0;
3. sizes: :math:`\sigma_3 > 0`; without it, every client has ``rows`` rows, which is otherwise the median.

The parameters gamma1, gamma2, gamma3 are the standard deviations :math:`\sigma_i` with ``spread="code"``, as in the
authors' public code, and their squares with ``spread="paper"``.

:math:`\mu_j` adds the same number to the scores of all classes, so **gamma1 changes no label**: what the first kind
of heterogeneity consists of is that the models are drawn one by one.

Drawing order: sizes; :math:`\beta`, then :math:`\nu` (N x d), if features differ; :math:`\mu`, if models do; the
models, (d + 1) x classes with the bias in the last row, of each client or one for all; the features of all rows,
client by client.

Source: Acar et al., Federated Learning Based on Dynamic Regularization, ICLR 2021, Appendix A.1.1 and Table 6.
"""

from __future__ import annotations

import math

import numpy as np

from dualopt.arrays._checks import at_least, nonnegative
from dualopt.arrays.streams import SYNTHETIC_STREAM, generator
from dualopt.problem.data._dataset import RawData

__all__ = ["load"]

NAMES = {
    "synthetic-feddyn": "FedDyn's linear classes on clients that differ in one of three ways "
    "(options setting, clients, rows, d, classes, gamma1 to gamma3, spread)"
}
# Table 6: a homogeneous setting and heterogeneity of types 1, 2, 3.
_SETTINGS: dict[str, tuple[float | None, float | None, float]] = {
    "homogeneous": (None, None, 0.0),
    "models": (1.0, None, 0.0),
    "features": (None, 1.0, 0.0),
    "sizes": (None, None, 1.0),
}
_SPREADS = {"code": float, "paper": math.sqrt}


def load(
    name: str,
    *,
    seed: int,
    setting: str = "homogeneous",
    clients: int = 20,
    rows: int = 200,
    d: int = 30,
    classes: int = 5,
    gamma1: float | None = None,
    gamma2: float | None = None,
    gamma3: float | None = None,
    spread: str = "code",
) -> RawData:
    """Draw the data set; the formulas are at the top of this module.

    Parameters
    ----------
    name : str
        The name in ``NAMES``.
    seed : int
        Seed of everything drawn.
    setting : str
        "homogeneous", "models", "features" or "sizes": the four settings of the paper's Table 6. Neither the paper
        nor the code tells the values of the gammas there; here the one that belongs to the setting is 1.
    clients, rows : int
        Number N of clients and, as a median, of rows of each.
    d, classes : int
        Number of features and of classes.
    gamma1, gamma2, gamma3 : float, optional
        Spreads of models, features and sizes; a number, even 0, switches on its kind of heterogeneity beside that
        of the setting.
    spread : str
        Whether the gammas are standard deviations ("code") or variances ("paper").

    Raises
    ------
    ValueError
        If an option is out of its range, or a client is left without rows.

    Examples
    --------
    >>> from dualopt.problem.data import load, natural
    >>> data = load("synthetic-feddyn", setting="sizes", clients=3, gamma3=0.5)
    >>> len(natural(data.clients)), len(data.y) != 3 * 200
    (3, True)
    """
    clients, rows = at_least(1, "clients", clients), at_least(1, "rows", rows)
    d, classes = at_least(1, "d", d), at_least(2, "classes", classes)
    for option, value, known in (("setting", setting, _SETTINGS), ("spread", spread, _SPREADS)):
        if value not in known:
            raise ValueError(f"{option} must be one of {', '.join(known)}, got {value!r}.")
    given = zip(("gamma1", "gamma2", "gamma3"), (gamma1, gamma2, gamma3), _SETTINGS[setting], strict=True)
    chosen = [(key, preset if gamma is None else gamma) for key, gamma, preset in given]
    models, features, sizes = (None if g is None else _SPREADS[spread](nonnegative(key, g)) for key, g in chosen)

    rng = generator(seed, SYNTHETIC_STREAM)
    counts = rng.lognormal(math.log(rows + 1e-3), sizes or 0.0, clients).astype(np.int64)
    if counts.min() == 0:
        raise ValueError(f"rows = {rows} is too small: client {counts.argmin()} is left without rows.")
    owners = np.repeat(np.arange(clients), counts)
    means = np.zeros((clients, d))
    if features is not None:
        means = rng.normal(features * rng.standard_normal((clients, 1)), 1.0, (clients, d))
    if models is None:
        W = np.broadcast_to(rng.standard_normal((d + 1, classes)), (clients, d + 1, classes))
    else:
        W = rng.normal(models * rng.standard_normal((clients, 1, 1)), 1.0, (clients, d + 1, classes))
    X = means[owners] + rng.standard_normal((owners.size, d)) * np.arange(1, d + 1) ** -0.6
    parts = np.split(X, np.cumsum(counts)[:-1])
    scores = [x @ w[:-1] + w[-1] for x, w in zip(parts, W, strict=True)]
    return RawData(
        X=X,
        y=np.argmax(np.concatenate(scores), axis=1),
        scale="none",
        description=f"FedDyn's linear classes, {setting}, seed {seed}",
        clients=owners,
    )
