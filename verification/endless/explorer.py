"""The endless stream: messages keep coming, faults never run out, and yet the states are finitely many.

A finished message that will not come back is retired, and a new one takes its place. What distinguishes retired messages only
is forgotten, and the rest gets canonical names (`names`). Why no behaviour is lost by that is argued in
docs/model-checking.md, and tested by comparing with bounded runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import accumulate, permutations, product
from typing import Any, Final, NamedTuple

from exactlyonce.drivers.book import Shelf
from exactlyonce.effects.effect import BEHIND, Begun, Opened
from exactlyonce.effects.entity import Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import FindPaid, FoundPages, WritePage
from exactlyonce.protocols.steps.load import with_ledger
from exactlyonce.records.ledger import Ledger, Page, by_hash
from exactlyonce.records.outbox import number_of, transaction
from exactlyonce.values.envelope import MILLISECOND, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json
from verification.endless.renaming import Atom, names_of, renamed
from verification.explorers.ages import AgedExplorer
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move, State, tidied
from verification.world.answers import STALE, World
from verification.world.books import book_in
from verification.world.outbox import key_of_number
from verification.world.scenario import AT, PLACES, TICK, Scenario, Start
from verification.world.store import NOW as WRITTEN
from verification.world.store import Entity, Library, Store, StoredPage, Stores, Version, ledger_of, transactions_of
from verification.world.workers import Worker, Workers
from verification.world.writes import Answer, Commit, Write, Writes

# Canonical names for the states of an endless stream.
#
# Live messages have the names of their places, `m0`, …; retired ones are told apart in one list of marks only. Histories: `C`
# the newest, `b0`, … those on which live messages were committed, `O` all others. ETags: `now`, `old`. Versions and numbers
# of pages keep their order, and whether one follows the other at once. Positions in the library's log are without the writes
# that nobody can notice. Times are relative to the store's clock, and what is older than everything that goes by age has one
# age.


Hashes = frozenset[str]
"""Of live messages."""


@cache
def without_debts(document: Json, live: Hashes) -> Json:
    """A document that owes for live messages only. What retired ones owed was published before they were acknowledged."""
    ledger = ledger_of(document)
    outbox = tuple(entry for entry in ledger.outbox if entry.cause in live)
    return document if outbox == ledger.outbox else with_ledger(document, replace(ledger, outbox=outbox))


def present(replies: tuple[Any, ...], live: Hashes) -> tuple[Any, ...]:
    """The replies to a run, as if what it loaded owed for live messages only, and without pages that show it nothing."""
    known: frozenset[str] = frozenset()
    cut = 0
    found: list[Any] = []
    for reply in replies:
        match reply:
            case Loaded(document=Json() as document):
                document = without_debts(document, live)
                known |= transactions_of(document)
                cut = ledger_of(document).cut
                found.append(replace(reply, document=document))
            case FoundPages():
                found.append(
                    FoundPages(tuple(page for page in reply.pages if _matters(page, cut - 1, frozenset(), live)))
                )
            case frozenset():
                found.append(reply & known)
            case _:
                found.append(reply)
    return tuple(found)


def documents_of(workers: Iterable[Worker], delayed: Iterable[Write]) -> Iterator[Json]:
    """The entity's documents that workers have loaded, and those that may still be saved."""
    for worker in workers:
        for reply in () if worker.situation is None else worker.situation.replies:
            if isinstance(reply, Loaded) and reply.document is not None:
                yield reply.document
    yield from (write.document for write in delayed if isinstance(write, SaveEntity))


def kept_pages(library: Library, cut: int, cuts: frozenset[int], live: Hashes) -> list[bool]:
    """For each write of the library's log whether an attempt can notice it.

    Args:
        cut: number of the newest page, by the newest ledger.
        cuts: the same of all ledgers from which an attempt may go on.
    """
    return [isinstance(item, StoredPage) and _matters(item.page, cut, cuts, live) for _, item in library.writes]


def _matters(page: Page, cut: int, cuts: frozenset[int], live: Hashes) -> bool:
    return page.number > cut or page.number in cuts or not live.isdisjoint(by_hash(page.marks))


def observable(
    delayed: tuple[Write, ...], library: Library, cut: int, cuts: frozenset[int], live: Hashes
) -> tuple[Write, ...]:
    """Delayed writes that change something: not those of pages that are there, or that nobody would notice.

    What they save owes for live messages only.
    """
    there = {item.page for item in library.now.values() if isinstance(item, StoredPage)}
    kept: list[Write] = []
    for write in delayed:
        if isinstance(write, SaveEntity):
            kept.append(replace(write, document=without_debts(write.document, live)))
        elif not isinstance(write, WritePage) or (write.page not in there and _matters(write.page, cut, cuts, live)):
            kept.append(write)
    return tuple(kept)


