"""Measures the house: lines, modules, the files that one message enters, pronouns in prose, names that say nothing.

    python -m devtools.house

`tests/packaging/test_house.py` holds the limits.
"""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from devtools.message_path import ROOT, record

LIBRARY: Final = ROOT / "exactlyonce"
SPLINTER: Final = 80
"""Lines below which a module is a part of the only other module that imports it."""
EMPTY_NAMES: Final = frozenset({"one", "found", "given", "known"})
"""Names of variables that do not say what a variable holds."""
_PRONOUN: Final = re.compile(
    r"\b(who|whom|whose|whoever|what|whatever|which|whichever|that|it|its|itself|they|them|their|those|these|this|one|ones"
    r"|others?|nobody|somebody|anybody|such)\b",
    re.IGNORECASE,
)
_SECTION: Final = re.compile(r"^\s*(?:Args|Raises|Returns|Attributes|Yields|Examples?):\s*$", re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*] |\n\s+\w+: ")
_FEW: Final = 4
"""Words below which a text between two ends is no sentence."""
_GENERATED: Final = re.compile(r"lock\.json$|(^|/)locks?/|requirements.*\.txt$|\.(png|svg)$")


def pronouns(texts: Iterable[str]) -> float:
    """Pronouns in 100 words of prose. Code and sentences of less than four words do not count."""
    words = counted = 0
    for text in texts:
        for sentence in _END.split(_SECTION.sub(" ", re.sub(r"`[^`]*`", "X", text))):
            length = len(re.findall(r"[A-Za-z']+", sentence))
            if length >= _FEW:
                words += length
                counted += len(_PRONOUN.findall(sentence))
    return 100 * counted / words if words else 0.0


def docstrings(files: Iterable[Path]) -> Iterator[str]:
    """The docstrings of Python files."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


def paragraphs(pages: Iterable[Path]) -> Iterator[str]:
    """The paragraphs of Markdown pages, without code, tables and headings."""
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        lines = (line for line in text.split("\n") if not line.startswith(("|", "#", "    ", "<", "-->")))
        yield from "\n".join(lines).split("\n\n")


def rooms() -> Mapping[str, list[Path]]:
    """The Python files of each folder of the library, and those at its root."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for file in sorted(LIBRARY.rglob("*.py")):
        folder = file.relative_to(LIBRARY).parts[0]
        files["" if folder.endswith(".py") else folder].append(file)
    return files


def empty_names(tree: ast.AST) -> list[str]:
    """Variables and parameters whose names say nothing, once for each place."""
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    parameters = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    return [name for name in (*stored, *parameters) if name in EMPTY_NAMES]


def splinters() -> list[str]:
    """Short modules of the library that one other module alone imports."""
    names = {_module(file): file for file in LIBRARY.rglob("*.py") if file.name != "__init__.py"}
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for file in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    importers[name].add(_module(file))
    lengths = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in names.items()}
    return sorted(name for name, length in lengths.items() if length < SPLINTER and len(importers[name]) == 1)


def files_of_a_message() -> list[str]:
    """The files of the library that one message enters, in order."""
    entered = dict.fromkeys(call.path for call in asyncio.run(record()))
    return [path for path in entered if path.startswith("exactlyonce/") and "/testing/" not in path]


def lines(*folders: str) -> int:
    """Lines of committed files, without lock files and pictures; of the whole repository without folders."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607
    files = (ROOT / name for name in listed.splitlines() if not _GENERATED.search(name))
    return sum(file.read_bytes().count(b"\n") for file in files if file.is_file())


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def main() -> None:
    """Print all measures."""
    files = [file for room in rooms().values() for file in room]
    print(
        f"house {lines() - lines('packages'):,} lines, packages {lines('packages'):,}, library {lines('exactlyonce'):,}"
    )
    print(
        f"library: {len(files)} modules, median {median(map(_length, files)):.0f} lines, longest {max(map(_length, files))}"
    )
    print(f"a message enters {len(files_of_a_message())} files; splinters: {', '.join(splinters()) or 'none'}")
    for room, members in rooms().items():
        print(f"  {room or 'root':12} {pronouns(docstrings(members)):4.1f} pronouns in 100 words of docstrings")
    print(f"  {'docs':12} {pronouns(paragraphs((ROOT / 'docs').rglob('*.md'))):4.1f} pronouns in 100 words")


def _length(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
