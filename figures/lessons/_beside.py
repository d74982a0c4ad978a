"""A method of the reader's, drawn beside those of a chapter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from figures.lessons._parts import Chapter, Chart, Curve, Plane, Said, Trail
from figures.lessons._quantities import Measure, evaluate, linear, squares, tabulate
from figures.lessons._world import clients, energy_lengths
from theory._cases import Case

__all__ = ["with_method"]

SAME = 1e-9  # relative: how far a method may be from an affine one by rounding


def with_method(chapter: Chapter, method: Any, name: str) -> Chapter:
    """Return a chapter with the model of a method in its plane, and its error where a chart is of errors.

    A chapter whose clients are not quadratic, or no clients of the plane, is returned as it is.

    Raises
    ------
    ValueError
        If the models of the method are no affine functions of the minimisers, as with restarts and line searches:
        no page could draw it.
    """
    if chapter.beside is None:
        return chapter
    own = _measure(method, chapter)
    dim = 2 * chapter.beside[0]
    _assert_affine(own, dim, name)
    trail, plane = Trail(of="yours", label=name, ink="guess", dash="6 3", after=True), chapter.plane
    if isinstance(plane, Plane):
        plane = replace(plane, marks=(*plane.marks, trail))
    chart = chapter.chart
    if isinstance(chart, Chart) and any(getattr(curve, "of", "") == "error" for curve in chart.curves):
        chart = replace(
            chart, curves=(*chart.curves, Curve(of="yours_error", label=name, ink="guess", dash="6 3", after=True))
        )
    sentence = Said(f"Yours, {name}, is at {{yours}} after round {{n}}, with the error {{yours_error}}.", after=True)
    return replace(
        chapter,
        measures=(*chapter.measures, own),
        plane=plane,
        chart=chart,
        said=(*chapter.said, sentence),
    )


def _measure(method: Any, chapter: Chapter) -> Measure:
    assert chapter.beside is not None
    n, kappa, angle = chapter.beside

    def yours(u: np.ndarray) -> dict:
        case = Case.of(method, clients(u, n, kappa, angle), rounds=chapter.rounds)
        models = case.models()
        return {
            "yours": linear(models, rounds=True),
            "yours_error": squares(energy_lengths(case, models), rounds=True),
        }

    return yours


def _assert_affine(own: Measure, dim: int, name: str) -> None:
    found = tabulate(own, dim, {})["yours"]
    for seed in range(3):
        u = np.random.default_rng(seed).uniform(-2.0, 4.0, dim)
        page, run = evaluate(found, u), own(u)["yours"].values
        if not np.max(np.abs(page - run)) <= SAME * np.max(np.abs(run)):
            raise ValueError(
                f"{name} cannot be drawn beside the others: its models are no affine functions of the clients'"
                f" minimisers,"
                " as with restarts, line searches and clients that are drawn anew."
            )
