"""The model's store: for each entity its document and its partition of the library, each a log that reads may lag behind.

All parts are immutable and interned, so that comparing worlds compares identities. Tokens and ETags are positions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, Final

from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.library import ParkedMessage, StagedOutputs
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

_TOKEN: Final = "0:-1#"  # noqa: S105
RECORD: Final = "record"
NOW: Final = 1_000_000
"""The server's time of writing when the clock of the model begins, in seconds."""
"""What a log says of a processed record: that it is there. No protocol reads more of it."""


def token_at(position: int) -> str:
    """The session token of a position in a log."""
    return f"{_TOKEN}{position}"


def position_of(token: str | None) -> int:
    """The position a token stands for; 0, the empty log, without one."""
    return int(token.removeprefix(_TOKEN)) if token else 0


def entity_ref(number: int) -> EntityRef:
    """The entity with this number."""
    return EntityRef("account", (f"e{number}",), f"e{number}")


def entity_number(entity: EntityRef) -> int:
    """The number of an entity."""
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


ABSENT: Final = Version(None, None)


class Entity:
    """Every version of an entity that a read may still return, oldest first; the last one is the truth."""

    def __init__(self, first: int, versions: tuple[Version, ...]) -> None:
        self.first = first
        self.versions = versions
        self.truth = versions[-1]

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
        return "" if self.ledger.deleted else told_history(self.truth.document)

    @property
    def told(self) -> tuple[str, ...]:
        """What it holds, in a few lines for a story, each to go on from its name."""
        entries = ", ".join(
            f"{entry.message} ({entry.tx}{'' if entry.owed is None else ', owes'})" for entry in self.ledger.entries
        )
        history = told_history(self.truth.document) or "nothing"
        return (f": {history} in its state; {entries or 'nothing'} in its ledger",)

    @cached_property
    def transactions(self) -> frozenset[str]:
        """Transactions in the ledger of any version that may be read."""
        return frozenset(entry.tx for version in self.versions for entry in ledger_of(version.document).entries)


Parked = tuple[str, ParkedMessage]
"""A parked document with its ETag."""
Writes = tuple[tuple[str, StagedOutputs | Parked | str | None], ...]


class Library:
    """The accepted writes of a partition of the library: (id, content, or None for a delete), in order."""

    def __init__(self, writes: Writes) -> None:
        self.writes = writes
        self.end = len(writes)
        self.staged = frozenset(id.removeprefix("staged:") for id, _ in writes if id.startswith("staged:"))
        self._views: dict[int, dict[str, Any]] = {}

    def view(self, position: int) -> dict[str, Any]:
        """What exists at a position."""
        found = self._views.get(position)
        if found is None:
            written = dict(self.writes[:position])
            found = self._views[position] = {id: content for id, content in written.items() if content is not None}
        return found

    @property
    def now(self) -> dict[str, Any]:
        """What exists."""
        return self.view(self.end)


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Everything that survives a crash but the queues. Interned: compare with `is`.

    Attributes:
        entities, libraries: by the number of the entity.
        committed: key of each message ever committed, and the history it was handled on.
        published: keys of messages whose outputs arrived.
        parked: keys of messages that lie parked.
        requeued: keys of messages that were parked and have been sent again.
        now: the store's time, in ticks; it stands still where a scenario has no clock.
        overdue: keys of messages whose outputs were parked, since they were too old to be published.
        aside: keys of messages that were put aside, which says nothing of whether they were processed.
        copied: keys of messages of which there have been several copies at a time, where somebody asks.
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

    def empty(self, entities: int) -> Store:
        """Nothing is stored, nothing published."""
        return self.store((self.entity(0, (ABSENT,)),) * entities, (self.library(()),) * entities)

    def with_entity(self, store: Store, number: int, entity: Entity) -> Store:
        return self.changed(store, entities=(*store.entities[:number], entity, *store.entities[number + 1 :]))

    def with_library(self, store: Store, number: int, library: Library) -> Store:
        return self.changed(store, libraries=(*store.libraries[:number], library, *store.libraries[number + 1 :]))

    def changed(self, store: Store, **parts: Any) -> Store:
        """The store with other parts, by their names."""
        key = tuple([parts.get(name, getattr(store, name)) for name in _PARTS])
        found = self._stores.get(key)
        if found is None:
            found = self._stores[key] = Store(*key)
        return found


_PARTS: Final = tuple(one.name for one in fields(Store))


@cache
def ledger_of(document: Json | None) -> Ledger:
    """The ledger of a document; an empty one if it has none."""
    if document is None:
        return Ledger()
    return read_entity(entity_ref(int(document.value["id"].removeprefix("e"))), document).ledger or Ledger()


@cache
def told_history(document: Json | None) -> str:
    """What a state tells, also that of a tombstone; empty if the entity is absent."""
    history: str = "" if document is None else document.value.get("history", "")
    return history
