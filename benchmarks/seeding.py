"""Histories of an entity: what a strategy leaves after many messages, put into the store as documents.

The documents are the library's own: its strategies run, and this answers them in place of a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import count, islice
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy, DatabaseProxy

from benchmarks.subjects import GAME, Subject
from exactlyonce.effects.attempt import Again, Finished, Memory, Strategy, Work
from exactlyonce.effects.companions import FoundCompanions, HasCompanions, LoadCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, Begun, Effect, Opened, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Loaded, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    CloseNumbers,
    FindPages,
    FindPaid,
    FoundPages,
    HasPages,
    OpenNumbers,
    WritePage,
    Written,
)
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.steps.load import with_ledger
from exactlyonce.records.companions import Companion, companion_document, entry_id, id_of
from exactlyonce.records.ledger import Ledger, Page, read_entity
from exactlyonce.records.outbox import transaction
from exactlyonce.stores.cosmos.partition import to_library
from exactlyonce.stores.cosmos.replies import SESSION_TOKEN
from exactlyonce.values.envelope import EntityRef, message_hash
from exactlyonce.values.frozen_json import Json

BATCH: Final = 100
_TOKEN: Final = "0:-1#1"  # noqa: S105  # Of a session.
"""Stands for the token of the library's partition until that is written."""


@dataclass
class History:
    """What is stored of an entity after some messages, and how it came to be.

    Attributes:
        subject: what is measured.
        routes: where its handlers may send to.
        messages: how many were processed.
        document: of the entity.
        companions, apart: the library's documents in the entity's partition, and in its own container, by id.
    """

    subject: Subject
    routes: Routes
    messages: int = 0
    document: Json | None = None
    companions: dict[str, dict[str, Any]] = field(default_factory=dict)
    apart: dict[str, dict[str, Any]] = field(default_factory=dict)
    _memory: Memory = field(default_factory=Memory)
    _newest: tuple[Page, ...] = ()
    _transactions: Iterator[int] = field(default_factory=count)
    _entity: EntityRef = field(init=False)

    def __post_init__(self) -> None:
        self._entity = self.subject.entity.ref(GAME)

    def grow(self, messages: int) -> bool:
        """Process messages until there were so many, the last ones one by one; return whether all could be."""
        strategy, size = self.subject.seeding
        single = max(messages - 2 * self.subject.round, 0)
        while single - self.messages >= size:
            if not self._process(strategy, size):
                break
        while self.messages < messages and self._process(self.subject.entity.strategy, 1):
            pass
        return self.messages == messages

    def sent_again(self, message: str) -> list[str]:
        """Ids of what a duplicate of this message has to send to a process whose books lack it.

        That is what the ledger owes, or, where there is a stream, what was sent.
        """
        entry = self.companions.get(entry_id(self._entity, message))
        if entry is not None:
            return [output["id"] for output in entry["outputs"]]
        owing = (item for item in self._ledger.outbox if item.cause == message_hash(message))
        return [
            output.id
            for item in owing
            for output in item.owed_outputs(self._entity, self._ledger.to, self._ledger.sequences)
        ]

    @property
    def stored(self) -> dict[str, int]:
        """Bytes of the entity's document, and of the library's documents of this entity."""
        document = 0 if self.document is None else self.document.size
        others = sum(Json.of(companion).size for companion in (*self.companions.values(), *self.apart.values()))
        return {"document": document, "other documents": others}

    @property
    def _ledger(self) -> Ledger:
        ledger = read_entity(self._entity, self.document).ledger
        assert ledger is not None  # noqa: S101  # The strategies write one.
        return ledger

    async def store(self, database: DatabaseProxy) -> None:
        """Write all documents."""
        games = database.get_container_client("games")
        token = await _write(database.get_container_client("exactlyonce"), list(self.apart.values()), self._entity.key)
        await _write(games, [{**companion, "gameId": GAME} for companion in self.companions.values()], GAME)
        assert self.document is not None  # noqa: S101  # There are no histories without messages.
        ledger = self._ledger
        if ledger.token is not None:
            ledger = replace(ledger, token=token)
        await games.create_item(with_ledger(self.document, ledger).value, no_response=True)

    def _process(self, strategy: Strategy, number: int) -> bool:
        """Process the next messages in one commit; return whether all could be."""
        runner = Runner(self.subject.entity, self._entity, self.routes)
        envelopes = tuple(self.subject.shot(self.messages + 1 + ahead) for ahead in range(number))
        work = Work(self._entity, envelopes, runner, runner.absent, runner.evolve)
        finished = self._run(strategy.attempt(work, self._memory))
        if isinstance(finished, Again) and finished.progressed:  # The document had no room for all of them.
            self._memory, self.messages = finished.memory, self._ledger.version
            return False
        if not isinstance(finished, Finished):
            raise RuntimeError(f"{self.subject.name}: {finished.reason}")  # noqa: TRY004  # It says what is wrong.
        self._memory = finished.memory
        self.messages += len(finished.processed)
        return not finished.failed

    def _run(self, step: Step[Finished | Again]) -> Finished | Again:
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                outcome: Finished | Again = finished.value
                return outcome
            reply = self._answer(effect)

    def _answer(self, effect: Effect[Any]) -> Any:  # noqa: C901, PLR0911  # One for each effect.
        now = datetime.now(timezone.utc)
        match effect:
            case Together(first=first, second=second):
                return self._answer(first), self._answer(second)
            case LoadEntity():
                known = self.document is not None
                return Loaded(self.document, "etag" if known else None, int(now.timestamp()) if known else 0, _TOKEN)
            case FindPages():
                return FoundPages(self._newest)  # It shows that none is lost.
            case FindPaid(transactions=transactions):
                return frozenset(transactions)
            case OpenNumbers(count=number):
                return Opened(now, tuple(transaction("seeding", next(self._transactions)) for _ in range(number)))
            case CloseNumbers():
                return None
            case LoadCompanions():
                return FoundCompanions(())
            case HasPages() | HasCompanions():
                return False
            case Begin(messages=messages, more=more):
                return Begun(now, tuple(f"{next(self._transactions):032x}" for _ in range(len(messages) + more)))
            case Publish():
                return PUBLISHED
            case _:
                return self._write(effect)

    def _write(self, effect: Effect[Any]) -> Any:
        match effect:
            case SaveEntity(document=document):
                self.document = document
                return Saved("etag", _TOKEN)
            case SaveBatch(document=document, create=create):
                self.document = document
                self._put(create)
                return Saved("etag", _TOKEN)
            case ReplaceCompanions(companions=companions):
                self._put(tuple(companion for companion, _ in companions))
                return None
            case WritePage(page=page):
                written = to_library(self._entity, page)
                self.apart[written["id"]], self._newest = written, (page,)
                return Written(_TOKEN)
            case _:
                raise RuntimeError(f"{self.subject.name} asks for {type(effect).__name__}, which has no answer here.")

    def _put(self, companions: Sequence[Companion]) -> None:
        self.companions.update(
            {id_of(self._entity, companion): companion_document(self._entity, companion) for companion in companions}
        )


async def _write(container: ContainerProxy, documents: Sequence[dict[str, Any]], key: str) -> str | None:
    """Create documents of one partition; return the session token of the last reply."""
    token = None
    waiting = iter(documents)
    while batch := list(islice(waiting, BATCH)):
        written = await container.execute_item_batch([("create", (document,)) for document in batch], key)
        token = written.get_response_headers()[SESSION_TOKEN]
    return token
