"""Plays a trace on the real stack: opens one gate at a time, in the order of the trace, and compares after every step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from exactlyonce.effects.companions import (
    FindEntries,
    FindNumbered,
    FindOwing,
    HasCompanions,
    LoadCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    FindPages,
    FindPagesAbove,
    FindPaid,
    HasPages,
    LoadStaged,
    OpenNumbers,
    ReadBooks,
    WriteBook,
)
from exactlyonce.errors import ExactlyOnceError, LedgerRemoved
from exactlyonce.records.outbox import transaction
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, MAX_BATCH_OPERATIONS
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from verification.explorers.choice import explorer_of
from verification.explorers.explorer import PASSES
from verification.explorers.moves import REMOVED
from verification.explorers.trace import BEST_EFFORT, NOBODY, Event
from verification.reproduction.correspondence import Log, TornViewError, entity_log, library_log, log_of, lsn_of
from verification.reproduction.families import (
    CompanionRecords,
    Family,
    LibraryRecords,
    books_in,
    memory_differences,
    pays,
)
from verification.reproduction.processes import MakeStore, Process
from verification.reproduction.reality import ENTITIES, Documents, Fate, Reality
from verification.world.scenario import Scenario
from verification.world.store import Store, entity_number, entity_ref
from verification.world.workers import IN_VAIN
from verification.world.writes import ANY, Write, WriteDown

# From what goes wrong in a step of the model to what is asked of the local Cosmos DB and of the queues, for one request.
#
# The SDK sends a request again by itself after a lost reply. So a write whose outcome stays unknown needs trouble for every
# send, and one that is reported as a conflict with itself needs it for the first alone.


Manner = dict[str, Any]
"""How a reply goes wrong: a part of a fault rule."""

NO_REPLY: Final[tuple[Manner, ...]] = (
    {"action": "close"},
    {"action": "reset"},
    {"action": "status", "status": 408},
    {"action": "status", "status": 500},
)
"""Every one leaves the outcome open, whether or not the write was applied."""

REFUSAL: Final[tuple[Manner, ...]] = (
    *NO_REPLY,
    {"action": "status", "status": 429, "substatus": 3200, "retry_after_ms": 1},
    {"action": "status", "status": 449, "retry_after_ms": 1},
    {"action": "status", "status": 410, "substatus": 1007, "retry_after_ms": 1},
)
"""Nothing was applied, which the last send cannot say of those before it."""

SENT_AGAIN: Final[tuple[Manner, ...]] = ({"action": "close"}, {"action": "reset"}, {"action": "status", "status": 503})
"""What makes the SDK send a write again by itself."""

_READS: Final = (
    *(LoadEntity, FindPages, FindPagesAbove, HasPages, LoadStaged),
    *(LoadCompanions, FindEntries, FindNumbered, FindOwing, HasCompanions),
)


class Trouble:
    """Makes the next request go as it went in the model."""

    def __init__(self, reality: Reality, family: Family) -> None:
        self._reality = reality
        self._family = family
        self._step = 0

    def arrange(self, event: Event, asked: Effect[Any], entity: int, before: Store) -> tuple[Effect[Any], int | None]:
        """Arm what is needed; return the request to perform, and the rule that catches it if it is to arrive later."""
        self._step += 1
        if isinstance(asked, Publish):
            self._reality.fate = Fate(arrives=event.applied, answered=event.fault is None)
            if not event.applied:  # What is too old to be sent is not parked either.
                self._reality.arm(when="before", **self._manner(NO_REPLY))
        elif isinstance(asked, _READS):
            return self._read(event, asked, entity, before), None
        elif event.fault == "unknown":
            return asked, self.lose(event)
        elif event.fault == "repeated":
            self._reality.arm(when="after", times=1, **self._manner(SENT_AGAIN))
        return asked, None

    def of_books(self, event: Event, asked: ReadBooks, known: frozenset[str]) -> None:
        """Let a replica answer that has the books which prove what the model's have.

        Args:
            event: the step, whose reply says what is paid.

        Raises:
            TornViewError: no view has them: the model reads each book in a view of its own.
        """
        self._step += 1
        wanted = frozenset(map(self._family.names.transaction, event.reply))
        transactions = tuple(map(self._family.names.transaction, event.effect.transactions))  # type: ignore[union-attr]
        for lsn in range(self._reality.lsn[LIBRARY_CONTAINER], -1, -1):
            books = books_in(self._reality.documents_at(LIBRARY_CONTAINER, lsn), asked.books)
            if known | {tx for tx in transactions if pays(books, tx)} == wanted:
                self._reality.view(LIBRARY_CONTAINER, lsn)
                return
        if known != wanted:
            raise TornViewError(f"no view has all the books that {event} read")
        self._reality.arm(when="before", **self._manner(NO_REPLY))

    def lose(self, event: Event) -> int | None:
        """No reply to any send; the first one may be applied, now or later."""
        caught = None
        if event.delayed:
            caught = self._reality.arm(when="later", times=1, **self._manner(NO_REPLY))
        elif event.applied and not isinstance(event.effect, BEST_EFFORT):  # One that is lost is as good as none.
            self._reality.arm(when="after", times=1, **self._manner(NO_REPLY))
        self._reality.arm(when="before", **self._manner(REFUSAL))
        return caught

    def _manner(self, manners: tuple[Manner, ...]) -> Manner:
        return manners[self._step % len(manners)]

    def _read(self, event: Event, asked: Any, entity: int, before: Store) -> Effect[Any]:
        log = log_of(asked, entity)
        if event.reply is UNKNOWN:
            self._reality.arm(when="before", **self._manner(NO_REPLY))  # A refusal would be reported as one.
            return cast("Effect[Any]", asked)
        if event.reply is BEHIND:
            return self._behind(asked, log)
        position = self._family.position(event, entity, before)
        lsn = None if position is None else self._family.names.lsn_before(log, position)
        if lsn is not None:
            self._reality.view(log.container, lsn)
        return cast("Effect[Any]", asked)

    def _behind(self, asked: Any, log: Log) -> Effect[Any]:
        """Ask with a token that no replica has reached.

        Where the model leaves tokens out, a process asks with one that it might have.
        """
        needed = 0 if asked.token is None else lsn_of(asked.token)
        if not needed:
            ahead: Effect[Any] = replace(asked, token=f"0:-1#{self._reality.lsn[log.container] + MAX_BATCH_OPERATIONS}")
            return ahead
        self._reality.view(log.container, needed - 1)
        return cast("Effect[Any]", asked)


SAVES: Final = (SaveEntity, SaveBatch)
"""Writes that are conditional on an entity's version."""


