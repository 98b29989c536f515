"""`make quick` runs the tests that reach what changed, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from devtools.affected import affected, main

SOURCES = {
    "lib/__init__.py": "from lib.one import One\nfrom lib.two import two as second\n",
    "lib/one.py": "from .deep import deepest\n",
    "lib/deep/__init__.py": "from lib.deep.down import deepest\n",
    "lib/deep/down.py": "deepest = 1\n",
    "lib/two.py": "import lib.three\n",
    "lib/three.py": "",
    "tests/conftest.py": "",
    "tests/helper.py": "from lib import second\n",
    "tests/a/conftest.py": "import lib.three\n",
    "tests/a/test_one.py": "from lib import One\n",
    "tests/b/test_two.py": "def test():\n    from tests import helper\n",
    "tests/b/test_whole.py": "import lib\n",
    "elsewhere/test_one.py": "from lib import One\n",
}
ALL = ["tests/a/test_one.py", "tests/b/test_two.py", "tests/b/test_whole.py"]


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ("lib/__init__.py", ALL),
        ("lib/one.py", ["tests/a/test_one.py", "tests/b/test_whole.py"]),
        ("lib/deep/down.py", ["tests/a/test_one.py", "tests/b/test_whole.py"]),
        ("lib/two.py", ["tests/b/test_two.py", "tests/b/test_whole.py"]),
        ("lib/three.py", ALL),
        ("tests/helper.py", ["tests/b/test_two.py"]),
        ("tests/a/conftest.py", ["tests/a/test_one.py"]),
        ("tests/conftest.py", ALL),
        ("tests/b/test_two.py", ["tests/b/test_two.py"]),
        ("pyproject.toml", ALL),
        ("README.md", []),
        ("elsewhere/test_one.py", []),
    ],
)
def test_a_test_is_affected_by_what_it_reaches_through_the_names_that_it_imports(
    changed: str, wanted: list[str]
) -> None:
    assert affected(SOURCES, [changed], "tests") == wanted


def test_uncommitted_changes_and_commits_of_a_branch_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)

    def git(*arguments: str) -> None:
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *arguments], check=True, capture_output=True)  # noqa: S607

    def write(path: str, text: str) -> None:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)

    git("init", "--initial-branch", "main")
    for name in ("one", "two", "three"):
        write(f"{name}.py", "")
        write(f"tests/test_{name}.py", f"import {name}\n")
    git("add", ".")
    git("commit", "-m", "all")
    git("switch", "-c", "mine")
    write("one.py", "x = 1\n")
    git("commit", "-a", "-m", "one")
    write("two.py", "x = 2\n")
    write("tests/test_new.py", "")
    main(["tests"])
    assert capsys.readouterr().out.split() == ["tests/test_new.py", "tests/test_one.py", "tests/test_two.py"]
