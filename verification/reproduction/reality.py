"""The real stack that a trace is played on: one database of a local Cosmos DB, and the queues that outputs go to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, _retry_utility_async

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Loaded, SaveEntity
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.records.companions import Companion, read_companion
from exactlyonce.records.outbox import Output
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, LIBRARY_PATH, EntityContainer, without_system
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.history import AcceptedWrite
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.request_log import LoggedRequest
from verification.world.companions import ENTITY
from verification.world.scenario import TICK
from verification.world.store import NOW, entity_ref

# The partition key in entity documents: containers that hold companions want one, and the business of the model has none.


PLACE: Final = "key"
"""Property with the partition key: of an entity's document, and of its companions."""

Perform = Callable[[Any], Awaitable[Any]]


def placing(perform: Perform) -> Perform:
    """A request to the store, in which documents go out with their partition key and come back without it."""

    async def performed(effect: Any) -> Any:
        if isinstance(effect, SaveEntity | SaveBatch):
            effect = replace(effect, document=placed(effect.entity, effect.document))
        reply = await perform(effect)
        if isinstance(reply, Loaded) and reply.document is not None:
            return replace(reply, document=taken_from(reply.document.value))
        return reply

    return performed


def placed(entity: EntityRef, document: Json) -> Json:
    return Json.of({PLACE: entity.partition[0], **document.value})


def taken_from(stored: Mapping[str, Any]) -> Json:
    """A document without what its place and the service gave it."""
    return Json.of({name: value for name, value in without_system(dict(stored)).items() if name != PLACE})


ENTITIES: Final = EntityContainer(entity_ref(0).type, "entities", (f"/{PLACE}",), companions=True)
OUTSIDE: Final = "out"
"""The destination of the model's outputs, and the name of its queue."""
SOURCES: Final = "sender"
"""The destination of requests to send again, and the name of its queue."""
BOARD: Final = "board"
"""The destination that sources have for what they send to a read model. What arrives there is taken as traces say."""

_EVERYTHING_KEPT: Final = Lag(writes=1_000_000, share=0.0)
"""Reads meet the primary, and every version stays within reach of a replica."""

_numbers = count(1)


class _StoreTime:
    """The time of the local Cosmos DB: that of the model, which begins anew with each trace."""

    ticks = 0

    def __call__(self) -> float:
        """Seconds since 1970."""
        return NOW + self.ticks * TICK.total_seconds()


_store_time = _StoreTime()

Place = tuple[str, str]
"""Of a document: the text of its partition key, and its id."""
Documents = dict[str, dict[Place, dict[str, Any]]]
"""By container, partition key and id."""


@dataclass
class Deeds:
    """What a process came to.

    Attributes:
        acknowledged: number of the entity and of the message, of every delivery that is done with.
    """

    begun: list[str] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    failed: list[tuple[str, ExactlyOnceError]] = field(default_factory=list)
    raised: list[Exception] = field(default_factory=list)
    sent_again: list[int] = field(default_factory=list)


@dataclass
class Fate:
    """What becomes of the next send: whether it arrives, and whether its sender learns so."""

    arrives: bool = True
    answered: bool = True


