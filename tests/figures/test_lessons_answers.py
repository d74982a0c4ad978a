"""The answers of the teachers' pages are those of the lessons: every number is computed here and looked up there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from figures.lessons import averaging, chain, coin, load, momentum, oracle, phases, stopping, wrong
from theory.limits import fedavg_limit

DOCS = Path(__file__).resolve().parents[2] / "docs" / "lessons"


def says(name: str, *parts: str) -> None:
    """Look for words in the answer of a teacher's page."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    answer = text.partition("## The question, and its answer")[2].partition("## The theorem")[0]
    for part in parts:
        assert part in answer.replace("\n", " "), part


def right(name: str, **values: Any) -> bool:
    return load(name).scene(**values).answer.right


def test_averaging() -> None:
    def first(apart: float) -> list[int]:
        return [K for K in averaging.STEPS if right("averaging", steps=K, apart=apart)]

    (K,) = first(1.2)
    says("averaging", f"difference 1.2 of the start it is $K = {K}$", "with 0.8 no number of steps does")
    assert first(0.8) == []
    (fewer,) = first(1.5)
    assert fewer < K
    f = averaging.valleys(2, kappa=16.0, apart=1.2, angle=1.0)
    away = {n: fedavg_limit(f, step=1.0 / max(f.L), K=n) - f.minimiser() for n in range(1, K + 1)}
    says("averaging", f"and {min(n for n, x in away.items() if np.linalg.norm(x) >= 1.0)} of all numbers")


def test_bound() -> None:
    scene = load("bound").scene(x=1.25, y=1.25, p=1.25, q=1.25)
    *_, gap, error = scene.table.rows[0].cells
    says("bound", "$\\theta = p = (1.25, 1.25)$ certifies less than 0.1")
    assert scene.answer.right
    assert error < gap < 0.1
    assert not right("bound", x=1.25, y=1.25, p=2.5, q=1.25)


def test_chain() -> None:
    for kappa in chain.SLIDERS[1].values:
        assert [m for m in chain.METHODS if right("chain", method=m, kappa=kappa)] == ["FedSplit, mean of the zⱼ"]
    says("chain", "FedSplit whose model is the mean of its $z_j$")


def test_coin() -> None:
    def largest(apart: float) -> float:
        (p,) = [p for p in coin.SKIPS if right("coin", p=p, apart=apart)]
        return p

    less, least = largest(0.01), largest(0.003)
    says("coin", f"$G = 0.03$ it is $p = {largest(0.03)}$", f"$G = 0.1$ it is {largest(0.1)}")
    says("coin", f"$G = 0.01$ or less it is {less}")
    assert less == least
    for p, apart in ((0.44, 0.03), (0.16, 0.1), (0.54, 0.01), (0.58, 0.003)):
        says("coin", f"{p}")
        assert [coin.says(coin.fedpd(q, apart)) for q in (p, p + 0.01)] == ["holds", "vacuous"]


def test_drift() -> None:
    scene = load("drift").scene(server=1.0, rho=1.5)
    assert "ends at 4, the solution is 1" in scene.answer.text
    says("drift", "$\\eta_s = 1$ and $\\rho = 1.5$ the method ends at 4, where the solution is 1")
    assert "diverges" in load("drift").scene(server=1.0, rho=2.2).answer.text
    says("drift", "with $\\rho = 2.2$ it diverges")


def test_momentum() -> None:
    broken = [rho for rho in momentum.RHO if right("momentum", clients=4, kappa=32, rho=rho)]
    assert broken == [rho for rho in momentum.RHO if rho >= broken[0]]
    says("momentum", f"from {broken[0]} on for 4 clients and $\\kappa = 32$", "which is 1 on the slider")
    verdicts = {
        rho: load("momentum").scene(clients=4, kappa=32, rho=rho).verdicts[1].verdict for rho in momentum.RHO[5:7]
    }
    assert verdicts == {1: "holds", 1.2: "outside assumptions"}
    assert crosses(load("momentum").scene(clients=4, kappa=32, rho=broken[0]).charts[-1])
    assert not crosses(load("momentum").scene(clients=4, kappa=32, rho=1).charts[-1])


def crosses(chart: Any) -> bool:
    """Tell whether the last curve is drawn above the theorem."""
    *_, drawn, bound = chart.curves
    at = range(1, len(drawn.y) + 1) if drawn.x is None else drawn.x
    return any(y > 1.000001 * bound.y[n - 1] for n, y in zip(at, drawn.y, strict=True))


def test_names() -> None:
    assert right("names", active=2, first="FedADMM", second="FedDR", weight=8)
    says("names", "FedADMM and FedDR")


