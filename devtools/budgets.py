"""What each suite takes of the processor, next to its budget.

    python -m devtools.budgets [tests/unit …]

runs each suite in one process, one after the other, and prints its processor time (user and system, with that of the processes
that it starts) and its budget, which the table in CONTRIBUTING.md has. Processor time is nearly the same on a busy machine;
seconds on the clock are not.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
"""Of Linux's `prctl`."""
_MOST_SECONDS = 10.0
PAGE = Path("CONTRIBUTING.md")


def budgets(page: str) -> dict[str, int]:
    """CPU seconds that a suite may take, by its folder: rows of a table, `| `tests/unit` | 60 |`."""
    return {folder: int(seconds) for folder, seconds in re.findall(r"^\| `([\w/-]+)` \| (\d+) \|", page, re.MULTILINE)}


def run(folder: str) -> float:
    """CPU seconds of the tests of a folder. Where some of them fail, a warning says so."""
    seconds, code = spent((sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", folder))
    if code:
        print(f"{folder}: not all of its tests pass, so the next figure says little.", file=sys.stderr, flush=True)
    return seconds


def spent(command: Sequence[str]) -> tuple[float, int]:
    """CPU seconds of a command and of all that it starts, and its exit code. Not for processes that have other children."""
    _adopt_orphans()
    before = _used()
    code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
    _await_orphans()
    return _used() - before, code


def _adopt_orphans() -> None:
    """From now on, on Linux, processes whose parents end first are this one's: nobody waits for the Java of PySpark."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _await_orphans() -> None:
    """Wait for those, since only then their time counts: so many seconds at most."""
    until = time.monotonic() + _MOST_SECONDS
    with suppress(ChildProcessError):  # There are no more.
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.1)


def report(allowed: dict[str, int], folders: Sequence[str], measure: Callable[[str], float]) -> Iterator[str]:
    """A line for each suite.

    Args:
        allowed: CPU seconds by folder.
        folders: which of them; all if there are none.
        measure: gives the CPU seconds that a folder takes.
    """
    yield f"{'suite':32} {'CPU s':>7} {'budget':>7}"
    for folder in folders or allowed:
        seconds, budget = measure(folder), allowed.get(folder)
        over = "  over its budget" if budget is not None and seconds > budget else ""
        yield f"{folder:32} {seconds:7.0f} {'none' if budget is None else budget:>7}{over}"


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        "python -m devtools.budgets", description="Print what suites take of the processor."
    )
    parser.add_argument("folders", nargs="*", help="such as tests/unit (default: all that have a budget)")
    given = parser.parse_args(arguments)
    for line in report(budgets(PAGE.read_text(encoding="utf-8")), given.folders, run):
        print(line, flush=True)


if __name__ == "__main__":
    main()
