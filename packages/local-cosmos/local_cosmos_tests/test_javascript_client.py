"""An application of Microsoft's client for JavaScript finds what its author would expect of the service."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos_tests.node import require_node

SCRIPT = Path(__file__).parent / "javascript" / "cosmos.test.mjs"
PATIENCE_SECONDS = 500


def test_an_application_of_azure_cosmos_runs_on_the_local_cosmos() -> None:
    require_node("@azure/cosmos")
    with running_emulator(AccountSettings(partitions=3)) as emulator:
        run_tests(COSMOS_ENDPOINT=emulator.endpoint, COSMOS_KEY=emulator.key)


def run_tests(**environment: str) -> None:
    """Run all tests of the script, those after a failure, too."""
    command = ["node", "--test", "--test-reporter=spec", str(SCRIPT)]
    played = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    print(played.stdout)
    assert played.returncode == 0, played.stdout
    assert "skipped 0" in played.stdout
