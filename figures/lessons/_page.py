"""The page of a lesson: one self-contained html file, whether a server answers or the answers are inside."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["FOOTER", "index", "packed", "page"]

HERE = Path(__file__).parent
SCRIPTS = ("_marks.js", "_chart.js", "_plane.js", "_scene.js", "_page.js")
FOOTER = "Every number is computed by dualopt, every verdict by the claim that is named."


def page(described: Mapping[str, Any], answers: bytes = b"") -> str:
    """Return the page.

    Parameters
    ----------
    described : dict
        The lesson, as :func:`figures.lessons._find.described` returns it, each slider with the indices of the values
        that it ``offered``.
    answers : bytes, optional
        All scenes as JSON, by position ("3-0-12"); the page asks a server when not given.
    """
    parts = {
        "title": html.escape(described["title"]),
        "question": html.escape(described["question"]),
        "style": _text("_page.css"),
        "script": "".join(map(_text, SCRIPTS)),
        "lesson": json.dumps(described).replace("<", "\\u003c"),
        "answers": packed(answers) if answers else "",
        "d3": _library(),
        "footer": FOOTER,
    }
    text = _text("_page.html")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part, 1) if name != "title" else text.replace("{{title}}", part)
    return text


def index(lessons: Mapping[str, Any], suffix: str = "") -> str:
    """Return the page that lists lessons: a title and a question by name, or an exception."""
    entries = []
    for name, lesson in lessons.items():
        if isinstance(lesson, Exception):
            entries.append(f"<li>{html.escape(name)}: {html.escape(str(lesson))}</li>")
        else:
            title, question = html.escape(lesson.TITLE), html.escape(lesson.QUESTION)
            entries.append(f'<li><a href="{name}{suffix}">{title}</a><br>{question}</li>')
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Lessons</title>'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
    style = f"<style>{_text('_page.css')} li {{ margin: 10px 0; max-width: 90ch; }}</style></head>"
    body = f"<body><h1>Lessons</h1><ol>{''.join(entries)}</ol><footer>{FOOTER}</footer></body></html>"
    return f"{head}{style}{body}\n"


def packed(data: bytes) -> str:
    """Return data compressed, in letters that html leaves alone; the same data always give the same letters."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


@cache
def _library() -> str:
    return packed((HERE / "_vendor" / "d3.min.js").read_bytes())


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
