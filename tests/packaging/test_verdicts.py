"""A slow test file runs where its verdict does not hold, a quick one with every change. What may be false is no verdict."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from devtools.inputs import A_PROCESS, Inputs, version
from devtools.suites import SUITES, Suite
from devtools.verdicts import Verdicts, drawn
from tests.packaging.sources import ROOT

FILES = {
    ".gitignore": "__pycache__/",
    "lib/rule.py": "limit = 1",
    "lib/other.py": "",
    "lib/table.json": "[]",
    "page.md": "",
    "lock.txt": "a==1",
    "slow/data.txt": "",
    "slow/helper.py": "from lib.rule import limit",
    "slow/test_one.py": "from slow.helper import limit\ndef test_a(): pass\ndef test_b(): pass\n",
    "slow/test_two.py": "def test(): pass",
    "slow/test_smoke.py": "def test(): pass",
    "quick/test_three.py": "import lib.rule\ndef test(): pass",
    "verdicts.json": '{"": "Written by `make verify` alone."}',
}
TESTS = {
    "quick/test_three.py": ("test",),
    "slow/test_one.py": ("test_a", "test_b"),
    "slow/test_smoke.py": ("test",),
    "slow/test_two.py": ("test",),
}
THREE, ONE, SMOKE, TWO = TESTS
QUICK, SLOW = [THREE, SMOKE], [ONE, TWO]
CHECKED = {"": Suite(["lock.txt"]), "slow": Suite(["page.md"], slow=True), SMOKE: Suite(slow=False)}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slow test files, of which one imports a rule by a helper, and quick ones."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q"], check=True)  # noqa: S607
    for path, text in FILES.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    return tmp_path


def run(
    mode: str = "trusted",
    *,
    fails: str = "",
    phase: str = "call",
    stops: str = "never",
    edits: str = "",
    reads: Sequence[str] = (),
    suites: dict[str, Suite] = CHECKED,
    **more: Any,
) -> list[str]:
    """Report to the plugin what pytest does; returns the files that ran.

    Args:
        mode: "trusted", "due" or "anew".
        fails: the file that fails with its first test.
        phase: of that test.
        stops: the test with which the run ends early.
        edits: a file that somebody writes meanwhile.
        reads: what every test opens.
        suites: what is said of tests.
        more: arguments of the plugin.
    """
    judge = Verdicts(Inputs(suites), mode, **more)
    ids = [f"{file}::{test}" for file in TESTS if file not in judge.left_out for test in TESTS[file]]
    judge.pytest_xdist_node_collection_finished(ids)
    if edits:
        Path(edits).write_text("limit = 3")
    for id in ids:
        for when in ("setup", "call", "teardown"):
            outcome: Any = "failed" if id.startswith(fails or "none") and when == phase else "passed"
            judge.pytest_runtest_logreport(pytest.TestReport(id, (id, 0, id), {}, outcome, None, when, reads=[*reads]))
        if id.endswith(stops):
            break
    run.said = [*judge.report()]  # type: ignore[attr-defined]
    return list(dict.fromkeys(id.split("::")[0] for id in ids))


def said() -> list[str]:
    """What the last run said of verdicts."""
    return run.said  # type: ignore[attr-defined, no-any-return]


def book() -> dict[str, str]:
    verdicts: dict[str, str] = json.loads(Path("verdicts.json").read_text())
    assert verdicts.popitem()[0] == ""
    return verdicts


def test_a_fresh_clone_runs_what_is_quick_and_says_which_verdicts_are_due(repository: Path) -> None:
    assert run() == QUICK
    assert said() == ["Verdicts are due: slow 2. Run them: make verify"]


def test_a_due_test_runs_once_and_its_verdict_is_trusted_from_then_on(repository: Path) -> None:
    assert run("due") == SLOW
    assert list(book()) == SLOW
    assert run("due") == []
    assert (run(stamped=False), said()) == (QUICK, [])


def test_a_verdict_holds_on_another_machine_wherever_the_repository_lies(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("due")
    clone = tmp_path_factory.mktemp("elsewhere") / "clone"
    shutil.copytree(repository, clone)
    for path in clone.rglob("*.*"):
        os.utime(path, (0, 0))
    (clone / "slow" / ".page-1.mjs").touch()
    monkeypatch.chdir(clone)
    assert (run(), said()) == (QUICK, [])


@pytest.mark.parametrize(
    ("change", "due", "quick"),
    [
        ("lib/rule.py", [ONE], [THREE]),
        ("lib/other.py", [], []),
        ("lib/table.json", [ONE], [THREE]),
        (TWO, [TWO], []),
        ("slow/data.txt", SLOW, [SMOKE]),
        ("page.md", SLOW, [SMOKE]),
        ("lock.txt", SLOW, QUICK),
        ("README.md", [], []),
    ],
)
def test_a_file_runs_again_where_something_that_it_depends_on_changed(
    repository: Path, change: str, due: list[str], quick: list[str]
) -> None:
    run("anew")
    Path(change).write_text("limit = 2")
    assert run() == quick
    assert run("due") == due


def test_a_test_whose_inputs_were_changed_back_does_not_run(repository: Path) -> None:
    run("anew")
    Path("lib/rule.py").write_text("limit = 2")
    assert run() == [THREE]
    Path("lib/rule.py").write_text(FILES["lib/rule.py"])
    assert (run(), said()) == ([], [])


@pytest.mark.parametrize("phase", ["setup", "call", "teardown"])
def test_a_file_that_fails_has_no_verdict_and_costs_no_other_its_own(repository: Path, phase: str) -> None:
    run("due", fails=TWO, phase=phase)
    assert list(book()) == [ONE]
    assert run("due") == [TWO]


def test_a_verdict_that_is_not_true_is_taken_back(repository: Path) -> None:
    run("due")
    assert run(again=lambda test: test == TWO, fails=TWO, stamped=False) == [*QUICK, TWO]
    assert list(book()) == [ONE]
    told = (f"The verdict of {TWO} is not true, and is taken back.", "Verdicts are due: slow 1. Run them: make verify")
    assert tuple(said()) == told


def test_a_quick_file_that_fails_runs_again(repository: Path) -> None:
    assert run(fails=SMOKE) == QUICK
    assert run() == [SMOKE]
    assert run("anew", fails=THREE) == [*TESTS]
    assert run() == [THREE]


def test_a_run_that_was_interrupted_goes_on_where_it_was(repository: Path) -> None:
    run("due", stops="test_b")
    assert list(book()) == [ONE]
    assert run("due") == [TWO]


def test_a_file_of_which_not_every_test_ran_has_no_verdict(repository: Path) -> None:
    run("due", stops="test_a")
    run("due", whole=False)
    assert book() == {}


def test_a_file_whose_inputs_are_edited_while_it_runs_has_no_verdict(repository: Path) -> None:
    run("anew", edits="lib/rule.py")
    assert list(book()) == [TWO]
    assert run() == [THREE]


def test_a_file_that_reads_what_it_is_not_said_to_read_has_no_verdict(repository: Path) -> None:
    run("due", reads=["lib/other.py", "page.md", "not of the repository"])
    assert book() == {}
    assert said()[0] == f"{ONE} reads lib/other.py, and devtools/suites.py does not say so."
    assert run(reads=["lib/other.py"]) == run() == QUICK


def test_a_file_that_starts_processes_has_a_verdict_only_where_it_is_said_what_they_read(repository: Path) -> None:
    run("due", reads=[A_PROCESS], suites={**CHECKED, "slow": Suite(slow=True)})
    assert book() == {}
    run("due", reads=[A_PROCESS])
    assert list(book()) == SLOW


def test_versions_of_tools_are_in_the_verdict_and_a_machine_with_others_trusts_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("due")
    here = f"python {sys.version_info.major}.{sys.version_info.minor}"
    assert {verdict.partition(" ")[2] for verdict in book().values()} == {here}
    monkeypatch.setattr("devtools.inputs.version", lambda _tool: "9")
    before = book()
    assert (run("due"), run("anew")) == ([], [*TESTS])
    assert book() == before
    Path(TWO).write_text("")
    run("due")
    assert book()[TWO].endswith(" python 9")
    changed = Path("verdicts.json").read_text().replace(here, "python 9")
    Path("verdicts.json").write_text(changed)
    assert run("due") == [ONE]


def test_of_two_verdicts_that_a_merge_leaves_each_is_true_of_what_it_is_of(repository: Path) -> None:
    run("due")
    ours = Path("verdicts.json").read_text()
    Path(TWO).write_text("limit = 2")
    run("due")
    theirs = Path("verdicts.json").read_text()
    Path("verdicts.json").write_text("\n".join(dict.fromkeys([*ours.splitlines()[:-2], *theirs.splitlines()])))
    assert run("due") == []
    Path(TWO).write_text(FILES[TWO])
    assert run("due") == []


def test_a_commit_draws_a_tenth_and_another_one_another() -> None:
    tests = [f"test_{number}.py" for number in range(1_000)]
    for commit in ("a", "b"):
        assert 70 < sum(drawn(commit, test) for test in tests) < 130
    assert [drawn("a", test) for test in tests] != [drawn("b", test) for test in tests]


CONFTEST = """\
from devtools import verdicts
from devtools.suites import Suite

