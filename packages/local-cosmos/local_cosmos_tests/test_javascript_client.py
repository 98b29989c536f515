"""An application of Microsoft's client for JavaScript finds what its author would expect of the service."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos_tests.node import require_node

SCRIPTS = Path(__file__).parent / "javascript"


@pytest.mark.parametrize("script", ["cosmos.test.mjs", "walk.test.mjs"])
def test_an_application_of_azure_cosmos_runs_on_the_local_cosmos(script: str) -> None:
    require_node("@azure/cosmos")
    with running_emulator(AccountSettings(partitions=3)) as emulator:
        run_tests(SCRIPTS / script, COSMOS_ENDPOINT=emulator.endpoint, COSMOS_KEY=emulator.key)


def run_tests(script: Path, **environment: str) -> None:
    """Run all tests of a script, those after a failure, too."""
    command = ["node", "--test", "--test-reporter=spec", str(script)]
    played = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(played.stdout)
    assert played.returncode == 0, played.stdout
    assert "skipped 0" in played.stdout
