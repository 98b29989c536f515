"""The tests that reach what changed, by what they import.

    python -m devtools.affected tests/unit

prints those test files of the folder that import, over however many steps, a Python file that differs from where this branch
left `main`, or is not committed. `from package import name` leads to the module that defines the name, not to everything
else that the package names. A text that is a dotted name of a module counts as an import of it: so are processes started, and
modules found by name (`"spark_jobs.audit"`, `"handlers.shooting_range:ranges"`). Names that are put together are not seen.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

_PACKAGES: Final = ("exactlyonce-dev", "function-host", "local-cosmos", "local-service-bus", "yieldcheck")
_ROOTS: Final = ("", *(f"packages/{name}/" for name in _PACKAGES))
"""Folders from which modules are imported."""
_ALL: Final = ("pyproject.toml", "conftest.py", "locks/all.txt")
"""Files that every test depends on."""
_DOTTED: Final = re.compile(r"\w+(\.\w+)+(:\w+)?")
"""A name of a module in a package, or of something in it."""


class Imports:
    """Which file imports which.

    Args:
        sources: texts of Python files by their paths, relative to the repository.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._paths = {_module_of(path): path for path in sources}
        self._sources = sources
        self._trees: dict[str, ast.Module] = {}
        self._found: dict[str, list[tuple[str, bool]]] = {}

    def reached(self, path: str) -> set[str]:
        """Paths that a file imports, over however many steps; itself and every `conftest.py` above it are among them, but for
        that of the repository."""
        above = [f"{folder}/conftest.py" for folder in PurePosixPath(path).parents]
        found, followed = set[str](), set[str]()
        left = [path, *(path for path in above if path in self._sources)]
        while left:
            one = left.pop()
            if one not in followed:
                followed.add(one)
                for next_one, whole in self._imports_of(one):
                    found.add(next_one)
                    left += [next_one] if whole else []
        return found | followed

    def _imports_of(self, path: str) -> list[tuple[str, bool]]:
        if path not in self._found:
            self._found[path] = [*dict.fromkeys(self._imported(path))]
        return self._found[path]

    def _tree(self, path: str) -> ast.Module:
        if path not in self._trees:
            self._trees[path] = ast.parse(self._sources[path])
        return self._trees[path]

    def _imported(self, path: str) -> Iterator[tuple[str, bool]]:
        """What it imports, and whether it takes all of it: a package may only pass a name on."""
        for node in ast.walk(self._tree(path)):
            if isinstance(node, ast.Import):
                yield from self._defining((alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = _absolute(node, path)
                yield from self._defining((module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
                module = node.value.partition(":")[0]
                yield from self._defining([(module, None), (f"{module}.__main__", None)])

    def _defining(self, names: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, bool]]:
        for module, name in names:
            path = self._paths.get(module)
            if name is not None and (inner := self._paths.get(f"{module}.{name}")) is not None:
                yield inner, True
            elif path is not None and name is not None and (origin := self._origin(path, name)) is not None:
                yield path, False
                yield from self._defining([origin])
            elif path is not None:
                yield path, True

    def _origin(self, path: str, name: str) -> tuple[str, str] | None:
        """Where a package has a name from that it only passes on."""
        if PurePosixPath(path).name != "__init__.py":
            return None
        for node in self._tree(path).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return _absolute(node, path), alias.name
        return None


def affected(sources: Mapping[str, str], changed: Iterable[str], folder: str) -> list[str]:
    """Paths of the test files in a folder that reach what changed.

    Args:
        sources: texts of Python files by their paths, relative to the repository.
        changed: paths.
        folder: of the tests.
    """
    tests = [path for path in sources if path.startswith(f"{folder}/") and PurePosixPath(path).name.startswith("test_")]
    changes = {path for path in changed if path in sources or path in _ALL}
    if not changes:
        return []
    if changes.intersection(_ALL):
        return sorted(tests)
    imports = Imports(sources)
    return sorted(path for path in tests if imports.reached(path) & changes)


def changed_since(ref: str) -> list[str]:
    """Paths that differ from where this branch left another one, with those that are not committed.

    Raises:
        subprocess.CalledProcessError: Git knows no such branch.
    """
    base = _git("merge-base", "HEAD", ref).strip()
    return [*_git("diff", "--name-only", base).splitlines(), *_git("ls-files", "-o", "--exclude-standard").splitlines()]


def python_files() -> dict[str, str]:
    """Texts of all Python files of the repository, by their paths."""
    return {path: Path(path).read_text(encoding="utf-8") for path in repository_files("*.py")}


def repository_files(pattern: str = "*") -> list[str]:
    """Paths of all files, relative to the repository: what Git knows, and what it does not ignore."""
    paths = _git("ls-files", "-c", "-o", "--exclude-standard", pattern).splitlines()
    return sorted(path for path in paths if Path(path).is_file())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        "python -m devtools.affected", description="Print the tests that reach what changed."
    )
    parser.add_argument("folder", help="of the tests, such as tests/unit")
    parser.add_argument("--since", default="main", help="the branch that this one left (default %(default)s)")
    given = parser.parse_args(arguments)
    sys.stdout.writelines(f"{path}\n" for path in affected(python_files(), changed_since(given.since), given.folder))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout  # noqa: S607


def _module_of(path: str) -> str:
    root = max((item for item in _ROOTS if path.startswith(item)), key=len)
    return path.removeprefix(root).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _absolute(node: ast.ImportFrom, path: str) -> str:
    """The module that `from … import` names."""
    if not node.level:
        return node.module or ""
    package = _module_of(str(PurePosixPath(path).parent / "__init__.py")).split(".")
    parents = package[: len(package) - node.level + 1]
    return ".".join([*parents, node.module] if node.module else parents)


if __name__ == "__main__":
    main()
