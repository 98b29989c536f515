"""Small files, small functions, no waiting, no leftovers: in everything that is ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.sources import OURS, ROOT, files, name_of

MOST_LINES = 700
"""A file is cut by its subject; one that is longer has two."""
MOST_LINES_OF_A_FUNCTION = 60
TEXTS = ("*.md", "*.toml", "*.json", "*.txt", "*.yaml", "*.yml", "*.bicep", "Makefile")

REAL_PROCESSES = (
    "tests/acceptance/",
    "tests/contract/",
    "packages/local-cosmos/",
    "packages/function-host/",
    "packages/exactlyonce-dev/",
)
HERE = Path(__file__).resolve()
"""The only file that may name what it looks for."""
LEFTOVERS = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
MACHINES = re.compile(r"(?<![\w.:/])/(?:home|Users|root|work)/\w|\b[A-Z]:\\Users\b")


def sources() -> list[Path]:
    return [*sorted(ROOT.glob("*.py")), *files(*OURS)]


def texts() -> list[Path]:
    folders = (ROOT, ROOT / "docs", ROOT / ".ci", ROOT / "infra", ROOT / "benchmarks")
    found = {path for pattern in TEXTS for folder in folders for path in _texts(folder, pattern)}
    return sorted(found)


def _texts(folder: Path, pattern: str) -> Iterator[Path]:
    return folder.glob(pattern) if folder == ROOT else folder.rglob(pattern)


def long_functions(tree: ast.AST) -> list[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [
        function.name
        for function in functions
        if (function.end_lineno or 0) - function.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]


def sleeps(tree: ast.AST) -> list[int]:
    """Lines that wait for time to pass: by `time.sleep`, or by `asyncio.sleep` for a constant that is not zero."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep", "asyncio.sleep"):
            wanted = node.args[0] if node.args else None
            zero = isinstance(wanted, ast.Constant) and wanted.value == 0
            yielding = ast.unparse(node.func) == "asyncio.sleep" and (zero or not isinstance(wanted, ast.Constant))
            if not yielding:
                found.append(node.lineno)
    return found


def polls(tree: ast.AST) -> set[int]:
    """Lines inside `while` loops: those of tests that ask a real process again until it has done something."""
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.While))
    return {line for loop in loops for line in range(loop.lineno, (loop.end_lineno or 0) + 1)}


def test_every_file_fits_the_head_of_its_reader() -> None:
    texts = {name_of(path): path.read_text() for path in sources()}
    assert [name for name, text in texts.items() if len(text.splitlines()) > MOST_LINES] == []
    assert [(name, long) for name, text in texts.items() for long in long_functions(ast.parse(text))] == []


def test_no_test_waits_for_time_to_pass() -> None:
    found = []
    for path in (*files("tests"), *(ROOT / "packages").glob("*/*_tests/**/*.py")):
        name, tree = name_of(path), ast.parse(path.read_text())
        allowed = polls(tree) if name.startswith(REAL_PROCESSES) else set()
        found += [f"{name}:{line}" for line in sleeps(tree) if line not in allowed]
    assert found == []


def test_nothing_is_left_over_and_no_machine_is_named() -> None:
    contents = {name_of(path): path.read_text() for path in (*sources(), *texts()) if path != HERE}
    assert {name: found for name, text in contents.items() if (found := LEFTOVERS.findall(text))} == {}
    assert {name: found for name, text in contents.items() if (found := MACHINES.findall(text))} == {}


def test_there_is_something_to_look_at() -> None:
    names = {name_of(path) for path in (*sources(), *texts())}
    assert {
        "exactlyonce/values/envelope.py",
        "handlers/messages.py",
        "pyproject.toml",
        "tests/packaging/test_tidy.py",
    } <= names


def test_each_untidiness_is_noticed() -> None:
    body = "\n".join("    x = 1" for _ in range(MOST_LINES_OF_A_FUNCTION))
    assert long_functions(ast.parse(f"def long():\n{body}")) == ["long"]
    assert long_functions(ast.parse(f"async def long():\n{body}")) == ["long"]
    for line in ("time.sleep(0)", "time.sleep(n)", "asyncio.sleep(0.1)", "sleep(1)"):
        assert sleeps(ast.parse(line)) == [1]
    assert polls(ast.parse("while x:\n    y\nz")) == {1, 2}
    for line in ("asyncio.sleep(0)", "clock.sleep(5)", "asyncio.sleep(delay)"):
        assert sleeps(ast.parse(line)) == []
    assert LEFTOVERS.search("# TODO: later")
    for place in ("/home/me/x", "C:\\Users\\me", "'/" + "work/main'"):
        assert MACHINES.search(place)
    for place in ("https://example.org/home/x", "a/root/b", "/workspace", "~/x"):
        assert not MACHINES.search(place)
