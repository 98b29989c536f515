"""A test file is left out where it passed with the same inputs, and nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from devtools import verdicts
from devtools.verdicts import STAMPS, SUITES, Verdicts, digest_of, environment, inputs_by_file
from tests.packaging.sources import ROOT

FILES = {
    "lib/rule.py": "limit = 1",
    "lib/other.py": "",
    "lib/table.json": "[]",
    "page.md": "",
    "lock.txt": "a==1",
    "checks/data.txt": "",
    "checks/helper.py": "from lib.rule import limit",
    "checks/test_one.py": "from checks.helper import limit\ndef test_a(): pass\ndef test_b(): pass\n",
    "checks/test_two.py": "def test(): pass",
}
TESTS = {"checks/test_one.py": ("test_a", "test_b"), "checks/test_two.py": ("test",)}
ONE, TWO = TESTS
ALL = [ONE, TWO]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test file that imports a rule by a helper, and another that imports nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verdicts, "ALSO", ("lock.txt",))
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q"], check=True)  # noqa: S607
    for path, text in FILES.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    return tmp_path


def run(*facts: str, fails: str = "", stops: str = "", anew: bool = False, edits: str = "") -> list[str]:
    """Report to the plugin what pytest does; returns the files that are run.

    Args:
        facts: what the verdicts depend on beside files.
        fails: the phase in which the test of the second file fails.
        stops: the test with which the run ends early.
        anew: whether all run.
        edits: a file that somebody writes meanwhile.
    """
    judge = Verdicts(inputs_by_file({"checks": ["page.md"]}), facts, STAMPS, anew=anew)
    ids = [f"{file}::{test}" for file in TESTS if file not in judge.files for test in TESTS[file]]
    judge.pytest_xdist_node_collection_finished(ids)
    for id in ids:
        for phase in ("setup", "call", "teardown"):
            failed = id.startswith(TWO) and phase == fails
            judge.pytest_runtest_logreport(reported(id, phase, failed=failed))
        if id.endswith(stops or "never"):
            break
    if edits:
        Path(edits).write_text("limit = 3")
    judge.keep()
    return list(dict.fromkeys(id.split("::")[0] for id in ids))


def reported(id: str, phase: Any, *, failed: bool) -> pytest.TestReport:
    return pytest.TestReport(id, (id, 0, id), {}, "failed" if failed else "passed", None, phase)


def test_what_passed_is_not_run_again(repository: Path) -> None:
    assert run() == ALL
    assert run() == []


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ("lib/rule.py", [ONE]),
        ("lib/other.py", []),
        ("lib/table.json", [ONE]),
        (TWO, [TWO]),
        ("checks/data.txt", ALL),
        ("page.md", ALL),
        ("lock.txt", ALL),
        ("README.md", []),
    ],
)
def test_a_file_is_run_again_where_something_that_it_reaches_changed(
    repository: Path, change: str, again: list[str]
) -> None:
    run()
    Path(change).write_text("limit = 2")
    assert run() == again


def test_what_was_changed_back_is_not_run(repository: Path) -> None:
    run()
    Path("lib/rule.py").write_text("limit = 2")
    assert run() == [ONE]
    Path("lib/rule.py").write_text(FILES["lib/rule.py"])
    assert run() == []


def test_facts_are_inputs(repository: Path) -> None:
    run("-k", "a")
    assert run("-ka") == ALL


@pytest.mark.parametrize("phase", ["setup", "call", "teardown"])
def test_a_file_with_a_test_that_fails_is_run_again_and_no_other(repository: Path, phase: str) -> None:
    assert run(fails=phase) == ALL
    assert run(fails=phase) == [TWO]
    assert run() == [TWO]
    assert run() == []


def test_a_file_of_which_not_every_test_ran_has_no_verdict(repository: Path) -> None:
    run(stops="test_a")
    assert run(stops="test_b") == ALL
    assert run() == [TWO]


def test_ci_runs_everything(repository: Path) -> None:
    run()
    assert run(anew=True) == ALL


def test_a_file_whose_inputs_are_edited_while_it_runs_has_no_verdict(repository: Path) -> None:
    run(edits="lib/rule.py")
    assert run() == [ONE]


CONFTEST = """\
from devtools import verdicts

