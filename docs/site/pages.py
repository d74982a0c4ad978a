"""The pages of the site that are written from what the repository holds already, before Sphinx reads its sources.

* ``generated/docs``: the pages of ``docs/``, whose links to files become links to claims or to the listed sources;
* ``generated/claims``: ``theory/REPORT.md``, one page for each paper;
* ``generated/lessons``: texts and notebooks of ``figures/lessons``, with the exported course in ``generated/extra``;
* ``generated/gallery.md``: every figure, with its command, its time and, where ``docs/`` has it, its picture;
* ``generated/api``: one page for each public module.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GENERATED = HERE / "generated"
_DOCUMENTED = (property, functools.cached_property, classmethod, staticmethod, FunctionType)

# Pictures of the documentation that are named after their data, by figure.
PICTURES = {
    "afedpd_table2": ["afedpd_table2_cifar10"],
    "feddyn_table2": ["feddyn_table2_mnist"],
    "feddyn_table5": ["feddyn_table5_cifar10"],
    "fig1a_floats": ["fig1a_mnist_floats"],
    "fig1a_gradients": ["fig1a_mnist_gradients", "fig1d_cifar10_gradients"],
    "fig1a_methods": ["fig1a_mnist", "fig1d_cifar10"],
    "fig1ef_dualfl": ["fig1ef_cifar10"],
    "table2_tuning": ["table2_mnist"],
}
# The public modules, in the order of the reference.
MODULES = [
    "dualopt",
    "dualopt.methods",
    "dualopt.losses",
    "dualopt.objectives",
    "dualopt.methods.compressors",
    "dualopt.regularisers",
    "dualopt.solvers",
    "dualopt.solvers.stopping",
    "dualopt.methods.participation",
    "dualopt.engine.rounds",
    "dualopt.engine",
    "dualopt.federation",
    "dualopt.runs.recording",
    "dualopt.runs.trace",
    "dualopt.runs.certificates",
    "dualopt.runs.reference",
    "dualopt.runs.inference",
    "dualopt.problem.data",
    "dualopt.problem.models",
    "dualopt.app.estimators",
    "dualopt.methods.preparation",
    "dualopt.runs.recommendation",
    "dualopt.runs.costs",
    "dualopt.lab.verification",
    "dualopt.lab.proofs",
    "dualopt.runs.tuning",
    "dualopt.lab.rates",
    "dualopt.lab.testing",
    "dualopt.lab.claims",
    "dualopt.lab.attack",
    "dualopt.runs.plotting",
]


def setup(app: Any) -> dict[str, bool]:
    """Write the pages when Sphinx has read its configuration."""
    app.setup_extension("sphinx.ext.autodoc")  # has the event
    app.connect("config-inited", lambda *_: write_all())
    app.connect("autodoc-process-docstring", lambda *event: escape_stars(event[-1]), priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def escape_stars(lines: list[str]) -> None:
    """Keep shapes such as (N, *shape) from being read as the beginning of emphasis; literals stay as they are."""
    lines[:] = [re.sub(r"(?<![`\w\\*])\((\w+), \*(?=\w)", r"(\1, \\*", line) for line in lines]


def write_all() -> None:
    """Write all generated pages; those that did not change keep their time, so that a build takes up only the rest."""
    wanted = {
        path: text for pages in (documents(), claims(), gallery(), lessons(), reference()) for path, text in pages
    }
    for path in GENERATED.rglob("*"):
        if path.suffix in (".md", ".rst") and path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    export_lessons()
    for picture in [*(ROOT / "docs").glob("*.png"), *(ROOT / "docs").glob("*.csv")]:
        target = GENERATED / "docs" / picture.name
        if not target.exists() or target.stat().st_mtime < picture.stat().st_mtime:
            shutil.copy2(picture, target)


def documents() -> Iterator[tuple[Path, str]]:
    """Yield the pages of ``docs/``."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text().replace("](../figures/lessons/", "](lessons/")
        yield GENERATED / "docs" / page.name, linked(text).replace("](lessons/", "](../lessons/")
    others = [
        page.stem for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in ("which_method", "methods")
    ]
    listed = "\n".join(others)
    yield GENERATED / "docs" / "index.md", f"# More pages\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"


def linked(text: str) -> str:
    """Replace links to files of the repository, which the site does not have.

    Where the words of a link name claims or a method, it leads to them; any other link to a file that is not a page or
    a picture becomes its words.
    """
    known = targets()

    def defined(match: re.Match[str]) -> str:
        words, target = match.groups()
        name = words.strip("`")
        return f"[{words}]: #{known[name]}" if name in known else f"[{words}]: {target}"

    text = re.sub(r"^\[([^\]]+)\]: (\S+)$", defined, text, flags=re.MULTILINE)
    for words in re.findall(r"^\[([^\]]+)\]: \.\./\S+$", text, flags=re.MULTILINE):  # a test, for instance
        text = re.sub(rf"^\[{re.escape(words)}\]: .*\n?", "", text, flags=re.MULTILINE).replace(f"[{words}]", words)

    def inline(match: re.Match[str]) -> str:
        words, target = match.groups()
        if not target.startswith("../"):
            return match.group()
        names = re.findall(r"[\w-]+", words)
        if names and all(name in known for name in names):
            return ", ".join(f"[`{name}`](#{known[name]})" for name in names)
        return words

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", inline, text)


def targets() -> dict[str, str]:
    """Return where the names of claims and methods lead to."""
    import dualopt.methods
    from dualopt.spec.discover import discover as methods
    from theory._claims import discover

    found = {name: name for name in discover()}
    return found | {name: f"dualopt.methods.{method.__name__}" for name, method in methods(dualopt.methods).items()}


def report_sections() -> list[tuple[str, str]]:
    """Return title and text of every section of the report."""
    parts = re.split(r"^## (.+)\n", (ROOT / "theory" / "REPORT.md").read_text(), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def claims() -> Iterator[tuple[Path, str]]:
    """Yield one page of claims for each paper, and a page with the table of the statements."""
    from theory._claims import discover

    folders = {chapter.paper: chapter.folder for chapter in discover().values()}
    entries = []
    for title, text in report_sections():
        body = mathematics(text)
        if title in folders:
            name = folders[title]
            command = f"Run them: `python -m theory {name}`.\n"
            body = re.sub(r"^### (\w+)$", r"(\1)=\n### \1", body, flags=re.MULTILINE)
            body = body.replace("\n### ", "\n## ")
        elif title == "Statements of the papers":
            name, command = "statements", "`python -m theory --statements`\n"
        else:
            continue
        entries.append(name)
        yield GENERATED / "claims" / f"{name}.md", f"# {title}\n\n{command}\n{body}"
    listed = "\n".join(entries)
    head = (ROOT / "theory" / "REPORT.md").read_text().split("\n## ")[0].partition("\n")[2]
    yield (
        GENERATED / "claims" / "index.md",
        f"# Theorems and their verdicts\n{mathematics(head)}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n",
    )


def mathematics(text: str) -> str:
    """Return formulas as MyST reads them: what GitHub wants between dollars and backquotes."""
    return re.sub(r"\$`([^`]+)`\$", r"$\1$", text)


def pictures() -> dict[str, tuple[str, str]]:
    """Return what stands for each picture of the pages in ``docs/``, and its caption."""
    pattern = r"^!\[([^\]]+)\]\(([\w.]+)\)\n\n\*(.+?)\*\n(?=\n|\Z)"
    pages = (page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    found = (match.groups() for text in pages for match in re.finditer(pattern, text, flags=re.MULTILINE | re.DOTALL))
    return {picture: (words, caption) for words, picture, caption in found}


def gallery() -> Iterator[tuple[Path, str]]:
    """Yield the page of all figures."""
    from figures._program import discover

    shown = pictures()
    parts = ["# Gallery\n\nEvery figure is one command; times are those of two cores.\n"]
    for name, module in discover().items():
        doc = inspect.getdoc(module) or ""
        title, _, rest = doc.partition("\n")
        parts.append(f"## {name}\n\n{title}\n\n{rest.strip()}\n")
        parts.append(f"```\npython -m figures {name}\n```\n\nTakes {getattr(module, 'TIME', 'minutes')}.\n")
        for picture in (ROOT / "docs" / f"{stem}.png" for stem in PICTURES.get(name, [name])):
            if not picture.exists():
                continue
            words, caption = shown[picture.name]
            parts.append(f"![{words}](docs/{picture.name})\n\n*{caption}*\n")
    yield GENERATED / "gallery.md", "\n".join(parts)


def lessons() -> Iterator[tuple[Path, str]]:
    """Yield the texts of the course, with links to the exported chapters, its notebooks, and a page that lists them."""
    from figures.lessons import CHAPTERS
    from figures.lessons._notebook import source_of

    for name in CHAPTERS:
        source = ROOT / "figures" / "lessons" / f"{name}.md"
        text = linked(source.read_text(encoding="utf-8").replace("](../../", "](../"))
        link = f'<p><a href="../../lessons/{name}.html">Open the chapter</a>: it needs no server and no network.</p>'
        title, _, rest = text.partition("\n")
        own = f"[Its notebook](notebooks/{name}.md) makes its picture with public functions."
        yield GENERATED / "lessons" / f"{name}.md", f"{title}\n\n{link}\n\n{own}\n{rest}"
        yield GENERATED / "lessons" / "notebooks" / f"{name}.md", source_of(name).read_text(encoding="utf-8")
    readme = (ROOT / "docs" / "lessons" / "README.md").read_text(encoding="utf-8")
    text = readme.replace("](../../figures/lessons/", "](")
    link = '<p><a href="../../lessons/index.html">Open the course</a>, or read its texts:</p>'
    listed = "\n".join(CHAPTERS)
    title, _, rest = text.partition("\n")
    tree = f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```"
    executed = "\n".join(f"notebooks/{name}" for name in CHAPTERS)
    hidden = f"```{{toctree}}\n:hidden:\n:caption: Notebooks\n\n{executed}\n```"
    text = f"{title}\n\n{link}\n\n{tree}\n\n{hidden}\n{rest}"
    yield GENERATED / "lessons" / "index.md", text


def code_hash() -> str:
    """Return a hash of all code that executed pages may use."""
    digest = hashlib.sha256()
    for path in sorted(path for part in ("dualopt", "theory", "figures") for path in (ROOT / part).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def export_lessons() -> None:
    """Export the course where it is older than the code that computes it."""
    from figures.lessons._export import export

    folder = GENERATED / "extra" / "lessons"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [p for part in ("dualopt", "theory", "figures/lessons") for p in (ROOT / part).rglob("*") if p.is_file()]
    newest = max(p.stat().st_mtime for p in sources if "__pycache__" not in p.parts)
    index = folder / "index.html"
    if not index.exists() or index.stat().st_mtime < newest:
        for _ in export(folder):
            pass


def reference() -> Iterator[tuple[Path, str]]:
    """Yield one page for each public module, with everything that it exports."""
    for name in MODULES:
        module = importlib.import_module(name)
        yield GENERATED / "api" / f"{name}.rst", "\n".join(_module_page(name, module))
    rows = "\n".join(f"   {name}" for name in MODULES)
    title = "API reference\n=============\n\n"
    yield GENERATED / "api" / "index.rst", f"{title}.. toctree::\n   :maxdepth: 1\n\n{rows}\n"


def own_members(thing: type) -> list[str]:
    """Return the public members with a text of their own that no base class has: those stand with the base class."""
    known = {name for base in thing.__mro__[1:] for name in vars(base)}
    found = []
    for name, member in vars(thing).items():
        if name.startswith("_") or name in known or not isinstance(member, _DOCUMENTED) or not inspect.getdoc(member):
            continue
        if issubclass(thing, tuple) and name in getattr(thing, "_fields", ()):
            continue  # described in the text of the class
        found.append(name)
    return found


def _module_page(name: str, module: Any) -> Iterator[str]:
    yield f"{name}\n{'=' * len(name)}\n"
    yield f".. automodule:: {name}\n   :no-members:\n"
    yield f".. currentmodule:: {name}\n"
    for public in sorted(getattr(module, "__all__", []), key=str.lower):
        thing = getattr(module, public)
        if name == "dualopt" and any(public in importlib.import_module(other).__all__ for other in MODULES[1:]):
            continue  # documented where it lives
        if inspect.isclass(thing):
            members = ", ".join(own_members(thing))
            yield f".. autoclass:: {public}\n" + (f"   :members: {members}\n" if members else "")
        elif callable(thing):
            yield f".. autofunction:: {public}\n"
        else:
            yield f".. autodata:: {public}\n   :no-value:\n"
