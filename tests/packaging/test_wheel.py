"""The wheel: the library and nothing else, built without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

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


def test_it_holds_every_file_of_the_library_and_no_other(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in LIBRARY.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == expected
    assert "exactlyonce/py.typed" in held


def test_it_carries_its_license(wheel: zipfile.ZipFile) -> None:
    (license_,) = (name for name in wheel.namelist() if name.endswith("LICENSE"))
    assert wheel.read(license_) == (ROOT / "LICENSE").read_bytes()


def test_it_needs_three_libraries_and_others_only_on_request(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    requirements = metadata.get_all("Requires-Dist") or []
    assert sorted(one.split("<")[0].split(">")[0] for one in requirements if "extra ==" not in one) == [
        "cloudevents",
        "jsonpatch",
        "pydantic",
    ]
    assert {one.split("extra == ")[1] for one in requirements if "extra ==" in one} == {"'azure'", "'telemetry'"}
    assert metadata["Requires-Python"] == ">=3.10"


def test_it_fits_every_machine(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).name.endswith("-py3-none-any.whl")