def pytest_configure(config):
    verdicts.ALSO = ()
    config.pluginmanager.register(verdicts.plugin(config, {"checks": []}, []))
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "--numprocesses", "2")], ids=["alone", "with xdist"])
def test_pytest_leaves_out_the_files_of_which_all_tests_passed(repository: Path, options: Sequence[str]) -> None:
    (repository / "conftest.py").write_text(CONFTEST)
    (repository / TWO).write_text("import os\ndef test(): assert os.environ['HOLDS'] == 'yes'")
    assert real_run(options, holds="no") == (1, "1 failed, 2 passed", "0 of 2")
    assert real_run(options, holds="yes") == (0, "1 passed", "1 of 2")
    assert real_run(options, holds="yes") == (0, "no tests ran", "2 of 2")


def real_run(options: Sequence[str], holds: str) -> tuple[int, str, str]:
    """The exit code of pytest, what came of the tests, and how many files were left out."""
    inherited = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    path = os.pathsep.join([str(Path.cwd()), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        env=inherited | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOLDS": holds},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stdout.splitlines()[-1].strip("= ").rpartition(" in ")[0]
    return ran.returncode, last, ran.stdout.partition("verdicts: ")[2].partition(" files")[0]


GUARDED = [f"exactlyonce/protocols/{one}.py" for one in ("outbox/protocol", "outbox/draft", "steps/park", "steps/load")]
SEARCHED_BY = [f"packages/yieldcheck/yieldcheck/{one}.py" for one in ("search", "situations")]


@pytest.fixture(scope="module")
def inputs() -> dict[str, set[str]]:
    """What the verdicts of our own test files depend on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {file: {path.as_posix() for path in paths} for file, paths in inputs_by_file(SUITES).items()}


@pytest.fixture(scope="module")
def searches(inputs: dict[str, set[str]]) -> dict[str, set[str]]:
    """Of them, what those of exhaustive searches depend on."""
    names = re.compile(r"tests/model/test_\w+_(hold|holds|strategies)\.py")
    return {file: reached for file, reached in inputs.items() if names.fullmatch(file)}


def test_every_search_of_the_model_is_run_again_where_a_guard_of_its_strategy_changed(
    searches: dict[str, set[str]],
) -> None:
    assert len(searches) > 5
    for search, reached in searches.items():
        assert reached.issuperset(["exactlyonce/attempt.py", *GUARDED, *SEARCHED_BY, search])


def test_a_search_is_run_again_for_the_host_only_where_it_runs_the_host(searches: dict[str, set[str]]) -> None:
    host = tuple(f"exactlyonce/{one}" for one in ("hosting/", "drivers/async_driver", "stores/", "telemetry/", "cli/"))
    reaching = [search for search, reached in searches.items() if any(one.startswith(host) for one in reached)]
    assert reaching == ["tests/model/test_returning_holds.py"]


@pytest.mark.parametrize("package", [path.name for path in (ROOT / "packages").iterdir()])
def test_a_package_is_an_input_of_its_tests_whole(inputs: dict[str, set[str]], package: str) -> None:
    tests = [file for file in inputs if file.startswith(f"packages/{package}/")]
    assert tests
    assert all({f"packages/{package}", "packages"} & inputs[file] for file in tests)


def test_names_and_facts_are_inputs_and_what_is_made_from_a_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1")
    first = digest_of([tmp_path], ["a", "b"])
    for made in ("__pycache__", ".pytest_cache", "node_modules", "target"):
        (tmp_path / made).mkdir()
        (tmp_path / made / "x").write_text("")
    assert digest_of([tmp_path], ["a", "b"]) == first
    assert digest_of([tmp_path], ["ab"]) != first
    (tmp_path / "code.py").rename(tmp_path / "renamed.py")
    assert digest_of([tmp_path], ["a", "b"]) != first
    with pytest.raises(FileNotFoundError):
        digest_of([tmp_path / "nowhere"], [])


def test_the_environment_is_python_its_packages_and_tools() -> None:
    facts = list(environment(["git", "a tool that nobody has"]))
    assert sys.version in facts
    assert any(fact.startswith("pytest==") for fact in facts)
    assert facts[-1] == "a tool that nobody has: None"
