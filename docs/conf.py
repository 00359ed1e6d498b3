"""Settings of the documentation site: `make docs` builds it into build/site."""

import os
import re
import warnings
from pathlib import Path

import matplotlib

import softmargin

matplotlib.use("Agg")
# Examples are run from docs/; a warning in one of them is an error, as it is in the tests.
os.environ.setdefault("MPLBACKEND", "Agg")
warnings.filterwarnings("error", module="softmargin")

HERE = Path(__file__).parent

project = "softmargin"
author = "The softmargin developers"
copyright = author
version = release = softmargin.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# README.md is the list of pages for those who read the files where they lie; on the site the menus are.
exclude_patterns = ["auto_examples/**/*.md5", "auto_examples/GALLERY_HEADER.rst"]
templates_path = ["templates"]
default_role = "py:obj"
highlight_language = "none"
nitpicky = False

# --- pages in Markdown ---------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # headings are targets of links, by the names that GitHub gives them

# --- the API, from the docstrings ----------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings name the types
autodoc_mock_imports = ["mlflow"]  # softmargin.mlflow is documented without it, because it is large
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # templates/autosummary/class.rst lists them
numpydoc_xref_param_type = False

# --- the examples --------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "remove_config_comments": True,
    "doc_module": ("softmargin",),
    "reference_url": {"softmargin": None},
    "backreferences_dir": "auto_examples/backreferences",
    "inspect_global_variables": True,
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("_repr_html_",),  # a report is shown; what matplotlib returns is not
}

# --- the site ------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "softmargin"
html_static_path = ["static"]
html_css_files = ["softmargin.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "softmargin"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "quickstart": []}  # there is nothing else in their sections


def _link_measurements(app, docname, source):
    """Links to the tables of measurements, which are no pages of the site, become downloads."""
    source[0] = re.sub(r"\]\(((?:\.\./)+benchmarks/[\w/]+\.md)\)", r"](path:\1)", source[0])


def _without_scikit_learns_site(app, what, name, obj, options, lines):
    """Inherited docstrings of scikit-learn link to pages of its own site and hold formulas in TeX: keep their words."""
    if (getattr(obj, "__module__", None) or "").startswith("sklearn."):
        text = re.sub(r":ref:`([^`<]+?)\s*<[^`]*>`", r"\1", "\n".join(lines))
        lines[:] = re.sub(r":(?:math|term|ref):`([^`]+)`", r"``\1``", text).splitlines()


def setup(app):
    app.connect("source-read", _link_measurements)
    app.connect("autodoc-process-docstring", _without_scikit_learns_site)
