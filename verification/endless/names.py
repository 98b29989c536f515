"""Canonical names for the states of an endless stream.

Live messages have the names of their places, `m0`, …; retired ones are told apart in one list of marks only. Histories: `C` the
newest, `b0`, … those on which live messages were committed, `O` all others. ETags: `now`, `old`. Versions and numbers of pages
keep their order, and whether one follows the other at once. Positions in the library's log are without the writes that nobody
can notice. Times are relative to the store's clock, and what is older than everything that goes by age has one age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, permutations, product
from typing import Any, Final, NamedTuple

from exactlyonce.records.outbox import number_of, transaction
from exactlyonce.values.envelope import MILLISECOND, message_hash, milliseconds
from verification.endless.past import documents_of, kept_pages, observable, older_versions, present, without_debts
from verification.endless.renaming import Atom, names_of, renamed
from verification.explorers.reductions import State, tidied
from verification.world.books import book_in
from verification.world.mentions import Write
from verification.world.outbox_handler import key_of_number
from verification.world.scenario import AT, TICK, Scenario
from verification.world.store import Store, Stores, Version, ledger_of
from verification.world.tasks import Start
from verification.world.workers import Worker, Workers

NOW: Final = 6
"""The tick at which every state of a stream is."""
OLDEST: Final = 5
"""Age above which nothing grows older, in ticks: marks and pages go with four, by an attempt that may be one tick late."""
FIRST_VERSION: Final = 1_000
"""What the lowest version is called: no state has as many marks, or pages that matter."""
_TICK: Final = TICK // MILLISECOND
_FLOOR: Final = milliseconds(AT + (NOW - OLDEST) * TICK)


Kind = tuple[tuple[int, bool, bool], int]
_NUMBERS: Final = frozenset({"version", "opened", "page", "cut"})


class Named(NamedTuple):
    """The parts of a state, by canonical names.

    Attributes:
        moved: the place that each live message went to.
        store, workers, delayed: as in a state.
        rank: to choose among several.
    """

    moved: dict[int, int]
    store: Store
    workers: tuple[Worker, ...]
    delayed: tuple[Write, ...]
    rank: tuple[Any, ...]


class Transactions:
    """Names of books and of transactions, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._books: dict[str, str] = {}
        self._numbers: dict[str, dict[int, int]] = {}

    def book(self, id: str) -> str:
        """What to call a book."""
        return self._books.setdefault(id, f"b{len(self._books)}")

    def transaction(self, tx: str) -> str:
        """What to call a transaction."""
        book, number = number_of(tx)
        numbers = self._numbers.setdefault(book, {})
        return transaction(self.book(book), numbers.setdefault(number, len(numbers) + 1))