verdicts.SUITES = {"": Suite(), "slow": Suite(slow=True), "slow/test_smoke.py": Suite(slow=False)}
pytest_addoption = verdicts.pytest_addoption
pytest_configure = verdicts.pytest_configure
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "--numprocesses", "2")], ids=["alone", "with xdist"])
def test_pytest_runs_what_is_due_and_fails_until_nothing_is(repository: Path, options: Sequence[str]) -> None:
    (repository / "conftest.py").write_text(CONFTEST)
    (repository / "pyproject.toml").write_text("[tool.pytest.ini_options]\n[tool.other]\n")
    (repository / TWO).write_text("import os\ndef test(): assert os.environ['HOLDS'] == 'yes'")
    (repository / ONE).write_text("def test(): assert open('page.md').read() == ''")

    assert real_run(options) == (1, "2 passed", "0 of 2")
    code, last, held = real_run((*options, "--verdicts=due"), holds="no")
    assert (code, last, held) == (1, "1 failed, 1 passed", "0 of 2")
    assert f"{ONE} reads page.md" in real_run.output  # type: ignore[attr-defined]
    (repository / ONE).write_text("def test(): pass")
    assert real_run((*options, "--verdicts=due", "-k", "test")) == (1, "2 passed", "0 of 2")
    assert real_run((*options, "--verdicts=due")) == (0, "2 passed", "0 of 2")
    assert real_run(options) == (0, "no tests ran", "2 of 2")
    assert real_run((*options, "--verdicts=anew"), holds="no") == (1, "1 failed, 3 passed", "2 of 2")
    assert real_run((*options, "--verdicts=due")) == (0, "1 passed", "1 of 2")
    assert real_run(options, CI="true")[0] == 0


