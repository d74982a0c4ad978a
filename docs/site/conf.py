"""The documentation site: ``python -m sphinx -W docs/site docs/site/_build``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import pages  # noqa: E402

import dualopt  # noqa: E402

project = "dualopt"
author = "The dualopt developers"
version = release = dualopt.__version__

extensions = [
    "pages",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx.ext.viewcode",
    "sphinx_design",
]
exclude_patterns = ["_build", ".jupyter_cache", "jupyter_execute"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
smartquotes = False  # options begin with two hyphens
nb_execution_mode = "cache"
# What pages print is that of the present code: a changed line of it gives another cache.
nb_execution_cache_path = str(HERE / "_build" / ".jupyter_cache" / pages.code_hash())
nb_output_stderr = "remove"
nb_merge_streams = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autodoc_typehints = "none"  # numpydoc shows types in words, with shapes
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "dualopt"
html_show_sourcelink = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"]}
html_static_path = ["_static"]
html_extra_path = ["generated/extra"]  # the exported course
html_css_files = ["site.css"]
html_sidebars = {page: [] for page in ("index", "quickstart", "glossary", "generated/docs/*", "generated/gallery")}
