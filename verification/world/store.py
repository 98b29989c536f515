"""The model's store: partitions with logs that reads may lag behind.

The outbox uses two partitions for each entity: one holds the entity, the other one is the library's. The other protocols use
one, in which entity and companions change together. All parts are immutable and interned, so that comparing worlds compares
identities. Tokens and ETags are positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.records.ledger import EntityView, Ledger, Page, read_entity
from exactlyonce.records.library import ParkedMessage, RequestDocument, StagedOutputs
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from verification.world.books import BookState

_TOKEN: Final = "0:-1#"  # noqa: S105
NOW: Final = 1_000_000
"""The server's time of writing when the clock of the model begins, in seconds."""
Companions = tuple[tuple[str, Companion, str], ...]
"""Id, companion and ETag of each, in the order in which they came."""


def token_at(position: int) -> str:
    return f"{_TOKEN}{position}"


def position_of(token: str | None) -> int:
    """The position a token stands for; 0, the empty log, without one."""
    return int(token.removeprefix(_TOKEN)) if token else 0


def entity_ref(number: int) -> EntityRef:
    return EntityRef("account", (f"e{number}",), f"e{number}")


def entity_number(entity: EntityRef) -> int:
    return int(entity.id.removeprefix("e"))


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an entity, the absent one included.

    Attributes:
        document: as saved; None if absent.
        etag: None if absent.
        tick: when it was saved, where a clock moves.
    """

    document: Json | None
    etag: str | None
    tick: int = field(default=0, kw_only=True)
    companions: Companions = field(default=(), kw_only=True)


ABSENT: Final = Version(None, None)


class Entity:
    """Every version of an entity's partition that a read may still return, oldest first; the last one is the truth."""

    def __init__(self, first: int, versions: tuple[Version, ...]) -> None:
        self.first = first
        self.versions = versions
        self.truth = versions[-1]
        self._companions: dict[int, Mapping[str, tuple[Companion, str]]] = {}

    @property
    def newest(self) -> int:
        """Position of the newest version; 0 if nothing was ever saved."""
        return self.first + len(self.versions) - 1

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the truth; an empty one if it has none."""
        return ledger_of(self.truth.document)

    @cached_property
    def history(self) -> str:
        """What the next handler finds: which messages were handled, one after the other."""
        return "" if self.ledger.deleted else history_of(self.truth.document)

    @property
    def view(self) -> EntityView:
        """The newest document taken apart."""
        return view_of(self.truth.document)

    @cached_property
    def transactions(self) -> frozenset[str]:
        """Transactions that any version names that may be read."""
        companions = (item for version in self.versions for _, item, _ in version.companions)
        named = (companion.tx for companion in companions if not isinstance(companion, NumberedMessage))
        return frozenset(named).union(*(transactions_of(version.document) for version in self.versions))

    def companions(self, position: int) -> Mapping[str, tuple[Companion, str]]:
        found = self._companions.get(position)
        if found is None:
            companions = self.versions[position - self.first].companions
            found = self._companions[position] = MappingProxyType({id: (item, etag) for id, item, etag in companions})
        return found

    @property
    def now(self) -> Mapping[str, tuple[Companion, str]]:
        return self.companions(self.newest)


Parked = tuple[str, ParkedMessage]
"""A parked document with its ETag."""


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page in the library's log.

    Attributes:
        expires: seconds from the beginning of the clock after which it may be gone; None where no clock moves.
    """

    page: Page
    etag: str
    expires: int | None = None


Content = StagedOutputs | Parked | StoredPage | RequestDocument | str
Writes = tuple[tuple[str, Content | None], ...]


class Library:
    """The accepted writes of a partition of the library: (id, content, or None for a delete), in order."""

    def __init__(self, writes: Writes) -> None:
        self.writes = writes
        self.end = len(writes)
        self.staged = frozenset(id.removeprefix("staged:") for id, _ in writes if id.startswith("staged:"))
        self._views: dict[int, dict[str, Any]] = {}

    def view(self, position: int) -> dict[str, Any]:
        found = self._views.get(position)
        if found is None:
            written = dict(self.writes[:position])
            found = self._views[position] = {id: content for id, content in written.items() if content is not None}
        return found

    @property
    def now(self) -> dict[str, Any]:
        return self.view(self.end)


