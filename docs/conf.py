"""The documentation site: the repository's pages in reading order, and the public API from its docstrings.

The root of the repository is the root of the site, so a link between pages is the same on both.
"""

import exactlyonce

project = "exactlyonce"
release = version = exactlyonce.__version__
html_title = f"{project} {release}"
html_theme = "furo"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinxcontrib.mermaid"]
root_doc = "docs/index"
include_patterns = ["docs/**", "*.md", "infra/README.md", "packages/*/README.md", "packages/*/docs/*.md"]
exclude_patterns = ["docs/_build"]

# Links into pages are those of GitHub, so one text serves both.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

default_role = "code"  # Single backticks in docstrings are code, as in the pages.

# Members in the order of their source, since that is the order in which they are read.
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
