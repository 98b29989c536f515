"""What a write does to the store, and which property it breaks.

Its condition is judged on the newest version: all of it applies, or nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import OTHER as OTHER_PAGE
from exactlyonce.effects.library import DeletePages, DeleteStaged, KeepAnswers, Park, Stage, Unpark, WritePage, Written
from exactlyonce.records.companions import Companion, NumberedMessage, id_of
from exactlyonce.records.ledger import split
from exactlyonce.records.outbox import Output, transaction
from verification.world.books import BookWritten, book_in, with_book
from verification.world.scenario import TICK, Scenario
from verification.world.store import (
    Companions,
    Entity,
    Library,
    Store,
    StoredPage,
    Stores,
    Version,
    entity_number,
    etag_at,
    messages_of,
    token_at,
    transactions_of,
)


@dataclass(frozen=True, slots=True)
class WriteDown:
    """A process writes its book."""

    id: str
    written: BookWritten


OfCompanions = SaveBatch | ReplaceCompanions | DeleteCompanions
Write = (
    SaveEntity | WritePage | Stage | DeleteStaged | DeletePages | Park | Unpark | KeepAnswers | WriteDown | OfCompanions
)
BestEffort = DeleteStaged | DeletePages | Unpark | ReplaceCompanions | DeleteCompanions


def described(write: Write) -> str:  # noqa: C901, PLR0911
    match write:
        case SaveEntity():
            return "saves the entity" if write.etag else "creates the entity"
        case WritePage():
            marks = len(split(write.page.marks))
            return f"writes page {write.page.number}, of version {write.page.version}, with {marks} marks"
        case Stage():
            return f"stages outputs of {', '.join(document.message for document in write.documents)}"
        case DeleteStaged():
            return f"deletes the staged outputs {', '.join(write.transactions)}"
        case DeletePages():
            return f"deletes the pages after {', '.join(str(after) for after, _ in write.pages) or 'none'}"
        case WriteDown():
            said = write.written
            return f"writes the book {write.id}: {sorted(said.open)} are open, {sorted(said.paid)} are closed"
        case Park():
            return f"parks {write.message.message}"
        case Unpark():
            return f"deletes the parked document of {write.message}"
        case KeepAnswers():
            return f"keeps the answers to {', '.join(document.request for document in write.documents)}"
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return _described_companions(write)


def transactions_in(write: Write) -> frozenset[str]:
    match write:
        case SaveEntity():
            return transactions_of(write.document)
        case Stage():
            return frozenset(document.tx for document in write.documents)
        case DeleteStaged():
            return frozenset(write.transactions)
        case WriteDown():
            return frozenset(transaction(write.id, item) for item in write.written.open | write.written.paid)
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            named = {item.tx for item in companions_in(write) if not isinstance(item, NumberedMessage)}
            owing = transactions_of(write.document) if isinstance(write, SaveBatch) else frozenset()
            return owing.union(named)
        case WritePage() | DeletePages() | Park() | Unpark() | KeepAnswers():
            return frozenset()


def messages_in(write: Write) -> frozenset[str]:
    """Keys of the messages that a write mentions. Saves of the outbox name hashes, for which nobody asks."""
    match write:
        case Stage():
            return frozenset(document.message for document in write.documents)
        case Park():
            return frozenset({write.message.message})
        case Unpark():
            return frozenset({write.message})
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return frozenset(item.message for item in companions_in(write) if item.message is not None)
        case SaveEntity():
            return messages_of(write.document)
        case WritePage() | DeleteStaged() | DeletePages() | KeepAnswers() | WriteDown():
            return frozenset()


def parts_of(effect: BestEffort) -> Iterator[ReplaceCompanions | DeleteCompanions]:
    match effect:
        case ReplaceCompanions(companions=replaced) if len(replaced) > 1:
            yield from (replace(effect, companions=(item,)) for item in replaced)
        case DeleteCompanions(companions=deleted) if len(deleted) > 1:
            yield from (replace(effect, companions=(item,)) for item in deleted)


def companions_in(write: OfCompanions) -> tuple[Companion, ...]:
    match write:
        case SaveBatch():
            return (*write.create, *(item for item, _ in write.replace))
        case ReplaceCompanions():
            return tuple(item for item, _ in write.companions)
        case DeleteCompanions():
            return ()


def _described_companions(write: OfCompanions) -> str:
    if isinstance(write, DeleteCompanions):
        return f"deletes {', '.join(id for id, _ in write.companions)}"
    if isinstance(write, ReplaceCompanions):
        return f"writes down that {', '.join(map(_named, companions_in(write)))} owes nothing"
    held = [item for item in companions_in(write) if isinstance(item, NumberedMessage) and item.held is not None]
    done = [item for item in companions_in(write) if not (isinstance(item, NumberedMessage) and item.held is not None)]
    parts = [f"holds {', '.join(map(_named, held))}"] if held else []
    parts += [f"commits {', '.join(map(_named, done))}"] if done else []
    return " and ".join(parts) or "saves what it drafted"


def _named(companion: Companion) -> str:
    return companion.message or "a number without a message"


Committed = frozenset[tuple[str, str]]
"""Key of each message that was committed, and what its output says of that."""
Commit = SaveBatch | SaveEntity


class Judge(ABC):
    """Judges what happens in one scenario. A violation begins with the name of the property that fell; None if none did."""

    def __init__(self, scenario: Scenario, keys: Sequence[str]) -> None:
        self.scenario = scenario
        self.keys = tuple(keys)
        numbered = zip(keys, scenario.copies, strict=True)
        self._single = frozenset(key for key, copies in numbered if copies == 1 and keys.count(key) == 1)

    def alone(self, store: Store) -> frozenset[str]:
        """Keys of messages of which there is one copy, and never was another: parked or processed is settled for good."""
        return self._single - store.requeued - store.copied

    @abstractmethod
    def commit(self, write: Commit, before: Entity, after: Entity, store: Store) -> tuple[Committed, str | None]:
        """What is committed once a write has taken effect, and the violation."""

    @abstractmethod
    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        """The violation in publishing these outputs."""

    @abstractmethod
    def lost(self, key: str, store: Store) -> str | None:
        """The violation in acknowledging a message."""

    @abstractmethod
    def left_undone(self, store: Store, but: Container[str] = ()) -> str | None:
        """The violation if nobody is at work any more and no delivery is left, but for messages that need not be done."""

    def first_lost(self, keys: Iterable[str], store: Store) -> str | None:
        """The violation in acknowledging these messages."""
        return next((wrong for key in keys if (wrong := self.lost(key, store)) is not None), None)

    def rivals(self, key: str) -> tuple[str, ...]:  # noqa: ARG002
        """Other messages that have the number of this one, in the same channel: only one of them may be handled."""
        return ()


ANY: Final = "*"
"""An ETag that fits always: only broken twins save like that."""
OTHER: Final = "somebody else's commit won"
HELD: Final = "a held message was released by a later arrival"
RESUMED: Final = "a channel that had stopped went on"
DELETED: Final = "companions were cleaned up"
CUT: Final = "marks left in a page"
IN_THE_WAY: Final = "a page of another history was in the way"
PAGES_GONE: Final = "pages were deleted"


@dataclass(frozen=True, slots=True)
class Answer:
    """One possible answer.

    Attributes:
        cost: place of the fault it takes; None for none.
        delayed: a write that may still take effect.
        arrivals: messages that arrive because they are outputs of others.
        asked: keys of messages that arrive because a read model asked for them.
        aged: whether it is an older view of the library. That costs nothing, but finishing the work must not rely on it.
    """

    reply: Any
    store: Store
    cost: int | None = None
    delayed: Write | None = None
    violation: str | None = None
    said: str = ""
    witnessed: str | None = None
    arrivals: tuple[int, ...] = ()
    again: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    aged: bool = False


class Writes:
    """Applies writes."""

    def __init__(self, stores: Stores, scenario: Scenario, judge: Judge) -> None:
        self._stores = stores
        self._judge = judge
        self._logs_parked = scenario.logs_parked
        self._dates = scenario.ages is not None
        self._stamps = not scenario.companions  # Only the outbox reads when an entity was written.
        self._stale, self._put_back = bool(scenario.budget.stale), scenario.budget.put_back
        self._chores = scenario.chores
        self._kept = scenario.chores.kept
        self._reopened = scenario.reopened

    def applied(self, write: Write, store: Store) -> Answer:  # noqa: PLR0911  # One case for each kind.
        """The answer if the write takes effect now, or fails on its condition."""
        match write:
            case SaveEntity() | SaveBatch():
                return self._save(write, store)
            case ReplaceCompanions():
                return self._replace(write, store)
            case DeleteCompanions():
                return self._delete(write, store)
            case Park():
                return self._park(write, store)
            case Unpark():
                return self._unpark(write, store)
            case WritePage():
                return self._write_page(write, store)
            case WriteDown():
                return self._write_down(write, store)
            case _:
                return self._append(write, store)

    def _append(self, write: Stage | DeleteStaged | DeletePages | KeepAnswers, store: Store) -> Answer:
        """Change the library's log. What changes no view needs no place in it."""
        number = entity_number(write.entity)
        library = store.libraries[number]
        changes: tuple[tuple[str, Any], ...]
        match write:
            case Stage():
                changes = tuple((f"staged:{document.tx}", document) for document in write.documents)
                if len(dict(changes)) < len(changes) or any(id in library.now for id, _ in changes):
                    return Answer(Conflict(self._token(library)), store, said=f"{described(write)}: conflict")
            case DeleteStaged():
                changes = tuple((f"staged:{tx}", None) for tx in write.transactions)
            case DeletePages():
                ids = ((f"page:{after}", etag) for after, etag in write.pages)
                changes = tuple((id, None) for id, etag in ids if id in library.now and library.now[id].etag == etag)
            case KeepAnswers():
                written = {f"request:{document.request}": document for document in write.documents}
                changes = tuple((id, self._kept(library.now.get(id), item)) for id, item in written.items())
        new = tuple(change for change in changes if library.now.get(change[0]) != change[1])
        if new:
            library = self._stores.library((*library.writes, *new))
            store = self._stores.with_library(store, number, library)
        reply = None if isinstance(write, DeleteStaged | DeletePages) else Written(self._token(library))
        back = next((id for id, written in new if written is not None and id in store.closed), None)
        back = None if self._reopened else back
        violation = None if back is None else f"no_garbage: {back} is there again, though its caller has closed it"
        witnessed = PAGES_GONE if new and isinstance(write, DeletePages) else None
        return Answer(reply, store, violation=violation, said=described(write), witnessed=witnessed)

    def _write_page(self, write: WritePage, store: Store) -> Answer:
        """Create a page, where none follows the same one. One that has expired may be gone, or not: it is in the way."""
        number = entity_number(write.entity)
        library = store.libraries[number]
        id = self._chores.page_name(write.page)
        there = library.now.get(id)
        said = described(write)
        if there is not None and self._chores.in_the_way(there.page, write.page):
            return Answer(OTHER_PAGE, store, said=f"{said}: another page is there", witnessed=IN_THE_WAY)
        if there is None or there.page != write.page:
            expires = store.now * int(TICK.total_seconds()) + write.seconds if self._dates else None
            stored = StoredPage(write.page, str(library.end + 1), expires)
            library = self._stores.library((*library.writes, (id, stored)))
            store = self._stores.with_library(store, number, library)
        return Answer(Written(self._token(library)), store, said=said, witnessed=CUT)

    def _write_down(self, write: WriteDown, store: Store) -> Answer:
        """A book is written. What no process can have written of numbers given out since does not matter any more."""
        book = book_in(store.books, write.id)
        after = self._stores.changed(store, books=with_book(store.books, book.wrote(write.written)))
        return Answer(Written(token_at(0)), after, said=described(write))

    def _token(self, library: Library) -> str:
        return token_at(library.end)

    def _park(self, write: Park, store: Store) -> Answer:
        key = write.message.message
        violation = None
        if key in self._judge.alone(store) and any(key == committed for committed, _ in store.committed):
            violation = f"parked_is_unprocessed: {key} is parked as never processed, but it was committed"
        parked = self._stores.changed(store, parked=store.parked | {key})
        token = token_at(0)
        if store.libraries:
            number = entity_number(write.entity)
            library = store.libraries[number]
            if self._logs_parked:
                content = (str(library.end + 1), write.message)
                library = self._stores.library((*library.writes, (f"parked:{key}", content)))
                parked = self._stores.with_library(parked, number, library)
            token = self._token(library)
        said = described(write)
        return Answer(Written(token), parked, violation=violation, said=said, witnessed="a message was parked")

    def _unpark(self, write: Unpark, store: Store) -> Answer:
        number = entity_number(write.entity)
        library = store.libraries[number]
        id = f"parked:{write.message}"
        if id not in library.now or write.etag not in (ANY, library.now[id][0]):
            return Answer(None, store, said=f"{described(write)}, which has changed")
        after = self._stores.with_library(store, number, self._stores.library((*library.writes, (id, None))))
        after = self._stores.changed(after, parked=store.parked - {write.message})
        return Answer(None, after, said=described(write))

    def _save(self, write: Commit, store: Store) -> Answer:
        number = entity_number(write.entity)
        entity = store.entities[number]
        if not _holds(write, entity):
            said = f"{described(write)}: conflict"
            return Answer(Conflict(self.entity_token(entity)), store, said=said, witnessed=OTHER)
        saved = self.entity_after(entity, write, store.now, keeps=self._keeps(store))
        committed, violation = self._judge.commit(write, entity, saved, store)
        entities = (*store.entities[:number], saved, *store.entities[number + 1 :])
        after = self._stores.changed(store, entities=entities, committed=committed)
        assert saved.truth.etag is not None  # noqa: S101
        reply = Saved(saved.truth.etag, self.entity_token(saved))
        return Answer(reply, after, violation=violation, said=described(write), witnessed=_seen(write, entity, saved))

    def entity_token(self, entity: Entity) -> str | None:
        return token_at(entity.newest)

    def _keeps(self, store: Store) -> bool:
        return self._stale or store.put_back < self._put_back

    def entity_after(self, entity: Entity, write: Commit, tick: int, *, keeps: bool) -> Entity:
        companions = dict(entity.now)
        created, replaced = _companions_of(write)
        etag = self._etag(entity, tick)
        companions.update(
            {id_of(write.entity, item): (item, etag) for item in (*created, *(item for item, _ in replaced))}
        )
        tick = tick if self._stamps else 0
        version = Version(write.document, str(entity.newest + 1), tick=tick, companions=_listed(companions))
        return self._with(entity, version, keeps=keeps)

    def _replace(self, write: ReplaceCompanions, store: Store) -> Answer:
        """Write over companions. A write without change keeps the ETag: a writer conditional on it would write the same."""
        entity = store.partition
        companions = dict(entity.now)
        for one, wanted in write.companions:
            id = id_of(write.entity, one)
            current = companions.get(id)
            if current is not None and wanted in (None, current[1]) and current[0] != one:
                companions[id] = (one, self._etag(entity, store.now))
        return self._with_companions(write, store, companions)

    def _delete(self, write: DeleteCompanions, store: Store) -> Answer:
        companions = dict(store.partition.now)
        for id, etag in write.companions:
            if id in companions and etag in (ANY, companions[id][1]):
                del companions[id]
        answer = self._with_companions(write, store, companions)
        return answer if answer.store is store else replace(answer, witnessed=DELETED)

    def _with_companions(self, write: Write, store: Store, companions: dict[str, tuple[Companion, str]]) -> Answer:
        entity = store.partition
        if companions == entity.now:
            return Answer(None, store, said=described(write))
        after = self._with(entity, replace(entity.truth, companions=_listed(companions)), keeps=self._stale)
        return Answer(None, self._stores.with_entity(store, 0, after), said=described(write))

    def _etag(self, entity: Entity, tick: int) -> str:
        return etag_at(entity.newest + 1, tick if self._dates else None)

    def _with(self, entity: Entity, version: Version, *, keeps: bool) -> Entity:
        if keeps:
            return self._stores.entity(entity.first, (*entity.versions, version))
        return self._stores.entity(entity.newest + 1, (version,))


def _holds(write: Commit, entity: Entity) -> bool:
    if write.etag not in (ANY, entity.truth.etag):
        return False
    created, replaced = _companions_of(write)
    ids = [id_of(write.entity, item) for item in created]
    if len(set(ids)) < len(ids) or any(id in entity.now for id in ids):
        return False
    etags = {id: etag for id, (_, etag) in entity.now.items()}
    return all(etag in (ANY, etags.get(id_of(write.entity, item))) for item, etag in replaced)


def _companions_of(write: Commit) -> tuple[tuple[Companion, ...], tuple[tuple[Companion, str], ...]]:
    return (write.create, write.replace) if isinstance(write, SaveBatch) else ((), ())


def _listed(companions: Mapping[str, tuple[Companion, str]]) -> Companions:
    return tuple((id, *item) for id, item in companions.items())


def _seen(write: Commit, before: Entity, after: Entity) -> str | None:
    failing = {reception.channel for reception in before.ledger.receptions if reception.failing}
    if any(reception.channel in failing and reception.failing is None for reception in after.ledger.receptions):
        return RESUMED
    _, replaced = _companions_of(write)
    return HELD if any(isinstance(item, NumberedMessage) and item.message for item, _ in replaced) else None
