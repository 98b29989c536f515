"""A suite is skipped where it passed with the same inputs, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devtools.stamps import Stamps, digest_of, environment, inputs_by_file, main
from tests.packaging.sources import ROOT

SCRIPT = """\
import pathlib, sys
with open("ran.txt", "a") as log:
    print(*sys.argv[1:], file=log)
sys.exit(any(pathlib.Path(folder, "broken").exists() for folder in sys.argv[1:]))
"""


class Suites:
    """Two folders, a lock, and a suite that fails where a folder has a file named `broken`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("one", "two"):
            self.write(f"{name}/code.py", "x = 1")
        self.write("lock.txt", "a==1")
        self.write("suite.py", SCRIPT)

    def write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, *options: str, ci: str = "", command: tuple[str, ...] = ("suite.py",)) -> int:
        arguments = [*options, "--also", "lock.txt", "one", "two", "--", sys.executable, *command]
        return main(arguments, {"CI": ci}, Stamps(Path("stamps")))

    @property
    def ran(self) -> list[str]:
        log = self._folder / "ran.txt"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suites:
    monkeypatch.chdir(tmp_path)
    return Suites(tmp_path)


def test_what_passed_is_not_run_again(suites: Suites, capsys: pytest.CaptureFixture[str]) -> None:
    assert (suites.run(), suites.run()) == (0, 0)
    assert suites.ran == ["one two"]
    assert "Unchanged since they passed here: one, two." in capsys.readouterr().out


@pytest.mark.parametrize("change", ["one/code.py", "one/another.py", "one/deep.txt"])
def test_a_folder_that_changed_is_run_alone(suites: Suites, change: str) -> None:
    suites.run()
    suites.write(change, "x = 2")
    suites.run()
    assert suites.ran == ["one two", "one"]


def test_what_was_changed_back_is_not_run(suites: Suites) -> None:
    suites.run()
    suites.write("one/code.py", "x = 2")
    suites.run()
    suites.write("one/code.py", "x = 1")
    suites.run()
    assert suites.ran == ["one two", "one"]


def test_a_change_of_what_all_depend_on_runs_all(suites: Suites) -> None:
    suites.run()
    suites.write("lock.txt", "a==2")
    suites.run()
    suites.run("--tool", "a tool that is looked for from now on")
    suites.run(command=("suite.py", "-k"))
    assert suites.ran == ["one two", "one two", "one two", "-k one two"]


def test_a_suite_that_fails_is_run_again(suites: Suites) -> None:
    suites.write("two/broken", "")
    assert (suites.run(), suites.run()) == (1, 1)
    assert suites.ran == ["one two", "one two"]


def test_ci_runs_everything(suites: Suites) -> None:
    suites.run()
    suites.run(ci="true")
    assert suites.ran == ["one two", "one two"]


def test_a_folder_that_is_edited_while_its_suite_runs_has_no_verdict(suites: Suites) -> None:
    suites.write("suite.py", SCRIPT.replace("sys.exit", "pathlib.Path('one/code.py').write_text('x = 3')\nsys.exit"))
    suites.run()
    suites.run()
    assert suites.ran == ["one two", "one"]


def test_what_is_made_from_a_folder_is_no_input_of_it(suites: Suites, tmp_path: Path) -> None:
    suites.run()
    for made in ("__pycache__", ".pytest_cache", "node_modules", "target"):
        (tmp_path / "one" / made).mkdir()
        (tmp_path / "one" / made / "x").write_text("")
    suites.run()
    assert suites.ran == ["one two"]


GUARDED = [
    f"exactlyonce/protocols/{one}.py" for one in ("outbox/protocol", "outbox/draft", "steps/settle", "steps/load")
]
SEARCHED_BY = [f"packages/yieldcheck/yieldcheck/{one}.py" for one in ("search", "situations")]
FILES = {
    "lib/rule.py": "limit = 1",
    "lib/other.py": "",
    "lib/table.json": "[]",
    "page.md": "",
    "tests/data.txt": "",
    "tests/helper.py": "from lib.rule import limit",
    "tests/test_one.py": "from tests.helper import limit",
    "tests/test_two.py": "",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which a test file imports a rule by a helper, and another imports nothing."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q"], check=True)  # noqa: S607
    for path, text in FILES.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    (tmp_path / "suite.py").write_text(SCRIPT)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ("lib/rule.py", ["tests/test_one.py"]),
        ("lib/other.py", []),
        ("lib/table.json", ["tests/test_one.py"]),
        ("tests/test_two.py", ["tests/test_two.py"]),
        ("tests/data.txt", ["tests/test_one.py tests/test_two.py"]),
        ("page.md", ["tests/test_one.py tests/test_two.py"]),
    ],
)
def test_a_test_file_is_run_again_where_something_that_it_reaches_changed(
    files: Path, change: str, again: list[str]
) -> None:
    def run() -> int:
        return main(["--tests", "tests:page.md", "--", sys.executable, "suite.py"], {}, Stamps(Path("stamps")))

    assert (run(), run()) == (0, 0)
    (files / change).write_text("limit = 2")
    assert run() == 0
    assert (files / "ran.txt").read_text().splitlines() == ["tests/test_one.py tests/test_two.py", *again]


def test_every_search_of_the_model_is_run_again_where_a_guard_of_its_strategy_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    inputs = inputs_by_file([[Path("tests/model")]])
    searches = [file for file in inputs if file.stem.endswith(("_hold", "_holds", "_strategies"))]
    assert len(searches) > 5
    for search in searches:
        reached = {path.as_posix() for path in inputs[search]}
        assert reached.issuperset(["exactlyonce/attempt.py", *GUARDED, *SEARCHED_BY, search.as_posix()])
        assert not [path for path in reached if path.startswith(("exactlyonce/telemetry/", "exactlyonce/cli/"))]


def test_a_name_and_a_fact_are_inputs(suites: Suites, tmp_path: Path) -> None:
    place = tmp_path / "one"
    first = digest_of([place], ["a", "b"])
    assert digest_of([place], ["a", "b"]) == first
    assert digest_of([place], ["ab"]) != first
    (place / "code.py").rename(place / "renamed.py")
    assert digest_of([place], ["a", "b"]) != first
    with pytest.raises(FileNotFoundError):
        digest_of([tmp_path / "nowhere"], [])


def test_the_environment_is_python_its_packages_and_tools() -> None:
    facts = list(environment(["git", "a tool that nobody has"]))
    assert sys.version in facts
    assert any(fact.startswith("pytest==") for fact in facts)
    assert facts[-1] == "a tool that nobody has: None"


def test_the_command_line_refuses_a_command_that_is_missing() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "devtools.stamps", "tests"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "it follows `--`" in ran.stderr) == (2, True)