@dataclass
class Reality:
    """One database, and what was accepted there so far.

    Attributes:
        documents: by container and place, from the emulator's log of accepted writes.
        lsn: of each container: how many commits it has seen.
        restored: numbers of the accepted writes by which somebody put an earlier document back.
    """

    emulator: RunningEmulator
    database: str
    documents: Documents = field(default_factory=dict)
    lsn: dict[str, int] = field(default_factory=dict)
    writes: list[AcceptedWrite] = field(default_factory=list)
    fate: Fate = field(default_factory=Fate)
    restored: set[int] = field(default_factory=set)
    transport: MemoryTransport = field(init=False)
    _transactions: Iterator[int] = field(default_factory=count)
    _read: int = 0
    _logged: int = 0
    _batches: set[int] = field(default_factory=set)
    _log: list[tuple[str, int, Place, dict[str, Any] | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.documents = {ENTITIES.container: {}, LIBRARY_CONTAINER: {}}
        self.lsn = dict.fromkeys(self.documents, 0)
        self.transport = MemoryTransport(outcome=lambda _: (self.fate.arrives, self.fate.answered))
        self._logged = self.emulator.last_request()

    @property
    def published(self) -> tuple[Output, ...]:
        return tuple(self.transport.queues[OUTSIDE])

    @property
    def requested(self) -> tuple[Output, ...]:
        """Every request to send again that arrived, copies included."""
        return tuple(self.transport.queues[SOURCES])

    def new_transaction(self) -> str:
        """An id that nobody else has."""
        return f"real-{next(self._transactions)}"

    def connection(self) -> CosmosConnection:
        return CosmosConnection(self.emulator.endpoint, self.database, key=self.emulator.key)

    def arm(self, **rule: Any) -> int:
        """Arm a fault for the requests to come; returns its id."""
        return self.emulator.add_fault(FaultRule(self.database, **rule))

    def view(self, container: str, lsn: int) -> None:
        """Let reads of a container meet a replica that has seen so many commits."""
        behind = self.lsn[container] - lsn
        if behind > 0:
            self.emulator.set_lag(self.database, container, Lag(writes=behind))

    def pass_time(self) -> None:
        """One tick passes."""
        _store_time.ticks += 1

    def is_over(self, document: Mapping[str, Any]) -> bool:
        """Whether the time of a document is over: nobody sees it any more."""
        return "ttl" in document and document["_ts"] + document["ttl"] <= _store_time()

    def is_past(self, seconds: int | None) -> bool:
        """Whether a time has come, in seconds since the model's clock began; None never comes."""
        return seconds is not None and NOW + seconds <= _store_time()

    def is_at(self, seconds: int, time: int) -> bool:
        """Whether a time of the store is that of the model, in seconds since its clock began."""
        return NOW + seconds == time

    def documents_at(self, container: str, lsn: int) -> dict[Place, dict[str, Any]]:
        last = {place: document for name, at, place, document in self._log if name == container and at <= lsn}
        return {place: document for place, document in last.items() if document is not None}

    def calm(self) -> None:
        """No fault, no lag; whatever waits for its arrival goes on waiting."""
        self.emulator.clear_faults()
        self.emulator.set_lag(self.database, lag=_EVERYTHING_KEPT)
        self.fate = Fate()

    def catch_up(self) -> list[AcceptedWrite]:
        """Read what was accepted since the last time."""
        found = self.emulator.history(self.database, after=self._read)
        for write in found:
            self._read = write.sequence
            held = self.documents[write.container]
            place = (write.partition_key, write.id)
            if write.document is None:
                held.pop(place, None)
            else:
                held[place] = write.document
            if write.batch is None or write.batch not in self._batches:
                self.lsn[write.container] += 1
            if write.batch is not None:
                self._batches.add(write.batch)
            self._log.append((write.container, self.lsn[write.container], place, write.document))
        self.writes += found
        return found

    def requests(self) -> tuple[str, ...]:
        """The requests since the last time, one line each."""
        found = [request for request in self.emulator.requests(self._logged) if request.database == self.database]
        self._logged = max((item.n for item in found), default=self._logged)
        return tuple(_line(item) for item in found)

    async def create(self, entity: EntityRef, document: Json) -> None:
        async with self._container(ENTITIES.container) as container:
            await container.create_item(placed(entity, document).value)

    async def put_back(self, entity: EntityRef, lsn: int) -> None:
        """Put an entity's document back to what it was after so many commits."""
        place = (partition_text(entity.id), entity.id)
        document = self.documents_at(ENTITIES.container, lsn)[place]
        async with self._container(ENTITIES.container) as container:
            await container.upsert_item(without_system(document))
        self.restored.add(self.emulator.history(self.database, after=self._read)[-1].sequence)

    async def remove(self, entity: EntityRef) -> None:
        async with self._container(ENTITIES.container) as container:
            await container.delete_item(entity.id, entity.id)
        self.restored.add(self.emulator.history(self.database, after=self._read)[-1].sequence)

    async def lose_pages(self, entity: EntityRef) -> None:
        partition = partition_text(entity.key)
        async with self._container(LIBRARY_CONTAINER) as container:
            for key, id in [*self.documents[LIBRARY_CONTAINER]]:
                if key == partition and id.startswith("page:"):
                    await container.delete_item(id, entity.key)

    @asynccontextmanager
    async def _container(self, name: str) -> AsyncIterator[ContainerProxy]:
        connection = self.connection()
        try:
            yield await connection.container(name)
        finally:
            await connection.close()

    async def read_documents(self) -> Documents:
        held: Documents = {}
        for name, path in ((ENTITIES.container, PLACE), (LIBRARY_CONTAINER, LIBRARY_PATH[1:])):
            async with self._container(name) as container:
                documents = [document async for document in container.read_all_items()]
            held[name] = {(partition_text(item[path]), item["id"]): item for item in documents}
        return held


async def forget_sessions(connection: CosmosConnection) -> None:
    """Empty the SDK's own memory of session tokens, as a restart does. It has no public way, and opening a client is slow."""
    client: Any = await connection.client()
    sessions = client.client_connection.session.session_container
    sessions.collection_name_to_rid.clear()
    sessions.rid_to_session_token.clear()


def partition_text(value: str) -> str:
    """A partition key of one level, as in the log of accepted writes."""
    return json.dumps([value], ensure_ascii=False, separators=(",", ":"))


@contextmanager
def emulator_of_the_model() -> Iterator[RunningEmulator]:
    """A local Cosmos DB whose time is the model's; nobody waits for it."""
    with running_emulator(clock=Clock(_store_time)) as emulator, _sent_again_at_once():
        yield emulator


@contextmanager
def _sent_again_at_once() -> Iterator[None]:
    """The SDK waits for half a second before it repeats a request without a reply, and has no setting for that."""
    at_once = SimpleNamespace(sleep=lambda _seconds: asyncio.sleep(0))
    with mock.patch.object(_retry_utility_async, "asyncio", at_once):
        yield


@asynccontextmanager
async def opened(emulator: RunningEmulator) -> AsyncIterator[Reality]:
    """A fresh database with the containers that a scenario needs."""
    _store_time.ticks = 0
    reality = Reality(emulator, f"reproduction-{next(_numbers)}")
    connection = reality.connection()
    try:
        database = await (await connection.client()).create_database(reality.database)
        await database.create_container(ENTITIES.container, PartitionKey(ENTITIES.paths[0]))
        await database.create_container(LIBRARY_CONTAINER, PartitionKey(LIBRARY_PATH), default_ttl=-1)
    finally:
        await connection.close()
    reality.calm()
    try:
        yield reality
    finally:
        emulator.clear_faults()
        emulator.release_delayed_writes(reality.database)


def _line(request: LoggedRequest) -> str:
    about = f" {request.id}" if request.id else ""
    status = "no reply" if request.status is None else f"{request.status}"
    if request.substatus:
        status += f"/{request.substatus}"
    written = ", applied" if request.applied else ""
    late = "late: " if request.delayed else ""
    return f"{late}{request.operation} {request.container}{about}: {status}{written}"


def companion_of(document: Mapping[str, object]) -> Companion:
    return read_companion(ENTITY, taken_from(document).value)
