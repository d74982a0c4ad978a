"""The command that proves rates of a method from its own code."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from typer import Exit, Option

from dualopt.app.cli import output
from dualopt.app.cli.options import MethodOptions, option_groups
from dualopt.app.cli.plug_ins import plug_ins
from dualopt.arrays._checks import require
from dualopt.lab.proofs import Rate, check_proof, checker, worst_case
from dualopt.lab.proofs import prove as least_rate
from dualopt.methods._support import supported
from dualopt.methods.participation import as_participation
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.recording import versions
from dualopt.runs.trace import write_atomically
from dualopt.spec import Spec, pairs

__all__ = ["ClassOptions", "picture", "prove"]

PROVED, SLOW, UNKNOWN = 0, 1, 3
"""Exit codes: proved; quadratic clients do not converge, or a proof is none; no proof was found."""
POINTS = 5


@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """What is proved, and where to write it.

    Parameters
    ----------
    kappa : float
        The largest L/mu; the picture has smaller ones too.
    clients : int
        Number of clients.
    participation : str
        Who takes part: full, subset=2, importance=2, bernoulli=0.5; or communicate=0.5.
    exact : bool
        Write proof.json too: a proof in rational numbers for the largest kappa.
    rounds : int, optional
        Print the exact worst case after so many rounds too.
    out : Path
        Folder for the results.
    """

    kappa: float = 100.0
    clients: int = 4
    participation: str = "full"
    exact: bool = False
    rounds: int | None = None
    out: Path = Path("out")


@option_groups
def prove(
    *,
    algorithm: Annotated[str | None, Option(help="A method, or FILE.py:NAME for one of yours.")] = None,
    param: Annotated[
        list[str] | None, Option("--param", "-p", help="Parameter of the algorithm, such as alpha=3; repeatable.")
    ] = None,
    check: Annotated[
        Path | None, Option(metavar="FILE", help="Check a proof that --exact wrote, and run the code that it is about.")
    ] = None,
    method: MethodOptions,
    what: ClassOptions,
) -> None:
    """Prove the least factor per round of a method from its own code; write prove.png and prove.json.

    For all mu-strongly convex clients with L-smooth functions, L = kappa mu, in any dimension, in the mean over
    everything that may happen: a Lyapunov function by semidefinite programming, to the tolerance of the solver.
    Exit code 0: proved; 1: quadratic clients on which the method does not converge, or --check refuses; 3: no proof
    was found.
    """
    if check is not None:
        return _check(check, algorithm)
    require(algorithm is not None, "algorithm must be given, or a proof to --check")
    assert algorithm is not None
    require(1 < what.kappa < math.inf, "kappa must be a finite number greater than 1", what.kappa)
    spec = method.given_to(Spec.parse(algorithm, "algorithm").given(pairs(param or [], "param"), "param"))
    template = supported(spec, participation=what.participation)
    who = as_participation(what.participation)
    output.prepare_folder(what.out)
    console = output.make_console()
    kappas = _grid(what.kappa)
    found: dict[float, Rate] = {}
    with console.status("") as status:
        for kappa in kappas:
            status.update(f"L = {kappa:g} mu")
            found[kappa] = least_rate(template, mu=1.0, L=kappa, clients=what.clients, participation=who)
    title = f"{algorithm}, {what.clients} clients, {what.participation}"
    plotting.save(picture(found, title=title), what.out / "prove.png")
    record = {
        "command": "prove",
        "options": output.options_record(method, what) | {"algorithm": algorithm, "param": param or []},
        "versions": dict(versions()),
        "plug_ins": plug_ins(ProblemOptions(), [spec]),
        "rates": [{"kappa": kappa, **rate.to_json()} for kappa, rate in found.items()],
    }
    output.write_json(what.out / "prove.json", record)
    rows = [_row(kappa, rate) for kappa, rate in found.items()]
    output.show_table(console, f"dualopt prove: {title}; factor per round of the mean square", rows)
    last = found[kappas[-1]]
    lines = [f"kappa = {what.kappa:g}: {last}."]
    if last.proved:
        weighed = [name for names, _ in last.lyapunov for name in names]
        value = "its value" if len(weighed) == 1 else "their values"
        lines.append(f"V weighs {'; '.join(weighed)}, less {value} at the fixed point.")
    if what.rounds is not None:
        given: Any = {"mu": 1.0, "L": what.kappa, "clients": what.clients, "participation": who}
        start = (1.0, 1.0 / (what.clients * what.kappa))
        worst = worst_case(template, rounds=what.rounds, start=start, **given).value
        lines.append(
            f"After {what.rounds} rounds E|theta - theta*|^2 is at most {worst:.6g} times (|theta0 - theta*|^2 + "
            "the mean of |grad f_j(theta*)|^2 / (mu L)), and no less in the worst case."
        )
    files = "prove.png, prove.json"
    if what.exact and last.proved:
        text = last.proof_text()
        write_atomically(what.out / "proof.json", lambda file: file.write(text))
        files += ", proof.json"
        lines.append(f"Proved in rational numbers: the factor {json.loads(text)['factor']}.")
    lines.append(f"{what.out}: {files}")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    code = PROVED if last.proved else SLOW if (last.lower_bound or 0.0) >= 1.0 else UNKNOWN
    if code:
        raise Exit(code)


def _check(path: Path, algorithm: str | None) -> None:
    """Check a proof, and that its method's code is what it is about."""
    console = output.make_console()
    own = None if algorithm is None else Spec.parse(algorithm, "algorithm").target("algorithm")
    try:
        proof = checker.read(str(path))
        factor = check_proof(proof, own)
    except checker.RefusedError as error:
        console.print(f"{path}: refused: {error}", highlight=False, markup=False, soft_wrap=True)
        raise Exit(SLOW) from None
    statement = proof["statement"]
    late = ", in late rounds" if statement["late"] else ""
    console.print(
        f"{path}: proved of the code of {statement['code']}: the mean of V falls by a factor of {factor} = "
        f"{float(factor):.6f} per round{late}.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _grid(kappa: float) -> list[float]:
    """Return condition numbers up to the one that is asked for, in equal ratios.

    >>> _grid(100.0)
    [2.0, 5.3, 14.0, 38.0, 100.0]
    """
    low = min(2.0, math.sqrt(kappa))
    return [*(float(f"{low * (kappa / low) ** (k / (POINTS - 1)):.2g}") for k in range(POINTS - 1)), kappa]


def _row(kappa: float, rate: Rate) -> dict[str, str]:
    return {
        "kappa": f"{kappa:g}",
        "proved": f"{rate.factor:.6f}" if rate.proved else "none",
        "theorem": "none" if rate.claimed is None else f"{rate.claimed:.6f}",
        "some clients": "not searched" if rate.lower_bound is None else f"{rate.lower_bound:.6f}",
        "rounds per digit": f"{math.log(10.0) / -math.log(rate.factor):.1f}"
        if rate.proved and rate.factor > 0
        else "none",
    }


def picture(rates: dict[float, Rate], *, title: str) -> Figure:
    """Draw the rounds that a tenth of the mean square takes against kappa: proved, promised, and on some clients."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    figure.suptitle(title.replace("$", r"\$"), fontsize="medium")
    axes = figure.subplots()
    plotting.style_axes(axes)
    curves: dict[str, dict[float, Any]] = {
        "theorem": {k: r.claimed for k, r in rates.items()},
        "proved": {k: r.factor for k, r in rates.items() if r.proved},
        "quadratic clients": {k: r.lower_bound for k, r in rates.items()},
    }
    for (name, curve), marker, dash, colour in zip(
        curves.items(), "sov", ("--", "-", ":"), plotting.COLOURS, strict=False
    ):
        known = {k: math.log(10.0) / -math.log(x) for k, x in curve.items() if x is not None and 0 < x < 1}
        if known:
            axes.plot(
                list(known), list(known.values()), dash, marker=marker, label=name, color=colour, fillstyle="none"
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(rates), [f"{kappa:g}" for kappa in rates])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(r"$\kappa = L/\mu$")
    axes.set_ylabel("rounds to a tenth of the mean square")
    if axes.lines:
        axes.legend(frameon=False)
    return figure
