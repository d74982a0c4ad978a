r"""Coordinates in which a semidefinite program is well scaled: Gram matrices of some federations are near the identity.

Answers of late rounds differ by less and less, by :math:`10^{-7}` where a worst case is :math:`10^{-14}`, which no
solver of semidefinite programs resolves beside vectors of size one. So the vectors of a ledger get values in random
federations of quadratic functions of one variable, and :math:`G = C\hat GC^T` with :math:`CC^T` the mean of their Gram
matrices. Values of functions, too, differ by little from the first-order terms at the minimiser: what is left of them,
:math:`f(x) - f^* - \langle\nabla f^*, x - \theta^*\rangle`, is as small as :math:`|x - \theta^*|^2`, and is measured in
the mean of that. A change of coordinates proves nothing and spoils nothing: any will do that has an inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dualopt.lab.proofs._formal import Answer, World
from dualopt.lab.proofs._forms import Form, Space
from dualopt.lab.proofs._setting import Setting

__all__ = ["LEAST", "Heights", "coordinates", "in_coordinates", "in_units", "sizes_of"]

STEEP = 1e3
"""How far curvatures of the samples reach, where nothing bounds them."""
LEAST = ((0.2, 0.0), (0.1, 1e-3), (0.05, 0.0), (0.5, 0.0), (0.0, 1e-2), (1.0, 0.0))
"""How much of what an answer adds to the start is taken to be new, at least, and how much of all of it: to be tried."""
TINY = 1e-12
"""So that C has an inverse."""
CANCELLED = 1e-14
"""Of the largest coefficient of a value: what is left of first-order terms below that is rounding."""
SAMPLES = 4
"""Federations for each vector."""


def coordinates(
    setting: Setting, f: World, space: Space, start: tuple[float, float], parts: tuple[float, float]
) -> list[np.ndarray]:
    """Return C, lower triangular, for each block of the Gram matrix; ``parts`` are one of ``LEAST``."""
    rng = np.random.default_rng(0)
    samples = [_values(setting, f, start, rng) for _ in range(SAMPLES * max(space.sizes))]
    first = [[i for i, (k, _) in enumerate(space.places) if k <= 0], *([0] for _ in setting.classes)]
    found = []
    for own, of_start in zip(zip(*map(space.values_of, samples), strict=True), first, strict=True):
        X = np.concatenate(own) / math.sqrt(len(samples))
        if not X.shape[1]:
            found.append(np.zeros((0, 0)))
            continue
        C: Any = np.asarray(np.linalg.qr(X, mode="r")).T
        Q = np.linalg.qr(X[:, of_start])[0]
        apart = X - Q @ (Q.T @ X)  # from what is known before the first round
        apart[:, of_start] = X[:, of_start]
        least = parts[0] * np.linalg.norm(apart, axis=0) + parts[1] * np.linalg.norm(X, axis=0) + TINY
        np.fill_diagonal(C, np.where(np.diag(C) < 0, -1.0, 1.0) * np.maximum(np.abs(np.diag(C)), least))
        found.append(C)
    return found


def _values(setting: Setting, f: World, start: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
    """Return the values of all vectors of the ledger in a random federation of functions of one variable."""
    ledger, N, units = f.ledger, setting.n_clients, [1.0 / math.sqrt(x or 1.0) for x in start]
    functions = sorted((j, *_ends(own.mu, own.L)) for own in (*setting.classes, *setting.others) for j in own.clients)
    _, lows, highs = np.array(functions).T
    h = lows * (highs / lows) ** (rng.random() if rng.random() < 0.5 else rng.random(len(functions)))
    found = np.zeros(ledger.dimension)
    drawn = [*ledger.shared[: len(functions) - N + 1], *ledger.families[0]]
    found[drawn] = units[1] / math.sqrt(N) * rng.normal(size=len(drawn))
    star = found[ledger.shared[0]] = units[0] * rng.normal()
    at_star = [ledger.at(j, _star(f)).gradient @ found for j in range(len(functions))]
    found[ledger.families[0][-1]] = at_star[N - 1]
    known, accuracies, errors = set(drawn), iter(ledger.accuracies), {e.place: e for e in ledger.errors}

    def arrive(*vectors: np.ndarray) -> None:
        """Give values to the errors that vectors are made of."""
        for i in (i for v in vectors for i in np.flatnonzero(v).tolist()):
            if i in errors and i not in known:
                known.add(i)
                arrive(errors[i].sent)
                found[i] = rng.choice([-1.0, 1.0]) * math.sqrt(errors[i].part) * (errors[i].sent @ found)

    for a in ledger.answers:
        j = a.client
        arrive(a.x, a.gradient)
        new = [i for i in np.flatnonzero((a.x != 0) | (a.gradient != 0)).tolist() if i not in known]
        if len(new) == 2:  # a point and its gradient: an inexact local solution
            (x,), (g,), own = np.flatnonzero(a.x), np.flatnonzero(a.gradient), next(accuracies)
            arrive(own.residual, own.first)
            size = math.hypot(own.factor * (own.first @ found), math.sqrt(own.most))
            wanted = rng.uniform(-1.0, 1.0) * size
            found[x] = (wanted - own.residual @ found + h[j] * star - at_star[j]) / (own.residual[x] + h[j])
            found[g] = h[j] * (found[x] - star) + at_star[j]
        elif new:
            (i,) = new
            gap = h[j] * (a.x @ found - star) + at_star[j] - a.gradient @ found
            found[i] = gap / (a.gradient[i] - h[j] * a.x[i])
        known.update(new)
    arrive(*(e.vector for e in ledger.errors))
    return found


def _star(f: World) -> np.ndarray:
    star = f.zeros()
    star[f.ledger.shared[0]] = 1.0
    return star


def _ends(mu: float, L: float) -> tuple[float, float]:
    """Return the least and the largest curvature of samples."""
    unit = L if math.isfinite(L) else mu or 1.0
    return mu or unit / STEEP, L if math.isfinite(L) else (mu or 1.0) * STEEP


def in_coordinates(form: Form, maps: Sequence[np.ndarray]) -> Form:
    """Return a form of the Gram matrix in other coordinates."""
    return Form(tuple(C.T @ B @ C for C, B in zip(maps, form.blocks, strict=True)), form.values, form.constant)


class Heights:
    """What is left of the values of functions at points without first-order terms, as the unknowns of a program.

    Parameters
    ----------
    space : Space
        Of the forms.
    points : sequence of sequence of Answer
        Points of one client of each class, of which the one at the minimiser has the number 0.
    """

    def __init__(self, space: Space, points: Sequence[Sequence[Answer]]) -> None:
        self._first: dict[int, Form] = {}  # <grad f*, x - theta*>, by the place of the value
        self._square: dict[int, Form] = {}
        for c, own in enumerate(points):
            star = next(a for a in own if a.number == 0)
            for a in own:
                for i in np.flatnonzero(space.value(c, a.number)).tolist():
                    self._first[i] = space.product(star.gradient, a.x - star.x)
                    self._square[i] = space.square(a.x - star.x)

    def of(self, form: Form) -> Form:
        """Return a form of values as one of what is left of them.

        First-order terms that cancel leave numbers of 1e-34, in directions in which nothing else may count: a solver
        that scales its columns calls the program unbounded there.
        """
        places = [i for i in np.flatnonzero(form.values).tolist() if i in self._first]
        found = reduce(add, (float(form.values[i]) * self._first[i] for i in places), form)
        least = CANCELLED * max((abs(float(x)) for x in form.values), default=0.0)
        return replace(found, blocks=tuple(np.where(np.abs(B) > least, B, 0.0) for B in found.blocks))

    def units(self, maps: Sequence[np.ndarray], n_values: int) -> np.ndarray:
        """Return the mean of the squared distances from the minimiser in the federations that made the coordinates."""
        found = np.ones(n_values)
        for i, square in self._square.items():
            found[i] = sum(float(np.trace(B)) for B in in_coordinates(square, maps).blocks) or 1.0
        return found


def in_units(form: Form, units: np.ndarray) -> Form:
    """Return a form of numbers that are given in units."""
    return replace(form, values=form.values * units)


def sizes_of(forms: Sequence[Form]) -> np.ndarray:
    """Return the sizes of forms: the norms of all their coefficients."""
    sizes = [math.sqrt(sum(float(np.sum(B**2)) for B in (*form.blocks, form.values))) for form in forms]
    return np.where(np.array(sizes) > 0, sizes, 1.0)
