"""Pages: html with everything inside, which needs no server and no network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from figures.lessons._find import CHAPTERS, load
from figures.lessons._parts import AskChoice, AskCurve, AskNumber, Chapter, to_json
from figures.lessons._tables import Tables, packed
from figures.lessons._text import glossary, inline, parts, rendered, text_of

__all__ = ["COURSE", "page", "section"]

HERE = Path(__file__).parent
SCRIPTS = ("_numbers.js", "_marks.js", "_plane.js", "_chart.js", "_chapter.js", "_page.js")
COURSE = "Federated optimization by duality"


def page(title: str, sections: Sequence[str], *, whole: Sequence[str] = (), home: bool = True) -> str:
    """Return a page of sections.

    Parameters
    ----------
    title : str
        Of the page.
    sections : sequence of str
        What :func:`section` returned.
    whole : sequence of str, optional
        The chapters, where these are several: the page begins with its contents and ends with the glossary.
    home : bool, default True
        Whether a page of one chapter has the page of all beside it.
    """
    course = f'<a href="index.html">{COURSE}</a>' if home else COURSE
    texts = {
        "title": html.escape(COURSE if whole else f"{title} · {COURSE}"),
        "style": _file("_page.css"),
        "script": "".join(map(_file, SCRIPTS)),
        "top": _contents(whole) if whole else f'<nav aria-label="course">{course}</nav>',
        "sections": "\n".join(sections),
        "glossary": _glossary(whole) if whole else "",
    }
    return _filled("_page.html", texts)


def section(name: str, chapter: Chapter, made: Tables, among: Collection[str], *, together: bool = False) -> str:
    """Return a chapter: its text, its pictures and its numbers.

    Parameters
    ----------
    name : str
        Of the chapter.
    chapter : Chapter
        The chapter.
    made : Tables
        Its numbers.
    among : collection of str
        The chapters that there are to lead to.
    together : bool, default False
        Whether they stand on one page.
    """
    heading = 2 if together else 1
    described, floats = _described(name, chapter, made)
    place, sub = CHAPTERS.index(name), f"h{heading + 1}"
    needs = (_link(n, among, together=together) for n in chapter.needs)
    before, after = CHAPTERS[place - 1 : place], CHAPTERS[place + 1 : place + 2]
    said = {title: rendered(body) for title, body in parts(text_of(name)).items()}
    return _filled(
        "_section.html",
        said
        | {
            "name": name,
            "title": html.escape(chapter.title),
            "h": f"h{heading}",
            "sub": sub,
            "place": str(place + 1),
            "minutes": str(chapter.minutes),
            "needs": ", ".join(needs) or "nothing",
            "asked": _asked(name, chapter),
            "pictures": _pictures(name, chapter),
            "theorems": _theorems(chapter),
            "controls": _controls(name, chapter),
            "box": _box(chapter, sub),
            "notebook": (
                f'<p><a href="{name}.ipynb" download>The notebook of this chapter</a> makes its picture with public'
                " functions of dualopt, for you to change.</p>"
                if name in among
                else ""
            ),
            "before": "".join(f"<span>← {_link(n, among, together=together)}</span>" for n in before),
            "after": "".join(f"<span>{_link(n, among, together=together)} →</span>" for n in after),
            "described": described,
            "floats": floats,
        },
    )


def _filled(file: str, texts: Mapping[str, str]) -> str:
    """Return a file with texts in place of their names in double braces; what is put in is not searched again."""
    return re.sub(r"\{\{([\w ]+)\}\}", lambda found: texts[found[1]], _file(file))


def _described(name: str, chapter: Chapter, made: Tables) -> tuple[str, str]:
    """Return all that the page's script reads: a description, and the numbers."""
    offset, quantities, flat, dim = 0, {}, [], 2 * len(chapter.drags)
    lean = {"linear": dim, "squares": dim, "form": dim * (dim + 1) // 2}
    for key, q in made.quantities.items():
        axes = len(q.over)
        inner = q.table.shape[axes + q.rounds :]
        shape = list(inner) if q.kind == "constant" else list(inner[: -2 if q.kind == "squares" else -1])
        quantities[key] = {
            "kind": q.kind,
            "over": q.over,
            "rounds": q.table.shape[axes] if q.rounds else 0,
            "shape": shape,
            "offset": offset,
            "lean": dim > 0 and q.table.shape[-1:] == (lean.get(q.kind, -1),),
        } | ({"lengths": inner[-2]} if q.kind == "squares" else {})
        flat.append(np.ascontiguousarray(q.table, dtype="<f8").ravel())
        offset += q.table.size
    found = to_json(chapter)
    for slider, own in zip(found["sliders"], chapter.sliders, strict=True):
        slider["start"] = list(own.values).index(own.start)
        slider["values"] = [i if isinstance(v, str) else v for i, v in enumerate(own.values)]
        slider["says"] = slider["says"] or ([str(v) for v in own.values] if isinstance(own.values[0], str) else [])
    theorems = [
        {
            "label": t.label,
            "quantity": t.quantity,
            "force": t.force,
            "tolerance": t.tolerance,
            "after": t.after,
            "over": j.over,
            "failed": j.failed,
            "n": j.n,
            "trivial": j.trivial,
            "rounds": len(set(j.n)) > 1,
        }
        for t, j in zip(chapter.theorems, made.theorems, strict=True)
    ]
    known = {
        "name": name,
        "numbers": {
            "parameters": {slider.name: len(slider.values) for slider in chapter.sliders},
            "quantities": quantities,
            "derived": found.pop("derived"),
        },
        "points": [n for n, q in made.quantities.items() if q.kind == "linear" and _last(q) == 2],
        "theorems": theorems,
    }
    text = json.dumps(found | known, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return text, packed(np.concatenate(flat).tobytes())


def _last(q: Any) -> int:
    return q.table.shape[-2] if q.table.ndim > 1 else 0


def _asked(name: str, chapter: Chapter) -> str:
    """Return where the reader guesses."""
    ask, buttons = chapter.ask, '<button type="button" class="reveal" data-after="false">show the answer</button>'
    guess = ""
    if isinstance(ask, AskNumber):
        limits = f'min="{ask.low:g}" max="{ask.high:g}" step="{ask.step:g}"'
        guess = f'<label>{inline(ask.label)} <input type="number" name="guess" {limits}></label>'
    if isinstance(ask, AskChoice):
        options = "".join(
            f'<label><input type="radio" name="{name}-option" value="{k}"> {inline(option)}</label>'
            for k, option in enumerate(ask.options)
        )
        guess = f'<fieldset class="options"><legend>Your guess</legend>{options}</fieldset>'
    if isinstance(ask, AskCurve):
        guess = "<p>Draw over the chart, or move its points.</p>"
    held = f'<div data-after="false">{guess}</div>' if guess else ""
    return f'<div class="guess">{held}{buttons}</div>'


def _pictures(name: str, chapter: Chapter) -> str:
    made = []
    for part in ("plane", "chart", "errors"):
        one = getattr(chapter, part)
        if one is None:
            continue
        kind = type(one).__name__.lower()
        moved = kind == "plane" or (part == "chart" and isinstance(chapter.ask, AskCurve))
        named = (
            f'role="{"group" if moved else "img"}" aria-labelledby="{name}-{part}" aria-describedby="{name}-sentence"'
        )
        patterns = _patterns(one) if kind == "map" else ""
        made.append(
            f'<figure data-kind="{kind}" data-part="{part}">'
            f'<figcaption id="{name}-{part}">{inline(one.title)}</figcaption>'
            f"<svg {named}>{patterns}</svg></figure>"
        )
    return "".join(made)


def _patterns(drawn: Any) -> str:
    """Return a pattern for each class of a map: none, lines, crossed lines, dots."""
    strokes = ("", "M0 8L8 0", "M0 0L8 8M0 8L8 0", "M4 3V5M3 4H5", "M0 4H8")
    return (
        "<defs>"
        + "".join(
            f'<pattern id="hatch-{c}" width="8" height="8" patternUnits="userSpaceOnUse">'
            f'<path d="{strokes[c % len(strokes)]}" stroke="var(--{ink})" stroke-width="1.2" fill="none"/></pattern>'
            for c, ink in enumerate(drawn.inks)
        )
        + "</defs>"
    )


def _controls(name: str, chapter: Chapter) -> str:
    """Return sliders and the round."""
    made = []
    for slider in chapter.sliders:
        held = "" if slider.after is None else f' data-after="{str(slider.after).lower()}"'
        if isinstance(slider.values[0], str) or slider.says:
            says = slider.says or slider.values
            options = "".join(
                f'<label><input type="radio" name="{name}-{slider.name}" value="{k}"> {inline(str(text))}</label>'
                for k, text in enumerate(says)
            )
            made.append(
                f'<fieldset class="options" data-slider="{slider.name}"{held}><legend>{inline(slider.label)}</legend>'
                f'{options}<input type="hidden" name="{slider.name}"></fieldset>'
            )
        else:
            made.append(_range(name, slider.name, inline(slider.label), 0, len(slider.values) - 1, held))
    if chapter.rounds:
        made.append(_range(name, "round", "round shown", 1, chapter.rounds, ' data-after="true"'))
    return "".join(made)


def _range(chapter: str, name: str, label: str, low: int, high: int, held: str) -> str:
    # An output is labelable: a label around both would name it, and not the slider.
    named = f'<label for="{chapter}-{name}">{label}</label> <output></output>'
    limits = f'min="{low}" max="{high}" step="1"'
    return (
        f'<div class="slider" data-slider="{name}"{held}><span>{named}</span>'
        f'<input type="range" id="{chapter}-{name}" name="{name}" {limits}></div>'
    )


def _theorems(chapter: Chapter) -> str:
    rows = []
    for k, t in enumerate(chapter.theorems):
        held = "" if t.after is None else f' data-after="{str(t.after).lower()}"'
        file = f"{t.claim.compare.__module__.replace('.', '/')}.py"
        rows.append(
            f'<p class="theorem" data-theorem="{k}"{held}>{inline(t.label)}:'
            f' <b class="verdict"></b><span class="why"></span>'
            f" <small>{html.escape(t.claim.source)}; claim <code>{t.claim.name}</code> in {file}</small></p>"
        )
    return "".join(rows)


def _box(chapter: Chapter, heading: str) -> str:
    """Return the algorithm, its numbers beside each line."""
    if not chapter.box:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{inline(line.who)}</th><td{_now(line.does)}>{inline(line.does)}</td>'
        f"<td{_now(line.now)}></td></tr>"
        for line in chapter.box
    )
    columns = ("who", "does, in every round", "in the round shown")
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="box"><{heading}>The algorithm</{heading}>{table}</div>'


def _now(text: str) -> str:
    return f' data-now="{html.escape(text)}"' if "{" in text else ""


def _link(name: str, among: Collection[str], *, together: bool = False) -> str:
    """Return the title of a chapter, as a link where the chapter is there."""
    title = html.escape(load(name).title)
    return f'<a href="{f"#{name}" if together else f"{name}.html"}">{title}</a>' if name in among else title


def _contents(names: Sequence[str]) -> str:
    rows = []
    for name in names:
        title, minutes = html.escape(load(name).title), load(name).minutes
        page = f'<a href="{name}.html" aria-label="{title} as a page of its own">its own page</a>'
        rows.append(f"<li>{_link(name, names, together=True)} <small>{minutes} minutes, {page}</small></li>")
    about = rendered(parts(_file("course.md"))["The course"])
    return f'<h1>{COURSE}</h1>{about}<nav aria-label="chapters"><ol>{"".join(rows)}</ol></nav>'


def _glossary(names: Sequence[str]) -> str:
    rows = []
    for term, (name, said) in glossary().items():
        where = f"<small>(chapter {_link(name, names, together=True)})</small>"
        rows.append(f"<dt>{inline(term)}</dt><dd>{inline(said)} {where}</dd>")
    head = '<section id="glossary" aria-labelledby="terms"><h2 id="terms">Glossary</h2>'
    return f"{head}<dl>{''.join(rows)}</dl></section>"


@cache
def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
