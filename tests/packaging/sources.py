"""Our own files, and their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = ROOT / "exactlyonce"
OURS: Final = (
    "exactlyonce",
    "handlers",
    "spark_jobs",
    "verification",
    "demo",
    "devtools",
    "examples",
    "tests",
    "packages",
)


def files(*folders: str) -> list[Path]:
    """Python files in these folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """How a path is told: relative to the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """The dotted name of a module."""
    return name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what a module imports: of `from a import b` both `a` and `a.b`, since `b` may be a module.

    Relative imports are left out: they stay in the package.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
