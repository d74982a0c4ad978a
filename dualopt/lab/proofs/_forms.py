r"""Quadratic forms in formal vectors, and the inequalities that describe a class of functions exactly.

Clients with the same constants and weight are a **class**: exchanging them changes neither the class of functions nor
the law of the cohorts, so that Gram matrices may be averaged over all such exchanges. What is left of one is a block
of the single vectors and of the sums over the classes, and for each class a block of the deviations from its mean:

.. math::
    v = \sum_s v_s e_s + \sum_{k,j} v_{kj} u_{kj}, \quad
    \langle v, v'\rangle = \langle G, \bar v\bar v'^T\rangle + \sum_c \langle G_c, \tilde V_c \tilde V_c'^T\rangle,

where :math:`\bar v` has the coefficients of the single vectors and the means, and :math:`\tilde V_c` those of the
clients of a class, minus their means, a row per family k. With a class for each client nothing is averaged, and the
second blocks are empty.

Errors of unbiased compressors have the mean zero whatever else there is. Where that is all of them, in one round, they
have blocks of their own, of means of products: those of independent clients one for each class, with a row per family
and all clients beside each other; others a block for the sums over classes and one for each class as above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from dualopt.lab.proofs._formal import Answer, Bound, Ledger, World
from dualopt.lab.proofs._linear import echelon
from dualopt.lab.proofs._rational import Rational

__all__ = ["Class", "Form", "Space", "classes_of", "points_of"]


@dataclass(frozen=True)
class Class:
    """Clients with the same constants and weight."""

    clients: tuple[int, ...]
    mu: Any
    L: Any
    weight: Any

    def __len__(self) -> int:
        return len(self.clients)


def classes_of(f: World, *, literal: bool = False) -> list[Class]:
    """Return the classes of clients; with ``literal`` each client is one."""
    found: dict[Any, list[int]] = {}
    weights = f.weights or (1,) * f.n_clients
    for j, own in enumerate(zip(*f.constants, weights, strict=True)):
        found.setdefault((own, j if literal else None), []).append(j)
    return [Class(tuple(ids), *own) for (own, _), ids in found.items()]


@dataclass(frozen=True)
class Form:
    """A linear form in the blocks of a Gram matrix, and in the values of the functions at the points that were met.

    And a constant, where the units of the problem matter.
    """

    blocks: tuple[np.ndarray, ...]
    values: np.ndarray
    constant: Any = 0.0

    def __add__(self, other: Form) -> Form:
        blocks = tuple(a + b for a, b in zip(self.blocks, other.blocks, strict=True))
        return Form(blocks, self.values + other.values, self.constant + other.constant)

    def __rmul__(self, factor: Any) -> Form:
        return Form(tuple(factor * b for b in self.blocks), factor * self.values, factor * self.constant)

    def __sub__(self, other: Form) -> Form:
        return self + (-1) * other


class Space:
    """Gram matrices of the vectors of a ledger, averaged over exchanges within classes.

    The first family are the gradients at the minimiser, whose weighted sum is zero.

    Parameters
    ----------
    ledger : Ledger
        The vectors.
    classes : sequence of Class
        The classes of clients.
    others : sequence of Class
        A regulariser, if there is one: its subgradient at the minimiser has a share in that sum.
    deviations : sequence of int
        Families that add up to zero in every class.
    apart : sequence of int
        Families of errors that are orthogonal to all other vectors, in the mean.
    independent : bool, default True
        Whether those of different clients are so too.
    """

    def __init__(
        self,
        ledger: Ledger,
        classes: Sequence[Class],
        others: Sequence[Class] = (),
        *,
        deviations: Sequence[int] = (),
        apart: Sequence[int] = (),
        independent: bool = True,
    ) -> None:
        self.ledger, self.classes, self.n_points = ledger, list(classes), ledger.n_kinds
        self.functions = [*classes, *others]
        self._plain = [k for k in range(len(ledger.families)) if k not in apart]
        self._apart, self._independent = list(apart), independent
        one = _one(ledger)
        sums = [(k, c) for k in self._plain if k not in deviations for c in range(len(classes))]
        rows, width = [], len(ledger.shared)
        kept = [s for s in sums if s != (0, len(classes) - 1)]
        place = {s: width + i for i, s in enumerate(kept)}
        last = self.classes[-1]
        for k, c in sums:
            row = _zeros(ledger, width + len(kept))
            if (k, c) in place:
                row[place[k, c]] = one
            else:  # sum_c w_c S_c + w s = 0, with w the sum of all weights and s the subgradient of the regulariser
                for d, other in enumerate(self.classes[:-1]):
                    row[place[k, d]] = -_ratio(other.weight, last.weight, ledger)
                for other in others:
                    row[_subgradient(ledger, *other.clients)] = -_ratio(other.weight, last.weight, ledger)
            rows.append(row)
        shared = _zeros(ledger, width, width + len(kept))
        for i in range(width):
            shared[i, i] = one
        self._sums, self._kept = sums, kept
        self._start = ledger.shared[: 1 + len(others)]
        self._map = np.concatenate([shared, *(row[None] for row in rows)])
        n = len(self._apart)
        away = [len(self._plain) if len(c) > 1 else 0 for c in classes]
        errors = [n for _ in classes] if independent else [n * len(classes), *(n if len(c) > 1 else 0 for c in classes)]
        self.sizes = (width + len(kept), *away, *(errors if n else ()))

    def split(self, v: np.ndarray) -> list[np.ndarray]:
        """Return coordinates in the first block, of deviations, for each class a row per family, and of errors."""
        own = [v[ids] for ids in self.ledger.families]
        means = [own[k][list(self.classes[c].clients)].sum() / len(self.classes[c]) for k, c in self._sums]
        found = [np.concatenate([v[self.ledger.shared], np.asarray(means, dtype=v.dtype)]) @ self._map]
        found += [self._deviations(own, self._plain, c) for c in self.classes]
        if self._apart and self._independent:
            found += [np.stack([own[k][list(c.clients)] for k in self._apart]) for c in self.classes]
        elif self._apart:
            sums = [own[k][list(c.clients)].sum() / len(c) for k in self._apart for c in self.classes]
            found.append(np.asarray(sums, dtype=v.dtype)[:, None])
            found += [self._deviations(own, self._apart, c) for c in self.classes]
        return found

    def _deviations(self, own: Sequence[np.ndarray], families: Sequence[int], c: Class) -> np.ndarray:
        """Return the coefficients of the clients of a class less their means, a row per family."""
        if len(c) == 1 or not families:
            return _zeros(self.ledger, 0, len(c))
        A = np.stack([own[k][list(c.clients)] for k in families])
        return A - A.sum(axis=1, keepdims=True) / len(c)

    @property
    def places(self) -> list[tuple[int, int]]:
        """The family and class of each coordinate of the first block; for single vectors -1, or the number of families.

        It is -1 for the minimiser and the subgradient there, and the other for answers of the regulariser.
        """
        return [(-1 if i in self._start else len(self.ledger.families), i) for i in self.ledger.shared] + self._kept

    def values_of(self, values: np.ndarray) -> list[np.ndarray]:
        """Return rows whose squares add up to Gram matrices, block by block, where all vectors have these values."""
        families = self.ledger.families
        sums = [values[families[k]][list(self.classes[c].clients)].sum() for k, c in self._kept]
        found = [np.array([[*values[self.ledger.shared], *sums]])]
        for c, size in zip(self.classes, self.sizes[1:], strict=True):
            rows = np.stack([values[ids][list(c.clients)] for ids in families]) if size else np.zeros((0, 1))
            found.append((rows - rows.mean(axis=1, keepdims=True)).T)
        return found

    def product(self, a: np.ndarray, b: np.ndarray) -> Form:
        """Return the inner product of two vectors."""
        return Form(_products(self.split(a), self.split(b)), self.no_values)

    def square(self, v: np.ndarray) -> Form:
        """Return the squared norm of a vector."""
        return self.product(v, v)

    @property
    def no_values(self) -> np.ndarray:
        """Coefficients zero for all values of functions."""
        return _zeros(self.ledger, len(self.functions) * self.n_points)

    @property
    def zero(self) -> Form:
        """The form that vanishes."""
        return Form(tuple(_zeros(self.ledger, n, n) for n in self.sizes), self.no_values)

    def value(self, c: int, number: int) -> np.ndarray:
        """Return the value of the functions of a class at a point, above that at the minimiser of all."""
        found = self.no_values
        if number:
            found[c * self.n_points + number - 1] = _one(self.ledger)
        return found

    def inequalities(self, points: Sequence[Sequence[Answer]]) -> list[Form]:
        r"""Return what no function of a class makes negative at two of its points.

        These inequalities describe the class exactly (Taylor, Hendrickx and Glineur 2017):

        .. math::
            f(x) - f(y) - \langle g_y, x - y\rangle - \tfrac\mu2|x - y|^2
            - \tfrac1{2(L - \mu)} |g_x - g_y - \mu(x - y)|^2 ,

        for the points of one client of each class, two by two; and what is known of vectors of these clients.
        """
        found = [form for c, own in enumerate(points) for form in self.inequalities_of(c, own)]
        return found + [self._bounded(b) for own in points for b in self.ledger.bounds(own[0].client)]

    def _bounded(self, b: Bound) -> Form:
        """Return what a bound of a vector keeps from being negative."""
        return replace(b.part * self.square(b.of) - self.square(b.vector), constant=b.most)

    def uncorrelated(self, *, independent: bool) -> list[Form]:
        """Return the products that are zero in the mean: of errors, and of what does not depend on them.

        Errors of one client at one time may depend on each other in any way, and so may those of all clients where they
        are not ``independent``. None of the forms is made of others.
        """
        ledger, found = self.ledger, []
        errors = {e.place: e for e in ledger.errors}
        for own in self.classes:
            for e in (e for e in ledger.errors if e.client == own.clients[0]):
                for i in self._places_beside(own):
                    other, unit = errors.get(i), self._unit(i)
                    if other is not None and other.time == e.time and (other.client == e.client or not independent):
                        continue
                    if e.place not in ledger.on_which(unit):
                        found.append(self.product(self._unit(e.place), unit))
        if not found:
            return []
        rows = np.stack([np.concatenate([np.ravel(block) for block in form.blocks]) for form in found])
        return [found[k] for k in echelon(rows.T)[1]]

    def _places_beside(self, own: Class) -> list[int]:
        """Return the places of all vectors, of one client of each class, and of two of this one."""
        members = [j for c in self.classes for j in c.clients[: 2 if c is own else 1]]
        return [*self.ledger.shared, *(int(ids[j]) for ids in self.ledger.families for j in members)]

    def _unit(self, place: int) -> np.ndarray:
        v = self.ledger.zeros()
        v[place] = _one(self.ledger)
        return v

    def inequalities_of(self, c: int, points: Sequence[Answer]) -> list[Form]:
        """Return those between points of one client of a class."""
        at = [(self.value(c, p.number), self.split(p.x), self.split(p.gradient)) for p in points]
        return [_interpolation(self.functions[c], p, q) for p, q in permutations(at, 2)]


def _interpolation(own: Class, p: Any, q: Any) -> Form:
    (value, x, g), (other, y, h) = p, q
    step = [a - b for a, b in zip(x, y, strict=True)]
    form = Form(_products(h, step), other - value) + (own.mu / 2) * Form(_products(step, step), 0 * value)
    if not math.isinf(own.L):
        bent = [a - b - own.mu * s for a, b, s in zip(g, h, step, strict=True)]
        form = form + (1 / (2 * (own.L - own.mu))) * Form(_products(bent, bent), 0 * value)
    return (-1) * form


def _products(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the blocks of the inner product of two vectors that have been split."""
    first = np.outer(a[0], b[0])
    return tuple((M + M.T) / 2 for M in (first, *(x @ y.T for x, y in zip(a[1:], b[1:], strict=True))))


def points_of(ledger: Ledger, functions: Sequence[Class], theta: np.ndarray) -> list[list[Answer]]:
    """Return the points of that member of each class which was asked most, with the one at the minimiser ``theta``."""
    found = []
    for c in functions:
        own = {j: [a for a in ledger.answers if a.client == j] for j in c.clients}
        j = max(own, key=lambda j: len(own[j]))
        found.append([ledger.at(j, theta), *own[j]])
    return found


def _subgradient(ledger: Ledger, regulariser: int) -> int:
    """Return the place of the subgradient of the regulariser at the minimiser among the single vectors."""
    first = next(a for a in ledger.known(regulariser) if a.number == 0)
    return ledger.shared.index(int(np.flatnonzero(first.gradient)[0]))


def _zeros(ledger: Ledger, *shape: int) -> np.ndarray:
    return np.full(shape, 0 * _one(ledger), dtype=object) if ledger.exact else np.zeros(shape)


def _one(ledger: Ledger) -> Any:
    return Rational(1) if ledger.exact else 1.0


def _ratio(a: Any, b: Any, ledger: Ledger) -> Any:
    return _one(ledger) * a / b
