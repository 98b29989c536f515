"""`exactlyonce new`: writes a small app from the template."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from exactlyonce.cli.command import DONE, NOT_POSSIBLE
from exactlyonce.errors import ConfigurationError
from exactlyonce.local_settings import FILE
from exactlyonce_dev.wheels import pack

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
    """Write the template into a new folder, with the wheel of the library.

    Args:
        beside: where to make the folder.
        name: of the app, and of its folder.

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
