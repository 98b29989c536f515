"""An application in memory, for what operators do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from exactlyonce import Destination, Entity, Envelope, Resequencer, VersionStream
from exactlyonce.cli.__main__ import main
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Awaited
from exactlyonce.effects.entity import Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import Park
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.hosting.accounts.ownership import Declared, Ownership
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.hosting.upkeep.sweeper import Sweeper
from exactlyonce.hosting.wiring import Parts
from exactlyonce.protocols.steps.load import with_ledger
from exactlyonce.records.application import OwnedType
from exactlyonce.records.ledger import read_entity
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import Kept, stated_place
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.port import MemoryApplicationStore, entity_named
from exactlyonce.testing.world import ManualClock, World
from exactlyonce.values.envelope import EntityRef, key_of
from exactlyonce.values.lifetimes import DELIVERY_LIMIT, Lifetimes
from tests.samples import Deposited, accounts
from tests.unit.boards import BOARDS
from tests.unit.script import AT

RECEIPTS = Destination("receipts", receives=(Deposited,))
OLD = Lifetimes().send_limit(AT)
"""Age above which nothing is requeued under the identity it has."""
PLACE = '["account","a","a"]'


SECRET = "what-the-body-says"
ASIDE = '["account","exactlyonce.put-aside"]'


OUTBOX = accounts()
STREAM = accounts(VersionStream()).using(VersionStream())
STREAM.name = "stream"
READ_MODEL = BOARDS.using(Resequencer(gap_timeout=timedelta(0), on_gap="skip"))


class InMemory(ExactlyOnce):
    """An application on a world in memory; its queues take nothing while they are not open."""

    def __init__(self, *entities: Entity[Any]) -> None:
        self.open = True
        self.clock = ManualClock()
        self.world = World((RECEIPTS,), outcome=lambda _: (self.open, self.open), clock=self.clock)
        runtime = Runtime(self.clock, self.world.random)
        driver = AsyncDriver(Awaited(self.world.store), self.world._publisher, runtime)
        listing = MemoryListing(self.world.store)
        self._entities = entities
        self._settings = Settings.model_construct(sweep_after=60.0)
        maintenance = Maintenance(driver, Retrying(Backoff(tries=1), self.world.random), self.world.routes)
        self._parts = cast(
            "Parts",
            SimpleNamespace(
                startup=SimpleNamespace(ready=self._ready),
                maintenance=maintenance,
                operator=Operator(maintenance, listing, Lifetimes, entities),
                sweeper=Sweeper(maintenance, listing, runtime),
            ),
        )
        self.closed = 0
        types = tuple(OwnedType(entity.name, entity.container, entity.paths) for entity in entities)
        self.owns = Ownership(
            MemoryApplicationStore(self.clock.now),
            Declared("exactlyonce", "bank", types, None, DELIVERY_LIMIT),
            self.clock,
        )

    async def _ready(self) -> None:
        pass

    async def ownership(self) -> Ownership:
        return self.owns

    async def close(self) -> None:
        self.closed += 1

    def deliver(self, kind: Entity[Any], *messages: Envelope) -> None:
        """Deliver messages to one process, which crashes then."""

        async def delivering() -> None:
            process = self.world.process(backoff=Backoff(tries=1))
            try:
                for message in messages:
                    await process.deliver(kind, message)
            finally:
                await process.crash()

        asyncio.run(delivering())

    def keep(self, id: str, ref: EntityRef) -> None:
        """Let an entity keep a message of this id, as an earlier commit of its would."""
        loaded = self.world.store.perform(LoadEntity(ref))
        assert isinstance(loaded, Loaded)
        assert loaded.document is not None
        ledger = read_entity(ref, loaded.document).ledger
        assert ledger is not None
        kept = with_ledger(loaded.document, replace(ledger, kept=(Kept(id, AT, "tx-kept"),)))
        self.world.store.perform(SaveEntity(ref, kept, loaded.etag))

    def park(
        self,
        message: Envelope,
        reason: str = "its handler raised ValueError",
        place: str = PLACE,
        destination: str | None = None,
    ) -> None:
        ref = entity_named(place)
        parked = ParkedMessage(
            place, key_of(message), reason, AT, message.to_json(), destination, place=stated_place(message)
        )
        self.world.store.perform(Park(ref, parked))


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> InMemory:
    """The application, at the top level of the module `app_of_a_test`."""
    return placed(InMemory(OUTBOX, STREAM, READ_MODEL), monkeypatch)


def placed(once: InMemory, monkeypatch: pytest.MonkeyPatch) -> InMemory:
    """An application at the top level of the module `app_of_a_test`."""
    module = ModuleType("app_of_a_test")
    module.once = once  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return once


class Ran(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an operators' command on the application of the test."""
    return lambda *arguments: Ran(main(["--app", "app_of_a_test", *arguments]), *capsys.readouterr())
