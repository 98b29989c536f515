"""The packages stand alone: they import nothing of ours that they do not hold, and declare all else."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
import tomllib
from packaging.requirements import Requirement

from tests.packaging.sources import ROOT, imports
from tests.packaging.test_requirements import uncovered
from tests.packaging.test_wheel import build_wheel

PACKAGES: Final = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))
OURS: Final = {"exactlyonce", "function-host", "local-cosmos", "local-service-bus", "yieldcheck"}
"""Of this repository, so not in its lock."""
STAND_INS: Final = ("function-host", "local-cosmos", "local-service-bus")
DISTRIBUTIONS: Final = {
    "azure.core": "azure-core",
    "local_service_bus": "local-service-bus",
    "function_host": "function-host",
    "local_cosmos": "local-cosmos",
    "azure.cosmos": "azure-cosmos",
    "azure.functions": "azure-functions",
    "azure.identity": "azure-identity",
    "azure_functions_runtime": "azure-functions-runtime",
    "azure.servicebus": "azure-servicebus",
    "azure.storage": "azure-storage-queue",
    "proton": "python-qpid-proton",
    "pytest_asyncio": "pytest-asyncio",
}
"""What a module comes from, where it has another name."""
STANDARD: Final = sys.stdlib_module_names | {"_typeshed"}
"""Of Python, and of type checkers."""


def project(package: Path) -> dict[str, Any]:
    return tomllib.loads((package / "pyproject.toml").read_text())


def module(package: Path) -> str:
    return package.name.replace("-", "_")


def needs(package: Path) -> Iterator[str]:
    """Requirements of a package, with those of its options."""
    declared = project(package)["project"]
    yield from declared["dependencies"]
    for option in declared.get("optional-dependencies", {}).values():
        yield from option


def undeclared(tree: ast.AST, own: set[str], requirements: list[str]) -> list[str]:
    """Names that a module imports although they are neither its package's, nor Python's, nor required."""
    required = {Requirement(requirement).name for requirement in requirements}
    return [name for name in imports(tree) if not _known(name, own, required)]


def _known(name: str, own: set[str], required: set[str]) -> bool:
    top, pair = name.split(".", maxsplit=1)[0], ".".join(name.split(".")[:2])
    if top in own or top in STANDARD or name == "azure":  # Many distributions share that name.
        return True
    return DISTRIBUTIONS.get(pair, DISTRIBUTIONS.get(top, top)) in required


@pytest.mark.parametrize("package", PACKAGES, ids=module)
def test_a_package_imports_itself_and_what_it_declares(package: Path) -> None:
    name, requirements = module(package), list(needs(package))
    found = {
        path.relative_to(package).as_posix(): names
        for path in (package / name).rglob("*.py")
        if "app-template" not in path.parts  # It imports its own modules.
        if (names := undeclared(ast.parse(path.read_text()), {name}, requirements))
    }
    assert found == {}


@pytest.mark.parametrize("package", PACKAGES, ids=module)
def test_its_tests_import_it_and_what_is_declared_for_them(package: Path) -> None:
    name = module(package)
    requirements = [*needs(package), *chain.from_iterable(project(package)["dependency-groups"].values())]
    found = {
        path.relative_to(package).as_posix(): names
        for path in (package / f"{name}_tests").rglob("*.py")
        if (names := undeclared(ast.parse(path.read_text()), {name, f"{name}_tests"}, requirements))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "import exactlyonce",
        "from tests.people import anybody",
        "from function_host.azurite import azurite",
        "import rich.console",
        "import azure.cosmos.aio",
        "from azure import cosmos",
    ],
)
def test_an_import_of_another_package_is_noticed(line: str) -> None:
    assert undeclared(ast.parse(line), {"local_cosmos"}, ["aiohttp>=3", "azure-core"])
    known = "import asyncio, aiohttp.web\nfrom azure.core import rest\nfrom local_cosmos import values\nfrom . import a"
    assert undeclared(ast.parse(known), {"local_cosmos"}, ["aiohttp>=3", "azure-core"]) == []


@pytest.mark.parametrize("package", PACKAGES, ids=module)
def test_dependencies_of_a_package_are_in_the_lock_of_this_repository(package: Path) -> None:
    locked = (ROOT / "locks" / "all.txt").read_text()
    wanted = [*needs(package), *project(package)["dependency-groups"]["test"]]
    assert uncovered(locked, [item for item in wanted if Requirement(item).name not in OURS]) == []


@pytest.mark.parametrize("package", PACKAGES, ids=module)
def test_its_wheel_holds_every_file_of_it_its_license_and_its_command(
    package: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wheel = build_wheel(package, tmp_path_factory.mktemp("wheel"))
    info = f"{module(package)}-{project(package)['project']['version']}.dist-info"
    expected = {
        path.relative_to(package).as_posix()
        for path in (package / module(package)).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
    assert f"{module(package)}/py.typed" in expected
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    for command in project(package)["project"].get("scripts", ()):
        assert f"{command} = {module(package)}." in wheel.read(f"{info}/entry_points.txt").decode()


@pytest.mark.parametrize("package", PACKAGES, ids=module)
def test_it_has_a_page_and_a_change_log(package: Path) -> None:
    page = (package / "README.md").read_text()
    for heading in ("Install", "Quickstart", "What is missing"):
        assert f"\n## {heading}\n" in page
    assert (package / "CHANGELOG.md").read_text().startswith("# Changelog\n")


@pytest.mark.parametrize("package", PACKAGES, ids=module)
def test_it_says_its_version(package: Path) -> None:
    assert import_module(module(package)).__version__ == project(package)["project"]["version"]


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_has_a_command_and_says_how_faithful_it_is(name: str) -> None:
    package = ROOT / "packages" / name
    assert list(project(package)["project"]["scripts"]) == [name]
    for heading in ("What is faithful", "What is simplified"):
        assert f"\n## {heading}\n" in (package / "README.md").read_text()


def test_they_are_the_tools_of_developers_the_stand_ins_and_the_checker() -> None:
    assert [package.name for package in PACKAGES] == ["exactlyonce-dev", *STAND_INS, "yieldcheck"]
