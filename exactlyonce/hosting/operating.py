"""What people do about single entities and parked messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from exactlyonce.effects import FoundParked, LoadEntity, LoadParked, NoAnswer
from exactlyonce.envelope import Envelope
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Memory
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.chores import Chores, protocol_of
from exactlyonce.hosting.poison import require_readable
from exactlyonce.identity import EntityRef
from exactlyonce.records import Ledger, ParkedMessage, read_entity
from exactlyonce.stores.listing import AsyncListing, ListedMessage, entity_named
from exactlyonce.strategies import operating, settling
from exactlyonce.strategies.operating import TokenReset
from exactlyonce.strategies.settling import Requeued


@dataclass(frozen=True, slots=True)
class Inspected:
    """What the store holds of an entity, in the view that answered.

    Attributes:
        body: the user's properties; None if the entity is absent or deleted.
        ledger: the library's property; None if the document has none.
        belongings: what the library keeps apart from the document: ids, kinds and times.
    """

    body: Json | None
    ledger: Ledger | None
    belongings: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Operator:
    """Requests of people. Each may be made at any time, twice, and beside everything else.

    Attributes:
        chores: runs what they ask for.
        listing: finds what there is.
        requeue_limit: age above which a parked message is not sent again: the delivery limit, since clean-up's retention
            counts on no copy being older.
    """

    chores: Chores
    listing: AsyncListing
    requeue_limit: timedelta

    def parked(self) -> AsyncIterator[tuple[ListedMessage, ...]]:
        """All parked messages, in pages. Raises `TryAgainLater`, `ConfigurationError`."""
        return self.listing.parked()

    async def requeue(self, entity: str, message: str, destination: str, sent: datetime | None = None) -> Requeued:
        """Send a parked message again, under the identity it has.

        Args:
            entity: key of the entity under which it is parked.
            message: its key.
            destination: logical name of the queue it is to go to.
            sent: when it was first sent, with a time zone; for one that was put aside and has no time of its own.

        Raises:
            ConfigurationError: there is no such destination, or it cannot have been sent at that time.
            MalformedMessage: nobody can read it.
            TryAgainLater: the store or the queue did not answer.
            StoredDataError: the parked document cannot be trusted.
        """
        require_readable(message)
        if destination not in self.chores.routes.limits:
            known = ", ".join(sorted(self.chores.routes.limits)) or "none"
            raise ConfigurationError(f"There is no destination {destination!r}; known are: {known}. Nothing was sent.")
        ref, limit = entity_named(entity), self.requeue_limit
        if not ref.partition and (refusal := await self._refusal(ref, message, sent)):
            return Requeued(refusal, Memory())
        return await self.chores.run(ref, lambda memory: settling.requeue(ref, message, destination, limit, memory))

    async def _refusal(
        self, place: EntityRef, message: str, told: datetime | None
    ) -> Literal["too old", "age unknown"] | None:
        """Why a message that was put aside is not sent again: it may have been processed so long ago that its record is gone.

        A fence tells that a parked message was not processed before it was parked; one that was put aside may have been at any
        time since it was sent. When that was, the message itself tells, or who asks: its queues do not, since the host makes
        a new message in the poison queue. Without either it may be of any age.
        """
        found: FoundParked = await self._answered(place, LoadParked(place, message))
        if found.message is None:
            return None
        aside = found.message.at
        if told is not None and told > aside:
            raise ConfigurationError(
                f"Message {message} was put aside at {aside.isoformat()}, so it was not first sent at {told.isoformat()}. "
                "Ask its sender."
            )
        known = [one for one in (Envelope.read(found.message.envelope.text).time, told) if one is not None]
        if not known:
            return "age unknown"
        return "too old" if aside - min(known) + timedelta(seconds=found.age) > self.requeue_limit else None

    async def discard(self, entity: str, message: str) -> bool:
        """Delete a parked message for good; whether there was one. Raises `TryAgainLater`, `StoredDataError`."""
        ref = entity_named(entity)
        return await self.chores.run(ref, lambda memory: operating.discard(ref, message, memory))

    async def parked_message(self, entity: str, message: str) -> ParkedMessage | None:
        """A parked message with its body; None if it is not parked. Raises `TryAgainLater`, `StoredDataError`."""
        ref = entity_named(entity)
        found = await self._answered(ref, LoadParked(ref, message))
        return None if found is None else found.message

    async def inspect(self, ref: EntityRef) -> Inspected:
        """What the store holds of an entity. Raises `TryAgainLater`, `StoredDataError`."""
        loaded = await self._answered(ref, LoadEntity(ref))
        view = read_entity(ref, loaded.document)
        return Inspected(view.body, view.ledger, await self.listing.belongings(ref))

    async def reset_token(self, entity: Entity[Any], ref: EntityRef) -> TokenReset:
        """Exchange the session token of an entity, if the account will never reach it: see `strategies.operating`.

        Raises:
            ConfigurationError: the entity's protocol keeps no such token.
            TryAgainLater: the store did not answer.
            StoredDataError: the document cannot be trusted; nothing was changed.
        """
        if protocol_of(entity) != "outbox":
            raise ConfigurationError(f"{entity} is not processed by the outbox, and only that keeps a session token.")
        return await self.chores.run(ref, lambda memory: operating.reset_token(ref, memory))

    async def _answered(self, ref: EntityRef, effect: Any) -> Any:
        reply = await self.chores.driver.run(self.chores.retrying.insist(iter(effect)))
        if isinstance(reply, NoAnswer):
            raise TryAgainLater(f"What the store holds of entity {ref} could not be read.")
        return reply
