"""Writes the page `docs/faithful.md` from the tests: `python -m local_cosmos_tests.faithful_page`.

Each test is a sentence. Those marked `simplified` say what the service does instead; what is missing is the table of
`test_out_of_scope.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from local_cosmos_tests.test_out_of_scope import MISSING

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parent / "docs" / "faithful.md"
_OF_PAGES: Final = (
    "test_comparison",
    "test_connect_page",
    "test_faithful_page",
    "test_functions_page",
    "test_out_of_scope",
    "test_readme",
    "test_trouble_page",
)
"""Modules that say nothing of the service."""

_OWN: Final = ("test_administration", "test_faults", "test_front_page", "test_stories", "test_storage")
"""Modules on what the service does not have."""

_HEAD: Final = """# What is faithful, simplified and missing

Every sentence is the name of a test that shows it. `python -m local_cosmos_tests.faithful_page` writes this page, and a test
compares it with the tests.
"""


class Shown(NamedTuple):
    """What a test shows.

    Attributes:
        sentence: Its name.
        file: Where it is.
        service: What the service does instead; empty for the same.
    """

    sentence: str
    file: str
    service: str

    def link(self) -> str:
        return f"[{self.sentence[0].upper()}{self.sentence[1:]}](../local_cosmos_tests/{self.file})"


def page() -> str:
    """The text of the page."""
    modules = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(TESTS.glob("test_*.py"))}
    shown = {file: list(_shown(file, tree)) for file, tree in modules.items() if file.stem not in _OF_PAGES}
    lines = [_HEAD]
    for part, is_own in (("Faithful", False), ("For tests, and not in the service", True)):
        lines += [f"## {part}", ""]
        for file in (file for file in shown if (file.stem in _OWN) is is_own):
            about, *_ = (ast.get_docstring(modules[file]) or "").splitlines()
            lines += [about, "", *(f"- {test.link()}." for test in shown[file] if not test.service), ""]
    lines += ["## Simplified", "", "| here | the service |", "| --- | --- |"]
    lines += [f"| {test.link()} | {test.service} |" for tests in shown.values() for test in tests if test.service]
    lines += ["", "## Missing", "", "Each is refused by name, and nothing is written.", ""]
    lines += [f"- {missing.name}: {missing.refusal[0]}" for missing in MISSING]
    return "\n".join(lines) + "\n"


def _shown(file: Path, tree: ast.Module) -> Iterator[Shown]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            sentence = node.name.removeprefix("test_").replace("_", " ")
            yield Shown(sentence, file.name, next(filter(None, map(_service, node.decorator_list)), ""))


def _service(decorator: ast.expr) -> str:
    """What `@pytest.mark.simplified(service=...)` says; empty for another decorator."""
    if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.simplified"):
        return ""
    (said,) = decorator.keywords
    return str(ast.literal_eval(said.value))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
