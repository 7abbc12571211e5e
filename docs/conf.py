"""The site: Sphinx with the theme of pandas and numpy, Markdown, executed examples and a gallery."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pdrisk

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "Agg")

project = "pdrisk"
author = "The pdrisk developers"
copyright = author  # noqa: A001 - Sphinx's name
release = version = pdrisk.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "executed_examples",
    "reference_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["gallery/*", "**/sg_execution_times.rst", "sg_execution_times.rst", "_build"]
suppress_warnings = ["config.cache"]  # of the gallery's functions
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
default_role = "code"
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 60,
}

html_theme = "pydata_sphinx_theme"
html_title = "pdrisk"
html_static_path = ["_static"]
html_css_files = ["pdrisk.css"]
html_search_scorer = str(HERE / "_static" / "search.js")  # ranks; it replaces functions of Sphinx's searchtools.js
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
templates_path = ["_templates"]
html_sidebars = {"**": ["contents.html"]}
html_theme_options = {
    "logo": {"text": "pdrisk"},
    "navbar_start": ["navbar-logo"],
    "navbar_center": [],
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-field"],
    "search_bar_text": "Search, or press Ctrl+K",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_exclude = ".linenos, .gp, .go"

# The pages in the order of the navigation, at most 30: each answers the question in its title.
NAVIGATION = {
    "Start": ["index", "install", "tutorial", "examples/index"],
    "How to": [
        "epsilon",
        "groups",
        "margins",
        "releases",
        "schemas",
        "people",
        "surveys",
        "tables",
        "sql",
        "engines",
        "r",
        "study",
        "ledger",
        "explaining",
        "disclosure",
        "attack",
        "randomized-response",
    ],
    "Reference": ["reference/api", "reference/options", "glossary"],
    "Why": [
        "mechanisms",
        "numbers",
        "threat-model",
        "guarantees",
        "reproducing",
        "benchmarks",
    ],
}


DRAW = "All noise on this page is one draw: run the script, and its digits differ."


def complete(app: object, page: str, source: list[str]) -> None:
    """Add what the site needs: the navigation to the home page, a sentence on noise to each example."""
    if page.startswith("examples/plot_"):
        target = f".. _sphx_glr_download_{page.replace('/', '_')}.py:"
        source[0] = source[0].replace(target, f"*{DRAW}*\n\n{target}")
    if page == "architecture":  # for those who change the code: found by the search
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"
    if page == "index":
        for caption, pages in NAVIGATION.items():
            names = "\n".join("Home <self>" if name == "index" else name for name in pages)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"


def setup(app: object) -> None:
    """Connect what the site does itself."""
    app.connect("source-read", complete)  # type: ignore[attr-defined]
