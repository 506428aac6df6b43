"""The site: `nox -s docs` builds it offline; warnings are errors, and links are checked."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from dpfast import __version__


def format_warning(message, category, *_):
    """Show what a tutorial warns of without the path of its file, which is one of the machine that builds."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = format_warning

project, author, release = "dpfast", "The dpfast authors", __version__
project_copyright = "The dpfast authors, Apache-2.0"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "reference_pages",
    "docstring_text",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
# What runs wrote as files of their own, and what sphinx-gallery leaves beside its pages
exclude_patterns = ["_*", "tutorials/*", "gallery/*", "**.ipynb", "**.json", "pages/**/*.py", "README.md"]
nitpicky = False
html_theme = "pydata_sphinx_theme"
html_title = f"dpfast {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],  # a field would make it two lines at 1000 pixels
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "gallery"],
    "gallery_dirs": ["pages/tutorials", "pages/gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "plot_gallery": True,
    "show_signature": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "min_reported_time": 1_000,
    "capture_repr": ("_repr_html_",),
    "first_notebook_cell": "%matplotlib inline",
}
