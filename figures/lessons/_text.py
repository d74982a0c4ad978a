"""The texts of chapters: a small part of Markdown, and the glossary."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["PARTS", "definitions", "glossary", "inline", "parts", "rendered", "text_of"]

HERE = Path(__file__).parent
PARTS = (
    "What is new",
    "Your guess",
    "What you see",
    "Why",
    "Exercises",
    "Solutions",
    "What next",
    "For teachers",
)


def text_of(name: str) -> str:
    """Return the Markdown text of a chapter."""
    return (HERE / f"{name}.md").read_text(encoding="utf-8")


def parts(text: str) -> dict[str, str]:
    r"""Return what stands under each heading of the second level, in order.

    Examples
    --------
    >>> parts("# A title\n\n## One\n\nfirst\n\n## Two\n\nsecond\n")
    {'One': 'first', 'Two': 'second'}
    """
    _, *found = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {title.strip(): body.strip() for title, body in zip(found[::2], found[1::2], strict=True)}


def definitions(text: str) -> list[str]:
    """Return the terms that a text defines: those in bold under "What is new", as they are inside a sentence."""
    found = re.findall(r"(^|\. )?\*\*(.+?)\*\*", " ".join(parts(text).get("What is new", "").split()))
    return [term[0].lower() + term[1:] if begins and not term[1].isupper() else term for begins, term in found]


@cache
def glossary() -> dict[str, tuple[str, str]]:
    """Return the chapter and the definition of every term, in the order of the article.

    Examples
    --------
    >>> glossary()["client"][0]
    'averaging'
    """
    rows = re.findall(
        r"^- \*\*(.+?)\*\* \((\w+)\): (.+)$", (HERE / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    return {term: (chapter, said) for term, chapter, said in rows}


def rendered(markdown: str) -> str:
    r"""Return paragraphs, lists, headings of the third level and what :func:`inline` knows, as html.

    Examples
    --------
    >>> rendered("Two *words*.\n\n1. one\n2. `two`")
    '<p>Two <em>words</em>.</p>\n<ol>\n<li>one</li>\n<li><code>two</code></li>\n</ol>'
    """
    return "\n".join(_blocks(markdown))


def _blocks(markdown: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", markdown.strip()):
        lines = block.splitlines()
        if lines[0].startswith("### "):
            yield f"<h3>{inline(lines[0][4:])}</h3>"
        elif kind := re.match(r"(\d+\.|-) ", lines[0]):
            tag = "ul" if kind[1] == "-" else "ol"
            entries = re.split(r"^(?:\d+\.|-) ", block, flags=re.MULTILINE)[1:]
            yield f"<{tag}>"
            yield from (f"<li>{inline(' '.join(entry.split()))}</li>" for entry in entries)
            yield f"</{tag}>"
        else:
            yield f"<p>{inline(' '.join(block.split()))}</p>"


def inline(text: str) -> str:
    """Return bold, emphasised and code words and links as html; links into the repository become code.

    Examples
    --------
    >>> inline("**client** of [chain](chain.md), [`claim`](../../theory/x.py)")
    '<strong>client</strong> of <a href="chain.html">chain</a>, <code>claim</code> (theory/x.py)'
    """
    out = html.escape(text, quote=False)
    out = re.sub(r"`([^`]+)`", r"<code>\1</code>", out)
    out = re.sub(r"\[([^\]]+)\]\(\.\./\.\./([^)]+)\)", r"\1 (\2)", out)
    out = re.sub(r"\[([^\]]+)\]\((\w+)\.md\)", r'<a href="\2.html">\1</a>', out)
    out = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", out)
    return re.sub(r"(?<![\w*])\*(?!\s)([^*]+?)(?<!\s)\*(?![\w*])", r"<em>\1</em>", out)
