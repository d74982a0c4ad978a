"""The problems of `advice`: some data sets are for choosing rules, all others are for judging them.

Of the former `which_method` measures most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn import datasets

from dualopt.arrays._files import write_atomically
from dualopt.arrays.xp import to_numpy
from dualopt.problem.data import load
from dualopt.problem.data._files import home
from dualopt.problem.options import ProblemOptions
from figures._cells import Case, Limits
from figures._settings import Settings

__all__ = ["CHOICE", "JUDGED", "advice_cases"]

CHOICE = ("digits", "breast cancer", "five features", "a9a", "mushrooms", "MNIST", "news20")
"""Data sets from which a rule was ever made: they may be looked at. The last two are measured by which_method alone."""

JUDGED = ("wine", "iris", "diabetes", "drawn regression", "drawn classes", "phishing")
"""Others that scikit-learn brings, the user's folder holds or are drawn: no rule may be made from them."""

ACCURACY = 1e-6
LIMITS = Limits(vectors=150.0, gradients=800.0, seconds=20.0)
ROWS = 400
EMBEDDED: dict[str, dict[str, Any]] = {
    "digits": {"data": "digits", "rows": ROWS},
    "breast cancer": {"data": "breast_cancer"},
    "five features": {"data": "synthetic-logistic", "data_param": ["m=400", "d=5"]},
    "wine": {"data": "wine"},
    "iris": {"data": "iris"},
    "diabetes": {"data": "diabetes"},
    "drawn regression": {"data": "synthetic-regression", "data_param": ["m=400", "d=40", "decay=1"]},
    "drawn classes": {"data": "synthetic-multinomial", "data_param": ["m=400", "d=100", "classes=5"]},
}
OF_FOLDER: dict[str, dict[str, Any]] = {
    "a9a": {"data": "a9a", "rows": ROWS, "storage": "dense"},
    "mushrooms": {"data": "mushrooms", "rows": ROWS, "storage": "dense"},
    "phishing": {"data": "phishing", "rows": ROWS, "storage": "dense"},
}
BROUGHT = ("wine", "iris", "diabetes")  # by scikit-learn
TABULATED = ("digits", "breast cancer", "five features", "a9a")  # by which_method, but for the odd client
ODD = "one odd client, mu = 1e-3"
KINDS: dict[str, dict[str, Any]] = {
    "at random": {"partition": "iid"},
    "at random, mu = 1e-4": {"partition": "iid", "mu": 1e-4},
    "by label": {"partition": "by-label"},
    "by label, mu = 1e-4": {"partition": "by-label", "mu": 1e-4},
    "Dirichlet 0.3, mu = 1e-3": {"partition": "dirichlet", "alpha": 0.3, "mu": 1e-3},
    ODD: {"partition": "by-label", "mu": 1e-3},
}
REAL = ("diabetes", "drawn regression")  # labels, of which there are no classes


def advice_cases(settings: Settings) -> list[Case]:
    """Return the problems, those for choosing first; without the user's folder only what comes with scikit-learn.

    Whoever names another data set than digits gets that one alone, as a judge.
    """
    known = dict(EMBEDDED)
    if settings.data != "digits":
        known = {settings.whole.name: {"data": settings.data, "rows": settings.rows}}
    elif not settings.quick and home(settings.data_home) is not None:
        known |= OF_FOLDER
    names = [name for name in (*CHOICE, *JUDGED) if name in known] or list(known)
    return [case for name in names for case in _of_data(name, known[name], settings)]


def _of_data(name: str, options: dict[str, Any], settings: Settings) -> Iterable[Case]:
    shared = {"data_home": settings.data_home, "client_weights": "rows", "seed": 0, **options}
    if name in BROUGHT:
        shared["data"] = _written(settings, name, lambda: _brought(name))
    for words, changes in _kinds(name, settings.quick).items():
        if words == ODD:
            changes = {**changes, "data": _one_odd_client(settings, name, shared), "data_param": []}
        yield Case(
            name=f"{name}, {words}",
            group="choice" if name in CHOICE else "judged",
            options=ProblemOptions(**{**shared, **changes}),
            limits=LIMITS,
            accuracy=ACCURACY,
        )


def _kinds(name: str, quick: bool) -> dict[str, dict[str, Any]]:
    """Return how the rows of a data set are dealt out, with what weight of the ridge."""
    if name in TABULATED:
        return {ODD: KINDS[ODD]}
    if quick:
        return {words: KINDS[words] for words in ("at random", "by label")}
    return {words: kind for words, kind in KINDS.items() if name not in REAL or (words != ODD and "alpha" not in kind)}


def _brought(name: str) -> tuple[Any, Any]:
    """Return a data set of scikit-learn that ``dualopt list data`` has not, standardised."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return _standardised(X) / np.sqrt(X.shape[1]), _standardised(y) if name == "diabetes" else y


def _standardised(columns: Any) -> Any:
    return (columns - columns.mean(0)) / columns.std(0)


def _one_odd_client(settings: Settings, name: str, options: dict[str, Any]) -> str:
    """Return a file in which an eighth of the rows, the last of eight clients by label, has all positive labels."""

    def drawn() -> tuple[Any, Any]:
        reading = {key: options[key] for key in ("data_home", "storage") if key in options}
        reading |= {key: int(value) for key, value in (pair.split("=") for pair in options.get("data_param", ()))}
        found = load(options["data"], **reading)
        y = to_numpy(found.y)
        positive = y == np.unique(y)[-1]
        most = 8 * min(int(positive.sum()), int((~positive).sum()) // 7)
        rows = min(options.get("rows") or len(y), most)
        rng = np.random.default_rng(0)
        takes = ((~positive, rows - rows // 8), (positive, rows // 8))
        chosen = np.concatenate([rng.permutation(np.flatnonzero(of))[:number] for of, number in takes])
        return to_numpy(found.X)[chosen], positive[chosen].astype(int)

    return _written(settings, f"{name} odd", drawn)


def _written(settings: Settings, name: str, make: Callable[[], tuple[Any, Any]]) -> str:
    """Return the file of a data set in the cache, which is made where it is missing."""
    path = settings.cache / f"{name.replace(' ', '-')}.npz"
    if not path.exists():
        X, y = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file: np.savez(file, X=X, y=y), "wb")
    return str(path)
