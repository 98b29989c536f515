"""Verdicts that still hold: a test file that passed needs no second run as long as everything that it depends on is the same.

    pytest -p devtools.verdicts tests packages

leaves out those files in the folders of `SUITES` for which a verdict holds, and keeps one for each whose tests all pass,
whatever becomes of the others. A verdict depends on the Python files that the test file imports, directly or not
(`devtools.affected` follows the imports); on data files next to them and in the folder of the tests; on what the suite is said
to read; on the arguments of pytest; and on this environment: Python, installed packages, and which tools there are. So it is
kept by the digest of all these: an empty file in `.make/stamps`, never committed. A fresh clone runs everything, and so does
every process with `CI` in its environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

import pytest

from devtools.affected import Imports, python_files

STAMPS: Final = Path(".make/stamps")
SUITES: Final[Mapping[str, Sequence[str]]] = {
    "tests/spark": ("spark_jobs", "infra/synapse", "function_app.py", "locks/all.txt"),
    "tests/model": ("exactlyonce/protocols", "docs/protocols/published-algorithm.md"),
    "tests/simulation": ("tests/model/mutants",),
    "packages/exactlyonce-dev": ("packages", "exactlyonce"),
    **{
        f"packages/{name}": (f"packages/{name}",)
        for name in ("function-host", "local-cosmos", "local-service-bus", "yieldcheck")
    },
}
"""Folders of tests whose verdicts are kept, each with what its tests read and do not import."""
ALSO: Final = ("pyproject.toml", "package-lock.json")
"""Files on which every verdict depends."""
TOOLS: Final = ("node", "go", "java", "mvn")
"""Programs whose absence skips tests."""
_MADE: Final = {"__pycache__", "node_modules", "target", "dist", "build"}
"""Folders that are made from the others. So is everything whose name begins with a dot."""


def pytest_configure(config: pytest.Config) -> None:
    """Leave out, in this process, the files whose verdicts hold; the process that starts the others judges for all."""
    config.pluginmanager.register(plugin(config, SUITES, [*environment(TOOLS)]))


def plugin(config: pytest.Config, suites: Mapping[str, Sequence[str]], facts: Iterable[str]) -> object:
    """The plugin for a process: one that judges, or a worker that receives the verdicts of its controller.

    Args:
        config: of this process.
        suites: folders of tests, each with what its tests read and do not import.
        facts: what every verdict depends on besides files.
    """
    received: dict[str, Any] | None = getattr(config, "workerinput", None)
    if received is not None:
        return LeftOut(frozenset(received["verdicts"]))
    facts = [*facts, *config.invocation_params.args, os.environ.get("PYTEST_ADDOPTS", "")]
    return Verdicts(inputs_by_file(suites), facts, STAMPS, anew=bool(os.environ.get("CI")))


@dataclass(eq=False)  # Pluggy wants plugins hashable.
class LeftOut:
    """Test files that are not collected.

    Attributes:
        files: their paths, relative to the repository.
    """

    files: frozenset[str]

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Whether a file is left out; None leaves it to others to say."""
        return collection_path.as_posix().removeprefix(f"{config.rootpath.as_posix()}/") in self.files or None


class Verdicts(LeftOut):
    """Keeps the verdicts of this run, and leaves out the files for which one holds.

    Args:
        inputs: of each test file.
        facts: what every verdict depends on besides files.
        stamps: the folder of the verdicts, an empty file for each, so that worktrees may share it.
        anew: whether all run, whatever holds.
    """

    def __init__(self, inputs: Mapping[str, Sequence[Path]], facts: Sequence[str], stamps: Path, *, anew: bool) -> None:
        self._inputs, self._facts, self._stamps = inputs, facts, stamps
        self._digests = {file: digest_of(places, facts) for file, places in inputs.items()}
        self._left: dict[str, set[str]] = {}
        self._failed: set[str] = set()
        super().__init__(
            frozenset(file for file, digest in self._digests.items() if not anew and (stamps / digest).is_file())
        )

    def pytest_report_header(self) -> str:
        return (
            f"verdicts: {len(self.files)} of {len(self._inputs)} files are unchanged since they passed here "
            f"(`rm -r {self._stamps}` makes them run again)"
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a process that xdist starts."""
        node.workerinput["verdicts"] = [*self.files]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Of several processes, each collects all tests."""
        self._expect(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect([item.nodeid for item in session.items])

    def _expect(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._left.setdefault(_file_of(id), set()).add(id)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = _file_of(report.nodeid)
        if report.failed:
            self._failed.add(file)
        if report.when == "teardown":
            self._left.get(file, set()).discard(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.files:
            session.exitstatus = pytest.ExitCode.OK
        self.keep()

    def keep(self) -> None:
        """Keep the verdicts of the files of which every test passed, and whose inputs nobody edited meanwhile."""
        self._stamps.mkdir(parents=True, exist_ok=True)
        for file, left in self._left.items():
            if not left and file not in self._failed and self._unchanged(file):
                (self._stamps / self._digests[file]).touch()

    def _unchanged(self, file: str) -> bool:
        try:
            return digest_of(self._inputs.get(file, ()), self._facts) == self._digests.get(file)
        except FileNotFoundError:
            return False


def inputs_by_file(suites: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
    """What the verdict of each test file depends on.

    Args:
        suites: folders of tests, each with what its tests read and do not import.
    """
    texts = python_files()
    imports = Imports(texts)
    return {
        path: [*_inputs(Path(folder), sorted(imports.reached(path))), *map(Path, (*read, *ALSO))]
        for folder, read in suites.items()
        for path in texts
        if path.startswith(f"{folder}/") and Path(path).name.startswith("test_")
    }


def digest_of(places: Iterable[Path], facts: Iterable[str]) -> str:
    """A digest of all inputs of a verdict.

    Args:
        places: files, and folders with all that is in them, but for what is made from it. Their names count, too.
        facts: what else matters.

    Raises:
        FileNotFoundError: there is no such place.
    """
    digest = hashlib.sha256()
    parts = (
        part for place in places for file in _files(place) for part in (file.as_posix().encode(), file.read_bytes())
    )
    for part in (*parts, *(fact.encode() for fact in facts)):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def environment(tools: Iterable[str]) -> Iterator[str]:
    """What a verdict owes to this machine: Python, the packages that are installed, and which of these tools there are."""
    yield sys.version
    yield from sorted({f"{one.name}=={one.version}" for one in distributions()})
    yield from (f"{tool}: {shutil.which(tool)}" for tool in tools)


def _inputs(folder: Path, reached: Sequence[str]) -> list[Path]:
    """Python files, and other files that they may read: those in the folder of the tests and those next to them."""
    found = {Path(path).parent for path in reached} - {Path()}
    data = {one for place in found for one in place.iterdir() if one.is_file()} | set(_files(folder))
    return [*map(Path, reached), *sorted(one for one in data if one.suffix != ".py" and not one.name.startswith("."))]


def _files(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    for one in sorted(place.iterdir()):
        if one.name not in _MADE and not one.name.startswith("."):
            yield from _files(one)


def _file_of(id: str) -> str:
    """The file of a test, by the test's id."""
    return id.split("::", 1)[0]
