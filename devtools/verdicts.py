"""Tests in tiers: what every change runs, and what has a verdict that holds until something changes of what it depends on.

    pytest -p devtools.verdicts                   # what a change needs; fails while verdicts are due (`make test`)
    pytest -p devtools.verdicts --verdicts=due    # only what is due; writes verdicts (`make verify`)
    pytest -p devtools.verdicts --verdicts=anew   # everything, whatever holds (`make verify-all`)

`devtools.suites` says which test files are slow. The verdict of such a file stands in `verdicts.json`, which is committed: a
digest of all that it depends on (`devtools.inputs`), and of the versions of the tools with which all its tests passed. A fresh
clone and CI trust it; CI tries a tenth of all verdicts again, drawn by the commit. A test file that opens anything else gets no
verdict.

All other test files run with every change, but on this machine not again while what they depend on is the same: `.make/stamps`
has an empty file for each digest.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from devtools.inputs import A_PROCESS, BOOK, Inputs
from devtools.suites import SUITES

STAMPS: Final = Path(".make/stamps")
_END: Final = ("", "Written by `make verify` alone.")
"""The last line of the book, so that all others end with a comma, and Git merges them line by line."""


class LeftOut:
    """Leaves out test files; and notes in each report which files of the repository the test file has opened since the last.

    Modules do not count: a module is opened by whichever test file imports it first.

    Args:
        root: of the repository.
        files: test files that are not collected.
    """

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.files = frozenset(files)
        self._root, self._test = f"{root}{os.sep}", ""
        self._reads: defaultdict[str, set[str]] = defaultdict(set)
        sys.addaudithook(self._notice)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Whether a file is left out; None leaves it to others to say."""
        return str(collection_path).removeprefix(self._root).replace(os.sep, "/") in self.files or None

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        self._test = _file_of(collector.nodeid)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._test = _file_of(nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        report.reads = sorted(self._reads.pop(self._test, ()))
        return report

    def _notice(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and args[0] not in ("file", "uname"):  # By these `platform` knows where it is.
            self._reads[self._test].add(A_PROCESS)
        elif event == "open" and args[1] == "r":
            with suppress(TypeError, ValueError, OSError):  # A file that is open already has a number, and no path.
                path = os.path.abspath(args[0])  # noqa: PTH100
                if path.startswith(self._root) and (not path.endswith(".py") or self._is_ours()):
                    self._reads[self._test].add(path.removeprefix(self._root).replace(os.sep, "/"))

    def _is_ours(self) -> bool:
        """Whether code of this repository opens a file, and neither an import nor a tool."""
        frame = sys._getframe(2)  # noqa: SLF001
        while frame.f_back is not None and "pathlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame.f_code.co_filename.startswith(self._root) and "site-packages" not in frame.f_code.co_filename


class Verdicts:
    """Decides which test files run, keeps the verdicts of this run, and says which are due.

    Args:
        inputs: of all test files.
        mode: "trusted", "due" or "anew".
        again: whether a verdict that holds is tried again.
        stamped: whether what passed on this machine is left out.
        whole: whether files run with all their tests; else their verdicts stay as they are.

    Attributes:
        left_out: test files that do not run.
        due: slow test files without a verdict that holds.
    """

    def __init__(
        self,
        inputs: Inputs,
        mode: str,
        again: Callable[[str], bool] = lambda _test: False,
        *,
        stamped: bool = True,
        whole: bool = True,
    ) -> None:
        self._inputs, self._whole = inputs, whole
        self._digests = {test: inputs.digest(test, inputs.tools(test)) for test in inputs.tests}
        self._slow = {*filter(inputs.is_slow, inputs.tests)}
        self.due = {test for test in self._slow if not self._holds(test)}
        drawn = {*filter(again, self._slow - self.due)}
        passed = {test for test in self._digests.keys() - self._slow if stamped and self._stamp(test).is_file()}
        choices = {"trusted": self._slow - drawn | passed, "due": self._digests.keys() - self.due, "anew": set[str]()}
        self.left_out = choices[mode]
        self._header = (
            f"verdicts: {len(self._slow - self.due)} of {len(self._slow)} slow test files have one that holds"
            f" ({len(drawn)} are tried again); {len(passed)} of {len(self._digests) - len(self._slow)} others passed here"
        )
        self._left: dict[str, set[str]] = {}
        self._reads: defaultdict[str, set[str]] = defaultdict(set)
        self._failed: set[str] = set()
        self._news: list[str] = []

    def pytest_report_header(self) -> str:
        return self._header

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a process that xdist starts."""
        node.workerinput["left out"] = [*self.left_out]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Of several processes, each collects all tests."""
        for id in ids:
            self._left.setdefault(_file_of(id), set()).add(id)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.pytest_xdist_node_collection_finished([item.nodeid for item in session.items])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = _file_of(report.nodeid)
        self._reads[test].update(getattr(report, "reads", ()))
        if report.failed and test not in self._failed:
            self._failed.add(test)
            self._take_back(test)
        if report.when == "teardown" and (left := self._left.get(test)):
            left.discard(report.nodeid)
            if not left and test not in self._failed and self._whole:
                self._keep(test)

    def _take_back(self, test: str) -> None:
        if test in self._slow and test not in self.due:
            _write({name: verdict for name, verdict in _verdicts() if name != test})
            self._news.append(f"The verdict of {test} is not true, and is taken back.")
            self.due.add(test)
        elif test in self._digests:
            self._stamp(test).unlink(missing_ok=True)

    def _keep(self, test: str) -> None:
        """Keep the verdict of a test file of which all tests passed, unless nobody can tell what it depended on."""
        self._inputs.look_again()
        tools, undeclared = self._inputs.tools(test), self._inputs.undeclared(test, self._reads[test])
        if undeclared and test in self._slow:
            self._news.append(f"{test} reads {', '.join(sorted(undeclared))}, and devtools/suites.py does not say so.")
            self.due.add(test)
        elif not undeclared and self._is_unchanged(test, tools):
            if test in self.due:
                _write({**dict(_verdicts()), test: f"{self._digests[test]} {tools}"})
                self.due.discard(test)
            elif test not in self._slow:
                STAMPS.mkdir(parents=True, exist_ok=True)
                self._stamp(test).touch()

    def _is_unchanged(self, test: str, tools: str) -> bool:
        """Whether nobody has edited meanwhile what a test file depends on."""
        with suppress(FileNotFoundError):
            return self._inputs.digest(test, tools) == self._digests[test]
        return False

    def _holds(self, test: str) -> bool:
        """Whether there is a verdict for what a test file depends on now, whatever the versions of tools are here."""
        verdicts = [verdict.partition(" ") for name, verdict in _verdicts() if name == test]
        return any(self._inputs.digest(test, tools) == digest for digest, _, tools in verdicts)

    def _stamp(self, test: str) -> Path:
        return STAMPS / self._digests[test]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if self.due else pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for line in self.report():
            terminalreporter.write_line(line, red=True)

    def report(self) -> Iterator[str]:
        """What became of verdicts, and how many are due, by suite."""
        yield from self._news
        suites = sorted(Counter("/".join(test.split("/")[:-1][:2]) for test in self.due).items())
        if suites:
            yield f"Verdicts are due: {', '.join(f'{suite} {number}' for suite, number in suites)}. Run them: make verify"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--verdicts", choices=("trusted", "due", "anew"), default="trusted", help="which tests run")


def pytest_configure(config: pytest.Config) -> None:
    """Decide in this process, or do what the process has decided that started this one."""
    left_out: Iterable[str] | None = getattr(config, "workerinput", {}).get("left out")
    if left_out is None:
        chosen = _of_configuration(config)
        left_out = chosen.left_out
        config.pluginmanager.register(chosen)
    config.pluginmanager.register(LeftOut(config.rootpath, left_out))


def _of_configuration(config: pytest.Config) -> Verdicts:
    option, in_ci = config.option, "CI" in os.environ
    parts = (option.keyword, option.markexpr, option.deselect, *("::" in place for place in config.args))
    settings = re.findall(
        r"^\[tool\.pytest.*?^(?=\[)", Path("pyproject.toml").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout  # noqa: S607
    return Verdicts(
        Inputs(SUITES, "".join(settings)),
        option.verdicts,
        lambda test: in_ci and drawn(head.strip(), test),
        stamped=not in_ci,
        whole=not any(parts),
    )


def drawn(commit: str, test: str) -> bool:
    """Whether a commit draws a test file: one in ten."""
    return int(sha256(f"{commit} {test}".encode()).hexdigest(), 16) % 10 == 0


def _verdicts() -> list[tuple[str, str]]:
    """All verdicts by test files. After a merge there may be two of one test file: each is true of what it is of."""
    pairs: list[tuple[str, str]] = json.loads(Path(BOOK).read_text("utf-8"), object_pairs_hook=list)
    return [pair for pair in pairs if pair != _END]


def _write(verdicts: Mapping[str, str]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(text)}" for name, text in (*sorted(verdicts.items()), _END))
    written = Path(f"{BOOK}.new")
    written.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    written.replace(BOOK)


def _file_of(id: str) -> str:
    """The file of a test, by the test's id."""
    return id.split("::", 1)[0]