def test_oracle() -> None:
    least = {
        name: [steps for steps in oracle.STEPS if right("oracle", oracle=name, steps=steps)] for name in oracle.ORACLES
    }
    (gradient,), (lbfgs,), (sarah,), cheat = least.values()
    says("oracle", f"{gradient} gradient steps, {lbfgs} of L-BFGS, {sarah} of SARAH")
    assert cheat == []
    assert exactly_opened(2) == list(range(1, oracle.COORDINATES + 1))
    assert exactly_opened(1) != exactly_opened(2)
    says("oracle", "in exact arithmetic 2 gradient steps are enough")


def exactly_opened(steps: int) -> list[int]:
    """Return how many coordinates FedPD's gradient steps have opened after each communication, without underflow."""
    mp = mpmath.mp.clone()
    f, eta = oracle.zero_chain(2, oracle.COORDINATES, split="halves"), 1 / mp.mpf(oracle.WEAK)
    d, unit, scale = oracle.COORDINATES, mp.mpf(f.width), mp.mpf(f.height) / mp.mpf(f.width)

    def gradient(j: int, theta: list) -> list:
        x, found = [1, *(t / unit for t in theta)], [mp.mpf(0)] * (d + 1)
        for k in np.flatnonzero(f.split[j]).tolist():  # Theta_k, while no coordinate is negative
            found[k] -= 2 * x[k] * mp.exp(-(x[k] ** 2)) * (4 * mp.atan(x[k + 1]) + 2 * mp.pi)
            found[k + 1] += mp.expm1(-(x[k] ** 2)) * 4 / (1 + x[k + 1] ** 2)
        return [float(max(f.split[j])) * scale * g for g in found[1:]]

    mean, opened = [mp.mpf(0)] * d, []
    theta, dual = [[mean] * 2 for _ in range(2)]
    for _ in range(d):
        for j in range(2):
            x = theta[j]
            for _ in range(steps):
                slopes = (g + a + (y - c) / eta for g, a, y, c in zip(gradient(j, x), dual[j], x, mean, strict=True))
                x = [y - s / (mp.mpf(f.L[j]) + 1 / eta) for y, s in zip(x, slopes, strict=True)]
            theta[j], dual[j] = x, [a + (y - c) / eta for a, y, c in zip(dual[j], x, mean, strict=True)]
        mean = [sum(t[k] + eta * a[k] for t, a in zip(theta, dual, strict=True)) / 2 for k in range(d)]
        assert min(mean) >= 0
        opened.append(max(k + 1 for k in range(d) if mean[k]))
    return opened


def test_phases() -> None:
    cells = {(step, s): right("phases", method="FedPD", step=step, s=s) for step in phases.STEPS for s in (0.9, 2.2)}
    found = [step for (step, s), answer in cells.items() if answer]
    assert all(s > 1 for (_, s), answer in cells.items() if answer)
    says("phases", "Only beyond $s = 1$", f"such as $\\eta L = {min(found, key=lambda step: abs(step - 2.4)):.1f}$")


@pytest.mark.parametrize("kappa", [4, 8, 12])
def test_stopping(kappa: int) -> None:
    def least(schedule: str) -> int:
        (steps,) = [K for K in stopping.STEPS if right("stopping", steps=K, kappa=kappa, schedule=schedule)]
        return steps

    def smallest(schedule: str) -> int:
        return next(K for K in range(1, 31) if stopping.soon_enough(K, kappa, schedule).verdict == "holds")

    cells = (f"{least(schedule)} ({smallest(schedule)})" for schedule in stopping.SCHEDULES)
    says("stopping", "| ".join(f"{cell} " for cell in ("", kappa, *cells, "")).strip())


def test_worst() -> None:
    assert right("worst", n=1, m1=2.0, s1=0.7, m2=0.0, s2=3.0)
    says("worst", "In the first round: put one kink at 0, where the method starts, with the larger slope")


def test_wrong() -> None:
    short = {guess: guess.split(":")[0] for guess in wrong.CLAIMS}
    for line in list(wrong.LINES)[1:]:
        noticed = [short[guess] for guess in wrong.CLAIMS if wrong.judged(line, guess).verdict == "violated"]
        cells = "all five" if len(noticed) == len(short) else ", ".join(noticed)
        written = line.replace("ρ", "$\\rho$").replace("ν", "$\\nu$")
        says("wrong", f"| {written} | {cells} |")
        drawn = load("wrong").scene(line=line, guess=wrong.RATE)
        assert any(map(crosses, drawn.charts)) == (wrong.judged(line, wrong.RATE).verdict == "violated")
