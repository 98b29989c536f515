"""Backstage: what the console asks of the app, answered in the app's process by the functions behind `exactlyonce ops`.

It listens on a socket file that only its owner can reach.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from pydantic import TypeAdapter

from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.errors import ConfigurationError, ExactlyOnceError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.hosting.upkeep.operator import Inspected, Operator, Selection, grouped, selected
from exactlyonce.protocols.outbox.protocol import paid_of
from exactlyonce.records.ledger import KEPT, Ledger, Mark, destination_place, split
from exactlyonce.records.library import Search
from exactlyonce.stores.port import ListedBook, entity_named
from exactlyonce.values.envelope import EntityRef, Envelope, stable_text
from exactlyonce_dev.acting import Acting, Types, typed
from exactlyonce_dev.witness import End, Witness

MOST_LISTED: Final = 100
"""Entities of a type that are listed."""
MOST_UNFINISHED: Final = 50
"""Unfinished entities of a type that are listed."""
_MOST_BYTES: Final = 8_000_000
_TOO_EARLY: Final = 425
_BEHIND: Final = 1002
_LATER: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Backstage:
    """Answers the console; it may do no more than look.

    Attributes:
        witness: the witness of the deliveries in this process; None without one.
    """

    def __init__(self, applications: Sequence[ExactlyOnce], *, acts: bool = True) -> None:
        self._applications = applications
        self._acts = acts
        self._types: Types = {entity.name: (once, entity) for once in applications for entity in once.entities}
        self._acting = Acting(self._types, SystemClock())
        self.witness: Witness | None = None

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
        server = web.Application(middlewares=[self._guarded], client_max_size=_MOST_BYTES)
        server.add_routes(
            [
                web.get("/types", self._list_types),
                web.get("/entities", self._list_entities),
                web.get("/entity", self._inspect),
                web.get("/unfinished", self._unfinished),
                web.get("/parked", self._parked),
                web.post("/end", self._end),
                *self._acting.routes,
            ]
        )
        return server

    def destination(self, type: str, envelope: Envelope) -> str | None:
        """The destination that leads to the entity of a message, by the type of the entity; None if none says so."""
        return self._acting.destination(type, envelope)

    async def _list_types(self, _: web.Request) -> web.Response:
        types = [
            {"name": name, "container": entity.container, "strategy": type(entity.strategy).__name__}
            for name, (_, entity) in self._types.items()
        ]
        destinations = sorted({name for application in self._applications for name in application.routes.limits})
        return web.json_response({"types": types, "destinations": destinations})

    async def _list_entities(self, request: web.Request) -> web.Response:
        once, entity = typed(self._types, request.query.get("type", ""))
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
        once, entity = typed(self._types, request.query.get("type", ""))
        ref = _ref(entity, request.query.get("key", ""))
        operator = await once.operator()
        found = await operator.inspect(ref)
        return web.json_response(_shown(ref, found, await _paid(operator, ref, found.ledger or Ledger())))

    async def _unfinished(self, _: web.Request) -> web.Response:
        """Entities that owe outputs, keep messages until later, or hold messages out of order; and what books prove."""
        found: list[dict[str, Any]] = []
        books: list[dict[str, Any]] = []
        for once in self._applications:
            operator = await once.operator()
            listed = [item async for page in operator.listing.books(0) for item in page]
            books += map(_book, listed)
            for entity in once.entities:
                for ref in await _unfinished_refs(operator, entity, listed):
                    ledger = (await operator.inspect(ref)).ledger or Ledger()
                    waiting = _waiting(ledger, await _paid(operator, ref, ledger))
                    if any(waiting.values()):
                        found.append({"type": ref.type, "key": ref.key, "name": str(ref), **waiting})
        books.sort(key=lambda item: item["written"], reverse=True)
        return web.json_response({"unfinished": found, "books": books})

    async def _parked(self, _: web.Request) -> web.Response:
        found = [item for once in self._applications for item in await selected(await once.operator(), Selection())]
        messages = [{**asdict(item), **_place(item.entity)} for item in sorted(found, key=lambda item: item.at)]
        return web.json_response({"groups": [asdict(item) for item in grouped(found)], "messages": messages})

    async def _end(self, request: web.Request) -> web.Response:
        """Choose the step at which this process is killed."""
        wanted = await request.json()
        if self.witness is None:
            raise ConfigurationError("The app exports telemetry itself, so its steps are not seen here.")
        if wanted["when"] not in ("before", "after"):
            raise ValueError(wanted["when"])
        self.witness.ends.append(End(wanted["when"], wanted["effect"], wanted["title"], wanted["type"]))
        return web.json_response({})

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuses to act where it only looks; tells errors as sentences."""
        if not self._acts and request.method != "GET":
            sentence = "This console only looks. Start it with --act to requeue and discard."
            return web.json_response({"error": sentence}, status=403)
        try:
            return await handler(request)
        except ExactlyOnceError as error:
            cause = error.__cause__
            # Nothing is wrong: the app has just begun. A replica that lags says "not found", too.
            if isinstance(cause, CosmosResourceNotFoundError) and cause.sub_status != _BEHIND:
                return web.json_response({"error": "The containers are not made yet."}, status=_TOO_EARLY)
            status = 503 if isinstance(error, TryAgainLater) else 409
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=status)
        except (KeyError, ValueError) as error:
            return web.json_response({"error": f"The request is not understood: {type(error).__name__}."}, status=400)