def older_versions(entity: Entity, library: Library, owing: Hashes, live: Hashes) -> tuple[Version, ...]:
    """The older versions on which an attempt can do what it can do on no other one.

    Its commit fails, as it does where the entity is found absent. Its other observable acts: it publishes what live messages
    owe, and acknowledges a live message that it finds. So a version is left out if the newest one owes, and knows, as much.

    Args:
        owing: hashes of the live messages whose outputs have not arrived.
    """
    newest = _knows(entity.ledger, library, live), _causes(entity.ledger)
    lasting = []
    for version in entity.versions[:-1]:
        ledger = ledger_of(version.document)
        more = not _knows(ledger, library, live) <= newest[0] or not owing & _causes(ledger) <= newest[1]
        if version.document is None or more:
            lasting.append(version)
    return tuple(lasting)


def _knows(ledger: Ledger, library: Library, live: Hashes) -> Hashes:
    pages = (item.page for item in library.now.values() if isinstance(item, StoredPage))
    marks = (by_hash(ledger.marks), *(by_hash(page.marks) for page in pages if page.number <= ledger.cut))
    return live.intersection(_causes(ledger).union(*marks))


def _causes(ledger: Ledger) -> Hashes:
    return frozenset(entry.cause for entry in ledger.outbox)


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
    """The parts of a state, by canonical names."""

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
        return self._books.setdefault(id, f"b{len(self._books)}")

    def transaction(self, tx: str) -> str:
        book, number = number_of(tx)
        numbers = self._numbers.setdefault(book, {})
        return transaction(self.book(book), numbers.setdefault(number, len(numbers) + 1))


class Scope:
    """What to call names in one state; a `Rename` of `renaming`.

    Args:
        images: names of messages, histories, the newest ETag, versions and numbers of pages.
        places: for each position of the library's log the one that takes its place.
        ticks: by which all times move back; None where no clock moves.
    """

    def __init__(self, images: dict[Atom, Any], places: list[int], ticks: int | None, moved: dict[int, int]) -> None:
        self.images, self.places, self.ticks, self.moved = images, places, ticks, moved
        self.transactions = Transactions()

    def __call__(self, atom: Atom) -> Any:  # noqa: PLR0911  # One case for each sort.
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
    for book in books:
        if book is not None:
            scope.transactions.book(book)
    for entry in store.entities[0].ledger.outbox:
        scope.transactions.transaction(entry.tx)


def _images(store: Store, moved: dict[int, int], numbers: frozenset[Atom]) -> dict[Atom, Any]:
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


FREE: Final = -1
"""What the queues say of a place in the stream where no message is."""


class Curious(Shelf):
    """One that reads the books of all that owe. What ships does so only where three owe, retired messages included."""

    def compare(self, effect: FindPaid, now: datetime) -> tuple[str, ...]:
        return super().compare(replace(effect, needed=effect.transactions), now)


class EndlessExplorer(Explorer):
    """Explores a stream: `copies` of the scenario says how many copies of each message there may be at a time."""

    shelf: type[Shelf] = Curious

    def __init__(self, scenario: Scenario) -> None:
        _require_possible(scenario)
        scenario = replace(scenario, chores=replace(scenario.chores, shelf=self.shelf))
        # A worker's name is made of its replies, so situations that differ by them stay apart.
        super().__init__(scenario, world=EndlessWorld(scenario), workers=Workers(scenario, merge=False))
        self.naming = self._naming()

    def _naming(self) -> Naming:
        return Naming(self.scenario, self.world.stores, self.workers, OLDEST + 1 if self.scenario.ages else 1)

    def start(self) -> State:
        store, queue, *rest = super().start()
        store = self.world.stores.changed(store, now=NOW if self.scenario.ages else 0)
        return (store, (FREE,) * len(queue), *rest)  # type: ignore[return-value]

    def moves(self, state: State) -> Iterator[Move]:
        for move in super().moves(state):
            yield move._replace(state=self.naming.canonical(move.state))

    def is_good_end(self, state: State) -> bool:
        """Every message that came is acknowledged, and nobody is at work."""
        _, queue, workers, _, _ = state
        return max(queue) <= 0 and all(worker.situation is None for worker in workers)

    def _happenings(self, state: State) -> Iterator[Move]:
        """A message comes, comes again, or will not come again."""
        yield from super()._happenings(state)
        store, queue, workers, delayed, left = state
        for number in self._free(queue, store.now):
            yield _happening(state, number, 1, f"{key_of_number(number)} arrives")
        for number, copies in enumerate(queue):
            if copies < 0:
                continue
            key = key_of_number(number)
            held = sum(worker.held.count(number) for worker in workers)
            if copies + held < self.scenario.copies[number]:
                yield _happening(state, number, copies + 1, f"A copy of {key} arrives")
            hash = ("hash", message_hash(key))
            saves = (write for write in delayed if isinstance(write, SaveEntity))
            if not copies and not held and not any(hash in names_of(write) for write in saves):
                retired = (store, (*queue[:number], FREE, *queue[number + 1 :]), workers, delayed, left)
                yield Move(retired, False, None, -1, None, f"No copy of {key} will arrive any more")

    def _free(self, queue: tuple[int, ...], _now: int) -> Iterator[int]:
        sorts = self.naming.sorts
        for sort in dict.fromkeys(sorts):
            places = self.naming.places_of((sort, 0))
            live = sum(copies != FREE and sorts[number] == sort for number, copies in enumerate(queue))
            if live < len(places):
                yield next(place for place in places if queue[place] == FREE)


