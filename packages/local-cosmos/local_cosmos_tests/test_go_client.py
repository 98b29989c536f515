"""An application of Microsoft's Cosmos client for Go finds what its author would expect of the service."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos_tests.commands import play

PROJECT = Path(__file__).parent / "go"


def test_an_application_of_azcosmos_runs_on_the_local_cosmos() -> None:
    require_go()
    with running_emulator(AccountSettings(partitions=3)) as emulator:
        command = ["go", f"-C={PROJECT}", "test", "-count=1", "-v", "./..."]
        played = play(command, COSMOS_ENDPOINT=emulator.endpoint, COSMOS_KEY=emulator.key)
    print(played.stdout)
    assert played.returncode == 0, played.stdout
    assert "--- PASS" in played.stdout, "No test of Go ran."
    assert "--- SKIP" not in played.stdout


def require_go() -> None:
    """Skip the test where Go is not installed; fail where everything has to run."""
    if shutil.which("go") is None:
        told = "The client for Go needs Go 1.23 or newer, and there is none."
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
