"""`exactlyonce new`: writes a small app from the template."""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path
from typing import Final

from exactlyonce.cli.command import DONE, NOT_POSSIBLE
from exactlyonce.environment import FILE
from exactlyonce.errors import ConfigurationError

TEMPLATE: Final = Path(__file__).parent / "app-template"
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,38}[a-z0-9]")
_HIDDEN: Final = {"gitignore": ".gitignore", "funcignore": ".funcignore"}
"""Files of the template whose names would have an effect in this repository."""
_NEXT: Final = """\
{folder} is an app: orders.py is its business code, function_app.py its wiring. Next:

  cd {folder}
  npm install azurite                      the storage emulator, if Node has none
  pip install -r requirements-dev.txt
  pytest
  exactlyonce dev                          runs it, and shows its addresses
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write an app into a new folder. Returns 0, or 2 if that is not possible."""
    parser = argparse.ArgumentParser(
        "exactlyonce new", description="Write a small app that runs, is tested, and deploys."
    )
    parser.add_argument("name", metavar="NAME", help="of the app, its folder and its database, such as shop")
    given = parser.parse_args(arguments)
    try:
        write_app(Path.cwd(), given.name)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return NOT_POSSIBLE
    print(_NEXT.format(folder=given.name), end="")
    return DONE


def write_app(beside: Path, name: str) -> None:
    """Write the template into a new folder of the app's name, with the wheel of the library.

    Raises:
        ConfigurationError: the folder exists, its name cannot be that of an app, or the library is installed without a wheel.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} cannot be the name of an app: 3 to 40 lower-case letters, digits and hyphens, the first a letter."
        )
    folder = beside / name
    if folder.exists():
        raise ConfigurationError(f"{name} exists already. Give another name, or remove it.")
    (folder / "wheels").mkdir(parents=True)
    try:
        _write(folder, pack("exactlyonce", folder / "wheels"))
    except BaseException:
        shutil.rmtree(folder)
        raise


def _write(folder: Path, wheel: Path) -> None:
    for path in sorted(TEMPLATE.rglob("*")):
        place = path.relative_to(TEMPLATE)
        if path.is_file() and "__pycache__" not in place.parts:
            target = folder / place.with_name(_HIDDEN.get(place.name, place.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            text = (
                path.read_text(encoding="utf-8").replace("APP-NAME", folder.name).replace("LIBRARY-WHEEL", wheel.name)
            )
            target.write_text(text, encoding="utf-8")
    shutil.copy(folder / f"{FILE}.example", folder / FILE)


def pack(name: str, folder: Path) -> Path:
    """Write the wheel of a distribution in pure Python, from the files that its installation has left. Returns its path.

    Raises:
        ConfigurationError: the distribution is not installed from a wheel.
    """
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        installed = None
    found = [path for path in (installed.files or () if installed else ()) if _belongs(path)]
    if installed is None or not any(item.name == "__init__.py" for item in found):
        raise ConfigurationError(f"{name} is not installed from a wheel: build one by 'make dist', and install that.")
    stem = f"{name.replace('-', '_')}-{installed.version}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        records = []
        for item in found:
            content = Path(str(item.locate())).read_bytes()
            packed.writestr(item.as_posix(), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{item.as_posix()},sha256={digest},{len(content)}")
        record = f"{stem}.dist-info/RECORD"
        packed.writestr(record, "\n".join([*records, f"{record},,", ""]))
    return wheel


def _belongs(file: PackagePath) -> bool:
    """Whether a file was in the wheel: not written by the installation, and no command outside of the packages."""
    made = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    return file.parts[0] != ".." and "__pycache__" not in file.parts and file.name not in made
