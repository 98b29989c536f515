"""What the console does with parked messages and deliveries, by the functions behind `exactlyonce ops`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from exactlyonce.drivers.runtime import Clock
from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.hosting.upkeep.operator import (
    Action,
    Operator,
    Outcome,
    Selection,
    discarding,
    on_each,
    requeuing,
    selected,
)
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES
from exactlyonce.records.outbox import Output
from exactlyonce.stores.port import ListedMessage, entity_named
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

Types = Mapping[str, tuple[ExactlyOnce, Entity[Any]]]


class Acting:
    """Requeues and discards parked messages, at the pace of a clock, and sends deliveries again."""

    def __init__(self, types: Types, clock: Clock) -> None:
        self._types = types
        self._clock = clock

    @property
    def routes(self) -> list[web.RouteDef]:
        """The requests that are answered."""
        return [
            web.post("/requeue", self._requeue),
            web.post("/discard", self._discard),
            web.post("/again", self._again),
        ]

    def destination(self, type: str, envelope: Envelope) -> str | None:
        """The destination that leads to the entity of a message, by the type of the entity; None if none says so."""
        if type not in self._types:
            return None
        once, entity = self._types[type]
        with suppress(ExactlyOnceError):
            _, message = entity.read(envelope)
            for name, receiver in once.routes.receivers.items():
                with suppress(Exception):  # The function is the app's, and may not take this message.
                    if receiver(message).type == type:
                        return name
        return None

    async def _requeue(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        given = wanted.get("destination") or None

        def action(operator: Operator) -> Action:
            async def requeue(message: ListedMessage) -> Outcome:
                return await requeuing(operator, given or await self._sent_to(operator, message))(message)

            return requeue

        return await self._on_each(wanted, action)

    async def _discard(self, request: web.Request) -> web.Response:
        return await self._on_each(await request.json(), discarding)

    async def _on_each(self, wanted: dict[str, Any], action: Callable[[Operator], Action]) -> web.Response:
        """Act on one parked message, or on all of a group."""
        counts: Counter[str] = Counter()
        problems: list[str] = []
        for once in {id(once): once for once, _ in self._types.values()}.values():
            operator = await once.operator()
            chosen = [item for item in await selected(operator, Selection()) if _is_meant(item, wanted)]
            results = await on_each(chosen, action(operator), self._clock)
            counts += results.counts
            problems += [f"{item.message}: {reason}" for item, reason in results.not_done]
            if results.left:
                counts["not tried, since the store or the queues did not answer"] += results.left
        return web.json_response({"counts": counts or {"not parked any more": 1}, "problems": problems})

    async def _sent_to(self, operator: Operator, message: ListedMessage) -> str:
        """The destination of a parked message: of an output its own, of a delivery the one that leads to its entity."""
        parked = await operator.parked_message(message.entity, message.message)
        if parked is None:
            return next(iter(operator.maintenance.routes.limits), "")  # Requeuing finds that it is not parked.
        if parked.destination is not None:
            return parked.destination
        with suppress(ExactlyOnceError):
            envelope = Envelope.read(parked.envelope.text, limit=MAX_DOCUMENT_BYTES)
            if found := self.destination(entity_named(message.entity).type, envelope):
                return found
        raise ConfigurationError("No destination of the app says that it leads to this entity. Choose a queue.")

    async def _again(self, request: web.Request) -> web.Response:
        """Send a message again, as a queue or its sender may do at any time."""
        wanted = await request.json()
        envelope = Envelope.read(Json.of(wanted["envelope"]).text)
        once, entity = typed(self._types, wanted["type"])
        destination = self.destination(entity.name, envelope)
        if destination is None:
            raise ConfigurationError(f"No destination of the app says to= {entity.name!r}. Send it as its sender does.")
        output = Output(envelope.id, destination, envelope.to_json())

        def send(memory: Memory) -> Step[str | Again]:
            published = yield from Publish((output,))
            return destination if published is PUBLISHED else Again(memory, "the message could not be sent")

        maintenance = (await once.operator()).maintenance
        return web.json_response({"destination": await maintenance.run(entity.ref_of(envelope), send)})


def typed(types: Types, name: str) -> tuple[ExactlyOnce, Entity[Any]]:
    """The entity type of a name, with its application. Raises `ConfigurationError` if there is none."""
    if name not in types:
        raise ConfigurationError(f"There is no entity type {name!r}; there are: {', '.join(types) or 'none'}.")
    return types[name]


def _is_meant(message: ListedMessage, wanted: dict[str, Any]) -> bool:
    if "message" in wanted:
        return (message.entity, message.message) == (wanted["entity"], wanted["message"])
    with suppress(ValueError, TypeError):  # A damaged document names no entity; it is of no group.
        return (entity_named(message.entity).type, message.reason) == (wanted["type"], wanted["reason"])
    return False
