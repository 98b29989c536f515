"""The wheel: the library and its Spark jobs, built without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import exactlyonce
from tests.packaging.sources import LIBRARY, ROOT


def build_wheel(root: Path, folder: Path) -> zipfile.ZipFile:
    """Build the wheel of a project.

    Args:
        root: with its pyproject.toml.
        folder: an empty one.
    """
    build = f"WheelBuilder({str(root)!r}).build(directory={str(folder)!r})"
    code = f"from hatchling.builders.wheel import WheelBuilder; print(*{build})"
    nowhere = "http://127.0.0.1:9"
    offline = {**os.environ, "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere, "PIP_NO_INDEX": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=offline, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_it_holds_every_file_of_the_library_and_its_jobs_and_no_other(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(ROOT).as_posix()
        for folder in (LIBRARY, ROOT / "spark_jobs")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == expected
    assert {"exactlyonce/py.typed", "spark_jobs/py.typed"} <= held


def test_it_carries_its_license(wheel: zipfile.ZipFile) -> None:
    (license_,) = (name for name in wheel.namelist() if name.endswith("LICENSE"))
    assert wheel.read(license_) == (ROOT / "LICENSE").read_bytes()


def test_it_needs_three_libraries_and_others_only_on_request(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    requirements = metadata.get_all("Requires-Dist") or []
    assert sorted(
        requirement.split("<")[0].split(">")[0] for requirement in requirements if "extra ==" not in requirement
    ) == [
        "cloudevents",
        "jsonpatch",
        "pydantic",
    ]
    assert {requirement.split("extra == ")[1] for requirement in requirements if "extra ==" in requirement} == {
        "'azure'",
        "'spark'",
        "'telemetry'",
    }
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["Version"] == exactlyonce.__version__


def test_it_has_one_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert wheel.read(name).decode().split() == [
        "[console_scripts]",
        "exactlyonce",
        "=",
        "exactlyonce.cli.command:main",
    ]


def test_it_fits_every_machine(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).name.endswith("-py3-none-any.whl")


def by_name(page: str) -> list[str]:
    """Commands that would install a distribution of ours from a registry, where its name is free for anybody."""
    ours = "exactlyonce|exactlyonce-dev|function-host|local-cosmos|local-service-bus|yieldcheck"
    return re.findall(rf"pip install (?:[^`\n]* )?[\"']?(?:{ours})(?![\w/.-])[^`\n]*", page)


def test_no_page_installs_a_distribution_by_a_name_that_is_not_registered() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("infra/*.md"), *ROOT.glob("packages/*/*.md")]
    assert {path.name: found for path in pages if (found := by_name(path.read_text()))} == {}
    assert by_name("pip install 'exactlyonce[telemetry]'")
    assert by_name("pip install -U yieldcheck")
    assert not by_name("pip install packages/yieldcheck dist/exactlyonce-0.1.0-py3-none-any.whl")
