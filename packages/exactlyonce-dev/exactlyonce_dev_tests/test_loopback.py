"""What `exactlyonce dev` serves is for this machine only, and shows no key."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from exactlyonce_dev_tests.apps import bus_at, configure, dev, free_port, get, put, until
from local_service_bus.testing import require_endpoint

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Only Linux tells which process listens where."),
]
LISTENS = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
"""127.0.0.1 and ::1, as the kernel writes them."""
KEYS = re.compile(r"(?:AccountKey|SharedAccessKey)=([^;]+)")


def processes(pid: int) -> Iterator[Path]:
    """A process, and all that it and its children have started."""
    yield Path(f"/proc/{pid}")
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from processes(int(child))


def addresses(pid: int) -> dict[str, set[str]]:
    """By port, in hexadecimal, the addresses at which a process and its children listen."""
    sockets = set()
    for process in processes(pid):
        for descriptor in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # It was closed meanwhile.
                sockets.add(descriptor.readlink().name)
    found: dict[str, set[str]] = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in sockets:
                address, port = local.split(":")
                found.setdefault(port, set()).add(address)
    return found


def test_every_part_listens_on_this_machine_only_and_the_console_shows_no_key(app: Path) -> None:
    require_endpoint()
    storage = configure(app, ServiceBus=bus_at(free_port()), EXACTLYONCE__blobContainer="large")["AzureWebJobsStorage"]
    settings = configure(
        app, AzureWebJobsStorage=f"{storage}BlobEndpoint=http://127.0.0.1:{free_port()}/devstoreaccount1;"
    )
    keys = {settings["COSMOS__accountKey"], *KEYS.findall(" ".join(settings.values()))}
    assert len(keys) == 3
    with dev(app, "--no-reload") as running:
        address = running.ready()
        assert put(address, "orders/o-1/lines/l-1", {"item": "tea", "quantity": 2}) == 202
        until(lambda: get(address, "stocks/tea") == {"reserved": 2})
        listening = addresses(running.process.pid)
        shown = [*asked(running.log), running.log]
        assert running.end() == 0
    assert len(listening) >= 6  # Cosmos DB, queues, blobs, Service Bus, the app, the console.
    assert {port: where for port, where in listening.items() if not where <= LOOPBACK} == {}
    assert [text for text in shown if any(key in text for key in keys)] == []


def asked(log: str) -> Iterator[str]:
    """All that the console of a running app tells."""
    found = re.search(r"console (http://127\.0\.0\.1:\d+/)", log)
    assert found is not None, log
    paths = (
        "about",
        "types",
        "entities?type=order",
        "entity?type=order&key=o-1",
        "unfinished",
        "parked",
        "messages",
        "trouble",
    )
    for path in ("", "console.js", *(f"api/{name}" for name in paths)):
        with urllib.request.urlopen(f"{found[1]}{path}") as reply:  # noqa: S310
            yield reply.read().decode()