def is_removed(entity: Entity, library: Library) -> bool:
    """Whether pages show that an entity was processed, and nothing else does."""
    return entity.ledger.version == 0 and any(id.startswith("page:") for id in library.now)


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Everything that survives a crash but the queues. Interned: compare with `is`.

    Attributes:
        entities, libraries: by the number of the entity; no libraries where records are companions.
        committed: key of each message ever committed, and the history it was handled on; or, where records are companions, what
            its output says.
        published: keys of messages whose outputs arrived.
        requeued: keys of messages that were parked and have been sent again.
        now: the store's time, in ticks; it stands still where a scenario has no clock.
        overdue: keys of messages whose outputs were parked, since they were too old to be published.
        aside: keys of messages that were put aside, which says nothing of whether they were processed.
        copied: keys of messages of which there have been several copies at a time, where somebody asks.
        books: what processes know of their transactions and of those of others, and what they wrote of that.
        undone: keys of the messages whose commits were undone when an entity was put back.
    """

    entities: tuple[Entity, ...]
    libraries: tuple[Library, ...]
    committed: frozenset[tuple[str, str]] = frozenset()
    published: frozenset[str] = frozenset()
    parked: frozenset[str] = frozenset()
    requeued: frozenset[str] = frozenset()
    now: int = 0
    overdue: frozenset[str] = frozenset()
    aside: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    books: tuple[BookState, ...] = ()
    undone: frozenset[str] = frozenset()
    put_back: int = 0
    emptied: int = 0

    @property
    def partition(self) -> Entity:
        """The partition of the only entity."""
        return self.entities[0]


class Stores:
    """One object for each distinct part, and for each distinct store."""

    def __init__(self) -> None:
        self._entities: dict[Any, Entity] = {}
        self._libraries: dict[Any, Library] = {}
        self._stores: dict[Any, Store] = {}

    def entity(self, first: int, versions: tuple[Version, ...]) -> Entity:
        found = self._entities.get((first, versions))
        if found is None:
            found = self._entities[first, versions] = Entity(first, versions)
        return found

    def library(self, writes: Writes) -> Library:
        found = self._libraries.get(writes)
        if found is None:
            found = self._libraries[writes] = Library(writes)
        return found

    def store(self, entities: tuple[Entity, ...], libraries: tuple[Library, ...], **more: Any) -> Store:
        """The store that has these parts, the others as they are in the beginning."""
        made = Store(entities, libraries, **more)
        return self._stores.setdefault(tuple([getattr(made, name) for name in _PARTS]), made)

    def empty(self, entities: int, *, libraries: bool = True) -> Store:
        return self.store((self.entity(0, (ABSENT,)),) * entities, (self.library(()),) * entities * libraries)

    def with_entity(self, store: Store, number: int, entity: Entity) -> Store:
        return self.changed(store, entities=(*store.entities[:number], entity, *store.entities[number + 1 :]))

    def with_library(self, store: Store, number: int, library: Library) -> Store:
        return self.changed(store, libraries=(*store.libraries[:number], library, *store.libraries[number + 1 :]))

    def changed(self, store: Store, **parts: Any) -> Store:
        key = tuple([parts.get(name, getattr(store, name)) for name in _PARTS])
        found = self._stores.get(key)
        if found is None:
            found = self._stores[key] = Store(*key)
        return found


_NO_LEDGER: Final = Ledger()
_PARTS: Final = tuple(item.name for item in fields(Store))


@cache
def view_of(document: Json | None) -> EntityView:
    """A document taken apart, as the library does it."""
    return read_entity(entity_in(document), document)


def entity_in(document: Json | None) -> EntityRef:
    return entity_ref(0 if document is None else int(document.value["id"].removeprefix("e")))


def ledger_of(document: Json | None) -> Ledger:
    """The ledger of a document; an empty one if it has none."""
    return view_of(document).ledger or _NO_LEDGER


@cache
def transactions_of(document: Json | None) -> frozenset[str]:
    """The transactions that the ledger of a document names: those of its outbox, and those that keep messages."""
    ledger = ledger_of(document)
    return ledger.transactions.union(entry.tx for entry in ledger.outbox)


@cache
def messages_of(document: Json | None) -> frozenset[str]:
    """Keys of the messages that a document was made by, as far as its history and its outbox say."""
    ledger, entity = ledger_of(document), entity_in(document)
    owed = (entry.owed_outputs(entity, ledger.to, ledger.sequences) for entry in ledger.outbox)
    sent = (output.envelope.value for output in chain.from_iterable(owed))
    messages = (item.get("data", item)["message"] for item in sent)
    return frozenset((*messages, *(f"web/{id}" for id in history_of(document).split(">") if id)))


@cache
def history_of(document: Json | None) -> str:
    """The history in a state, also that of a tombstone; empty if the entity is absent."""
    history: str = "" if document is None else document.value.get("history", "")
    return history


def etag_at(position: int, tick: int | None) -> str:
    """The ETag of a companion that was written at a position; it names the tick, where a clock moves."""
    return str(position) if tick is None else f"{position}@{tick}"


def written_at(etag: str) -> tuple[int, int]:
    """Position and tick that the ETag of a companion names, where a clock moves."""
    position, _, tick = etag.partition("@")
    return int(position), int(tick)


def views_in(entity: Entity, token: str | None) -> range:
    """Positions that a read of an entity's partition may see."""
    return range(max(position_of(token), entity.first), entity.newest + 1)
