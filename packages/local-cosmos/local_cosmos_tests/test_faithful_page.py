"""The page of what is faithful, simplified and missing is that of the tests."""

from __future__ import annotations

from local_cosmos_tests.faithful_page import PAGE, page

PARTS = ("Faithful", "Simplified", "Missing")


def test_the_page_is_made_of_the_tests() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "Run `python -m local_cosmos_tests.faithful_page`."


def test_the_page_has_its_three_parts() -> None:
    faithful, simplified, missing = (page().partition(f"\n## {part}\n")[2].partition("\n## ")[0] for part in PARTS)
    assert len(faithful.splitlines()) > 200
    assert len(simplified.splitlines()) > 10
    assert len(missing.splitlines()) > 20
