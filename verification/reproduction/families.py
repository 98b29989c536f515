"""What is played differently where marks lie in pages, and where records are companions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from exactlyonce.drivers.overdue import place_of
from exactlyonce.effects.attempt import Again, Finished
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded, Publish
from exactlyonce.effects.library import FindPages, FindPagesAbove, FoundAbove, FoundPages, FoundStaged, HasPages
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import read_page
from exactlyonce.records.library import BOOKS, Book, read_book, read_parked, read_staged
from exactlyonce.records.outbox import number_of, transaction
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, book_id, from_library, page_id
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from verification.explorers.trace import Event
from verification.reproduction.correspondence import Correspondence, TornViewError, library_log, page_name
from verification.reproduction.judges import fallen, fallen_companions
from verification.reproduction.reality import (
    ENTITIES,
    Deeds,
    Documents,
    Place,
    Reality,
    companion_of,
    partition_text,
    taken_from,
)
from verification.world.answers import World
from verification.world.companions import ENTITY, HAS_WAITED, keys_of
from verification.world.outbox import content_of, keys_in
from verification.world.scenario import ANSWER, AT, NUDGE, TICK, Scenario, Start
from verification.world.store import Entity, Library, Store, StoredPage, Stores, entity_ref, ledger_of, position_of
from verification.world.workers import COMES_BACK, Workers

# Whether reality holds what the model holds: entities, companions, pages, books, kept, published and parked messages.


def books_in(documents: Mapping[Place, dict[str, Any]], ids: tuple[str, ...]) -> dict[str, Book]:
    places = {id: (partition_text(BOOKS), book_id(id)) for id in ids}
    return {id: read_book(from_library(documents[place])) for id, place in places.items() if place in documents}


def pays(books: Mapping[str, Book], tx: str) -> bool:
    """Whether books prove that the outputs of a transaction were sent."""
    book, number = number_of(tx)
    return book in books and books[book].pays(number)


def memory_differences(open: frozenset[str], store: Store, names: Correspondence) -> Iterator[str]:
    """Where processes hold other numbers open, or closed, than the model's."""
    for book in store.books:
        for number in book.now.open | book.now.paid:
            tx = transaction(book.id, number)
            if (names.transaction(tx) in open) is not (number in book.now.open):
                yield f"{tx}: its process holds it {'closed' if number in book.now.open else 'open'}"


def book_differences(documents: Documents, store: Store, names: Correspondence) -> Iterator[str]:
    """Where the books of reality prove another thing than the model's, of the transactions that something refers to."""
    for book in store.books:
        for number in book.numbers:
            tx = transaction(book.id, number)
            real = names.transaction(tx)
            there = books_in(documents[LIBRARY_CONTAINER], (number_of(real)[0],))
            if bool(there) is not bool(book.written):
                yield f"{tx}: its book is {'there' if there else 'not there'}"
            elif book.written and pays(there, real) is not (number in book.written[-1].paid):
                yield f"{tx}: the books say{' not' if number in book.written[-1].paid else ''} that it is paid"


def entity_document(documents: Documents, entity: int) -> Json | None:
    """The document of an entity, without what the service adds; None if it is absent."""
    id = entity_ref(entity).id
    found = documents[ENTITIES.container].get((partition_text(id), id))
    return None if found is None else taken_from(found)


def _of_kind(documents: Documents, entity: EntityRef, kind: str) -> Iterator[dict[str, Any]]:
    partition = partition_text(entity.key)
    found = (item for (key, _), item in documents[LIBRARY_CONTAINER].items() if key == partition)
    return (item for item in found if item["kind"] == kind)


