"""Check a proof that a method contracts, in exact arithmetic: ``python checker.py proof.json``.

Nothing but the standard library is needed, and nothing else of this package. A proof is a JSON file; numbers are
fractions, vectors are rows of D of them, coordinates with respect to free vectors e_1, ..., e_D of any Euclidean space.
Everything is literal: all clients and all that may happen in a round are written down, no symmetry is used.

====================  ==================================================================================================
statement.clients     mu, L (null: infinite) and weight of each client j
dimension             D
model                 theta - theta*, a vector
before                vectors v of the state less the fixed point: for each weight matrix W a list of groups of vectors
after                 for all that may happen: its probability, and those vectors after the round
points                of each client (x - theta*, gradient of f_j at x); the first is the minimiser
weights               symmetric matrices W: V is the sum over all groups and entries of W_ab <v_a, v_b>
latest, heights       for each client the number of a point p, before and after, and the weight of
                      f_j(x_p) - f_j* - <grad f_j*, x_p - theta*>, which V has too
multipliers           of each client (a, b, m): m >= 0 times the inequality below for its points a and b
positive              the same, for the second statement
bounds, bounded       if there are any: of each client (v, u, p) with |v|^2 <= p |u|^2, and multipliers of these, >= 0
chance                if there is any: groups of free vectors, by their numbers, whose inner products with all others
                      are zero in the mean
factor                rho, with 0 <= rho < 1
====================  ==================================================================================================

What is checked, for all vectors e_i: with numbers I_ab that no mu-strongly convex, L-smooth function makes negative,

    I_ab = f(a) - f(b) - <g_b, a - b> - mu/2 |a - b|^2 - |g_a - g_b - mu (a - b)|^2 / (2 (L - mu)),

    rho V - E V_after - sum m I_ab - sum m (p |u|^2 - |v|^2)     and     V - |theta - theta*|^2 - sum m' I_ab

are sums of squares, and the values of the functions cancel in both; and that nothing but states after a round and the v
of bounds depends on chance. Hence the mean of V falls by the factor rho in a
round, and it is at least |theta - theta*|^2. Not checked here: that these are the vectors of a method, for which
``dualopt prove --check`` runs its code.
"""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from math import lcm
from typing import Any

MOST_BYTES, MOST_DIGITS, MOST_VECTORS, MOST_PARTS = 1_000_000, 60, 120, 2_000
"""Of a file; of a number; coordinates; of lists. Larger proofs are refused, lest a check take for ever."""
COMMON = 10**300
"""The largest common denominator of all numbers, for the same reason."""
NUMBER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(/[0-9]{{1,{MOST_DIGITS}}})?")


class RefusedError(ValueError):
    """What is no proof, in a sentence."""


def require(holds: bool, sentence: str) -> None:
    """Refuse a proof."""
    if not holds:
        raise RefusedError(f"{sentence}.")


def number(x: Any, what: str) -> Fraction:
    """Return a fraction that is written as "3/4"."""
    require(isinstance(x, str) and NUMBER.fullmatch(x) is not None, f"{what} must be a fraction in text, such as '3/4'")
    above, _, below = x.partition("/")
    require(not below or int(below) > 0, f"{what} must be a fraction with a positive denominator")
    return Fraction(int(above), int(below or 1))


def items(x: Any, what: str, length: int | None = None) -> list[Any]:
    """Return a list, of a length if one is given."""
    require(isinstance(x, list) and len(x) <= MOST_PARTS, f"{what} must be a list")
    require(length is None or len(x) == length, f"{what} must have {length} entries")
    return x


def entry(x: Any, key: str, what: str = "a proof") -> Any:
    """Return what an object has under a key."""
    require(isinstance(x, dict) and key in x, f"{what} must be an object that has {key!r}")
    return x[key]


def place(x: Any, what: str, length: int) -> int:
    """Return a whole number below a limit."""
    require(type(x) is int and 0 <= x < length, f"{what} must be a whole number of at least 0 and below {length}")
    return x


