"""The quickstart shows the template as it stands, and publishes of it what is the app's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from devtools.publishing import published_files
from exactlyonce.cli.command import COMMANDS
from exactlyonce_dev.new import TEMPLATE
from tests.packaging.sources import ROOT

PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text()
SHELL: Final = "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(("name", "text"), re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
def test_a_block_of_code_is_the_templates(name: str, text: str) -> None:
    assert text in (TEMPLATE / name).read_text()


def test_the_commands_there_are_are_named() -> None:
    assert set(re.findall(r"^exactlyonce (\w+)", SHELL, re.MULTILINE)) == {"new", "dev"} <= set(COMMANDS)


def test_the_number_of_tests_is_that_of_the_template() -> None:
    tests = sum(path.read_text().count("\ndef test_") for path in (TEMPLATE / "tests").glob("test_*.py"))
    assert f"`{tests} passed`" in PAGE


def test_app_and_library_are_published_and_nothing_of_this_machine(tmp_path: Path) -> None:
    app = tmp_path / "shop"
    shutil.copytree(TEMPLATE, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "funcignore").rename(app / ".funcignore")
    (app / "gitignore").rename(app / ".gitignore")
    for made in (
        "local.settings.json",
        "wheels/exactlyonce.whl",
        ".venv/x.py",
        "__pycache__/x.pyc",
        "node_modules/x.js",
    ):
        (app / made).parent.mkdir(exist_ok=True)
        (app / made).touch()
    assert {path.as_posix() for path in published_files(app)} == {
        *("function_app.py", "host.json", "orders.py", "requirements.txt", "wheels/exactlyonce.whl")
    }