def holding_differences(
    reality: Reality, documents: Documents, store: Store, names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    """Where reality holds something else than the model.

    Args:
        sweeps: whether the model leaves out staged messages that nothing refers to.
    """
    for entity, library in enumerate(store.libraries):
        truth = store.entities[entity].truth.document
        yield from names.document_differences(entity_document(documents, entity), truth, entity)
        yield from _page_differences(reality, documents, entity, library)
        yield from _staged_differences(documents, entity, library, names, sweeps=sweeps)
    yield from book_differences(documents, store, names)
    yield from outside_differences(reality, documents, store)


def outside_differences(reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
    """Where other messages lie parked, or other outputs arrived, than in the model."""
    parked, overdue = set[str](), set[str]()
    for entity in range(len(store.entities)):
        ref = entity_ref(entity)
        parked |= {read_parked(from_library(item)).message for item in _of_kind(documents, ref, "parked")}
        outputs = (read_parked(from_library(item)).envelope for item in _of_kind(documents, place_of(ref), "parked"))
        overdue |= {Envelope.read(item.text).data.value["message"] for item in outputs}
    if parked != store.parked:
        yield f"parked: {sorted(parked)} in place of {sorted(store.parked)}"
    if overdue != store.overdue:
        yield f"parked as too old to be sent: outputs of {sorted(overdue)} in place of {sorted(store.overdue)}"
    published = {content_of(output)[0] for output in reality.published}
    if published != store.published:
        yield f"published: outputs of {sorted(published)} in place of {sorted(store.published)}"


def _page_differences(reality: Reality, documents: Documents, entity: int, library: Library) -> Iterator[str]:
    stored = [item for item in _of_kind(documents, entity_ref(entity), "page") if not reality.is_over(item)]
    found = {read_page(from_library(item)): item["_ts"] + item["ttl"] for item in stored}
    pages = [item for item in library.now.values() if isinstance(item, StoredPage)]
    expected = {item.page: item.expires for item in pages if not reality.is_past(item.expires)}
    if found.keys() != expected.keys():
        yield f"entity {entity}: the pages {found.keys() - expected.keys()} in place of {expected.keys() - found.keys()}"
    for page, expires in expected.items():
        if expires is not None and page in found and not reality.is_at(expires, found[page]):
            yield f"entity {entity}: page {page.number} goes at {found[page]}"


def _staged_differences(
    documents: Documents, entity: int, library: Library, names: Correspondence, *, sweeps: bool
) -> Iterator[str]:
    found = {item["tx"]: item for item in _of_kind(documents, entity_ref(entity), "staged")}
    expected = {id.removeprefix("staged:"): content for id, content in library.now.items() if id.startswith("staged:")}
    for tx, content in expected.items():
        real = found.pop(names.transaction(tx), None)
        if real is None:
            yield f"entity {entity}: what {tx} keeps is gone"
        else:
            yield from names.differences(read_staged(from_library(real)), content, entity)
    named = ledger_of(entity_document(documents, entity)).transactions
    for tx in found:
        if not sweeps or tx in named:
            yield f"entity {entity}: there is what {tx} keeps, which the model does not know"


def companion_differences(reality: Reality, documents: Documents, store: Store, names: Correspondence) -> Iterator[str]:
    """Where reality holds something else than the model."""
    partition = store.partition
    yield from names.document_differences(entity_document(documents, 0), partition.truth.document, 0)
    place = partition_text(ENTITY.id)
    found = {id: item for (key, id), item in documents[ENTITIES.container].items() if key == place and KIND in item}
    for id, (companion, _) in partition.now.items():
        real = found.pop(id, None)
        if real is None:
            yield f"companions: {id} is gone"
        else:
            yield from names.differences(companion_of(real), companion, 0)
    yield from (f"companions: there is {id}, which the model does not know" for id in found)
    yield from outside_differences(reality, documents, store)


class Versioned(NamedTuple):
    """A document of which the model knows the version."""

    name: str
    container: str
    place: Place
    etag: str


class Family(ABC):
    """Plays scenarios of one kind."""

    def __init__(self, scenario: Scenario, names: Correspondence, keys: tuple[str, ...]) -> None:
        self.scenario = scenario
        self.names = names
        self._keys = keys
        self._workers = Workers(scenario)

    def start(self, event: Event, documents: Documents) -> Start:
        """The beginning of a task, with the names of reality in place of the model's."""
        assert event.start is not None  # noqa: S101
        return self._in_reality(event.start, documents)

    def step(self, start: Start) -> Step[Any]:
        """The production generator that does a task."""
        return self._workers.step(start)

    def following(self, start: Start, result: Any) -> Start | None:
        """The next task after a run: the same again, those deliveries that failed and come back, or what is left; else None."""
        match result:
            case Again():
                return start
            case Replayed(following=int(version)):
                return Start("replay", 0, candidates=(str(version), start.candidates[-1]))
            case (first, last) if start.task == ANSWER:
                return Start("replay", 0, candidates=(str(first), str(last)))
            case Finished():
                again = {key for key, error in result.failed if isinstance(error, COMES_BACK)}
                messages = tuple(number for number in start.messages if self._keys[number] in again)
                return Start("attempt", start.entity, messages) if messages else None
            case _:
                return None

    @abstractmethod
    def _in_reality(self, start: Start, documents: Documents) -> Start: ...

    @abstractmethod
    def time(self, start: Start, event: Event, store: Store) -> datetime | None:
        """The present of a process that is told the reply of a step, by the model; None if it stays as it was."""

    @abstractmethod
    def position(self, event: Event, entity: int, before: Store) -> int | None:
        """The position in the model's log that a read saw: the newest that shows the same; None for the newest of all.

        Raises:
            TornViewError: no view that the service can show has what it found.
        """

    @abstractmethod
    def versions(self, store: Store) -> Iterator[Versioned]:
        """What the model holds, as far as it knows the versions."""

    @abstractmethod
    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        """Where reality holds something else than the model."""

    @abstractmethod
    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        """The names of the properties that do not hold in reality."""


class LibraryRecords(Family):
    """Plays scenarios of the outbox: pages, books, kept messages and parked messages lie in the library's container."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario, Correspondence(), keys_in(scenario))

    def _in_reality(self, start: Start, documents: Documents) -> Start:
        if start.task == "clean":
            return replace(start, candidates=tuple(map(self.names.transaction, start.candidates)))
        if start.task == "clean pages":
            partition, pages = partition_text(entity_ref(start.entity).key), start.candidates[::2]
            etags = (documents[LIBRARY_CONTAINER][partition, page_id(int(page))]["_etag"] for page in pages)
            return replace(start, candidates=tuple(part for pair in zip(pages, etags, strict=True) for part in pair))
        return start

    def time(self, start: Start, event: Event, store: Store) -> datetime | None:
        # An attempt may be behind the store. Age at sending is by the store's time.
        behind = 0 if isinstance(event.effect, Publish) else start.behind
        return AT + max(store.now - behind, 0) * TICK

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        library, effect = before.libraries[entity], event.effect
        match event.reply:
            case Loaded():
                return position_of(event.reply.token)
            case FoundStaged(documents=documents):
                wanted = {f"staged:{tx}" for tx in effect.transactions}  # type: ignore[union-attr]
                found = {f"staged:{document.tx}" for document in documents}
                fits: Callable[[dict[str, Any]], bool] = lambda view: wanted & view.keys() == found  # noqa: E731
            case FoundPages() | FoundAbove() | bool():
                fits = lambda view: _shown(effect, _living(view, before.now)) == _found(event.reply)  # noqa: E731
            case _:
                return None
        return self._newest(event, library, entity, fits)

    def _newest(self, event: Event, library: Library, entity: int, fits: Callable[[dict[str, Any]], bool]) -> int:
        oldest = position_of(getattr(event.effect, "token", None))
        for position in range(library.end, oldest - 1, -1):
            if fits(library.view(position)) and not self.names.is_torn(library_log(entity), position):
                return position
        raise TornViewError(f"no view that the service can show has what {event}")

    def versions(self, store: Store) -> Iterator[Versioned]:
        for number, entity in enumerate(store.entities):
            ref = entity_ref(number)
            if entity.truth.etag is not None:
                yield Versioned(ref.id, ENTITIES.container, (partition_text(ref.id), ref.id), entity.truth.etag)
            for item in _living(store.libraries[number].now, store.now):
                place = (partition_text(ref.key), page_id(item.page.number))
                yield Versioned(page_name(number, item.page.number), LIBRARY_CONTAINER, place, item.etag)

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        sweeps = not self.scenario.budget.cleanings
        return holding_differences(reality, documents, store, self.names, sweeps=sweeps)

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        return fallen(reality, self.scenario, deeds)


def _living(view: dict[str, Any], now: int) -> tuple[StoredPage, ...]:
    """The pages of a view whose time is not over, at a tick: the service shows no others."""
    seconds = now * int(TICK.total_seconds())
    pages = (item for id, item in sorted(view.items()) if id.startswith("page:"))
    return tuple(page for page in pages if page.expires is None or seconds < page.expires)


def _shown(effect: Any, pages: tuple[StoredPage, ...]) -> object:
    match effect:
        case FindPages():
            return frozenset(effect.found(page.page for page in pages).pages)
        case FindPagesAbove():
            return frozenset((page.page, page.etag) for page in pages if page.page.number > effect.number)
        case HasPages():
            return bool(pages)
    raise TypeError(effect)


def _found(reply: FoundPages | FoundAbove | bool) -> object:
    return reply if isinstance(reply, bool) else frozenset(reply.pages)


class CompanionRecords(Family):
    """Plays scenarios of one partition."""

    def __init__(self, scenario: Scenario) -> None:
        names = Correspondence(outputs_name_tx=True, recurring=not scenario.apart)
        super().__init__(scenario, names, keys_of(scenario.messages))
        self._world = World(scenario)
        self._stores = Stores()

    def _in_reality(self, start: Start, documents: Documents) -> Start:
        if start.task != "clean":
            return start
        etags = {id: document["_etag"] for (_, id), document in documents[ENTITIES.container].items()}
        return replace(start, candidates=tuple(part for id in start.candidates[::2] for part in (id, etags[id])))

    def time(self, start: Start, event: Event, store: Store) -> datetime | None:
        # It stands for the version the attempt loaded, so that a later attempt is given another.
        del store
        if not isinstance(event.reply, Loaded):
            return None
        waited = self.scenario.ordered and start.task == NUDGE
        return (HAS_WAITED if waited else AT) + timedelta(seconds=position_of(event.reply.token))

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        del entity
        if isinstance(event.reply, Loaded):
            return position_of(event.reply.token)
        partition = before.partition
        oldest = max(partition.first, position_of(getattr(event.effect, "token", None)))
        for position in range(partition.newest, oldest - 1, -1):
            alone = self._alone(partition, position, before)
            if next(self._world.answers(event.effect, alone)).reply == event.reply:  # type: ignore[arg-type]
                return position
        raise TornViewError(f"no view of the model's log has what {event} found")

    def versions(self, store: Store) -> Iterator[Versioned]:
        partition = store.partition
        etags = {id: etag for id, (_, etag) in partition.now.items()}
        if partition.truth.etag is not None:
            etags[ENTITY.id] = partition.truth.etag
        place = partition_text(ENTITY.id)
        yield from (Versioned(id, ENTITIES.container, (place, id), etag) for id, etag in etags.items())

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        return companion_differences(reality, documents, store, self.names)

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        return fallen_companions(reality, self.scenario, deeds)

    def _alone(self, partition: Entity, position: int, store: Store) -> Store:
        """The store as if one version of the partition were the only one that can be read."""
        version = partition.versions[position - partition.first]
        return self._stores.with_entity(store, 0, self._stores.entity(position, (version,)))
