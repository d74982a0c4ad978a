r"""Lessons: interactive figures whose numbers are computed by the library: ``python -m figures.lessons``.

Every module here whose name has no leading underscore is one lesson; a new file is found without an entry in any list.
It defines

``TITLE``, ``QUESTION``
    One line, and the question that a student answers by moving something.
``SLIDERS``
    A tuple of :class:`Slider`. A slider whose values are strings is shown as a list of choices. Where only the round
    that is looked at changes, use no slider but scenes with several ``rounds``: the page has a slider for them, which
    computes nothing.
``scene(**values) -> Scene``
    One value of every slider, by name, to what is shown: planes, curves, a table, verdicts and the answer.

A scene is made of the dataclasses of ``_planes`` (:class:`Plane` and what is drawn there), ``_charts`` and ``_words``
(tables, verdicts, answers). Their numbers may be Python's or NumPy's. An entry that changes with the round has the
rounds as its first axis: ``Path.points`` has shape (rounds, 2), ``Dots.points`` (k, 2) or (rounds, k, 2), ``Curve.y``
(n,) or, with ``moving=True``, (rounds, n), and a cell of a table is a number, a string or one number for every round.
Curves whose ``x`` counts rounds mark the one that is shown.

The roles of a curve are its style: "error" solid, "certificate" circles, "theorem" dashed, "limit" dotted, "bars" and
"points" without a line. Tests compare the curves "error" and "certificate" of one ``label``: the first is at most the
second. All numbers are finite; where a run leaves the finite numbers, end the curve (``x`` shorter), and say so in
``note``.

Verdicts are those of :func:`dualopt.lab.claims.check`: ``judge(claim, case, label, expected)`` runs a claim and says
which verdict theory expects, so that tests can compare. Whether the student's answer is right comes from verdicts,
never from a number that is typed in: ``Answer.of((judged, "violated"), yes=..., no=...)``; a question that is no
theorem is judged by ``asked((lhs, rhs), ...)``. Build the case with ``Case.of(method, f, rounds=...)`` of
``theory._cases``, whose snapshots are computed once: the claim and the picture look at the same run, and ``promised``
returns the bounds that a claim compares, to draw them.

A point in a plane can be dragged if it is ``Handle(x="name of a slider", y="name of another")``; the sliders do the
same from the keyboard. Cells of a plane (:class:`Cells`) are clicked likewise.

A page that is exported holds the scenes of all combinations of ``Slider.exported`` (all values where it is not given):
keep their number below 200.
"""

from figures.lessons._find import discover, load
from figures.lessons._notebook import show

__all__ = ["discover", "load", "show"]
