"""Backstage: what the console asks of the app, answered in the app's process by the functions behind `exactlyonce ops`.

It listens on a socket file that only its owner can reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from pydantic import TypeAdapter

from exactlyonce.attempt import Again, Memory
from exactlyonce.drivers.runtime import Clock, SystemClock
from exactlyonce.effects.effect import Step
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.hosting.bulk import Action, Outcome, Selection, discarding, grouped, on_each, requeuing, selected
from exactlyonce.hosting.operator import Inspected, Operator
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES
from exactlyonce.records.outputs import Output
from exactlyonce.stores.listing import ListedMessage, entity_named
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

MOST_LISTED: Final = 100
"""Entities of a type that are listed."""
_MOST_BYTES: Final = 1_000_000


class Backstage:
    """Answers the console.

    Args:
        applications: of the app.
        clock: paces actions on many messages.
    """

    def __init__(self, applications: Sequence[ExactlyOnce], clock: Clock | None = None) -> None:
        self._applications = applications
        self._clock = clock or SystemClock()
        self._types = {entity.name: (once, entity) for once in applications for entity in once.entities}

    @asynccontextmanager
    async def serving(self, socket: Path) -> AsyncIterator[None]:
        """Listen on a socket file until the block ends."""
        runner = web.AppRunner(self.server(), access_log=None)
        await runner.setup()
        try:
            await web.UnixSite(runner, str(socket)).start()  # It replaces that of a process that was killed.
            yield
        finally:
            await runner.cleanup()

    def server(self) -> web.Application:
        """The requests that are answered."""
        server = web.Application(middlewares=[_told], client_max_size=_MOST_BYTES)
        server.add_routes(
            [
                web.get("/types", self._list_types),
                web.get("/entities", self._list_entities),
                web.get("/entity", self._inspect),
                web.get("/parked", self._parked),
                web.post("/requeue", self._requeue),
                web.post("/discard", self._discard),
                web.post("/again", self._again),
            ]
        )
        return server

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

    async def _list_types(self, _: web.Request) -> web.Response:
        types = [
            {"name": name, "container": entity.container, "strategy": type(entity.strategy).__name__}
            for name, (_, entity) in self._types.items()
        ]
        destinations = sorted({name for one in self._applications for name in one.routes.limits})
        return web.json_response({"types": types, "destinations": destinations})

    async def _list_entities(self, request: web.Request) -> web.Response:
        once, entity = self._type(request.query.get("type", ""))
        found: list[dict[str, Any]] = []
        async for key, state in once.query(entity):
            if len(found) == MOST_LISTED:
                return web.json_response({"entities": found, "more": True})
            ref = entity.ref(key)
            found.append(
                {"key": ref.key, "name": str(ref), "state": TypeAdapter(type(state)).dump_python(state, mode="json")}
            )
        return web.json_response({"entities": found, "more": False})

    async def _inspect(self, request: web.Request) -> web.Response:
        once, entity = self._type(request.query.get("type", ""))
        ref = _ref(entity, request.query.get("key", ""))
        return web.json_response(_shown(ref, await (await once.operator()).inspect(ref)))

    async def _parked(self, _: web.Request) -> web.Response:
        found = [one for once in self._applications for one in await selected(await once.operator(), Selection())]
        messages = [
            {**asdict(one), "type": entity_named(one.entity).type} for one in sorted(found, key=lambda one: one.at)
        ]
        return web.json_response({"groups": [asdict(one) for one in grouped(found)], "messages": messages})

    async def _requeue(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        given = wanted.get("destination") or None

        def action(operator: Operator) -> Action:
            async def requeue(one: ListedMessage) -> Outcome:
                return await requeuing(operator, given or await self._sent_to(operator, one))(one)

            return requeue

        return await self._on_each(wanted, action)

    async def _discard(self, request: web.Request) -> web.Response:
        return await self._on_each(await request.json(), discarding)

    async def _on_each(self, wanted: dict[str, Any], action: Callable[[Operator], Action]) -> web.Response:
        """Act on one parked message, or on all of a group."""
        counts: Counter[str] = Counter()
        problems: list[str] = []
        for once in self._applications:
            operator = await once.operator()
            chosen = [one for one in await selected(operator, Selection()) if _is_meant(one, wanted)]
            results = await on_each(chosen, action(operator), self._clock)
            counts += results.counts
            problems += [f"{one.message}: {reason}" for one, reason in results.not_done]
            if results.left:
                counts["not tried, since the store or the queues did not answer"] += results.left
        return web.json_response({"counts": counts or {"not parked any more": 1}, "problems": problems})

    async def _sent_to(self, operator: Operator, one: ListedMessage) -> str:
        """The destination of a parked message: of an output its own, of a delivery the one that leads to its entity."""
        parked = await operator.parked_message(one.entity, one.message)
        if parked is None:
            return next(iter(operator.maintenance.routes.limits), "")  # Requeuing finds that it is not parked.
        if parked.destination is not None:
            return parked.destination
        with suppress(ExactlyOnceError):
            envelope = Envelope.read(parked.envelope.text, limit=MAX_DOCUMENT_BYTES)
            if found := self.destination(entity_named(one.entity).type, envelope):
                return found
        raise ConfigurationError("No destination of the app says that it leads to this entity. Choose a queue.")

    async def _again(self, request: web.Request) -> web.Response:
        """Send a message again, as a queue or its sender may do at any time."""
        wanted = await request.json()
        envelope = Envelope.read(Json.of(wanted["envelope"]).text)
        once, entity = self._type(wanted["type"])
        destination = self.destination(entity.name, envelope)
        if destination is None:
            raise ConfigurationError(f"No destination of the app says to= {entity.name!r}. Send it as its sender does.")
        output = Output(envelope.id, destination, envelope.to_json())

        def send(memory: Memory) -> Step[str | Again]:
            published = yield from Publish((output,))
            return destination if published is PUBLISHED else Again(memory, "the message could not be sent")

        maintenance = (await once.operator()).maintenance
        return web.json_response({"destination": await maintenance.run(entity.ref_of(envelope), send)})

    def _type(self, name: str) -> tuple[ExactlyOnce, Entity[Any]]:
        if name not in self._types:
            raise ConfigurationError(
                f"There is no entity type {name!r}; there are: {', '.join(self._types) or 'none'}."
            )
        return self._types[name]


def _is_meant(one: ListedMessage, wanted: dict[str, Any]) -> bool:
    if "message" in wanted:
        return (one.entity, one.message) == (wanted["entity"], wanted["message"])
    return (entity_named(one.entity).type, one.reason) == (wanted["type"], wanted["reason"])


def _ref(entity: Entity[Any], key: str) -> EntityRef:
    """The entity that a key of a listing names, or an id that is its partition key, too."""
    if not key.startswith("["):
        return entity.ref(key)
    try:
        return entity_named(key)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{key!r} is no key of an entity: give its id, or choose it from the list.") from None


def _shown(ref: EntityRef, found: Inspected) -> dict[str, Any]:
    """What the store holds of an entity, as JSON. Contents of outputs and answers stay in the store."""
    ledger = found.ledger
    return {
        "key": ref.key,
        "name": str(ref),
        "state": None if found.body is None else found.body.value,
        "ledger": ledger
        and {
            "version": ledger.version,
            "protocol": ledger.protocol,
            "deleted": ledger.deleted,
            "owing_since": None if ledger.owing_since is None else ledger.owing_since.isoformat(),
            "entries": [
                {
                    "version": one.version,
                    "message": one.message,
                    "at": one.at.isoformat(),
                    "outputs": [output.destination for output in one.outputs],
                    "owes": one.owed is not None,
                }
                for one in ledger.entries
            ],
            "receptions": [
                {"channel": one.channel, "source": one.source, "next": one.next, "held": one.held}
                for one in ledger.receptions
            ],
        },
        "belongings": sorted(found.belongings, key=lambda one: (one["kind"], one.get("version", 0), one["id"])),
    }


@web.middleware
async def _told(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Errors as sentences."""
    try:
        return await handler(request)
    except ExactlyOnceError as error:
        return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=409)
    except (KeyError, ValueError) as error:
        return web.json_response({"error": f"The request is not understood: {type(error).__name__}."}, status=400)
