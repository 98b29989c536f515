"""What the world may answer to an effect: every reply the fault model allows, with what each does to the store.

Rules of reading (Session consistency): a read with a token returns that version or a later one; a read of the library's
partition without one returns any version. Writes are judged at the end of the log. A write has four outcomes, applied or not
and answered or not; and an unanswered one may take effect at any later time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.store import EntityLog, Interned, LibraryLog, Version, position_of, token_at
from exactlyonce.effects import (
    BEHIND,
    PUBLISHED,
    UNKNOWN,
    Conflict,
    DeleteStaged,
    Effect,
    FindProcessed,
    Found,
    FoundStaged,
    HasRecords,
    Loaded,
    LoadEntity,
    LoadStaged,
    Publish,
    Saved,
    SaveEntity,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.identity import EntityRef
from exactlyonce.records import Ledger, Output, digest, read_entity

NOW: Final = 1_000_000
ANY: Final = "*"
"""An ETag that fits always: only broken twins save like that."""
ENTITY = EntityRef("account", ("a",), "a")
Write = SaveEntity | WriteProcessed | Stage | DeleteStaged


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Everything that survives a crash but the queue. Interned by `World.store`: compare with `is`."""

    entity: EntityLog
    library: LibraryLog
    published: frozenset[Output]


@dataclass(frozen=True, slots=True)
class Answer:
    """One possible answer.

    Attributes:
        reply: to the strategy.
        store: afterwards.
        cost: the fault it takes; None for none.
        delayed: a write that may still take effect.
        violation: the property that this breaks.
        said: for the story.
        witnessed: what a scenario may want to have seen.
    """

    reply: Any
    store: Store
    cost: str | None = None
    delayed: Write | None = None
    violation: str | None = None
    said: str = ""
    witnessed: str | None = None