def vector(x: Any, what: str, dimension: int) -> dict[int, Fraction]:
    """Return the coordinates of a vector that are not zero."""
    found = (number(entry, what) for entry in items(x, what, dimension))
    return {i: c for i, c in enumerate(found) if c}


def combined(*terms: tuple[Any, dict[int, Fraction]]) -> dict[int, Fraction]:
    """Return a sum of vectors times numbers."""
    found: dict[int, Fraction] = {}
    for factor, v in terms:
        for i, c in v.items():
            found[i] = found.get(i, Fraction(0)) + factor * c
    return found


class Form:
    """A quadratic form in the free vectors, and a linear one in the values of functions at points."""

    def __init__(self, dimension: int, groups: dict[int, int] | None = None) -> None:
        self.matrix = [[Fraction(0)] * dimension for _ in range(dimension)]
        self.values: dict[tuple[int, int], Fraction] = {}
        self.groups = groups or {}  # of free vectors that depend on chance

    def product(self, factor: Fraction, u: dict[int, Fraction], v: dict[int, Fraction]) -> None:
        """Add an inner product times a number; of different groups it is zero in the mean."""
        for i, a in u.items():
            for j, b in v.items():
                if self.groups.get(i) != self.groups.get(j):
                    continue
                half = factor * a * b / 2
                self.matrix[i][j] += half
                self.matrix[j][i] += half

    def value(self, factor: Fraction, client: int, point: int) -> None:
        """Add the value of a function, above that at the minimiser, times a number."""
        if point:
            self.values[client, point] = self.values.get((client, point), Fraction(0)) + factor

    def is_sum_of_squares(self) -> bool:
        """Tell whether the values cancel, and the matrix is positive semidefinite.

        Elimination without fractions: no pivot may be negative, and where one is zero its row must be.
        """
        if any(self.values.values()):
            return False
        last, scale = 1, lcm(*(x.denominator for row in self.matrix for x in row))
        rows = [[int(x * scale) for x in row] for row in self.matrix]
        while rows:
            (pivot, *first), rest = rows[0], rows[1:]
            if pivot < 0 or (pivot == 0 and any(first)):
                return False
            if pivot == 0:
                rows = [row[1:] for row in rest]
                continue
            rows = [[(pivot * x - row[0] * y) // last for x, y in zip(row[1:], first, strict=True)] for row in rest]
            last = pivot
        return True


class Proof:
    """A proof whose parts have the right types and sizes.

    Parameters
    ----------
    data : dict
        What the file holds.
    """

    def __init__(self, data: Any) -> None:
        require(_common_denominator(data) <= COMMON, "numbers must have a smaller common denominator")
        clients = items(entry(entry(data, "statement"), "clients", "statement"), "clients")
        self.N = len(clients)
        require(self.N > 0, "clients must not be empty")
        self.mu = [number(entry(c, "mu", "a client"), "mu") for c in clients]
        given = [entry(c, "L", "a client") for c in clients]
        self.L = [None if L is None else number(L, "L") for L in given]
        require(min(self.mu) >= 0, "mu must be at least 0")
        ordered = all(L is None or m < L for m, L in zip(self.mu, self.L, strict=True))
        require(ordered, "L must be greater than mu, for every client")
        self.D = place(entry(data, "dimension"), "dimension", MOST_VECTORS + 1)
        self.model = vector(entry(data, "model"), "model", self.D)
        self.weights = [self._matrix(W) for W in items(entry(data, "weights"), "weights")]
        self.points = [self._points(of) for of in items(entry(data, "points"), "points", self.N)]
        heights = entry(data, "heights")
        self.heights = [number(h, "heights") for h in items(heights, "heights", self.N)] if heights else None
        self.before, self.latest = self._state(data)
        self.after = [
            (number(entry(end, "probability", "after"), "probability"), *self._state(end, "state"))
            for end in items(entry(data, "after"), "after")
        ]
        require(all(p >= 0 for p, *_ in self.after), "probabilities must be at least 0")
        require(sum(p for p, *_ in self.after) == 1, "probabilities must add up to 1")
        self.multipliers = self._multipliers(entry(data, "multipliers"))
        self.positive = self._multipliers(entry(data, "positive"))
        self.groups = self._groups(items(data.get("chance", []), "chance"))
        self.bounds = self._bounds(data) if "bounds" in data else [[] for _ in range(self.N)]
        self._require_fixed()
        self.factor = number(entry(data, "factor"), "factor")
        require(0 <= self.factor < 1, "factor must be at least 0 and less than 1")

    def _matrix(self, given: Any) -> list[list[Fraction]]:
        W = [[number(x, "weights") for x in items(row, "weights", len(given))] for row in items(given, "weights")]
        require(all(W[a][b] == W[b][a] for a in range(len(W)) for b in range(a)), "weights must be symmetric")
        return W

    def _points(self, given: Any) -> list[tuple[dict[int, Fraction], dict[int, Fraction]]]:
        found = []
        for point in items(given, "points"):
            x, g = (vector(v, "points", self.D) for v in items(point, "points", 2))
            found.append((x, g))
        require(bool(found) and not found[0][0], "points must begin with the minimiser, whose place is zero")
        return found

    def _state(self, given: Any, key: str = "before") -> tuple[list[Any], list[int]]:
        """Return the vectors of a state, group by group of each weight matrix, and the latest points."""
        found = []
        for W, groups in zip(self.weights, items(entry(given, key), key, len(self.weights)), strict=True):
            every = [items(group, key, len(W)) for group in items(groups, key)]
            found.append([[vector(v, key, self.D) for v in group] for group in every])
        if self.heights is None:
            return found, []
        latest = items(entry(given, "latest"), "latest", self.N)
        return found, [place(p, "latest", len(own)) for p, own in zip(latest, self.points, strict=True)]

    def _multipliers(self, given: Any) -> list[list[tuple[int, int, Fraction]]]:
        found = []
        for own, points in zip(items(given, "multipliers", self.N), self.points, strict=True):
            rows = [items(row, "multipliers", 3) for row in items(own, "multipliers")]
            n = len(points)
            found.append([(place(a, "point", n), place(b, "point", n), number(m, "multipliers")) for a, b, m in rows])
            require(all(m >= 0 for *_, m in found[-1]), "multipliers must be at least 0")
        return found

    def _groups(self, given: list[Any]) -> dict[int, int]:
        """Return the groups of the free vectors that depend on chance."""
        found = [(place(i, "chance", self.D), k) for k, group in enumerate(given) for i in items(group, "chance")]
        require(len(dict(found)) == len(found), "chance must name a vector once")
        return dict(found)

    def _bounds(self, data: Any) -> list[list[tuple[dict[int, Fraction], dict[int, Fraction], Fraction, Fraction]]]:
        """Return the bounds of vectors of each client, with their multipliers."""
        found = []
        numbers = items(entry(data, "bounded"), "bounded", self.N)
        for own, given in zip(items(entry(data, "bounds"), "bounds", self.N), numbers, strict=True):
            rows = [items(row, "bounds", 3) for row in items(own, "bounds")]
            multipliers = [number(m, "bounded") for m in items(given, "bounded", len(rows))]
            vectors = [(vector(v, "bounds", self.D), vector(u, "bounds", self.D)) for v, u, _ in rows]
            parts = [number(p, "bounds") for *_, p in rows]
            require(min([*multipliers, *parts, 0]) >= 0, "bounded must be at least 0, and parts of bounds")
            found.append([(v, u, p, m) for (v, u), p, m in zip(vectors, parts, multipliers, strict=True)])
        return found

    def _require_fixed(self) -> None:
        """Refuse a proof in which more than what happens in the round depends on chance."""
        state = [v for groups in self.before for group in groups for v in group]
        asked = [v for own in self.points for point in own for v in point]
        through = [u for own in self.bounds for _, u, *_ in own]
        fixed = not any(i in self.groups for v in (self.model, *state, *asked, *through) for i in v)
        require(fixed, "chance must not be in the state before the round, in points or in what is compressed")

    def lyapunov(self, form: Form, factor: Fraction, state: list[Any], latest: list[int]) -> None:
        """Add V times a number."""
        for W, groups in zip(self.weights, state, strict=True):
            for group in groups:
                for row, u in zip(W, group, strict=True):
                    form.product(factor, u, combined(*zip(row, group, strict=True)))
        for j, (p, h) in enumerate(zip(latest, self.heights or (), strict=True)):
            form.value(factor * h, j, p)
            form.product(-factor * h, self.points[j][0][1], self.points[j][p][0])

    def subtract(self, form: Form, multipliers: list[list[tuple[int, int, Fraction]]]) -> None:
        """Subtract the inequalities times their multipliers."""
        for j, own in enumerate(multipliers):
            mu, L, points = self.mu[j], self.L[j], self.points[j]
            for a, b, m in own:
                (x, g), (y, h) = points[a], points[b]
                step = combined((1, x), (-1, y))
                form.value(-m, j, a)
                form.value(m, j, b)
                form.product(m, h, step)
                form.product(m * mu / 2, step, step)
                if L is not None:
                    bent = combined((1, g), (-1, h), (-mu, step))
                    form.product(m / (2 * (L - mu)), bent, bent)


def _common_denominator(data: Any) -> int:
    """Return the common denominator of all fractions, or one that is too large."""
    found, parts = 1, [data]
    while parts and found <= COMMON:
        part = parts.pop()
        if isinstance(part, dict | list):
            parts += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str) and NUMBER.fullmatch(part):
            found = lcm(found, int(part.partition("/")[2] or 1) or 1)
    return found


def check(data: Any) -> Fraction:
    """Return the factor that a proof proves.

    Raises
    ------
    RefusedError
        If it is none; the sentence says why.
    """
    proof = Proof(data)
    falls, dominates = Form(proof.D, proof.groups), Form(proof.D, proof.groups)
    proof.lyapunov(falls, proof.factor, proof.before, proof.latest)
    for chance, state, latest in proof.after:
        proof.lyapunov(falls, -chance, state, latest)
    proof.subtract(falls, proof.multipliers)
    for v, u, part, m in (bound for own in proof.bounds for bound in own):
        falls.product(m, v, v)
        falls.product(-m * part, u, u)
    proof.lyapunov(dominates, Fraction(1), proof.before, proof.latest)
    dominates.product(Fraction(-1), proof.model, proof.model)
    proof.subtract(dominates, proof.positive)
    require(falls.is_sum_of_squares(), "V is not shown to fall by the factor: what remains is no sum of squares")
    require(dominates.is_sum_of_squares(), "V is not shown to be at least |theta - theta*|^2")
    return proof.factor


def read(path: str) -> Any:
    """Return what a file holds.

    Raises
    ------
    RefusedError
        If it is not JSON, or too large.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RefusedError(f"proof cannot be read: {error.strerror}.") from None
    require(len(text) <= MOST_BYTES, f"proof must be a file of at most {MOST_BYTES} bytes")
    try:
        return json.loads(text.decode(), object_pairs_hook=_without_repetition)
    except RefusedError:
        raise
    except (ValueError, RecursionError):
        raise RefusedError("proof must be a file of JSON.") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len({key for key, _ in pairs}) == len(pairs), "proof must not have a key twice")
    return dict(pairs)


def main(names: list[str]) -> int:
    """Check files, and print a sentence for each; 1 if one is no proof."""
    code = 0
    for name in names:
        try:
            factor = check(read(name))
            print(f"{name}: proved: the mean of V falls by {factor} = {float(factor):.6f} per round")
        except RefusedError as error:
            print(f"{name}: refused: {error}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
