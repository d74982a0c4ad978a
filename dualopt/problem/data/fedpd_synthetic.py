r"""The synthetic data of the FedPD paper: binary labels on N clients with rows of equal number.

A row is d - 1 standard normal features and a one, so the problem needs no intercept of its own.

* ``synthetic-fedpd-weak``: labels -1 and +1 are fair coins, whatever the features are; the clients differ by
  chance alone.
* ``synthetic-fedpd-strong``, ``recipe="paper"``: client j has the model :math:`w_j`, uniform in
  :math:`[-10, 10]^d`, and the labels :math:`y_i = \mathrm{sign}(\langle w_j, x_i\rangle + e_i)` with standard
  normal :math:`e_i`.
* ``synthetic-fedpd-strong``, ``recipe="code"``: the recipe of the authors' public MATLAB code. A coordinate of
  :math:`w_j` is uniform in [0, 40] plus an integer uniform in -10..10; with the scores
  :math:`s_i = \langle w_j, x_i\rangle` and thresholds :math:`t_i = e_i \max s`, where the maximum is over the
  rows of all clients, a label is +1 where :math:`s_i > 0` and :math:`t_i < \min(s_i, 1)`, or :math:`s_i < 0` and
  :math:`t_i > -s_i`, else -1.

The 1 in the minimum comes from assignments in sequence, which overwrite labels just set; meant was perhaps
:math:`t_i < s_i`. Because :math:`\max s` is in the hundreds, it makes the label of a positive score almost a fair
coin: only negative scores tell anything.

Drawing order: the features as a matrix of shape (d - 1, N rows); then, in the paper's recipe, the models as a
matrix of shape (N, d) and the noise of all rows, and in that of the code, for each client in turn, the d uniform
numbers and the d integers of its model, and at last the normal numbers of the thresholds of all rows.

Source: Zhang, Hong, Dhople, Yin and Liu, FedPD, IEEE Transactions on Signal Processing 2021, Section V.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dualopt.arrays._checks import at_least
from dualopt.arrays.streams import SYNTHETIC_STREAM, generator
from dualopt.problem.data._dataset import RawData

__all__ = ["draw", "load"]

NAMES = {
    "synthetic-fedpd-weak": "FedPD's weakly non-iid clients: random labels -1 and +1 (options clients, rows, d)",
    "synthetic-fedpd-strong": "FedPD's strongly non-iid clients: a model each (options clients, rows, d, recipe)",
}


def load(
    name: str, *, seed: int, clients: int = 100, rows: int = 400, d: int = 20, recipe: str | None = None
) -> RawData:
    """Draw one of the two data sets; the formulas are at the top of this module.

    Parameters
    ----------
    name : str
        One of the names in ``NAMES``.
    seed : int
        Seed of features, models and noise.
    clients, rows : int
        Number N of clients and of rows of each.
    d : int
        Number of features, at least 2, the last of which is the constant one.
    recipe : str, optional
        "paper" (the default) or "code" for the labels of synthetic-fedpd-strong; the other data set refuses it.

    Raises
    ------
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> from dualopt.problem.data import load, natural
    >>> data = load("synthetic-fedpd-strong", clients=3, rows=10, d=4, recipe="code")
    >>> data.X.shape, [len(rows) for rows in natural(data.clients)]
    ((30, 4), [10, 10, 10])
    """
    clients, rows, d = at_least(1, "clients", clients), at_least(1, "rows", rows), at_least(2, "d", d)
    if name == "synthetic-fedpd-strong":
        recipe = "paper" if recipe is None else recipe
    elif recipe is not None:
        raise ValueError(f"recipe = {recipe!r} is an option of synthetic-fedpd-strong only, not of {name}.")
    if recipe not in (None, *_RECIPES):
        raise ValueError(f"recipe must be one of {', '.join(_RECIPES)}, got {recipe!r}.")
    label = _coins if recipe is None else _RECIPES[recipe]
    X, y = draw(label, generator(seed, SYNTHETIC_STREAM), clients, rows, d)
    words = NAMES[name].partition(" (")[0] + (f" (recipe of the {recipe})" if recipe else "")
    return RawData(
        X=X.reshape(clients * rows, d),
        y=y.reshape(clients * rows),
        scale="none",
        description=f"{words}, seed {seed}",
        clients=np.repeat(np.arange(clients), rows),
    )


def draw(
    label: Callable[[np.random.Generator, np.ndarray], np.ndarray],
    rng: np.random.Generator,
    clients: int,
    rows: int,
    d: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw features of shape (N, rows, d), then by ``label`` labels of shape (N, rows)."""
    X = np.ones((clients, rows, d))
    X[..., :-1] = rng.standard_normal((d - 1, clients * rows)).T.reshape(clients, rows, d - 1)
    return X, label(rng, X)


def _coins(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return 2 * rng.integers(0, 2, X.shape[:2]) - 1


def _paper(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    models = rng.uniform(-10.0, 10.0, (X.shape[0], X.shape[2]))
    return np.where(_scores(X, models) + rng.standard_normal(X.shape[:2]) > 0, 1, -1)


def _code(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    clients, _, d = X.shape
    scores = _scores(X, np.stack([40 * rng.random(d) + rng.integers(-10, 11, d) for _ in range(clients)]))
    return _compare(scores, rng.standard_normal(scores.shape) * scores.max())


def _compare(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    return np.where(np.where(scores > 0, thresholds < np.minimum(scores, 1), thresholds > -scores), 1, -1)


def _scores(X: np.ndarray, models: np.ndarray) -> np.ndarray:
    """Apply the model of each client to its rows: (N, rows, d) and (N, d) to (N, rows)."""
    return (X @ models[..., None])[..., 0]


_RECIPES = {"paper": _paper, "code": _code}
