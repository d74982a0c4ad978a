"""The page ``docs/proved_rates.md``, from the rows of the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import dualopt.methods
from dualopt.app.markdown import table_lines
from dualopt.spec.discover import discover
from theory.proofs._table import CLIENTS, DATA, KAPPAS, LAWS, LIMIT, TOLERANCE, Row

__all__ = ["ABOVE", "LOOSE", "PAGE", "above", "attained", "broken", "loose", "page"]

PAGE = DATA.with_suffix(".md")
LOOSE = 0.02
"""By how much 1 - factor must be larger than a theorem says for the page to call it loose."""
SHORT = (
    "A V of trace 1 counts only if its least eigenvalue is above 0.000001, so that the tolerance of the solver leaves "
    "no doubt. Below the factor that is shown there are such V with smaller eigenvalues."
)
ABOVE = {name: SHORT for name in ("corrected-optimized-dualfl", "optimized-dualfl")}
"""Methods with proofs above a claim, and why that is."""
DIGITS = 5
"""After the point, of a printed factor."""
NONE = "-"


def above(row: Row) -> bool:
    """Tell whether what is proved is worse than what a theorem claims."""
    return row.proved is not None and row.claimed is not None and row.proved > row.claimed + TOLERANCE


def broken(row: Row) -> bool:
    """Tell whether clients are slower than what is claimed, or than what is proved."""
    promises = [x for x in (row.claimed, row.proved) if x is not None]
    return row.happens is not None and any(x < row.happens - TOLERANCE for x in promises)


def attained(row: Row, factor: float | None) -> bool:
    """Tell whether some clients are as slow as a factor, to the tolerance."""
    return factor is not None and row.happens is not None and factor - row.happens <= TOLERANCE


def loose(row: Row) -> float | None:
    """Return by which part 1 - factor is larger than the theorem says; None where it is sharp or nothing is compared.

    Examples
    --------
    >>> from theory.proofs._table import Key
    >>> key = Key("mine", "all", 4, 10)
    >>> loose(Row(key, proved=0.7, claimed=0.75)), loose(Row(key, proved=0.749, claimed=0.75))
    (0.2, None)
    """
    if row.proved is None or row.claimed is None or row.claimed - row.proved <= TOLERANCE:
        return None
    part = (row.claimed - row.proved) / (1.0 - row.claimed) if row.claimed < 1.0 else math.inf
    return round(part, 12) if part > LOOSE else None


def page(rows: Sequence[Row]) -> str:
    """Return the text of the page."""
    proved = [row for row in rows if row.proved is not None]
    sharp = [row for row in proved if attained(row, row.proved)]
    both = [row for row in proved if row.claimed is not None]
    exact = [row for row in both if attained(row, row.claimed)]
    late = [row for row in proved if row.late]
    methods = {row.key.method for row in rows}
    parts = [
        HEAD,
        f"Of {len(rows)} rows about {len(methods)} methods {len(proved)} have a proof, those of "
        f"{len({row.key.method for row in proved})} methods. {len(sharp)} of these proofs are attained: to the "
        f"tolerance they are the exact worst factor. {len(both)} meet a theorem, {sum(map(above, both))} of these are "
        f"above its claim, {sum(loose(row) is not None for row in both)} show that it is loose, and for {len(exact)} "
        f"the theorem is attained. {sum(map(broken, rows))} claims or proofs are below what happens on some clients. "
        f"{len(late)} proofs are about late rounds. All rows took {sum(row.seconds for row in rows) / 60:.1f} minutes "
        f"of a processor; the median of those with a proof is {_median(row.seconds for row in proved):.2f} seconds.",
    ]
    for law, own in LAWS.items():
        of_law = [row for row in rows if row.key.law == law]
        parts += [f"## {own.title}", INTRODUCTIONS[law], *_of_law(of_law)]
        if own.need:
            absent = [f"`{name}`" for name in discover(dualopt.methods) if name not in {r.key.method for r in of_law}]
            parts.append(f"The others do not admit it: {', '.join(absent)}.")
    parts += ["## Where a theorem is loose", LOOSE_HEAD, *_loose(rows)]
    over = [row for row in rows if above(row)]
    if over:
        lines = [[*_about(row), f"{row.proved:.7f}", f"{row.claimed:.7f}", ABOVE[row.key.method]] for row in over]
        head = ["method", "N", "kappa", "proved", "theorem", "why"]
        parts += ["## Where a proof is above a claim", _markdown(head, lines)]
    return "\n\n".join(parts) + "\n"


HEAD = f"""# Proved rates of all methods

`python -m theory.proofs --table` writes this page, and `proved_rates.csv` with the same numbers to seven digits, a row
at a time: what the file holds is not computed again, so delete what is to be computed anew. [How rates are
proved](proofs.md) says what the words mean.

**Conditions.** All N clients have mu = 1 and L = kappa, in any dimension, and equal weights. Methods have the
parameters that they suggest for these constants, N and the law, and solve local problems exactly, or take the gradient
steps that they have by default. There is no regulariser and no compressor. All numbers are **factors per round of
squares of distances**, in the mean over everything that chance may do: a theorem about a distance is squared, and of
one about several rounds the root is taken.

* *proved*: the least factor with a quadratic Lyapunov function, for all such clients, to {TOLERANCE:.5f}: 0.00001 of
  the search for it, and as much for Clarabel, which is asked for 1e-9 and then for 1e-8. Rounded up. **Bold** where
  some clients attain it, to the same tolerance: no proof can be better.
