"""An application of Microsoft's client for JavaScript finds what its author would expect of the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos_tests.commands import play
from local_cosmos_tests.node import require_node

SCRIPTS = Path(__file__).parent / "javascript"


@pytest.mark.parametrize("script", ["cosmos.test.mjs", "walk.test.mjs"])
def test_an_application_of_azure_cosmos_runs_on_the_local_cosmos(script: str) -> None:
    require_node("@azure/cosmos")
    with running_emulator(AccountSettings(partitions=3)) as emulator:
        command = ["node", "--test", "--test-reporter=spec", str(SCRIPTS / script)]
        played = play(command, COSMOS_ENDPOINT=emulator.endpoint, COSMOS_KEY=emulator.key)
    print(played.stdout)
    assert played.returncode == 0, played.stdout
    assert "skipped 0" in played.stdout
