"""Applications of Microsoft's clients for JavaScript find what their authors would expect of the services."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from devtools.cosmos_emulator.inprocess import running_emulator
from devtools.cosmos_emulator.semantics.account import AccountSettings
from devtools.servicebus_endpoint.topology import Queue, Topology
from tests.packaging.sources import ROOT
from tests.servicebus import endpoint

HERE = Path(__file__).parent
PATIENCE_SECONDS = 100
QUEUES = (
    Queue("batches"),
    Queue("failing", max_delivery_count=3),
    Queue("settled"),
    Queue("sessions", requires_session=True),
)


def require_clients() -> None:
    """Skip the test where Node or a client is not installed; fail where everything has to run."""
    installed = all((ROOT / "node_modules" / "@azure" / name).is_dir() for name in ("cosmos", "service-bus"))
    if shutil.which("node") is None or not installed:
        told = "The clients for JavaScript need Node 20 or newer and `npm install` in the repository."
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)


def run_tests(script: str, environment: Mapping[str, str]) -> None:
    """Run all tests of a script, those after a failure, too."""
    command = ["node", "--test", "--test-reporter=spec", str(HERE / script)]
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


def test_an_application_of_azure_cosmos_runs_on_the_local_cosmos() -> None:
    require_clients()
    with running_emulator(AccountSettings(partitions=3)) as emulator:
        run_tests("cosmos.test.mjs", {"COSMOS_ENDPOINT": emulator.endpoint, "COSMOS_KEY": emulator.key})


def test_an_application_of_azure_service_bus_runs_on_the_local_service_bus() -> None:
    require_clients()
    with endpoint(Topology(QUEUES)) as running:
        run_tests("servicebus.test.mjs", {"SERVICEBUS_CONNECTION": running.connection_string})