class World:
    """Answers effects for one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.interned = Interned()
        self._ledgers: dict[Version, Ledger] = {}
        self._stores: dict[tuple[EntityLog, LibraryLog, frozenset[Output]], Store] = {}

    def start(self) -> Store:
        """Nothing is stored, nothing published."""
        return self.store(self.interned.entity(1, ()), self.interned.library(()), frozenset())

    def store(self, entity: EntityLog, library: LibraryLog, published: frozenset[Output]) -> Store:
        """The one store that holds this."""
        key = (entity, library, published)
        found = self._stores.get(key)
        if found is None:
            found = self._stores[key] = Store(entity, library, published)
        return found

    def answers(self, effect: Effect[Any], store: Store) -> Iterator[Answer]:
        """Every answer to an effect."""
        match effect:
            case LoadEntity():
                yield from self._load(effect, store)
            case FindProcessed():
                yield from self._find(effect, store)
            case LoadStaged():
                yield from self._load_staged(effect, store)
            case HasRecords():
                yield Answer(
                    any(id.startswith("processed:") for id in store.library.view(len(store.library.writes))), store
                )
            case Publish():
                yield from self._publish(effect, store)
            case SaveEntity() | WriteProcessed() | Stage() | DeleteStaged():
                yield from self._write(effect, store)
            case _:
                raise TypeError(effect)

    def land(self, write: Write, store: Store) -> Answer:
        """A delayed write takes effect, if its condition still holds."""
        return self._applied(write, store)

    def ledger(self, version: Version) -> Ledger:
        found = self._ledgers.get(version)
        if found is None:
            found = self._ledgers[version] = read_entity(ENTITY, version.document).ledger or Ledger()
        return found

    def transactions(self, version: Version) -> frozenset[str]:
        """Transaction ids in the ledger of a version."""
        return frozenset(entry.tx for entry in self.ledger(version).entries)

    def _load(self, effect: LoadEntity, store: Store) -> Iterator[Answer]:
        log = store.entity
        newest = log.newest
        oldest = max(position_of(effect.token), log.first if log.first > 1 else 0)
        for position in range(newest, oldest - 1, -1):
            version = log.at(position)
            token = token_at(position)
            loaded = (
                Loaded(None, None, 0, token) if version is None else Loaded(version.document, str(position), NOW, token)
            )
            stale = position < newest
            said = f"loads version {position}" + (f", though {newest} is the newest" if stale else "")
            yield Answer(
                loaded, store, "stale" if stale else None, said=said, witnessed="stale load" if stale else None
            )
            if not self._scenario.budget.stale:
                return
        yield Answer(BEHIND, store, "stale", said="asks a replica that is behind")

    def _find(self, effect: FindProcessed, store: Store) -> Iterator[Answer]:
        if self._scenario.budget.stale and position_of(effect.token):
            yield Answer(BEHIND, store, "stale", said="asks a replica that is behind", witnessed="a replica was behind")
        for position in range(position_of(effect.token), len(store.library.writes) + 1):
            view = store.library.view(position)
            found = frozenset(message for message in effect.messages if f"processed:{message}" in view)
            said = f"finds {len(found)} of {len(effect.messages)} records in view {position} of {len(store.library.writes)}"
            yield Answer(
                Found(found, token_at(position)),
                store,
                said=said,
                witnessed="duplicate found its record" if found else None,
            )

    def _load_staged(self, effect: LoadStaged, store: Store) -> Iterator[Answer]:
        if self._scenario.budget.stale and position_of(effect.token):
            yield Answer(BEHIND, store, "stale", said="asks a replica that is behind")
        for position in range(position_of(effect.token), len(store.library.writes) + 1):
            view = store.library.view(position)
            found = tuple(view[f"staged:{tx}"] for tx in effect.transactions if f"staged:{tx}" in view)
            gone = len(found) < len(effect.transactions)
            said = f"reads staged outputs: {len(found)} of {len(effect.transactions)} are there"
            yield Answer(FoundStaged(found), store, said=said, witnessed="staged outputs were gone" if gone else None)

    def _publish(self, effect: Publish, store: Store) -> Iterator[Answer]:
        truth = store.entity.truth
        committed = {message: content for message, _, content in truth.committed} if truth else {}
        violation = None
        for output in effect.outputs:
            message = output.id.removeprefix("out:")
            if message not in committed:
                violation = f"no_ghost_output: {message} is published, but was never committed"
            elif committed[message] != digest((output,)):
                violation = f"consistent_state_and_output: another output of {message} is published than was committed"
        arrived = self.store(store.entity, store.library, store.published | frozenset(effect.outputs))
        names = ", ".join(output.id for output in effect.outputs)
        yield Answer(PUBLISHED, arrived, violation=violation, said=f"publishes {names}")
        yield Answer(UNKNOWN, arrived, "unknown", violation=violation, said=f"publishes {names}; the reply is lost")
        yield Answer(UNKNOWN, store, "unknown", said=f"fails to publish {names}")

    def _write(self, effect: Write, store: Store) -> Iterator[Answer]:
        applied = self._applied(effect, store)
        yield applied
        if isinstance(effect, DeleteStaged):
            yield Answer(None, store, "unknown", said="fails to delete staged outputs")
            return
        conflict = isinstance(applied.reply, Conflict)
        if not conflict:
            lost = Answer(
                UNKNOWN, applied.store, "unknown", None, applied.violation, f"{applied.said}; the reply is lost"
            )
            yield lost
        if not isinstance(effect, WriteProcessed) and not conflict:
            repeated = self._applied(effect, applied.store)
            yield Answer(
                repeated.reply, applied.store, "repeated", None, applied.violation,
                f"{applied.said}; sent twice, so the reply says conflict", "own success seen as a conflict",
            )  # fmt: skip
        yield Answer(UNKNOWN, store, "unknown", said=f"{_name(effect)}, which is lost")
        if self._scenario.delayed:
            yield Answer(UNKNOWN, store, "unknown", effect, said=f"{_name(effect)}, which will arrive later")

    def _applied(self, effect: Write, store: Store) -> Answer:
        match effect:
            case SaveEntity():
                return self._save(effect, store)
            case WriteProcessed():
                view = store.library.view(len(store.library.writes))
                # Writing again what is there already changes no view, so that it needs no place in the log.
                writes = tuple(
                    (f"processed:{record.message}", record)
                    for record in effect.records
                    if view.get(f"processed:{record.message}") != record
                )
                library = self.interned.library((*store.library.writes, *writes))
                reply = Written(token_at(len(library.writes)))
                return Answer(reply, self.store(store.entity, library, store.published), said=_name(effect))
            case Stage():
                view = store.library.view(len(store.library.writes))
                if any(f"staged:{document.tx}" in view for document in effect.documents):
                    return Answer(
                        Conflict(token_at(len(store.library.writes))), store, said=f"{_name(effect)}: conflict"
                    )
                staged = tuple((f"staged:{document.tx}", document) for document in effect.documents)
                library = self.interned.library((*store.library.writes, *staged))
                reply = Written(token_at(len(library.writes)))
                return Answer(reply, self.store(store.entity, library, store.published), said=_name(effect))
            case DeleteStaged():
                view = store.library.view(len(store.library.writes))
                deletes = tuple((f"staged:{tx}", None) for tx in effect.transactions if f"staged:{tx}" in view)
                library = self.interned.library((*store.library.writes, *deletes))
                return Answer(None, self.store(store.entity, library, store.published), said=_name(effect))

    def _save(self, effect: SaveEntity, store: Store) -> Answer:
        log = store.entity
        if effect.etag not in (ANY, str(log.newest) if log.newest else None):
            said = f"{_name(effect)}: conflict"
            return Answer(Conflict(token_at(log.newest)), store, said=said, witnessed="somebody else's commit won")
        saved, violation = self._committed(effect, log.truth)
        versions = (*log.versions, saved)
        first = log.first if self._scenario.budget.stale else log.newest + 1
        entity = self.interned.entity(first, versions[-(log.newest + 2 - first) :])
        reply = Saved(str(entity.newest), token_at(entity.newest))
        return Answer(
            reply, self.store(entity, store.library, store.published), violation=violation, said=_name(effect)
        )

    def _committed(self, effect: SaveEntity, before: Version | None) -> tuple[Version, str | None]:
        """The new version, and what is wrong with it."""
        ledger = read_entity(ENTITY, effect.document).ledger or Ledger()
        known = before.committed if before else frozenset()
        transactions = {tx for _, tx, _ in known}
        fresh = [entry for entry in ledger.entries if entry.tx not in transactions]
        violation = None
        for entry in fresh:
            if entry.message in {message for message, _, _ in known}:
                violation = f"at_most_one_state_change: {entry.message} is committed a second time"
        if ledger.version != (self.ledger(before).version if before else 0) + len(fresh):
            violation = violation or "versions_are_distinct: a commit was overwritten by one that did not know of it"
        added = frozenset((entry.message, entry.tx, entry.digest) for entry in fresh)
        return Version(effect.document, known | added), violation


def _name(effect: Write) -> str:
    match effect:
        case SaveEntity():
            return "saves the entity" if effect.etag else "creates the entity"
        case WriteProcessed():
            return f"writes records of {', '.join(record.message for record in effect.records)}"
        case Stage():
            return f"stages outputs of {', '.join(document.message for document in effect.documents)}"
        case DeleteStaged():
            return f"deletes {len(effect.transactions)} staged documents"
