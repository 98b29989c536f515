"""An application of Microsoft's client for JavaScript finds what its author would expect of the service."""

from __future__ import annotations

from pathlib import Path

from local_service_bus.testing import endpoint
from local_service_bus.topology import Subscription, Topic, Topology
from local_service_bus_tests.node import require_node
from local_service_bus_tests.test_go_client import QUEUES, play

SCRIPT = Path(__file__).parent / "javascript" / "servicebus.test.mjs"
TOPICS = (Topic("events", (Subscription("changing"),)),)


def test_an_application_of_azure_service_bus_runs_on_the_local_service_bus() -> None:
    require_node("@azure/service-bus")
    with endpoint(Topology(QUEUES, TOPICS)) as running:
        command = ["node", "--test", "--test-reporter=spec", str(SCRIPT)]
        played = play(command, SERVICEBUS_CONNECTION=running.connection_string)
    print(played.stdout)
    assert played.returncode == 0, played.stdout
    assert "skipped 0" in played.stdout
