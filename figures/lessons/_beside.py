"""A method of the reader's, drawn beside those of a chapter: its way in the plane, and its errors over the rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from figures.lessons._parts import Chapter, Chart, Curve, Plane, Said, Trail
from figures.lessons._quantities import Measure, constant, evaluate, linear, named, names_of, squares, tabulate
from figures.lessons._tables import start
from figures.lessons._world import energy_lengths

__all__ = ["with_method"]

SAME = 1e-9  # relative: how far a method may be from an affine one by rounding
OWN: dict[str, Any] = {"ink": "guess", "dash": "dash-dot-dot", "after": True}


def with_method(chapter: Chapter, method: Any, name: str) -> Chapter:
    """Return a chapter with a method of the reader's beside its own.

    Its models are drawn in the plane, and a further chart has the errors of all methods of the plane. A chapter without
    a plane has a chart of squared distances from the solution, where the method gets its curve. A chapter that says
    nothing of ``beside`` is returned as it is.

    Raises
    ------
    ValueError
        If the models of the method are no affine functions of the minimisers, as with restarts and line searches:
        no page could draw it.
    """
    if chapter.beside is None:
        return chapter
    if not isinstance(chapter.plane, Plane):
        return _on_a_chain(chapter, method, name)
    beside = _remembered(partial(chapter.beside, method))
    own = named(partial(_models, beside), names_of(chapter.beside))
    _assert_affine(own, chapter, name)
    trails = [mark for mark in chapter.plane.marks if isinstance(mark, Trail)]
    curves = [Curve(of=f"{t.of}_height", label=t.label, ink=t.ink, dash=t.dash, after=t.after) for t in trails]
    return replace(
        chapter,
        measures=(*chapter.measures, own, *_heights(chapter, beside, {t.of for t in trails})),
        plane=replace(chapter.plane, marks=(*chapter.plane.marks, Trail(of="yours", label=name, **OWN))),
        errors=Chart(
            title=f"How much higher E is than at the solution after every round, with {name}",
            curves=(*curves, Curve(of="yours_height", label=name, **OWN)),
            x_label="round",
            y_label="E(θ) − E(θ*)",
            log_y=True,
            after=True,
        ),
        said=(
            *chapter.said,
            Said(
                f"Yours, {name}, is at {{yours}} after round {{n}}, where E is {{yours_height}} higher than at the"
                " solution.",
                after=True,
            ),
        ),
    )


def _on_a_chain(chapter: Chapter, method: Any, name: str) -> Chapter:
    assert chapter.beside is not None
    assert isinstance(chapter.chart, Chart)
    beside = partial(chapter.beside, method)

    def distances(u: np.ndarray, **parameters: Any) -> dict:
        case = beside(u, **parameters)
        return {"yours": constant(np.sum((case.models() - case.theta) ** 2, axis=1), rounds=True)}

    curve = Curve(of="yours", label=name, **OWN)
    return replace(
        chapter,
        measures=(*chapter.measures, named(distances, names_of(chapter.beside))),
        chart=replace(chapter.chart, curves=(*chapter.chart.curves, curve)),
        said=(*chapter.said, Said(f"The squared distance of yours, {name}, is {{yours}}.", after=True)),
    )


def _remembered(beside: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same runs of the reader's method, each of which is made once."""

    @lru_cache(maxsize=512)
    def at(u: tuple[float, ...], **parameters: Any) -> Any:
        return beside(np.array(u), **parameters)

    return lambda u, **parameters: at(tuple(u), **parameters)


def _models(beside: Callable[..., Any], u: np.ndarray, **parameters: Any) -> dict:
    """Measure the models of the reader's method, and how high E is there."""
    case = beside(u, **parameters)
    models = case.models()
    return {"yours": linear(models, rounds=True), "yours_height": squares(energy_lengths(case, models), rounds=True)}


def _heights(chapter: Chapter, beside: Callable[..., Any], trails: set[str]) -> list[Measure]:
    """Return, for each measurement of the chapter with models that are drawn, one of how high E is there."""
    assert chapter.beside is not None
    own = names_of(chapter.beside)
    begins = {slider.name: slider.start for slider in chapter.sliders}
    made = []
    for measure in chapter.measures:
        needs = names_of(measure)
        drawn = sorted(trails & set(measure(start(chapter), **{name: begins[name] for name in needs})))

        def heights(u: np.ndarray, *, _of: Any = (measure, needs, drawn), **parameters: Any) -> dict:
            measure, needs, drawn = _of
            case = beside(u, **{name: parameters[name] for name in own})
            found = measure(u, **{name: parameters[name] for name in needs})
            return {f"{q}_height": squares(energy_lengths(case, found[q].values), rounds=True) for q in drawn}

        if drawn:
            made.append(named(heights, [name for name in begins if name in {*needs, *own}]))
    return made


def _assert_affine(own: Measure, chapter: Chapter, name: str) -> None:
    values = {slider.name: slider.values for slider in chapter.sliders}
    dim, over = len(start(chapter)), names_of(own)
    found = tabulate(own, dim, values)["yours"]
    for seed, chosen in enumerate(product(*(range(len(values[p])) for p in over))):
        u = np.random.default_rng(seed).uniform(-2.0, 4.0, dim)
        page, run = evaluate(found, u)[chosen], own(u, **{p: values[p][k] for p, k in zip(over, chosen, strict=True)})
        if not np.max(np.abs(page - run["yours"].values)) <= SAME * np.max(np.abs(run["yours"].values)):
            raise ValueError(
                f"{name} cannot be drawn beside the others: its models are no affine functions of the clients'"
                " minimisers, as with restarts, line searches and clients that are drawn anew."
            )
