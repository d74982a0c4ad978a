"""The command that proves rates of a method from its own code."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Exit, Option

from dualopt.app.cli import output
from dualopt.app.cli.options import MethodOptions, option_groups
from dualopt.app.cli.plug_ins import plug_ins
from dualopt.app.cli.proved_best import WORD, given, split
from dualopt.app.cli.usage import WidthOption
from dualopt.arrays._checks import require
from dualopt.lab.proofs import ProvedBest, Rate, check_proof, checker, proved_best, worst_case
from dualopt.lab.proofs import prove as least_rate
from dualopt.methods._support import supported
from dualopt.methods.participation import as_participation
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.trace import versions, write_atomically
from dualopt.solvers.stopping import Gap, GradientNorm
from dualopt.spec import Spec

__all__ = ["ClassOptions", "prove"]

PROVED, SLOW, UNKNOWN = 0, 1, 3
"""Exit codes: proved; quadratic clients do not converge, or a proof is none; no proof was found."""
POINTS = 5


@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """What is proved, and where to write it.

    Parameters
    ----------
    kappa : float
        The largest L/mu; the picture has smaller ones too. With inf clients need not be smooth.
    mu : float
        Strong convexity of the clients; those with 0 have L = kappa. With 0, or kappa inf, ask for --rounds.
    clients : int
        Number of clients.
    participation : str
        Who takes part: full, subset=2, importance=2, bernoulli=0.5; or communicate=0.5.
    regulariser : float, optional
        Any convex regulariser at the server with this strong convexity, 0 or more.
    inexact : bool
        Local problems are solved just as well as the rule --stop reduction=0.1 demands, in place of exactly; with the
        rules gradient and gap, whose errors remain, worst cases are printed alone: ask for --rounds.
    compressor : str
        What uploads go through, such as natural or rand-k=10; or all with unbiased=OMEGA or contractive=DELTA.
    dimension : int, optional
        Coordinates of the model, where what is known of the compressor depends on their number.
    exact : bool
        Write proof.json too: a proof in rational numbers for the largest kappa.
    rounds : int, optional
        Print the exact worst case after so many rounds too; after 1, 2, ... rounds where no rate is asked for.
    out : Path
        Folder for the results.
    """

    kappa: float = 100.0
    mu: float = 1.0
    clients: int = 4
    participation: str = "full"
    regulariser: float | None = None
    inexact: bool = False
    compressor: str = "identity"
    dimension: int | None = None
    exact: bool = False
    rounds: int | None = None
    out: Path = Path("out")

    @property
    def L(self) -> float:
        """Smoothness of the clients."""
        return self.kappa * (self.mu or 1.0)

    @property
    def bounded(self) -> bool:
        """Whether all curvatures lie between two positive numbers, so that there may be a rate."""
        return self.mu > 0 and math.isfinite(self.kappa)

    def lasting(self, method: Any) -> bool:
        """Whether errors of local solutions remain as large as a rule allows, so that there is no rate."""
        return self.inexact and isinstance(method.stop, GradientNorm | Gap)

    def given(self) -> dict[str, Any]:
        """Return the class of problems as arguments of :mod:`dualopt.lab.proofs`."""
        who = as_participation(self.participation)
        own = {"mu": self.mu, "L": self.L, "clients": self.clients, "regulariser": self.regulariser}
        return own | {"participation": who, "inexact": self.inexact} | self.uploads()

    def uploads(self) -> dict[str, Any]:
        """Return what uploads go through as arguments; none where they arrive as they are."""
        if Spec.parse(self.compressor, "compressor").name == "identity":
            return {}
        return {"compressor": self.compressor, "dimension": self.dimension}

    def start(self) -> tuple[tuple[float, float], str]:
        """Return where worst cases start, and its size in words: distance and gradients in the units of the class."""
        mean = "the mean of |grad f_j(theta*)|^2"
        units = {(True, True): (self.mu * self.L, " / (mu L)"), (True, False): (self.mu**2, " / mu^2")}
        units[False, True] = self.L**2, " / L^2"
        unit, words = units.get((self.mu > 0, math.isfinite(self.L)), (1.0, ""))
        return (1.0, 1.0 / (self.clients * unit)), f"(|theta0 - theta*|^2 + {mean}{words})"


@option_groups
def prove(
    *,
    algorithm: Annotated[str | None, Option(help="A method, or FILE.py:NAME for one of yours.")] = None,
    param: Annotated[
        list[str] | None,
        Option(
            "--param",
            "-p",
            help="Parameter of the algorithm, such as alpha=3; repeatable. proved-best chooses the numbers that are "
            "left open by what is proved.",
        ),
    ] = None,
    check: Annotated[
        Path | None, Option(metavar="FILE", help="Check a proof that --exact wrote, and run the code that it is about.")
    ] = None,
    method: MethodOptions,
    what: ClassOptions,
    width: WidthOption = "page",
) -> None:
    """Prove the least factor per round of a method from its own code; write prove.png, .pdf and .json.

    For all mu-strongly convex clients with L-smooth functions, L = kappa mu, in any dimension, in the mean over
    everything that may happen: a Lyapunov function by semidefinite programming, to the tolerance of the solver.
    Where mu is 0, or kappa infinite, --rounds N prints the worst cases after 1 to N rounds instead.
    Exit code 0: proved; 1: quadratic clients on which the method does not converge, or an infinite worst case, or
    --check refuses; 3: no proof was found.
    """
    if check is not None:
        return _check(check, algorithm)
    require(algorithm is not None, "algorithm must be given, or a proof to --check")
    assert algorithm is not None
    require(what.kappa > 1, "kappa must be greater than 1", what.kappa)
    require(0 <= what.mu < math.inf, "mu must be a finite number of at least 0", what.mu)
    spec, best = split(method.given_to(given(Spec.parse(algorithm, "algorithm"), param or [])))
    template = supported(spec, participation=what.participation, regulariser=what.regulariser is not None)
    record = {
        "command": "prove",
        "options": output.options_record(method, what) | {"algorithm": algorithm, "param": param or [], "width": width},
        "versions": dict(versions()),
        "plug_ins": plug_ins(
            ProblemOptions(), [spec], participation=[what.participation], compressor=[what.compressor]
        ),
    }
    title = f"{algorithm}, {what.clients} clients, {what.participation}"
    title += f", {what.compressor}" if what.uploads() else ""
    output.prepare_folder(what.out)
    if what.rounds is None or (what.bounded and not what.lasting(template)):
        code = _rates(output.make_console(), template, what, title, record, width, best=best)
    else:
        require(not best, f"mu must be positive, and kappa finite, with {WORD}")
        code = _errors(output.make_console(), template, what, title, record, width)
    if code:
        raise Exit(code)


def _rates(
    console: Console, template: Any, what: ClassOptions, title: str, record: dict[str, Any], width: str, *, best: bool
) -> int:
    """Prove a factor for each of some condition numbers, and return the exit code."""
    kappas = _grid(what.kappa) if what.bounded else [what.kappa]
    found: dict[float, Rate] = {}
    chosen: dict[float, ProvedBest] = {}
    with console.status("") as status:
        for kappa in kappas:
            status.update(f"kappa = {kappa:g}")
            of = replace(what, kappa=kappa).given()
            if best:
                chosen[kappa] = proved_best(template, **of)
            found[kappa] = least_rate(chosen[kappa].algorithm if best else template, **of)
    files = "prove.json"
    if what.bounded:
        from dualopt.lab.proofs.pictures import picture  # Matplotlib takes longer to import than all else

        plotting.save_for_print(picture(found, title=title, width=width), what.out / "prove")
        files = "prove.png, prove.pdf, prove.json"
    record["rates"] = [
        {"kappa": kappa, **rate.to_json(), **({"proved_best": chosen[kappa].to_json()} if best else {})}
        for kappa, rate in found.items()
    ]
    output.write_json(what.out / "prove.json", record)
    rows = [_row(kappa, rate) for kappa, rate in found.items()]
    output.show_table(console, f"dualopt prove: {title}; factor per round of the mean square", rows)
    last = found[kappas[-1]]
    lines = [f"kappa = {what.kappa:g}: {last}."]
    lines += [f"proved best, kappa = {kappa:g}: {one}." for kappa, one in chosen.items()]
    if last.proved:
        weighed = [name for names, _ in last.lyapunov for name in names]
        value = "its value" if len(weighed) == 1 else "their values"
        lines.append(f"V weighs {'; '.join(weighed)}, less {value} at the fixed point.")
    if what.rounds is not None:
        start, words = what.start()
        method = chosen[what.kappa].algorithm if best else template
        worst = worst_case(method, rounds=what.rounds, start=start, **what.given())
        attained = "" if worst.example is None else ", and no less in the worst case"
        lines.append(
            f"After {what.rounds} rounds E|theta - theta*|^2 is at most {worst.value:.6g} times {words}{attained}."
        )
    if what.exact and last.proved:
        text = last.proof_text()
        write_atomically(what.out / "proof.json", lambda file: file.write(text))
        files += ", proof.json"
        lines.append(f"Proved in rational numbers: the factor {json.loads(text)['factor']}.")
    _say(console, [*lines, f"{what.out}: {files}"])
    return PROVED if last.proved else SLOW if (last.lower_bound or 0.0) >= 1.0 else UNKNOWN


def _errors(console: Console, template: Any, what: ClassOptions, title: str, record: dict[str, Any], width: str) -> int:
    """Print the worst cases after 1, 2, ... rounds, for a class in which there need not be a rate."""
    assert what.rounds is not None
    measure, symbol = ("distance", "E|theta - theta*|^2") if what.mu > 0 else ("value", "E(theta) - E*")
    (start, words), found = what.start(), {}
    with console.status("") as status:
        for n in range(1, what.rounds + 1):
            status.update(f"{n} rounds")
            found[n] = worst_case(template, rounds=n, measure=measure, start=start, **what.given())
    record["start"], record["measure"] = start, measure
    record["worst_cases"] = [{"rounds": n, "value": _finite(w.value), "claimed": w.claimed} for n, w in found.items()]
    output.write_json(what.out / "prove.json", record)
    from dualopt.lab.proofs.pictures import picture_of_errors  # Matplotlib takes longer to import than all else

    plotting.save_for_print(picture_of_errors(found, title=title, symbol=symbol, width=width), what.out / "prove")
    rows = [
        {
            "rounds": str(n),
            "worst case": f"{worst.value:.6g}",
            "theorem": "none" if worst.claimed is None else f"{worst.claimed:.6g}",
        }
        for n, worst in found.items()
    ]
    output.show_table(console, f"dualopt prove: {title}; {symbol} over the size of the start", rows)
    only = " It is at most 1: in other units the rule is another one." if what.lasting(template) else ""
    _say(console, [f"The size of the start is {words}.{only}", f"{what.out}: prove.png, prove.pdf, prove.json"])
    return PROVED if math.isfinite(found[what.rounds].value) else SLOW


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _say(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        output.say(console, line)


def _check(path: Path, algorithm: str | None) -> None:
    """Check a proof, and that its method's code is what it is about."""
    console = output.make_console()
    own = None if algorithm is None else Spec.parse(algorithm, "algorithm").target("algorithm")
    try:
        proof = checker.read(str(path))
        factor = check_proof(proof, own)
    except checker.RefusedError as error:
        _say(console, [f"{path}: refused: {error}"])
        raise Exit(SLOW) from None
    statement = proof["statement"]
    late = ", in late rounds" if statement["late"] else ""
    falls = f"the mean of V falls by a factor of {factor} = {float(factor):.6f} per round{late}."
    _say(console, [f"{path}: proved of the code of {statement['code']}: {falls}"])


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
