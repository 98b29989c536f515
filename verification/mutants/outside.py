"""Do the unit tests that stand in for the checker really fail with their mutants?"""

from __future__ import annotations

import subprocess
import sys
from os import environ
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from verification.mutants.plugin import MODULE, SOURCE
from verification.mutants.source import Mutant

_ROOT: Final = Path(__file__).parents[2]
_UNIT: Final = _ROOT / "tests/unit"
_FAILED: Final = 1
"""Exit code of pytest if tests were run, and some failed."""


def file_and_name(test: str) -> tuple[Path, str]:
    """The file of a unit test, and its name.

    Raises:
        ValueError: no file of `tests/unit` is called so, or several are.
    """
    file, _, name = test.partition("::")
    (found,) = _UNIT.rglob(file)
    return found, name


def fails(test: str, mutant: Mutant) -> bool:
    """Whether a unit test fails with a mutant, in a process of its own.

    Args:
        test: its file, in whatever folder of `tests/unit`, and its name, `test_some.py::test_that`, whatever class it is in.
        mutant: to run it with.
    """
    file, name = file_and_name(test)
    with NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as source:
        source.write(mutant.source)
        source.flush()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
                *("-p", "verification.mutants.plugin", "-k", name, str(file)),
            ],
            cwd=_ROOT,
            env={**environ, MODULE: mutant.module, SOURCE: source.name},
            capture_output=True,
            check=False,
        )
    return done.returncode == _FAILED
