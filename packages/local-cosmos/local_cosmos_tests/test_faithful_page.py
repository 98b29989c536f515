"""`docs/faithful.md` has what is faithful, simplified and missing, as the tests show it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from local_cosmos_tests.test_out_of_scope import MISSING

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parent / "docs" / "faithful.md"
_OF_PAGES: Final = ("connect_page", "faithful_page", "out_of_scope", "readme", "trouble_page")
"""Tests that say nothing of the service."""
_OWN: Final = ("administration", "faults", "front_page", "stories", "storage")
"""Tests of what the service does not have."""

_HEAD: Final = """# What is faithful, simplified and missing

Each subject leads to its tests, whose names are sentences. `python -m local_cosmos_tests.test_faithful_page` writes this page.
"""


def page() -> str:
    """The text of the page."""
    files = {file.stem.removeprefix("test_"): file for file in sorted(TESTS.glob("test_*.py"))}
    modules = {
        name: ast.parse(file.read_text(encoding="utf-8")) for name, file in files.items() if name not in _OF_PAGES
    }
    subjects = {name: f"- [{_head(module)}](../local_cosmos_tests/test_{name}.py)" for name, module in modules.items()}
    simplified = [
        f"| [{_sentence(node)}](../local_cosmos_tests/test_{name}.py) | {service} |"
        for name, module in modules.items()
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for service in map(_service, node.decorator_list)
        if service
    ]
    parts = {
        "Faithful": [line for name, line in subjects.items() if name not in _OWN],
        "For tests, and not in the service": [line for name, line in subjects.items() if name in _OWN],
        "Simplified": ["| here | the service |", "| --- | --- |", *simplified],
        "Missing": [
            "Each is refused by name, and nothing is written.",
            "",
            *(f"- {missing.name}: {missing.refusal[0]}" for missing in MISSING),
        ],
    }
    return "\n".join([_HEAD, *(line for part, lines in parts.items() for line in (f"## {part}", "", *lines, ""))])


def _head(module: ast.Module) -> str:
    return (ast.get_docstring(module) or "").partition("\n")[0].removesuffix(".")


def _sentence(test: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    sentence = test.name.removeprefix("test_").replace("_", " ")
    return sentence[0].upper() + sentence[1:]


def _service(decorator: ast.expr) -> str:
    """The text of `@pytest.mark.simplified(service=...)`; empty for another decorator."""
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.simplified"):
        return ""
    return str(ast.literal_eval(decorator.keywords[0].value))


def test_the_page_is_made_of_the_tests() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "Run `python -m local_cosmos_tests.test_faithful_page`."
    assert page().count("| [") > 10, "What is simplified is marked at its test."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
