"""A test that hangs ends its process and fails by name; what that process started ends with it, and others run what it left."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools.processes import APART, TOGETHER, next_scope, scheduler
from tests.packaging.sources import ROOT

HANGING = """\
import subprocess, sys, threading

def test_before(): pass

def test_hangs(tmp_path_factory):
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    open("child", "a").write(f"{child.pid} ")
    threading.Event().wait()

def test_after(): pass
"""
CONFTEST = """\
import os
import pytest
from devtools import processes

processes.leash()

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return processes.scheduler(config, log)

def pytest_runtest_logstart(nodeid, location):
    if "PYTEST_XDIST_WORKER" in os.environ:
        open("ran", "a").write(f"{os.getpid()} {nodeid}\\n")
"""
PASSING = [
    "tests/spark/auditor/test_audit.py", "tests/unit/test_first.py", "tests/unit/test_second.py", "tests/unit/test_third.py",
]  # fmt: skip
LIMIT_SECONDS = 5
"""For a test that does nothing, and so a thousand times what it takes."""


def run(folder: Path, *options: str) -> tuple[int, str, str]:
    """The exit code of pytest in a folder, what it reported, and which stacks were dumped."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    limits = ["-o", f"faulthandler_timeout={LIMIT_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rf", *limits, *options],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Tests of which one hangs, with what its process started."""
    for file, text in {**dict.fromkeys(PASSING, "def test(): pass"), "tests/spark/test_jobs.py": HANGING}.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    return tmp_path


def assert_the_child_ends(suite: Path) -> None:
    """Its process needs a moment for that; a child that stays makes this test hang, and is reported so."""
    (child,) = (suite / "child").read_text().split()
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(int(child))], [], [])


linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can tell what a process started")


@linux
def test_a_test_that_hangs_fails_by_name_with_its_stack_and_all_others_pass(suite: Path) -> None:
    distributed = ("-p", "xdist", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")
    code, reported, stacks = run(suite, *distributed)
    assert (code, reported.splitlines()[-1].strip("= ").rpartition(" in ")[0]) == (1, "1 failed, 6 passed")
    assert reported.count("FAILED tests/spark/test_jobs.py::test_hangs") == 1
    assert "in test_hangs" in stacks
    assert_the_child_ends(suite)

    by_process: dict[str, list[str]] = {}
    for line in (suite / "ran").read_text().splitlines():
        process, id = line.split()
        by_process.setdefault(process, []).append(id)
    assert all(len({id.startswith(APART) for id in ids}) == 1 for ids in by_process.values())
    assert sorted(id for ids in by_process.values() for id in ids if "test_jobs" in id) == [
        f"tests/spark/test_jobs.py::{name}" for name in ("test_after", "test_before", "test_hangs")
    ]


@linux
def test_a_test_that_hangs_ends_a_run_of_one_process_too(suite: Path) -> None:
    code, _, stacks = run(suite)
    assert code == 1
    assert "in test_hangs" in stacks
    assert_the_child_ends(suite)


class Worker:
    """A process as xdist knows it. It keeps its last test until it knows what follows."""

    def __init__(self, number: int) -> None:
        self.gateway, self.number = SimpleNamespace(id=f"gw{number}"), number
        self.shutting_down, self.waiting, self.ran = False, list[int](), list[int]()

    def send_runtest_some(self, indexes: Sequence[int]) -> None:
        assert not self.shutting_down
        self.waiting += indexes

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def runs(self) -> bool:
        return len(self.waiting) > 1 or (self.shutting_down and bool(self.waiting))


FILES = st.sampled_from([*(f"{folder}test_a.py" for folder in TOGETHER), *(f"tests/unit/test_{n}.py" for n in "abcde")])


@given(
    sizes=st.dictionaries(FILES, st.integers(1, 5), min_size=1),
    processes=st.integers(2, 6),
    chance=st.randoms(use_true_random=False),
    ends=st.integers(0, 3),
)
def test_every_test_runs_once_and_in_a_process_for_tests_of_its_kind(
    sizes: Mapping[str, int], processes: int, chance: Any, ends: int
) -> None:
    ids = [f"{file}::test_{number}" for file, size in sizes.items() for number in range(size)]
    config = SimpleNamespace(getvalue=lambda _: ["popen"] * processes, option=SimpleNamespace(loadscopereorder=False))
    sharing: Any = scheduler(config, None)
    workers = [Worker(number) for number in range(processes)]
    alive = [*workers]

    def join(worker: Worker) -> None:
        sharing.add_node(worker)
        sharing.add_node_collection(worker, ids)

    for worker in workers:
        join(worker)
    sharing.schedule()
    while ready := [worker for worker in alive if worker.runs]:
        worker = chance.choice(ready)
        worker.ran.append(worker.waiting.pop(0))
        if ends and not chance.randrange(4):  # This test ends its process, and xdist starts another.
            ends -= 1
            alive.remove(worker)
            assert sharing.remove_node(worker) == ids[worker.ran[-1]]
            alive.append(Worker(len(workers)))
            workers.append(alive[-1])
            join(alive[-1])
            sharing.schedule()
        else:
            sharing.mark_test_complete(worker, worker.ran[-1])
    assert sorted(index for worker in workers for index in worker.ran) == [*range(len(ids))]
    for worker in workers:
        assert len({ids[index].startswith(APART) for index in worker.ran}) <= 1
    assert all(worker.shutting_down for worker in alive)


def test_long_tests_come_first() -> None:
    waiting = ["tests/unit/test_a.py", "tests/model/test_a.py", "tests/acceptance/test_a.py", "tests/spark/"]
    assert next_scope(waiting, {}, "a process", 3) == "tests/spark/"
    assert next_scope(waiting, {"a process": ["tests/unit/test_b.py"]}, "a process", 3) == "tests/acceptance/test_a.py"
    assert next_scope(waiting, {"a process": ["tests/spark/auditor/"]}, "another", 2) == "tests/acceptance/test_a.py"
