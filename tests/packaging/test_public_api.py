"""The public surface: what can be imported, what that loads, and that all of it is explained."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator

import pytest

import exactlyonce
import exactlyonce.errors
from tests.packaging.sources import LIBRARY, ROOT, files, module_of, name_of

PACKAGES = ("exactlyonce", "exactlyonce.testing", "exactlyonce.hosting")


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_complete_and_importable(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    tree = ast.parse((LIBRARY.parent / package.replace(".", "/") / "__init__.py").read_text())
    imported = [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert sorted(name for name in imported if name != "annotations") == module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_the_package_exports_the_base_of_all_errors_and_its_groups() -> None:
    errors = {name: item for name, item in vars(exactlyonce.errors).items() if isinstance(item, type)}
    base = exactlyonce.ExactlyOnceError
    groups = {name for name, error in errors.items() if error is base or error.__base__ is base}
    assert groups == errors.keys() & set(exactlyonce.__all__)


def test_the_exception_tree_drawn_at_the_top_is_the_one_there_is() -> None:
    drawn: list[tuple[int, str]] = []
    for line in (exactlyonce.errors.__doc__ or "").splitlines():
        name = line.strip(" │├└─").split(" ")[0]
        if isinstance(getattr(exactlyonce.errors, name, None), type):
            drawn.append((line.index(name), name))
    assert len(drawn) == len([var for var in vars(exactlyonce.errors).values() if isinstance(var, type)])
    for place, (indent, name) in enumerate(drawn[1:], start=1):
        parent = next(above for level, above in reversed(drawn[:place]) if level < indent)
        assert getattr(exactlyonce.errors, name).__base__.__name__ == parent


@pytest.mark.parametrize(
    "package",
    [
        "exactlyonce",
        "exactlyonce.testing",
        "handlers.shooting_range",
        "handlers.leader_board",
        "exactlyonce.drivers.driver",
    ],
)
def test_importing_it_loads_no_library_of_azure(package: str) -> None:
    unwanted = ("azure", "aiohttp", "pytest")
    code = f"import {package}, sys; print([one for one in sys.modules if one.split('.')[0] in {unwanted}])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def unexplained(tree: ast.Module) -> Iterator[str]:
    """Public classes and functions without a docstring."""
    if ast.get_docstring(tree) is None:
        yield "the module"
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node) is None:
            yield from [node.name] if not node.name.startswith("_") else []


def test_everything_public_has_a_docstring() -> None:
    trees = {name_of(path): ast.parse(path.read_text()) for path in files("exactlyonce", "handlers")}
    assert [f"{name}: {missing}" for name, tree in trees.items() for missing in unexplained(tree)] == []


def test_a_missing_docstring_is_noticed() -> None:
    source = '"""A module."""\ndef a(): ...\nclass B: ...\ndef _c(): ...\nasync def d():\n    """Said."""'
    assert list(unexplained(ast.parse(source))) == ["a", "B"]
    assert list(unexplained(ast.parse("x = 1"))) == ["the module"]


def test_every_public_method_of_a_public_class_has_a_docstring() -> None:
    modules = (vars(importlib.import_module(package)) for package in PACKAGES[:2])
    kinds = {kind for module in modules for kind in module.values() if isinstance(kind, type)}
    methods = [
        (f"{kind.__name__}.{name}", item)
        for kind in kinds
        for name, item in vars(kind).items()
        if not name.startswith("_") and (isinstance(item, property) or inspect.isroutine(item))
    ]
    assert methods
    assert [name for name, item in methods if not item.__doc__] == []


def test_modules_are_named_as_their_files() -> None:
    assert module_of(LIBRARY / "stores" / "memory" / "store.py") == "exactlyonce.stores.memory.store"
    assert module_of(LIBRARY / "__init__.py") == "exactlyonce"