def real_run(options: Sequence[str], holds: str = "yes", **more: str) -> tuple[int, str, str]:
    """The exit code of pytest, what came of the tests, and how many verdicts held before."""
    inherited = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    path = os.pathsep.join([str(Path.cwd()), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        env=inherited | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOLDS": holds, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    real_run.output = ran.stdout  # type: ignore[attr-defined]
    (last,) = re.findall(r"^=+ (.*) in [\d.]+s", ran.stdout, re.MULTILINE)
    return ran.returncode, last, ran.stdout.partition("verdicts: ")[2].partition(" slow")[0]


GUARDED = [
    f"exactlyonce/protocols/{item}.py" for item in ("outbox/protocol", "outbox/draft", "steps/park", "steps/load")
]
SEARCHED_BY = [f"packages/yieldcheck/yieldcheck/{item}.py" for item in ("search", "situations")]


@pytest.fixture(scope="module")
def ours() -> Inputs:
    """What our own test files depend on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return Inputs(SUITES)


@pytest.fixture(scope="module")
def searches(ours: Inputs) -> dict[str, set[str]]:
    """Of them, what exhaustive searches depend on."""
    names = re.compile(r"tests/model/test_\w+_(hold|holds|strategies)\.py")
    return {test: ours.of(test) for test in ours.tests if names.fullmatch(test)}


def test_every_search_of_the_model_is_due_where_a_guard_of_its_strategy_changed(
    searches: dict[str, set[str]],
) -> None:
    assert len(searches) > 2
    for search, reached in searches.items():
        assert reached.issuperset(["exactlyonce/effects/attempt.py", *GUARDED, *SEARCHED_BY, search])
        assert [path for path in reached if path.startswith("locks/")]


def test_a_search_is_due_for_the_host_only_where_it_runs_the_host(searches: dict[str, set[str]]) -> None:
    host = tuple(f"exactlyonce/{item}" for item in ("hosting/", "drivers/driver", "stores/", "telemetry/", "cli/"))
    reaching = [search for search, reached in searches.items() if any(item.startswith(host) for item in reached)]
    assert reaching == ["tests/model/test_deliveries_hold.py"]


def test_each_row_of_the_table_is_about_a_test() -> None:
    places = [place for name, suite in SUITES.items() for place in (name, *suite.reads)]
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_every_folder_of_slow_tests_has_some_that_run_with_every_change(ours: Inputs) -> None:
    rooms: dict[str, set[bool]] = {}
    for test in ours.tests:
        rooms.setdefault("/".join(test.split("/")[:2]), set()).add(ours.is_slow(test))
    assert [room for room, slow in rooms.items() if slow == {True}] == [
        "tests/restores"
    ]  # Of which the model has worlds.


@pytest.mark.parametrize("tool", ["python", "node", "java", "go"])
def test_the_version_of_a_tool_is_a_number_or_none(tool: str) -> None:
    assert re.fullmatch(r"\d+(\.\d+)?|none", version(tool))


def test_the_version_of_a_tool_that_is_absent_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    version.cache_clear()
    assert version("go") == "none"
    version.cache_clear()
