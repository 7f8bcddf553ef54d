"""Configuration of Sphinx; the pages under ``generated`` are written before each build."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled functions then have signatures
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import generate
from links import rewritten
from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

import crawl_envs

ARRAY = re.compile(
    r"~?(?:numpy\.)?ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?(?:numpy\.)?dtype\[([^\]]*)\]\]"
)
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
"""What signatures have for NDArray and ArrayLike."""
FAMILY_CLASSES = {place.partition(":")[2] for place in crawl_envs.FAMILIES.values()}
"""Environments, whose docstrings are in Markdown."""

project = "crawl_envs"
author = "The crawl_envs authors"
project_copyright = f"{author}, MIT licence"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["cards.css"]
html_theme = "furo"
html_title = project
html_extra_path = ["generated/llms.txt"]
html_show_sourcelink = False
myst_enable_extensions = ["attrs_block", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks are kept with their outputs; the tests execute them
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_attr_annotations = False
toc_object_entries = False
suppress_warnings = ["ref.python"]  # an object may be on two pages: its module's, its folder's
autosummary_generate_overwrite = True


def setup(app):
    """Write the generated pages, and adapt all others and the docstrings when they are read."""
    generate.write()
    app.connect("source-read", _rewrite)
    app.connect("autodoc-process-docstring", _adapt, priority=400)
    app.connect("autodoc-process-signature", _shorten)


def _rewrite(app, page, source):
    if not page.startswith("generated/"):
        source[0] = rewritten(source[0], f"docs/{page}.md", f"{page}.md")


def _adapt(app, what, name, thing, options, lines):
    if name.rpartition(".")[2] in FAMILY_CLASSES:
        lines[:] = [lines[0], "", "Its docstring is a page of :doc:`/environments`."]
    lines[:] = [line.replace("env, **", r"env, \**") for line in lines]


def _shorten(app, what, name, thing, options, signature, returns):
    return tuple(
        text and ARRAY.sub(r"NDArray[\1]", text.replace(ARRAY_LIKE, "ArrayLike"))
        for text in (signature, returns)
    )
