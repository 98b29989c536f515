"""The emulator inside a test's own process: a server in a thread of its own, on a free port."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from local_cosmos.in_loop import in_loop
from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.protocol.certificates import OwnCertificate
from local_cosmos.protocol.server import CosmosServer
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.faults import FaultCounters, FaultRule
from local_cosmos.semantics.history import AcceptedWrite
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.request_log import LoggedRequest, Total
from local_cosmos.storage.keeping import Keeper, MemoryKeeper

Result = TypeVar("Result")


class RunningEmulator:
    """A running emulator; its methods may be called from any thread (see `Administration`).

    Attributes:
        endpoint: `http://127.0.0.1:{port}/`, or https.
        key: The account's master key.
        certificate: Of the server over https, in PEM; None over http.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        emulator: Emulator,
        server: CosmosServer,
        endpoint: str,
        key: str,
        *,
        certificate: bytes | None,
    ) -> None:
        self.endpoint = endpoint
        self.key = key
        self.certificate = certificate
        self._loop = loop
        self._emulator = emulator
        self._server = server

    def add_fault(self, rule: FaultRule) -> int:
        """Arm a rule; returns its id."""
        return self._call(lambda: self._emulator.faults.add(rule))

    def faults(self) -> list[FaultCounters]:
        """All rules with their counters."""
        return self._call(self._emulator.faults.counters)

    def remove_fault(self, rule_id: int) -> None:
        """Disarm a rule and let go what hangs by it."""
        self._call(lambda: self._emulator.faults.remove(rule_id))
        self._await_release()

    def clear_faults(self) -> None:
        """Disarm all rules and let go what hangs."""
        self._call(self._emulator.faults.clear)
        self._await_release()

    def delayed_writes(self) -> int:
        """How many delayed writes wait."""
        return self._call(self._emulator.delayed)

    def release_delayed_writes(self, database: str | None = None, fault: int | None = None) -> int:
        """Apply delayed writes now; returns how many there were."""
        return self._call(lambda: self._emulator.release_delayed(database, fault))

    def set_lag(self, database: str, container: str | None = None, lag: Lag | None = None) -> None:
        """Let replicas lag from now on; without `lag` they no longer do."""
        self._call(lambda: self._emulator.account.set_lag(database, container, lag or Lag()))

    def split(self, database: str, container: str, range_id: str) -> list[str]:
        """Split a physical partition; returns the ids of its two successors."""
        return self._call(lambda: self._emulator.account.split(database, container, range_id))

    def set_latency(self, milliseconds: float) -> None:
        """Every request for items takes so much longer."""

        def change() -> None:
            self._emulator.latency = milliseconds / 1000

        self._call(change)

    def now(self) -> float:
        """The server's time in seconds since 1970."""
        return self._call(self._emulator.clock.now)

    def advance_clock(self, seconds: float) -> float:
        """Move the server's time forward; returns the new time in seconds since 1970."""
        return self._call(lambda: self._emulator.clock.advance(seconds))

    def requests(self, after: int = 0) -> list[LoggedRequest]:
        """The request log after number `after`."""
        return self._call(lambda: self._emulator.log.read(after))

    def totals(self) -> list[Total]:
        """Sums over all requests, by database, container and operation."""
        return self._call(self._emulator.log.totals)

    def history(self, database: str | None = None, container: str | None = None, after: int = 0) -> list[AcceptedWrite]:
        """Every accepted write after a sequence number."""
        return self._call(lambda: self._emulator.history.read(database, container, after))

    def _call(self, action: Callable[[], Result]) -> Result:
        """Run a step in the server's thread and wait for it."""
        return in_loop(self._loop, action)

    def _await_release(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.release_hanging(), self._loop).result()


@contextmanager
def running_emulator(
    settings: AccountSettings | None = None,
    *,
    key: str = WELL_KNOWN_KEY,
    clock: Clock | None = None,
    port: int = 0,
    tls: bool = False,
    keeper: Keeper | None = None,
) -> Iterator[RunningEmulator]:
    """Run an emulator for the length of a `with` block.

    Args:
        settings: What the account is told to be.
        key: Its master key, in base64.
        clock: Its time; the system's by default.
        port: 0 for a free one.
        tls: True for https, with a certificate of its own.
        keeper: Where everything is kept; in memory by default. Closing it is its owner's.
    """
    beginning = time.monotonic()
    emulator = Emulator(
        settings or AccountSettings(),
        clock or Clock(),
        lambda: time.monotonic() - beginning,
        keeper=keeper or MemoryKeeper(),
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="cosmos-emulator", daemon=True)
    thread.start()
    try:
        certificate = OwnCertificate.make() if tls else None
        server = CosmosServer(emulator, key, admin=True, tls=certificate.context if certificate else None)
        endpoint = asyncio.run_coroutine_threadsafe(server.start(port), loop).result()
        try:
            pem = certificate.pem if certificate else None
            yield RunningEmulator(loop, emulator, server, endpoint, key, certificate=pem)
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