class Scope:
    """What to call names in one state; a `Rename` of `renaming`.

    Args:
        images: names of messages, histories, the newest ETag, versions and numbers of pages.
        places: for each position of the library's log the one that takes its place.
        ticks: by which all times move back; None where no clock moves.
        moved: the place that each live message goes to.
    """

    def __init__(self, images: dict[Atom, Any], places: list[int], ticks: int | None, moved: dict[int, int]) -> None:
        self.images, self.places, self.ticks, self.moved = images, places, ticks, moved
        self.transactions = Transactions()

    def __call__(self, atom: Atom) -> Any:  # noqa: PLR0911  # One case for each sort.
        """What to call a name."""
        sort, name = atom
        match sort:
            case "tx":
                return self.transactions.transaction(name)
            case "book":
                return self.transactions.book(name)
            case "place":
                return self.places[name]
            case "time":
                return name if self.ticks is None or name < 0 else max(name - self.ticks * _TICK, _FLOOR)
            case "expiry":
                return max(name - (self.ticks or 0) * _TICK // 1000, NOW * _TICK // 1000)
            case "history":
                return self._history(name)
            case "etag":
                return self.images.get(atom, "old")
            case "hash":
                return self.images.get(atom)
            case "cut from":
                return self.images.get(("version", name), 0)
            case _:
                return self.images[atom]

    def _history(self, name: str) -> str:
        found: str | None = self.images.get(("history", name))
        if found is not None:
            return found
        before, _, message = name.rpartition(">")
        newest = self.images.get(("newest", before)) if name else None
        key = self.images.get(("key", f"web/{message}"))
        return "O" if newest is None or key is None else f"{newest}>{key.removeprefix('web/')}"


class Naming:
    """Names the states of one scenario.

    Args:
        scenario: of one message a commit, with a place for each live message of each age.
        stores, workers: where these are interned.
        ages: how many ages a message has.
    """

    def __init__(self, scenario: Scenario, stores: Stores, workers: Workers, ages: int) -> None:
        self._scenario = scenario
        self._stores = stores
        self._workers = self._named_by = workers
        slots, untimed = len(scenario.copies) // ages, scenario.ages.untimed if scenario.ages else ()
        self._ages = [number // slots for number in range(len(scenario.copies))]
        self.sorts = [
            (copies, number in untimed, bool(scenario.since) and scenario.since[number % slots] is None)
            for number, copies in enumerate(scenario.copies)
        ]
        self._canonical: dict[Any, list[Named]] = {}
        self._ranks: dict[Any, int] = {}
        self._present: dict[tuple[Worker, frozenset[str]], Worker] = {}
        self._names: dict[Worker, tuple[Atom, ...]] = {}
        self._renamed: dict[Any, Worker] = {}

    def canonical(self, state: State) -> State:
        """The state by its canonical name: of those that exchanging messages makes of it, the first in some order."""
        store, queue, workers, delayed, left = state
        live = tuple(number for number, copies in enumerate(queue) if copies >= 0)
        key = (store, live, workers, delayed)
        found = self._canonical.get(key)
        if found is None:
            found = self._canonical[key] = list(self.named(store, live, workers, delayed))
        placed, _, named = min(((self._placed(queue, item.moved), item.rank, item) for item in found), key=_rank_of)
        return named.store, placed, named.workers, named.delayed, left

    def _placed(self, queue: tuple[int, ...], moved: dict[int, int]) -> tuple[int, ...]:
        placed = [-1] * len(self.sorts)
        for number, place in moved.items():
            placed[place] = queue[number]
        return tuple(placed)

    def kind_of(self, number: int, ticks: int = 0) -> Kind:
        """What messages have in common that may be exchanged once time has passed: their sort, and their age."""
        return self.sorts[number], min(self._ages[number] + ticks, self._ages[-1])

    def places_of(self, kind: Kind) -> list[int]:
        """The places for messages of a kind."""
        return [place for place in range(len(self.sorts)) if self.kind_of(place) == kind]

    def moves_of(self, live: tuple[int, ...], ticks: int) -> Iterator[dict[int, int]]:
        """Every way to move live messages to the first places of their kind."""
        kinds: dict[Kind, list[int]] = {}
        for number in live:
            kinds.setdefault(self.kind_of(number, ticks), []).append(number)
        ways = (
            [dict(zip(order, self.places_of(kind), strict=False)) for order in permutations(numbers)]
            for kind, numbers in kinds.items()
        )
        for way in product(*ways):
            yield {number: place for part in way for number, place in part.items()}

    def named(
        self, store: Store, live: tuple[int, ...], workers: tuple[Worker, ...], delayed: tuple[Write, ...]
    ) -> Iterator[Named]:
        """The parts of a state by every canonical name."""
        hashes = {message_hash(key_of_number(number)): number for number in live}
        store, workers, delayed, kept = self._without_past(store, hashes, workers, delayed)
        atoms = self._numbers_in(store, workers, delayed, kept)
        places = list(accumulate(kept, initial=0))
        ticks = store.now - NOW if self._scenario.ages else 0
        for moved in self.moves_of(live, ticks):
            images = _images(store, moved, atoms)
            scope = Scope(images, places, ticks if self._scenario.ages else None, moved)
            yield self._named(store, workers, delayed, kept, scope)

    def _without_past(
        self, store: Store, hashes: dict[str, int], workers: tuple[Worker, ...], delayed: tuple[Write, ...]
    ) -> tuple[Store, tuple[Worker, ...], tuple[Write, ...], list[bool]]:
        """Store, workers and delayed writes without what nobody can notice; and which writes of the library's log stay."""
        live = frozenset(hashes)
        entity, library = store.entities[0], store.libraries[0]
        truth = entity.truth
        if truth.document is not None:
            truth = Version(without_debts(truth.document, live), truth.etag)
        owing = frozenset(item for item, number in hashes.items() if key_of_number(number) not in store.published)
        versions = (*older_versions(entity, library, owing, live), truth)
        store = self._stores.with_entity(store, 0, self._stores.entity(0, versions))
        workers = tuple([self._forgetting(worker, live) for worker in workers])
        documents = (
            *(version.document for version in versions if version.document is not None),
            *documents_of(workers, delayed),
        )
        cuts, cut = frozenset(ledger_of(document).cut for document in documents), store.entities[0].ledger.cut
        delayed = observable(delayed, library, cut, cuts, live)
        store, workers = tidied(self._stores, self._workers, store, workers, delayed)
        return store, workers, delayed, kept_pages(library, cut, cuts, live)

    def _forgetting(self, worker: Worker, live: frozenset[str]) -> Worker:
        found = self._present.get((worker, live))
        if found is None:
            situation, found = worker.situation, worker
            if situation is not None and (replies := present(situation.replies, live)) != situation.replies:
                found = self._workers.standing(worker, situation.start, replies, worker.held, worker.book)
            self._present[worker, live] = found
        return found

    def _numbers_in(
        self, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...], kept: list[bool]
    ) -> frozenset[Atom]:
        """The versions and numbers of pages in a state."""
        parts: list[Iterable[Atom]] = [self._names_in(worker) for worker in workers]
        parts += [names_of(version.document) for version in store.entities[0].versions if version.document is not None]
        parts += [names_of(write) for write in delayed]
        parts += [names_of(page) for (_, page), keep in zip(store.libraries[0].writes, kept, strict=True) if keep]
        parts += [names_of(book) for book in store.books]
        return frozenset(atom for part in parts for atom in part if atom[0] in _NUMBERS)

    def _names_in(self, worker: Worker) -> tuple[Atom, ...]:
        found = self._names.get(worker)
        if found is None:
            found = () if worker.situation is None else names_of(worker.situation.replies)
            self._names[worker] = found
        return found

    def _named(
        self, store: Store, workers: tuple[Worker, ...], delayed: tuple[Write, ...], kept: list[bool], scope: Scope
    ) -> Named:
        workers = self._workers_named(store, workers, scope)
        entity, library = store.entities[0], store.libraries[0]
        *older, truth = [_version_named(version, scope) for version in entity.versions]
        truth = truth if truth.document is None else replace(truth, etag="now")
        older.sort(key=_text)
        delayed = tuple([renamed(write, scope) for write in delayed])
        writes = [renamed(page, scope) for (_, page), keep in zip(library.writes, kept, strict=True) if keep]
        keys = {key_of_number(number): key_of_number(place) for number, place in scope.moved.items()}
        committed = [(keys[key], scope(("history", history))) for key, history in store.committed if key in keys]
        books = sorted((renamed(book, scope) for book in store.books), key=lambda book: book.id)
        store = self._stores.store(
            (self._stores.entity(0, (*older, truth)),),
            (self._stores.library(tuple((f"page:{item.page.number}", item) for item in writes)),),
            committed=frozenset(committed),
            published=frozenset(keys[key] for key in store.published if key in keys),
            overdue=frozenset(keys[key] for key in store.overdue if key in keys),
            books=tuple(books),
            now=store.now - (scope.ticks or 0),
        )
        ranks = self._ranks
        rank = (
            tuple([worker.order for worker in workers]),
            ranks.setdefault(store, len(ranks)),
            tuple([ranks.setdefault(write, len(ranks)) for write in delayed]),
        )
        return Named(scope.moved, store, workers, delayed, rank)

    def _workers_named(self, store: Store, workers: tuple[Worker, ...], scope: Scope) -> tuple[Worker, ...]:
        """The workers in the order of what they and their books would be called if alone."""
        ordered = sorted(workers, key=lambda worker: self._alone(store, worker, scope)) if len(workers) > 1 else workers
        _begin(store, (worker.book for worker in ordered), scope)
        return tuple([self._worker_named(worker, scope) for worker in ordered])

    def _alone(self, store: Store, worker: Worker, scope: Scope) -> tuple[int, int]:
        alone = Scope(scope.images, scope.places, scope.ticks, scope.moved)
        _begin(store, (worker.book,), alone)
        named = self._worker_named(worker, alone).order
        book = renamed(book_in(store.books, worker.book or ""), alone)
        return named, self._ranks.setdefault(book, len(self._ranks))

    def _worker_named(self, worker: Worker, scope: Scope) -> Worker:
        book = None if worker.book is None else scope.transactions.book(worker.book)
        names = tuple([scope(name) for name in self._names_in(worker)])
        held = tuple([scope.moved[number] for number in worker.held])
        key = (worker, names, held, book)
        found = self._renamed.get(key)
        if found is None:
            found = self._renamed[key] = self._worker_made(worker, scope, held, book)
        return found

    def _worker_made(self, worker: Worker, scope: Scope, held: tuple[int, ...], book: str | None) -> Worker:
        situation = worker.situation
        if situation is None:
            return self._named_by.idle(worker.memories, book)
        start: Start = replace(
            situation.start, messages=tuple(scope.moved[message] for message in situation.start.messages)
        )
        replies = renamed(situation.replies, scope)
        return self._named_by.standing(worker, start, replies, held, book)


def _begin(store: Store, books: Iterable[str | None], scope: Scope) -> None:
    """Name these books first, and then what the entity owes."""
    for book in books:
        if book is not None:
            scope.transactions.book(book)
    for entry in store.entities[0].ledger.outbox:
        scope.transactions.transaction(entry.tx)


def _images(store: Store, moved: dict[int, int], numbers: frozenset[Atom]) -> dict[Atom, Any]:
    """What names mean all over a state."""
    entity = store.entities[0]
    images = _in_order(numbers, "cut", "page", 1)
    images.update(_in_order(numbers, "version", "opened", FIRST_VERSION if entity.ledger.version else 1))
    keys = {key_of_number(number): place for number, place in moved.items()}
    for key, place in keys.items():
        images["key", key] = key_of_number(place)
        images["hash", message_hash(key)] = message_hash(key_of_number(place))
    for key, history in store.committed:
        if key in keys:
            images["history", history] = f"b{keys[key]}"
    if entity.history:
        images["history", entity.history] = "C"
    images["history", ""] = ""
    images["newest", entity.history] = images["history", entity.history]  # On which a save under way may build.
    if entity.truth.etag is not None:
        images["etag", entity.truth.etag] = "now"
    return images


def _in_order(atoms: frozenset[Atom], ledgers: str, others: str, first: int) -> dict[Atom, Any]:
    """New numbers in the same order. Whether one follows at once after that of a ledger stays, since an attempt will use it.

    Args:
        atoms: names.
        ledgers, others: sorts of the names that are meant: those of ledgers, and what is compared with them.
        first: the lowest new number but 0, which stays.
    """
    of_ledgers = {number for sort, number in atoms if sort == ledgers}
    images: dict[Atom, Any] = {(ledgers, 0): 0, (others, 0): 0}
    before, named = 0, first - 1
    for number in sorted({number for sort, number in atoms if sort in (ledgers, others) and number}):
        named += 2 if before in of_ledgers and number > before + 1 else 1
        images[others, number] = named
        if number in of_ledgers:
            images[ledgers, number] = named
        before = number
    return images


def _version_named(version: Version, scope: Scope) -> Version:
    return version if version.document is None else Version(renamed(version.document, scope), "old")


def _text(version: Version) -> str:
    return "" if version.document is None else version.document.text


def _rank_of(placed: tuple[Any, Any, Named]) -> Any:
    return placed[:2]