def _place(key: str) -> dict[str, str]:
    """Where a message is parked: the type and the name of the entity."""
    try:
        ref = entity_named(key)
    except (ValueError, TypeError):  # The document is damaged.
        return {"type": "", "name": key}
    return {"type": ref.type, "name": str(ref)}


def _ref(entity: Entity[Any], key: str) -> EntityRef:
    """The entity that a key of a listing names, or an id that is its partition key, too."""
    if not key.startswith("["):
        return entity.ref(key)
    try:
        return entity_named(key)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{key!r} is no key of an entity: give its id, or choose it from the list.") from None


async def _unfinished_refs(
    operator: Operator, entity: Entity[Any], books: Sequence[ListedBook]
) -> tuple[EntityRef, ...]:
    """Entities of a type that may be unfinished, as far as they are listed."""
    searches = tuple(Search(book.book.id, book.book.used, book.book.open) for book in books)
    listing, name = operator.listing, entity.name
    refs: dict[str, EntityRef] = {}
    for kind in entity.strategy.unfinished:
        if kind == "outbox":
            async for found in listing.owing(name, searches):
                refs |= {ref.key: ref for ref, _ in found}
        pages = {"outbox": listing.due, "companions": listing.companions, "holding": listing.holding}[kind]
        async for page in pages(name, _LATER):
            refs |= {ref.key: ref for ref in page}
            if len(refs) >= MOST_UNFINISHED:
                break
    return tuple(refs.values())[:MOST_UNFINISHED]


async def _paid(operator: Operator, ref: EntityRef, ledger: Ledger) -> frozenset[str]:
    """Those of the transactions in an outbox whose outputs are known to be sent."""
    return await operator.maintenance.driver.run(iter(paid_of(ref, ledger, ledger.outbox)))


def _book(item: ListedBook) -> dict[str, Any]:
    """How far a process has numbered its transactions, and which are open."""
    return _picked(item.book, "id", "used", "open", "stuck") | {"written": stable_text(item.written * 1000)}


def _waiting(ledger: Ledger, paid: frozenset[str]) -> dict[str, Any]:
    """What an entity has not finished."""
    return {
        "owes": [
            {"hash": item.cause, "since": item.at.isoformat(), "to": [ledger.to[output.to] for output in item.outputs]}
            for item in ledger.outbox
            if item.tx not in paid
        ],
        "keeps": [{"message": item.id, "due": item.due.isoformat()} for item in ledger.kept],
        "awaits": list(ledger.calls),
        "holds": [_picked(item, "source", "next", "held") for item in ledger.receptions if item.held],
    }


def _shown(ref: EntityRef, found: Inspected, paid: frozenset[str]) -> dict[str, Any]:
    """What the store holds of an entity, as JSON. Contents of outputs and answers stay in the store."""
    ledger = found.ledger
    return {
        "key": ref.key,
        "type": ref.type,
        "name": str(ref),
        "state": None if found.body is None else found.body.value,
        "ledger": ledger
        and {
            **_picked(ledger, "version", "protocol", "deleted", "left"),
            "marks": [_mark(part, ledger.to) for part in split(ledger.marks)],
            "outbox": [
                {
                    "hash": item.cause,
                    "tx": item.tx,
                    "at": item.at.isoformat(),
                    "to": [ledger.to[output.to] for output in item.outputs],
                    "owes": item.tx not in paid,
                }
                for item in ledger.outbox
            ],
            "answers": [{"hash": answer.cause, "status": answer.answer.status} for answer in ledger.answers],
            "sequences": [_picked(item, "destination", "receiver", "last") for item in ledger.sequences],
            "receptions": [_picked(item, "channel", "source", "next", "held") for item in ledger.receptions],
            **_waiting(ledger, paid),
        },
        "belongings": sorted(
            found.belongings, key=lambda belonging: (belonging["kind"], belonging.get("version", 0), belonging["id"])
        ),
    }


def _mark(text: str, to: Sequence[str]) -> dict[str, Any]:
    """What a mark says of its message; None in place of the destination of a kept one."""
    mark = Mark.read(text)
    sent = [None if digit == KEPT else to[destination_place(digit)] for digit in mark.sent]
    return _picked(mark, "hash", "kind", "timed") | {"since": stable_text(mark.since), "sent": sent}


def _picked(item: object, *names: str) -> dict[str, Any]:
    """Some attributes of an object, by their names."""
    return {name: getattr(item, name) for name in names}
