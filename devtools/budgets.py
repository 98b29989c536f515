"""What each suite takes of the processor, beside its budget.

    python -m devtools.budgets [tests/unit …]

runs each suite in one process, one after the other, and prints its processor time (user and system, with that of the processes
that it starts) and its budget, which the table in CONTRIBUTING.md has. Processor time is nearly the same on a busy machine;
seconds on the clock are not.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PAGE = Path("CONTRIBUTING.md")


def budgets(page: str) -> dict[str, int]:
    """CPU seconds that a suite may take, by its folder: rows of a table, `| `tests/unit` | 60 |`."""
    return {folder: int(seconds) for folder, seconds in re.findall(r"^\| `([\w/-]+)` \| (\d+) \|", page, re.MULTILINE)}


def run(folder: str) -> float:
    """CPU seconds of the tests of a folder. Where some of them fail, a warning says so."""
    before = _used()
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", folder)
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        print(f"{folder}: not all of its tests pass, so the next figure says little.", file=sys.stderr, flush=True)
    return _used() - before


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
