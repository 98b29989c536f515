"""The folder that a reader of the quickstart makes: by its first commands, as they stand; and what of it is published."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from devtools.publishing import published_files
from tests.packaging.sources import ROOT

PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text()
COMMANDS: Final = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COPIED: Final = ("exactlyonce", "host.json", "requirements.txt", ".funcignore", "local.settings.json.example")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The app's folder, beside a clone of what the commands take from it."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, clone / name)
    (making,) = (block for block in COMMANDS if block.startswith("export EXACTLYONCE=$PWD\n"))
    subprocess.run(["/bin/bash", "-e", "-c", making], cwd=clone, check=True, timeout=60)
    return tmp_path / "parcels"


def test_settings_are_the_samples_but_for_the_name_of_the_database(app: Path) -> None:
    given, sample = (
        json.loads(path.read_text())["Values"]
        for path in (app / "local.settings.json", ROOT / "local.settings.json.example")
    )
    assert given.pop("COSMOS__database") == "parcels"
    assert sample.pop("COSMOS__database") == "shooting-range"
    assert given == sample


def test_what_is_published_is_the_app_and_the_library_and_nothing_of_this_machine(app: Path) -> None:
    assert "add `make_containers.py` to it" in " ".join(PAGE.split())
    with (app / ".funcignore").open("a") as rules:
        rules.write("\nmake_containers.py\n")
    for name in re.findall(r"```python\n# (\S+\.py)\n", PAGE):
        (app / name).touch()
    sent = {path.parts[0] for path in published_files(app)}
    assert sent == {"exactlyonce", "function_app.py", "parcels.py", "host.json", "requirements.txt"}
