"""Do the unit tests that stand in for the checker really fail with their mutants?"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from os import environ, wait4, waitstatus_to_exitcode
from pathlib import Path
from signal import SIGXCPU
from tempfile import NamedTemporaryFile
from typing import Final

from verification.mutants.plugin import LIMIT, MODULE, SOURCE
from verification.mutants.source import Mutant

_ROOT: Final = Path(__file__).parents[2]
_UNIT: Final = _ROOT / "tests/unit"
_FAILED: Final = 1
"""Exit code of pytest if tests were run, and some failed."""
PATIENCE: Final = 20
"""A test that takes so many times its usual processor time with a mutant never ends."""


def file_and_name(test: str) -> tuple[Path, str]:
    """The file of a unit test, and its name.

    Raises:
        ValueError: no file of `tests/unit` is called so, or several are.
    """
    file, _, name = test.partition("::")
    (found,) = _UNIT.rglob(file)
    return found, name


def fails(test: str, mutant: Mutant) -> bool:
    """Whether a unit test fails with a mutant, in a process of its own. Whoever goes round and round fails, too.

    Args:
        test: its file, in whatever folder of `tests/unit`, and its name, `test_some.py::test_that`, whatever class it is in.
    """
    with NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as source:
        source.write(mutant.source)
        source.flush()
        limit = f"{PATIENCE * _usual(test):.0f}"
        code, _ = _run(
            test, "-p", "verification.mutants.plugin", **{MODULE: mutant.module, SOURCE: source.name, LIMIT: limit}
        )
    return code in {_FAILED, -SIGXCPU}


@cache
def _usual(test: str) -> float:
    """Seconds of processor time that a test takes with the shipped code, with the start of its process."""
    return _run(test)[1]


def _run(test: str, *options: str, **variables: str) -> tuple[int, float]:
    """The exit code of a test, and the seconds of processor time that it took."""
    file, name = file_and_name(test)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, "-k", name, str(file)]
    process = subprocess.Popen(
        command, cwd=_ROOT, env={**environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = wait4(process.pid, 0)
    process.returncode = waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime
