"""Builds the wheels of all distributions, and tries them as a user meets them: `python -m devtools.distributions`.

They are installed into an empty environment, which takes what they need from the package index that pip is set up with.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import tomllib
from hatchling.builders.wheel import WheelBuilder

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
_NEEDS_A_COMPILER: Final = "local-service-bus"
_OPTIONS: Final = {"exactlyonce": "[azure,telemetry]"}
"""Extras to try. Spark is left out for its size; the tests of the jobs use it."""


class Distribution(NamedTuple):
    """What is built into one wheel.

    Attributes:
        folder: with its pyproject.toml.
        name, version: as it declares them.
        modules: top-level modules that it holds.
    """

    folder: Path
    name: str
    version: str
    modules: tuple[str, ...]


def distributions() -> Iterator[Distribution]:
    """All that there are, the library first."""
    for folder in (ROOT, *sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))):
        declared: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())
        project, wheel = declared["project"], declared["tool"]["hatch"]["build"]["targets"]["wheel"]
        yield Distribution(folder, project["name"], project["version"], tuple(wheel["packages"]))


def build(distribution: Distribution, to: Path) -> Path:
    """Build a wheel, without a network, and return its path."""
    return Path(next(iter(WheelBuilder(str(distribution.folder)).build(directory=str(to)))))


def main() -> int:
    """Build all wheels into `dist`, install and try them."""
    for old in DIST.glob("*.whl"):
        old.unlink()
    built = {distribution: build(distribution, DIST) for distribution in distributions()}
    for wheel in built.values():
        print(f"{wheel.stat().st_size / 1024:7,.0f} KB  {wheel.relative_to(ROOT)}")
    with tempfile.TemporaryDirectory() as scratch:
        _try_out({item: wheel for item, wheel in built.items() if item.name != _NEEDS_A_COMPILER}, Path(scratch))
    print("All of them install into an empty environment; their versions, commands and types are as declared.")
    return 0


def _try_out(wheels: dict[Distribution, Path], scratch: Path) -> None:
    """Install wheels into an empty environment, import them, and check that their types are seen."""
    environment = scratch / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    wanted = [f"{wheel}{_OPTIONS.get(item.name, '')}" for item, wheel in wheels.items()]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
    for item in wheels:
        module = item.modules[0]
        code = f"import {module}; assert {module}.__version__ == {item.version!r}, {module}.__version__"
        subprocess.run([python, "-c", code], cwd=scratch, check=True)
    _try_a_new_app(environment, scratch)
    user = scratch / "user.py"
    user.write_text("".join(f"import {item.modules[0]}\n{item.modules[0]}.__version__.split()\n" for item in wheels))
    mypy = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "",
        "--python-executable",
        str(python),
        str(user),
    ]
    subprocess.run(mypy, cwd=scratch, check=True)


def _try_a_new_app(environment: Path, scratch: Path) -> None:
    """Write an app, install what it asks for into an environment of its own, and run its tests there."""
    command = environment / "bin" / "exactlyonce"
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert said.stdout.startswith("exactlyonce "), said.stdout  # noqa: S101
    subprocess.run([command, "new", "shop"], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    app, own = scratch / "shop", scratch / "of-the-app"
    subprocess.run([sys.executable, "-m", "venv", own], check=True)
    python = own / "bin" / "python"
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        "requirements-dev.txt",
    ]
    subprocess.run(install, cwd=app, check=True)
    subprocess.run([python, "-m", "pytest", "--quiet"], cwd=app, check=True)


if __name__ == "__main__":
    sys.exit(main())
