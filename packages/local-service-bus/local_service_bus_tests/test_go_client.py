"""An application of Microsoft's Service Bus client for Go finds what its author would expect of the service."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Topology

PROJECT = Path(__file__).parent / "go"
QUEUES = (
    Queue("batches"),
    Queue("failing", max_delivery_count=3),
    Queue("settled"),
    Queue("sessions", requires_session=True),
)


def test_an_application_of_azservicebus_runs_on_the_local_service_bus() -> None:
    require_go()
    with endpoint(Topology(QUEUES)) as running:
        command = ["go", f"-C={PROJECT}", "test", "-count=1", "-v", "."]
        played = play(command, SERVICEBUS_CONNECTION=running.connection_string)
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


def play(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """What a program says that ends by itself, on both of its outputs."""
    sent = {**os.environ, **environment}
    return subprocess.run(command, env=sent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
