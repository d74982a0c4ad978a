"""Remark 5 and Table III: how many rounds may be skipped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.fedpd._skipping import TABLE_A, growth, largest_skip, penalty, table_penalty, table_skip


class Table(NamedTuple):
    """The table for one L, on one of its regimes or a part of one; ``table`` is its column C(p)."""

    name: str
    L: float
    low: float
    high: float
    factor: float = 1.0


def table_iii_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield both regimes; and the upper part of the first one, as printed and with a factor that holds there."""
    for L in (1.0, 50.0):
        yield ExpectedVerdict(Table(f"L = {L:g}: 0 < p <= 1/2", L, 1e-3, 0.5))
        yield ExpectedVerdict(Table(f"L = {L:g}: C3 >= 1", L, BORDER * (1.0 + 1e-9), 0.99))
    yield ExpectedVerdict(Table("1/2 < p, C3 < 1", 1.0, 0.51, BORDER * (1.0 - 1e-9)), "violated")
    yield ExpectedVerdict(Table("1/2 < p, C3 < 1, 22.5 for 12", 1.0, 0.51, BORDER * (1.0 - 1e-9), factor=22.5 / 12.0))
    assert math.isclose(growth(BORDER, a=TABLE_A), 1.0)


@claim(
    name="fedpd_table_iii",
    source="Zhang et al., Remark 5 and Table III",
    statement=r"For $L\eta = (\sqrt5-1)/8$, $N \to \infty$, $C_5 = 1$: $C(p) \le 12\eta^2p^2$ for $p \le \frac12$"
    r" (beyond, up to $C_3 = 1$ at p = 0.5985, the factor is 22.5), and $C(p) \le 14\eta^2C_3^{2/(1-p)}$ for"
    r" $C_3 \ge 1$; the p of the last column, put into C(p), is within $\varepsilon/(3G^2)$.",
    rounding=0.0,
    cases=table_iii_cases,
)
def table_iii(table: Table) -> Iterator[Inequality]:
    """Compare C(p) with what the table puts for it, and the p of its last column with what Remark 5 asks for."""
    L, eta = table.L, TABLE_A / table.L
    for k, p in enumerate(np.linspace(table.low, table.high, 60)):
        entry = table.factor * table_penalty(p, L=L, eta=eta)
        yield Inequality(k, penalty(p, L=L, eta=eta), entry, f"C({p:.3f})")
        ratio = 3.0 * entry  # the accuracy over G^2 for which the table would have this p
        yield Inequality(k, p, largest_skip(ratio, L=L, eta=eta), f"p for the accuracy of p = {p:.3f}")
        p = table_skip(ratio / table.factor, eta=eta)
        yield Inequality(k, penalty(p, L=L, eta=eta), ratio / 3.0, f"C at the table's p = {p:.3f}")


BORDER = (1.0 - 2.0 * TABLE_A) / (1.0 + TABLE_A)
