"""An application of Microsoft's client for JavaScript finds what its author would expect of the service."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Subscription, Topic, Topology
from local_service_bus_tests.node import require_node

SCRIPT = Path(__file__).parent / "javascript" / "servicebus.test.mjs"
QUEUES = (
    Queue("batches"),
    Queue("failing", max_delivery_count=3),
    Queue("settled"),
    Queue("sessions", requires_session=True),
)


TOPICS = (Topic("events", (Subscription("changing"),)),)


def test_an_application_of_azure_service_bus_runs_on_the_local_service_bus() -> None:
    require_node("@azure/service-bus")
    with endpoint(Topology(QUEUES, TOPICS)) as running:
        run_tests(SERVICEBUS_CONNECTION=running.connection_string)


def run_tests(**environment: str) -> None:
    """Run all tests of the script, those after a failure, too."""
    command = ["node", "--test", "--test-reporter=spec", str(SCRIPT)]
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
