r"""The course *Federated optimization by duality*: twelve chapters to be touched, ``python -m figures.lessons``.

Every chapter is one module here, which defines ``CHAPTER`` (``_parts`` says of what it consists), and one text beside
it, ``NAME.md``, with the headings of ``_text.PARTS``. ``_find.CHAPTERS`` is their order. A term is defined in bold
where it first occurs, and has a line in ``glossary.md``.

What a chapter *measures* is a function of a position ``u``, the coordinates of the points that the reader drags, and of
parameters: it runs the real methods there and returns what they did. ``_quantities`` says which functions of the
position these may be, finds their matrices on a basis, and a page multiplies; no method is written in JavaScript.
A theorem of a chapter is a claim of ``theory`` and a function that returns the case of a position: both sides of its
inequalities become tables too, so that a page judges where the reader is, as ``dualopt.lab.claims.check`` does there.

The scripts of a page: ``_numbers.js`` multiplies, ``_marks.js`` keeps elements of pictures, ``_plane.js`` and
``_chart.js`` draw, ``_chapter.js`` holds what the reader did, ``_page.js`` the address. They are put into the page,
for a page that is opened from a file loads no modules.
"""

from figures.lessons._find import CHAPTERS, load
from figures.lessons._notebook import show

__all__ = ["CHAPTERS", "load", "show"]