class AgedStream(EndlessExplorer, AgedExplorer):
    """Explores a stream with a clock, which never stops. Each place becomes one for every age."""

    def __init__(self, scenario: Scenario) -> None:
        assert scenario.ages is not None  # noqa: S101
        copies = scenario.copies * (OLDEST + 1)
        slots = len(scenario.copies)
        times = tuple(NOW - number // slots for number in range(len(copies)))
        untimed = frozenset(number for number in range(len(copies)) if number % slots in scenario.ages.untimed)
        ages = replace(scenario.ages, times=times, last=NOW + 1, untimed=untimed)
        super().__init__(replace(scenario, copies=copies, ages=ages))

    def _waits_for_ends(self, state: State) -> bool:
        """Whether somebody is at work whose present is behind by a tick, or would be unless attempts may be late."""
        late = AT + (state[0].now - (not self._ages.prompt)) * TICK
        return any(_begun_at(worker) <= late for worker in state[2])


def _begun_at(worker: Worker) -> datetime:
    """The present of an attempt; long after all if there is none."""
    replies = () if worker.situation is None else worker.situation.replies
    return next((reply.at for reply in replies if isinstance(reply, Begun | Opened)), AT + 1_000 * TICK)


class EndlessWorld(World):
    """A world in which only the newest version of the entity has an ETag of its own."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.writes = EndlessWrites(self.stores, scenario, self.judge)

    def _load(self, _effect: LoadEntity, store: Store) -> Iterator[Answer]:
        entity = store.entities[0]
        for version in reversed(entity.versions):
            loaded = Loaded(version.document, version.etag, WRITTEN if version.document else 0, None)
            if version is entity.truth:
                yield Answer(loaded, store, said="loads the newest version")
            else:
                yield Answer(loaded, store, STALE, said="loads an older version", witnessed="stale load")
        if self._stale:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind", witnessed="a replica was behind")
        yield self._unread(store)


class EndlessWrites(Writes):
    """Writes of a stream. The arguments are those of `Writes`."""

    def entity_token(self, _entity: Entity) -> str | None:
        """None: processes of a stream remember no tokens, so every view is allowed to each of them."""
        return None

    def entity_after(self, entity: Entity, write: Commit, _tick: int, *, keeps: bool) -> Entity:
        """The entity with one more version, whose ETag differs from those before until it gets its canonical name."""
        version = Version(write.document, f"{entity.truth.etag}+")
        return self._stores.entity(0, (*(entity.versions if keeps else ()), version))


def stream_of(scenario: Scenario) -> EndlessExplorer:
    return EndlessExplorer(scenario) if scenario.ages is None else AgedStream(scenario)


def _happening(state: State, number: int, copies: int, said: str) -> Move:
    store, queue, workers, delayed, left = state
    after = (store, (*queue[:number], copies, *queue[number + 1 :]), workers, delayed, left)
    return Move(after, True, None, -1, None, said)


def _require_possible(scenario: Scenario) -> None:
    """Raise `ValueError` for a scenario whose states have no canonical names."""
    possible = {"crashes", "unknown", "repeated", "stale"}
    chores = any(amount for amount, name in zip(scenario.budget.amounts, PLACES, strict=True) if name not in possible)
    more = scenario.tokens or scenario.deletes or scenario.targets or scenario.remembering
    kinds = scenario.requests or scenario.replies or scenario.keeps or scenario.numbers or any(scenario.since)
    changes = scenario.ages and (scenario.ages.before or scenario.ages.behind or scenario.ages.arriving)
    if scenario.group > 1 or scenario.room > 1 or chores or more or kinds or changes:
        raise ValueError(
            f"Scenario {scenario.name!r}: a stream has one message a commit, room for one mark, one entity, and one retention; "
            "no tokens, memories, deletion, requests, calls, kept messages, numbers, times or chores."
        )
