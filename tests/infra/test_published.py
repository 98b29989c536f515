"""`func` and `azd` publish the same files, though they read `.funcignore` by different rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from devtools.publishing import Ignored, ignored_by_azd, ignored_by_func
from tests.infra.bicep import ROOT

FILES: Final = {
    "sample": ROOT / ".funcignore",
    "template": ROOT / "packages" / "exactlyonce-dev" / "exactlyonce_dev" / "app-template" / "funcignore",
}
Rules = Callable[[str], Ignored]
BOTH: Final[list[Rules]] = [ignored_by_azd, ignored_by_func]
OF_A_USER: Final = [
    *("build.py", "docs.py", "tests.py", "infra.py", "demo.py", "dist.py", "packages.py", "venv.py", "reports.py"),
    *("orders/tests_of_orders.py", "orders/build.py", "orders/docs/text.py", "orders/demo/page.html", "wheels/x.whl"),
    *("shop_env.py", "orders/test_env/a.py", "environment/a.py"),
    *("function_app.py", "host.json", "requirements.txt", "orders/README.md"),
]
"""What an application may have, and must be published."""
OF_A_MACHINE: Final = [
    *("local.settings.json", "local.settings.json.example", ".env", ".venv/lib/a.py", "venv/lib/a.py", ".git/config"),
    *("__pycache__/a.pyc", "orders/__pycache__/a.pyc", "a/b/__pycache__/c.pyc", "orders/.secret", "a/.cache/b.txt"),
    *("exactlyonce_env/lib/a.py", "shop_env/bin/python"),  # `azd restore` makes an environment of the folder's name.
    *("infra/main.bicep", "infra/app/storage.bicep", "azure.yaml", ".azure/shop/.env"),
    *("node_modules/azurite/x.js", "tests/test_a.py", "tests/deep/test_b.py", "pyproject.toml", "README.md"),
]
OF_THIS_REPOSITORY: Final = [
    "infra/main.bicep",
    "docs/a/b.md",
    "packages/x/y.py",
    "exactlyonce/testing/app.py",
    "Makefile",
]


@pytest.mark.parametrize("by", BOTH)
@pytest.mark.parametrize("name", FILES)
def test_files_of_an_application_are_published(name: str, by: Rules) -> None:
    ignored = by(FILES[name].read_text())
    assert [path for path in OF_A_USER if ignored(path)] == []


@pytest.mark.parametrize("by", BOTH)
@pytest.mark.parametrize("name", FILES)
def test_files_of_a_machine_and_of_tests_are_not(name: str, by: Rules) -> None:
    ignored = by(FILES[name].read_text())
    assert [path for path in OF_A_MACHINE if not ignored(path)] == []


@pytest.mark.parametrize("by", BOTH)
def test_of_this_repository_the_sample_and_the_library_are_published(by: Rules) -> None:
    ignored = by(FILES["sample"].read_text())
    assert [path for path in OF_THIS_REPOSITORY if not ignored(path)] == []
    assert not ignored("exactlyonce/values/envelope.py")


def test_every_file_of_this_repository_is_judged_alike() -> None:
    rules = FILES["sample"].read_text()
    skipped = {".git", ".venv", "node_modules"}
    paths = [path.relative_to(ROOT) for path in _below(ROOT, skipped)]
    found = {by: [path for path in paths if not by(rules)(path.as_posix())] for by in BOTH}
    assert found[ignored_by_azd] == found[ignored_by_func]
    assert Path("function_app.py") in found[ignored_by_func]


def _below(folder: Path, skipped: set[str]) -> list[Path]:
    found: list[Path] = []
    for path in folder.iterdir():
        if path.is_dir() and path.name not in skipped:
            found += _below(path, skipped)
        elif path.is_file():
            found.append(path)
    return found


def test_a_bare_name_is_the_beginning_of_a_path_for_func_and_a_folder_for_azd() -> None:
    rules = "build\n*.log\n!kept.log\n"
    func, azd = ignored_by_func(rules), ignored_by_azd(rules)
    assert (func("build.py"), azd("build.py")) == (True, False)
    assert (func("builder.py"), func("a/build/b.py"), azd("a/build/b.py")) == (False, False, True)
    assert (func("x.log"), func("a/x.log"), func("kept.log")) == (True, False, False)


def test_commands_that_publish_name_the_language_which_core_tools_know_from_local_settings_only() -> None:
    pages = (ROOT / "infra" / "README.md", ROOT / "docs" / "howto" / "releases.md", ROOT / "docs" / "azure.md")
    commands = [
        found for page in pages for found in re.findall(r"func azure functionapp publish [^`\n]*", page.read_text())
    ]
    assert len(commands) >= len(pages)
    assert [command for command in commands if "--python" not in command] == []


def test_an_empty_queue_is_asked_every_two_seconds_at_least_by_the_sample_and_by_new_apps() -> None:
    for path in FILES.values():
        queues = json.loads((path.parent / "host.json").read_text())["extensions"]["queues"]
        assert queues["maxPollingInterval"] == "00:00:02"
