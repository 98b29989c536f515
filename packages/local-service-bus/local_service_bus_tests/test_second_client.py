"""A client that shares no code with Microsoft's for Python finds what that finds: rhea, an AMQP client for Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from local_service_bus.testing import endpoint as running_endpoint
from local_service_bus.topology import Queue, Topology
from local_service_bus_tests.node import require_node

SCRIPT: Final = Path(__file__).parent / "javascript" / "rhea_client.js"
TOPOLOGY: Final = Topology(
    (Queue("orders", max_bytes=10_000), Queue("batches"), Queue("later"), Queue("sessions", requires_session=True))
)


def seen(id: str, number: int, body: str, failed: int = 0) -> dict[str, Any]:
    """A message as the script tells of it."""
    return {"id": id, "body": body, "failed": failed, "number": number}


EXPECTED: Final = {
    "token": 202,
    "settling": {
        "sent": ["accepted"] * 4,
        "large": "amqp:link:message-size-exceeded",
        "received": [seen(id, number, f"body of {id}") for number, id in enumerate("abcd", start=1)],
        "again": seen("b", 2, "body of b", failed=1),
        "deferred": 4,
        "dead": seen("c", 3, "body of c"),
        "reasons": ["bad", "it is bad"],
    },
    "batches": {"received": [seen("j", 1, "j"), seen("k", 2, "k")], "again": seen("j", 1, "j", failed=1)},
    "scheduling": {"numbers": [1, 2], "cancelled": 200, "refused": "com.microsoft:message-not-found"},
    "sessions": {
        "ids": ["g", "i"],
        "state": "kept",
        "next": "two",
        "taken": "com.microsoft:session-cannot-be-locked",
    },
}


def test_rhea_finds_what_the_sdk_finds() -> None:
    require_node("rhea")
    with running_endpoint(TOPOLOGY) as endpoint:
        parts = dict(part.split("=", 1) for part in endpoint.connection_string.strip(";").split(";"))
        command = ["node", str(SCRIPT), str(endpoint.port), parts["SharedAccessKeyName"], parts["SharedAccessKey"]]
        played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout) == EXPECTED
