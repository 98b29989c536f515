"""The demo, small: the library comes through, the naive handler does not, and nothing is left running."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.acceptance


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "devtools.demo", "--shots", "200", "--games", "8", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)


def figure(name: str, output: str) -> int:
    found = re.search(rf"{name}\D*?(\d+)", output)
    assert found is not None, output
    return int(found[1])


def test_every_shot_takes_place_once_whatever_happens() -> None:
    played = demo()
    assert played.returncode == 0, played.stdout + played.stderr
    assert figure("violations", played.stdout) == 0
    assert figure("duplicates", played.stdout) >= 40
    assert figure("replies lost after the write was applied", played.stdout) >= 20
    assert figure("replies lost before", played.stdout) >= 20
    assert figure(r"function hosts killed \(SIGKILL\)", played.stdout) >= 3
    assert figure("distinct outcomes published", played.stdout) == 200


def test_the_naive_handler_does_not_come_through() -> None:
    played = demo("--strategy", "naive")
    assert played.returncode == 0, played.stdout + played.stderr
    assert figure("violations", played.stdout) > 0
