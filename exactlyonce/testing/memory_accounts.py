"""Accounts in memory: store, queues and blobs of an application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Final

from exactlyonce.blobs.memory import AwaitedBlobs, MemoryBlobs
from exactlyonce.drivers.publisher import Address
from exactlyonce.drivers.runtime import Clock
from exactlyonce.effects.port import Awaited
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting import Settings
from exactlyonce.hosting.accounts.ownership import Declared, Ownership
from exactlyonce.records.outputs import Output
from exactlyonce.stores.application import MemoryApplicationStore
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.interruptions import InterruptedStore, Interruptions
from exactlyonce.testing.losses import Losses
from exactlyonce.testing.wire import MemoryWire
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import Envelope

MEMORY: Final = "https://memory.invalid"
_MAX_BYTES: Final = 48 * 1024


class Queues:
    """Queues in memory: they take everything, and tell the host.

    Args:
        arrived: called with the destination and each output.
        interruptions: of publishing; None for none.
    """

    max_bytes = _MAX_BYTES

    def __init__(self, arrived: Callable[[str, Output], None], interruptions: Interruptions | None = None) -> None:
        self._arrived = arrived
        self._interruptions = interruptions

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        sender, is_entity, _ = Envelope.read(outputs[0].envelope.text).source.partition("/")
        interruptions = self._interruptions if is_entity else None
        happens = None if interruptions is None else interruptions.next(Publish.__name__, sender)
        if interruptions is not None and happens == "before":
            interruptions.kill()
        for output in outputs:
            self._arrived(address, output)
        if interruptions is not None and happens == "after":
            interruptions.kill()
        return PUBLISHED


class MemoryAccounts:
    """Store, queues and blobs in memory: `Accounts` of an application.

    Args:
        settings: of the application.
        entities, destinations: of the application.
        clock: of the accounts.
        losses: of the store.
        interruptions: of steps on the store; None for none.
        queues: of all destinations.
        wire: to the services that it calls.
        blobs: whether there is a container for blobs.
    """

    def __init__(
        self,
        settings: Settings,
        entities: Iterable[Entity[Any]],
        destinations: Iterable[Destination | Api],
        clock: Clock,
        *,
        losses: Losses,
        interruptions: Interruptions | None = None,
        queues: Queues,
        wire: MemoryWire,
        blobs: bool,
    ) -> None:
        self.documents = MemoryStore(clock.now, losses)
        store = Awaited(self.documents)
        self.store: AsyncStore = store if interruptions is None else InterruptedStore(store, interruptions)
        self.listing = MemoryListing(self.documents)
        self.ownership = Ownership(MemoryApplicationStore(clock.now), Declared.by(settings, entities), clock)
        self.addresses = {one.name: Address(queues, one.name) for one in destinations}
        self.blobs = AwaitedBlobs(MemoryBlobs(clock.now), f"{MEMORY}/blobs") if blobs else None
        self.wire = wire

    async def ready(self) -> None:
        await self.ownership.ready()

    async def verify(self) -> None:
        pass

    async def lifetime(self, end: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
        del end  # A host in memory kills its processes.
        yield

    async def close(self) -> None:
        pass