class Divergence(Exception):
    """Reality did something else than the model. The message names the step and every difference."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step as it went.

    Attributes:
        requests: what the local Cosmos DB saw of it, one line each.
    """

    said: str
    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A trace that was played to its end, without a difference.

    Attributes:
        fallen: the properties that do not hold in reality, by its own documents, queues and acknowledgements; and what was
            raised, as "raised LedgerRemoved".
    """

    steps: tuple[Step, ...]
    fallen: frozenset[str]


async def reproduce(
    scenario: Scenario, trace: Sequence[Event], reality: Reality, make_store: MakeStore = CosmosStore
) -> Reproduction:
    """Play a trace.

    Args:
        make_store: makes the adapter; that of a broken twin may have to be broken, too.

    Raises:
        Divergence: reality did something else.
        TornViewError: a read of the trace sees a part of a batch.
        ValueError: the scenario is an endless stream, whose states give new names to what is still known.
    """
    if scenario.endless:
        raise ValueError(f"The endless stream {scenario.name!r} has no trace with lasting names to be played.")
    conductor = _Conductor(scenario, reality, make_store)
    try:
        await conductor.prepare()
        for number, event in enumerate(trace, 1):
            await conductor.step(number, event)
        await conductor.close_the_books()
    finally:
        await conductor.stop()
    return Reproduction(tuple(conductor.steps), conductor.fallen())


def family_of(scenario: Scenario) -> Family:
    return CompanionRecords(scenario) if scenario.companions else LibraryRecords(scenario)


class _Conductor:
    """Plays one trace."""

    def __init__(self, scenario: Scenario, reality: Reality, make_store: MakeStore) -> None:
        self._scenario, self._reality = scenario, reality
        self._family = family_of(scenario)
        self._names = self._family.names
        self._trouble = Trouble(reality, self._family)
        self._store = explorer_of(scenario).start()[0]
        self._delayed: list[tuple[Write, int]] = []
        self._about: dict[int, int] = defaultdict(int)
        self._number = 0
        self._event: Event | None = None
        self.processes = [Process(self._family, reality, make_store) for _ in range(scenario.workers)]
        self.steps: list[Step] = []

    async def prepare(self) -> None:
        for number, entity in enumerate(self._store.entities):
            if entity.truth.document is not None:
                await self._reality.create(entity_ref(number), entity.truth.document)
        self._follow(self._store)

    async def step(self, number: int, event: Event) -> None:
        self._number, self._event = number, event
        self._tell_the_time(event)
        if event.process == NOBODY:
            await self._happen(event)
        elif isinstance(event.effect, WriteDown):
            await self._write_down(event)
        elif event.crash:
            await self.processes[event.process].crash()
        elif event.effect is None and event.task is None:
            await self.processes[event.process].give_back()
        else:
            await self._work(event)
        self._note_numbers(event)
        self._follow(event.store)
        self._store = event.store
        self.steps.append(Step(str(event), self._reality.requests()))

    async def close_the_books(self) -> None:
        """What waits for ever in reality and is forgotten by the model must do nothing; and the log must not deceive."""
        for write, rule in self._delayed:
            if _is_dead(write, self._store):
                self._reality.emulator.release_delayed_writes(self._reality.database, rule)
        self._reality.catch_up()
        self._require(self._holding_differences(await self._reality.read_documents(), self._store))

    async def stop(self) -> None:
        for process in self.processes:
            await process.crash()
        self._reality.calm()

    def fallen(self) -> frozenset[str]:
        """The properties that do not hold in reality, and what was raised there."""
        deeds = [process.deeds for process in self.processes]
        removed = LedgerRemoved if self._scenario.budget.removed else ()  # It is right of an entity that was deleted.
        errors = (error for deed in deeds for error in deed.raised if not isinstance(error, removed))
        raised = {f"raised {type(error).__name__}" for error in errors}
        return self._family.fallen(self._reality, deeds) | raised

    async def _work(self, event: Event) -> None:
        """A process begins a task, gets an answer, or does what needs nobody else; and acknowledges what it is done with."""
        process = self.processes[event.process]
        if event.task is not None:
            self._require(("it is at work still",) if process.busy else ())
            start = self._family.start(event, self._reality.documents)
            self._about[event.process] = start.entity
            await process.begin(start)
            self._tell_the_time(event)
        else:
            await process.go_on()
        if not event.from_memory:
            await self._answer(event, process)
        if event.crashed:
            await process.crash()
        process.acknowledge()

    async def _answer(self, event: Event, process: Process) -> None:
        entity = self._about[event.process]
        turn = process.turn
        if turn is None:
            raise self._divergence(("it asks for nothing",))
        self._require(self._effect_differences(turn.effect, event.effect, entity))
        effect, caught = turn.effect, None
        if isinstance(turn.effect, ReadBooks):
            known = process.books.known(tuple(map(self._names.transaction, _paid_asked(event))))
            self._trouble.of_books(event, turn.effect, known)
        else:
            effect, caught = self._trouble.arrange(event, turn.effect, entity, self._store)
        reply = await self._performed(process.perform(effect))
        if caught is not None:
            self._delayed.append((_write(event.effect), caught))
        if not isinstance(turn.effect, ReadBooks):
            self._names_of_commits(event.store)
            self._require(self._reply_differences(reply, event, entity))
        if isinstance(event.effect, OpenNumbers) and reply is UNKNOWN and event.applied:
            process.books.is_there()
        self._tell_the_time(event)
        await process.hear()
        if isinstance(turn.effect, ReadBooks):
            paid = frozenset(map(self._names.transaction, event.reply))
            self._require(() if process.books.paid == paid else (f"{process.books.paid} are paid in place of {paid}",))

    async def _performed(self, reply: Awaitable[Any]) -> Any:
        try:
            return await reply
        except ExactlyOnceError as error:
            raise self._divergence((f"the adapter raises {type(error).__name__}: {error}",)) from error
        finally:
            self._reality.calm()

    async def _write_down(self, event: Event) -> None:
        process = self.processes[event.process]
        caught = self._trouble.lose(event) if event.delayed else None
        reply = await self._performed(process.write_down())
        if caught is not None:
            self._delayed.append((_write(event.effect), caught))
        self._require(() if (reply is UNKNOWN) is event.delayed else (f"{reply} to a book",))

    async def _happen(self, event: Event) -> None:
        before, after = self._store, event.store
        if event.effect is not None:
            self._land(event)
        elif event.said == PASSES:
            self._reality.pass_time()
        for number, entity in enumerate(after.entities if after.put_back > before.put_back else ()):
            if entity is not before.entities[number]:
                version = int(event.said.rpartition(" ")[2])
                for process in self.processes:
                    await process.crash()
                    process.deeds.acknowledged.clear()  # What was acknowledged before may be undone.
                await self._reality.put_back(entity_ref(number), self._names.lsn_after(entity_log(number), version))
        if event.said == REMOVED:
            await self._remove(after)
        for number, library in enumerate(after.libraries if after.emptied > before.emptied else ()):
            if library is not before.libraries[number]:
                await self._reality.lose_pages(entity_ref(number))

    async def _remove(self, after: Store) -> None:
        """Delete the document that is gone afterwards; processes that remember tokens go on."""
        for number, entity in enumerate(after.entities):
            if entity is not self._store.entities[number]:
                for process in () if self._scenario.tokens else self.processes:
                    await process.crash()
                await self._reality.remove(entity_ref(number))

    def _tell_the_time(self, event: Event) -> None:
        """Tell a process the present, if the model does."""
        process = self.processes[event.process]
        start = event.start or process.start
        time = None if event.process == NOBODY or start is None else self._family.time(start, event, self._store)
        if time is not None:
            process.clock.time = time

    def _note_numbers(self, event: Event) -> None:
        """Note what the transactions stand for that were given out, and compare what processes hold open."""
        before = {(book.id, *item) for book in self._store.books for item in book.open}
        fresh = [
            transaction(book.id, item[0])
            for book in event.store.books
            for item in book.open
            if (book.id, *item) not in before
        ]
        open_now = frozenset[str]().union(*(process.books.open_now for process in self.processes))
        given = [tx for process in self.processes for tx in process.books.given]
        self._names.given(*given)
        for process in self.processes:
            process.books.given.clear()
        given = [tx for tx in given if tx in open_now]
        if len(given) < len(fresh):
            raise self._divergence((f"{given} were given out in place of {fresh}",))
        for real, model in zip(given, fresh, strict=False):
            self._require(self._names.stands_for(real, model))
        self._require(tuple(memory_differences(open_now, event.store, self._names)))

    def _land(self, event: Event) -> None:
        written = _write(event.effect)
        landed = next((item for item in self._delayed if item[0] == written), None)
        if isinstance(written, SAVES) and event.store is not self._store:
            # The event may name another save, whose condition fails from now on.
            truth = event.store.entities[entity_number(written.entity)].truth.document
            landed = next((item for item in self._delayed if _would_save(item[0], written.entity, truth)), landed)
        if landed is None:
            raise self._divergence(("no such write is under way",))
        self._delayed.remove(landed)
        self._reality.emulator.release_delayed_writes(self._reality.database, landed[1])

    def _names_of_commits(self, after: Store) -> None:
        """Take note of what was written: which commits came to which positions, and which ETags stand for which versions."""
        self._reality.catch_up()
        for entity, found in enumerate(after.entities):
            self._names.advance(entity_log(entity), found.newest, self._reality.lsn[ENTITIES.container])
        for entity, library in enumerate(after.libraries):
            self._names.advance(library_log(entity), library.end, self._reality.lsn[LIBRARY_CONTAINER])
        documents = self._reality.documents
        versions = (
            version for version in self._family.versions(after) if version.place in documents[version.container]
        )
        for version in versions:
            real = documents[version.container][version.place]["_etag"]
            self._require(tuple(self._names.version_differences(version.name, version.etag, real)))

    def _follow(self, after: Store) -> None:
        self._names_of_commits(after)
        self._require(self._holding_differences(self._reality.documents, after))

    def _effect_differences(self, asked: Any, effect: Any, entity: int) -> tuple[str, ...]:
        if effect is IN_VAIN:  # Of a save that has to fail the model has forgotten what it would say.
            return () if isinstance(asked, SaveBatch) else (f"{type(asked).__name__} in place of a save in vain",)
        if isinstance(
            effect, OpenNumbers | FindPaid
        ):  # The store is asked for what the process does not know of books.
            wanted = WriteBook if isinstance(effect, OpenNumbers) else ReadBooks
            return () if isinstance(asked, wanted) else (f"{type(asked).__name__} in place of {wanted.__name__}",)
        return self._names.differences(asked, effect, entity)

    def _reply_differences(self, reply: Any, event: Event, entity: int) -> tuple[str, ...]:
        if isinstance(event.effect, OpenNumbers):
            return () if (reply is UNKNOWN) is (event.reply is UNKNOWN) else (f"{reply} to the first book",)
        if isinstance(event.reply, Conflict):
            return self._names.conflict_differences(reply, event.reply, log_of(event.effect, entity))
        return self._names.differences(reply, event.reply, entity)

    def _holding_differences(self, documents: Documents, store: Store) -> tuple[str, ...]:
        return tuple(self._family.differences(self._reality, documents, store))

    def _require(self, differences: tuple[str, ...]) -> None:
        if differences:
            raise self._divergence(differences)

    def _divergence(self, differences: tuple[str, ...]) -> Divergence:
        lines = [f"Step {self._number}, {self._event}: reality differs from the model.", *differences]
        lines += ["What the local Cosmos DB saw of it:", *self._reality.requests()]
        before = [f"  {number}. {step.said}" for number, step in enumerate(self.steps, 1)]
        return Divergence("\n  ".join(lines) + "\nBefore it:\n" + "\n".join(before))


def _paid_asked(event: Event) -> tuple[str, ...]:
    assert isinstance(event.effect, FindPaid)  # noqa: S101
    return event.effect.transactions


def _write(effect: Any) -> Write:
    assert isinstance(effect, Write)  # noqa: S101
    return effect


def _would_save(write: Write, entity: EntityRef, document: Json | None) -> bool:
    return isinstance(write, SAVES) and write.entity == entity and write.document == document


def _is_dead(write: Write, store: Store) -> bool:
    if not isinstance(write, SAVES):
        return False
    return write.etag not in (ANY, store.entities[entity_number(write.entity)].truth.etag)