* *theorem*: the least factor that a theorem of the method promises, to the nearest digit. **Bold** where attained. With
  an asterisk it is that of a bound with a constant before it, in place of a potential that falls in every round.
* *clients*: the slowest ones that a search finds among quadratic clients of one variable, each of curvature mu or L,
  and equal ones in between. Rounded down. No factor can be below that, and there may be slower clients.
* *seconds* of a processor for all kappa: refusals, proofs with and without values of functions in V, and the search. A
  row that takes more than {LIMIT} seconds is given up, and says so.
* *source*: the name of the theorem in the paper or in `theory`, where it has one.
* *late*: about late rounds, in which the numbers in the states of the method are at their limits."""

INTRODUCTIONS = {
    "all": "P = N.",
    "quarter": "P = N/4.",
    "coins": "Everybody is active with probability 1/2, independently; perhaps nobody is.",
    "communication": "A round ends with communication with the probability of the method's own coin, `probability`, as "
    "it suggests it, and with probability 1/2 where it has none.",
}

LOOSE_HEAD = f"""Where the 1 - factor of a proof is larger than that of a theorem by more than {LOOSE:.0%}, the
theorem is **loose by** the percentage: near 1, it promises as many per cent more rounds than are needed. With an
asterisk it is a bound with a constant before it. *Less*: by less than {LOOSE:.0%}."""


def _of_law(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of the methods that are proved for some kappa, and one of the others."""
    groups = [list(group) for _, group in groupby(rows, key=lambda row: (row.key.method, row.key.clients))]
    shown = [group for group in groups if any(row.proved is not None or row.happens is not None for row in group)]
    head = [f"{what} at {kappa}" for kappa in KAPPAS for what in ("proved", "theorem", "clients")]
    if shown:
        yield _markdown(["method", "N", *head, "seconds", "source", "remarks"], map(_line, shown))
    rest = [row for row in rows if not any(row in group for group in shown)]
    if rest:
        by_method = [list(group) for _, group in groupby(rest, key=lambda row: row.key.method)]
        yield "No factor is proved of these. A theorem's is given where it has one."
        yield _markdown(["method", *(f"theorem at {kappa}" for kappa in KAPPAS), "why"], map(_refusal, by_method))


def _line(group: Sequence[Row]) -> list[str]:
    key, numbers = group[0].key, []
    for row in group:
        numbers.append(_emphasised(_up(row.proved), attained(row, row.proved)))
        numbers.append(_theorem(row))
        numbers.append(_down(row.happens))
    late = ["late"] if any(row.late for row in group) else []
    why = list(dict.fromkeys(f"kappa = {row.key.kappa:g}: {row.why}" for row in group if row.why))
    if len({row.why for row in group}) == 1 and group[0].why:
        why = [group[0].why]
    seconds = sum(row.seconds for row in group)
    sources = "; ".join(dict.fromkeys(_source(row) for row in group if row.claimed is not None))
    return [f"`{key.method}`", str(key.clients), *numbers, f"{seconds:.1f}", sources or NONE, "; ".join([*late, *why])]


def _refusal(group: Sequence[Row]) -> list[str]:
    first = [row for row in group if row.key.clients == CLIENTS[0]]
    return [f"`{group[0].key.method}`", *map(_theorem, first), "; ".join(dict.fromkeys(row.why for row in group))]


def _about(row: Row) -> list[str]:
    return [f"`{row.key.method}`", str(row.key.clients), f"{row.key.kappa:g}"]


def _loose(rows: Sequence[Row]) -> Iterator[str]:
    found = []
    for (method, law), group in groupby(rows, key=lambda row: (row.key.method, row.key.law)):
        own = {(row.key.clients, row.key.kappa): row for row in group}
        parts = {at: loose(row) for at, row in own.items()}
        if any(part is not None for part in parts.values()):
            cells = [_percent(parts[N, kappa], own[N, kappa]) for N in CLIENTS for kappa in KAPPAS]
            some = next(row for at, row in own.items() if parts[at] is not None)
            star = r"\*" if some.bound else ""
            found.append([f"`{method}`", LAWS[law].title, f"{_source(some)}{star}", *cells])
    if found:
        head = [f"N = {N}, kappa = {kappa}" for N in CLIENTS for kappa in KAPPAS]
        yield _markdown(["method", "who", "theorem", *head], found)


def _percent(part: float | None, row: Row) -> str:
    if part is not None:
        return f"{100.0 * part:.0f} %"
    return NONE if row.proved is None or row.claimed is None else "less"


def _source(row: Row) -> str:
    return row.source.replace("*", r"\*") or "of the method"


def _theorem(row: Row) -> str:
    if row.claimed is None:
        return NONE
    star = r"\*" if row.bound else ""
    return _emphasised(f"{row.claimed:.{DIGITS}f}", attained(row, row.claimed)) + star


def _emphasised(text: str, emphasis: bool) -> str:
    return f"**{text}**" if emphasis else text


def _rounded(x: float | None, rounding: Callable[[float], int]) -> str:
    unit = 10**DIGITS
    return NONE if x is None else f"{rounding(round(x * unit, 2)) / unit:.{DIGITS}f}"


def _up(x: float | None) -> str:
    return _rounded(x, math.ceil)


def _down(x: float | None) -> str:
    return _rounded(x, math.floor)


def _median(numbers: Iterable[float]) -> float:
    found = sorted(numbers)
    return found[len(found) // 2] if found else 0.0


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table_lines(head, rows))
