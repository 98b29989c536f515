"""The documentation site shows every page and every public name. `make docs` builds it."""

from __future__ import annotations

import re

import exactlyonce
import exactlyonce.errors
import exactlyonce.hosting
import exactlyonce.testing
from tests.packaging.sources import ROOT

DOCS = ROOT / "docs"
ENTRY = re.compile(r"^(?:.+ <)?([^\s<>:`#|]+?)>?$", re.MULTILINE)


def described(page: str) -> set[str]:
    """Names of which a page of the reference shows the docstrings."""
    return set(re.findall(r"^\.\. auto\w+:: ([\w.]+)", (DOCS / "reference" / f"{page}.md").read_text(), re.MULTILINE))


def listed(page: str) -> set[str]:
    """Pages that the tables of contents of a page name, without their ending."""
    folder = (DOCS / page).parent
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    entries = {entry for block in blocks for entry in ENTRY.findall(block)}
    return {
        str(path.resolve().relative_to(ROOT).with_suffix(""))
        for entry in entries
        for path in folder.glob(f"{entry}.md")
    }


def test_every_name_for_business_code_is_described() -> None:
    errors = set(exactlyonce.errors.__dict__)
    assert described("business") >= set(exactlyonce.__all__) - errors
    assert "exactlyonce.errors" in described("business")


def test_every_name_for_an_application_is_described() -> None:
    assert described("hosting") == set(exactlyonce.hosting.__all__)


def test_every_name_for_tests_is_described() -> None:
    assert described("testing") == set(exactlyonce.testing.__all__)


def test_every_page_is_in_a_table_of_contents() -> None:
    found = (*DOCS.rglob("*.md"), *ROOT.glob("packages/*/README.md"), *ROOT.glob("packages/*/docs/*.md"))
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in found if "_build" not in path.parts}
    assert pages - listed("index.md") - listed("decisions/index.md") == {"docs/index"}
