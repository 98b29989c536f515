"""The processes of the local stack: Azurite, the local Cosmos, function hosts. What is started here is ended here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from azure.cosmos import CosmosClient, PartitionKey
from azure.storage.queue import QueueServiceClient

from demo.bus import Bus
from demo.hosts import Host
from function_host.azurite import Azurite, azurite
from local_cosmos.admin_client import AdminClient
from local_cosmos.administration import Administration

ROOT: Final = Path(__file__).resolve().parents[1]
APP: Final = ROOT / "demo" / "app"
DATABASE: Final = "shooting-range"
QUEUES: Final = ("shooting-range", "leader-board", "audience")
WAY: Final = "leader-board-way"
"""Where outcomes for the leader board go first, so that something can happen to them on the way."""
INVISIBLE_SECONDS: Final = 2
"""How long a killed host's messages stay invisible; the real host's ten minutes would be a long demo."""
_GRACE_SECONDS: Final = 300


@dataclass
class Stack:
    """What runs.

    Attributes:
        storage, cosmos: the servers.
        app: folder of the function app.
        logs: folder of the logs.
        strategy: of the games.
        disordered: whether outcomes for the leader board go to `WAY`.
        hosts: running hosts, the oldest first.
        started: how many hosts were started so far.
        http: where the youngest host answers.
        bus: the local Service Bus; None on storage queues.
        invisible: seconds until the messages of a killed host come back.
        settings: of the app, besides.
        code: folder of the library that hosts started from now on run.
    """

    storage: Azurite
    cosmos: AdminClient
    app: Path
    logs: Path
    strategy: str = "outbox"
    disordered: bool = False
    hosts: list[Host] = field(default_factory=list)
    started: int = 0
    http: str = ""
    bus: Bus | None = None
    invisible: int = INVISIBLE_SECONDS
    settings: dict[str, str] = field(default_factory=dict)
    code: Path = ROOT

    @property
    def environment(self) -> dict[str, str]:
        """Settings of the app: the same names that point it at a real account."""
        destinations = {"leader-board": WAY, "arrivals": "leader-board"} if self.disordered else {}
        return {
            **({} if self.bus is None else self.bus.environment),
            "AzureWebJobsStorage": self.storage.connection_string,
            "COSMOS__accountEndpoint": self.cosmos.endpoint,
            "COSMOS__accountKey": self.cosmos.key,
            "COSMOS__database": DATABASE,
            "EXACTLYONCE__exceptionText": "on",
            "EXACTLYONCE__provedWithin": "2",
            "EXACTLYONCE__sweepAfter": "5",
            "EXACTLYONCE__destinations": json.dumps(destinations),
            "STRATEGY": self.strategy,
            "ARRIVALS": "on" if self.disordered else "off",
            **self.settings,
        }

    def start_hosts(self, number: int) -> None:
        """Start function hosts until so many run, side by side, and wait until they serve."""
        launched = [self._launch_host() for _ in range(number - len(self.hosts))]
        self.hosts += launched
        for host in launched:
            self.http = host.ready()["http"]

    def _launch_host(self) -> Host:
        self.started += 1
        arguments = ["--app", str(self.app), "--invisible", str(self.invisible)]
        log = self.logs / f"host-{self.started}.log"
        return Host(arguments, self.code, {**os.environ, **self.environment}, log)

    def kill_hosts(self) -> int:
        """SIGKILL every host; return how many there were."""
        for host in self.hosts:
            host.kill()
        return self._collect()

    def kill_host(self, place: int = 0) -> int:
        """SIGKILL a host, the oldest unless another place is given."""
        host = self.hosts.pop(place)
        host.kill()
        host.wait(_GRACE_SECONDS)
        return 1

    def stop_hosts(self) -> None:
        """Let every host finish what it is doing."""
        for host in self.hosts:
            host.stop()
        self._collect()

    def _collect(self) -> int:
        hosts, self.hosts = self.hosts, []
        for host in hosts:
            host.wait(_GRACE_SECONDS)
        return len(hosts)


@contextmanager
def running_stack(app: Path, logs: Path, strategy: str, *, disordered: bool, bus: Bus | None = None) -> Iterator[Stack]:
    """Start Azurite and the local Cosmos, with empty containers and queues; end everything on exit.

    Args:
        app: folder of the function app.
        logs: folder of the logs.
        strategy: of the games.
        disordered: whether outcomes for the leader board go to `WAY`.
        bus: what carries messages in place of Azurite's queues; its starter ends it.
    """
    with ExitStack() as running:
        storage = running.enter_context(azurite())
        cosmos = running.enter_context(_cosmos(logs))
        create_containers(cosmos, DATABASE)
        with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
            for name in (*QUEUES, WAY):
                queues.create_queue(name).close()
        stack = Stack(storage, cosmos, app, logs, strategy, disordered, bus=bus)
        running.callback(stack.kill_hosts)
        yield stack


def create_containers(cosmos: Administration, database: str) -> None:
    """The sample's containers and the library's, as `infra` would create them."""
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        created = client.create_database(database)
        created.create_container("games", PartitionKey("/gameId"))
        created.create_container("boards", PartitionKey("/gameId"))
        created.create_container("exactlyonce", PartitionKey("/pk"), default_ttl=-1)


@contextmanager
def _cosmos(logs: Path) -> Iterator[AdminClient]:
    with (logs / "cosmos.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "local_cosmos", "--port", "0", "--admin"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None  # noqa: S101  # It was asked for.
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"The local Cosmos did not start: {Path(log.name).read_text()[-2000:]}")
        yield AdminClient(json.loads(line)["endpoint"])
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
