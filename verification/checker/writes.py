"""What a write does to the store, and which property it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    Park,
    Stage,
    WriteProcessed,
    Written,
)
from exactlyonce.records.ledger import Entry
from verification.checker.handler import digest_of, grown
from verification.checker.mentions import Write, described
from verification.checker.store import (
    RECORD,
    Entity,
    Library,
    Store,
    Stores,
    Version,
    entity_number,
    ledger_of,
    token_at,
    told_history,
)

ANY: Final = "*"
"""An ETag that fits always: only broken twins save like that."""
OTHER: Final = "somebody else's commit won"
OVERWRITTEN: Final = "serial_execution: a commit was overwritten by one that did not know of it"


@dataclass(frozen=True, slots=True)
class Answer:
    """One possible answer.

    Attributes:
        reply: to the strategy.
        store: afterwards.
        cost: place of the fault it takes; None for none.
        delayed: a write that may still take effect.
        violation: the property that this breaks.
        said: for the story.
        witnessed: what a scenario may want to have seen.
        arrivals: keys of messages whose outputs arrive where they are sent to.
        again: keys of messages that arrive again.
        aged: whether it is an older view of the library. That costs nothing, but finishing the work must not rely on it.
    """

    reply: Any
    store: Store
    cost: int | None = None
    delayed: Write | None = None
    violation: str | None = None
    said: str = ""
    witnessed: str | None = None
    arrivals: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    aged: bool = False


class Writes:
    """Applies writes.

    Args:
        stores: where worlds are interned.
        keeps_versions: whether older versions of entities may still be read.
        linearizable: whether all reads see the newest, so that a log need not tell more, and tokens mean nothing.
        single: keys of messages with one copy only: whether these are parked or processed is settled for good.
        deletes: key of the message that deletes the entity; None if none does.
        logs_parked: whether reads of parked messages matter, so that these have places in the log.
        dates: whether a clock moves, so that it matters when something was written.
    """

    def __init__(
        self,
        stores: Stores,
        *,
        keeps_versions: bool,
        linearizable: bool = False,
        single: frozenset[str] = frozenset(),
        deletes: str | None = None,
        logs_parked: bool = False,
        dates: bool = False,
    ) -> None:
        self._stores = stores
        self._single = single
        self._deletes = deletes
        self._logs_parked = logs_parked
        self._dates = dates
        self._keeps_versions = keeps_versions
        self._linearizable = linearizable

    def applied(self, write: Write, store: Store) -> Answer:
        """The answer if the write takes effect now, or fails on its condition."""
        if isinstance(write, SaveEntity):
            return self._save(write, store)
        if isinstance(write, SaveBatch | ReplaceCompanions | DeleteCompanions):
            raise TypeError(write)  # `checker.beside` has a world for them.
        if isinstance(write, DeleteParked):
            return self._unpark(write, store)
        return self._park(write, store) if isinstance(write, Park) else self._append(write, store)

    def _append(self, write: WriteProcessed | Stage | DeleteStaged | DeleteProcessed, store: Store) -> Answer:
        """Change the library's log. What changes no view needs no place in it."""
        number = entity_number(write.entity)
        library = store.libraries[number]
        changes: tuple[tuple[str, Any], ...]
        match write:
            case WriteProcessed():
                content = (RECORD, store.now) if self._dates else RECORD
                changes = tuple((f"processed:{record.message}", content) for record in write.records)
            case Stage():
                changes = tuple((f"staged:{document.tx}", document) for document in write.documents)
                if len(dict(changes)) < len(changes) or any(id in library.now for id, _ in changes):
                    return Answer(Conflict(self._token(library)), store, said=f"{described(write)}: conflict")
            case DeleteStaged():
                changes = tuple((f"staged:{tx}", None) for tx in write.transactions)
            case DeleteProcessed():
                changes = tuple((f"processed:{key}", None) for key, _ in write.records)
        new = tuple(change for change in changes if library.now.get(change[0]) != change[1])
        if new:
            writes = (*library.writes, *new)
            if self._linearizable:
                writes = tuple(sorted((one for one in dict(writes).items() if one[1] is not None), key=itemgetter(0)))
            library = self._stores.library(writes)
            store = self._stores.with_library(store, number, library)
        reply = None if isinstance(write, DeleteStaged | DeleteProcessed) else Written(self._token(library))
        return Answer(reply, store, said=described(write), witnessed=_WITNESSED.get(type(write)) if new else None)

    def _token(self, library: Library) -> str:
        """The session token of the newest view."""
        return token_at(0 if self._linearizable else library.end)

    def _park(self, write: Park, store: Store) -> Answer:
        key = write.message.message
        violation = None
        if key in self._alone(store) and any(key == committed for committed, _ in store.committed):
            violation = f"parked_is_unprocessed: {key} is parked as never processed, but it was committed"
        parked = self._stores.changed(store, parked=store.parked | {key})
        number = entity_number(write.entity)
        library = store.libraries[number]
        if self._logs_parked:
            library = self._stores.library((*library.writes, (f"parked:{key}", (str(library.end + 1), write.message))))
            parked = self._stores.with_library(parked, number, library)
        reply = Written(self._token(library))
        return Answer(reply, parked, violation=violation, said=described(write), witnessed="a message was parked")

    def _unpark(self, write: DeleteParked, store: Store) -> Answer:
        number = entity_number(write.entity)
        library = store.libraries[number]
        id = f"parked:{write.message}"
        if id not in library.now or write.etag not in (ANY, library.now[id][0]):
            return Answer(None, store, said=f"{described(write)}, which has changed")
        after = self._stores.with_library(store, number, self._stores.library((*library.writes, (id, None))))
        after = self._stores.changed(after, parked=store.parked - {write.message})
        return Answer(None, after, said=described(write))

    def _alone(self, store: Store) -> frozenset[str]:
        """Keys of messages of which there is one copy, and never was another."""
        return self._single - store.requeued - store.copied

    def _save(self, write: SaveEntity, store: Store) -> Answer:
        number = entity_number(write.entity)
        entity = store.entities[number]
        if write.etag not in (ANY, entity.truth.etag):
            said = f"{described(write)}: conflict"
            return Answer(Conflict(self.entity_token(entity)), store, said=said, witnessed=OTHER)
        committed, violation = self._committed(write, entity, store)
        saved = self.entity_after(entity, write, store.now)
        if self._dates and violation is None:
            violation = _dropped(entity, saved, store)
        entities = (*store.entities[:number], saved, *store.entities[number + 1 :])
        after = self._stores.changed(store, entities=entities, committed=committed)
        assert saved.truth.etag is not None  # noqa: S101
        reply = Saved(saved.truth.etag, self.entity_token(saved))
        return Answer(reply, after, violation=violation, said=described(write))

    def entity_token(self, entity: Entity) -> str | None:
        """The session token of the newest version."""
        return token_at(entity.newest)

    def entity_after(self, entity: Entity, write: SaveEntity, tick: int) -> Entity:
        """The entity with one more version."""
        version = Version(write.document, str(entity.newest + 1), tick=tick)
        if self._keeps_versions:
            return self._stores.entity(entity.first, (*entity.versions, version))
        return self._stores.entity(entity.newest + 1, (version,))

    def _committed(
        self, write: SaveEntity, entity: Entity, store: Store
    ) -> tuple[frozenset[tuple[str, str]], str | None]:
        """What is committed afterwards, and what is wrong with it."""
        before, after = entity.ledger, ledger_of(write.document)
        told = told_history(write.document)
        count = after.version - before.version
        if count == 0:
            unchanged = told == told_history(entity.truth.document) or entity.truth.document is None
            return store.committed, None if unchanged else OVERWRITTEN
        violation = None
        history = latest = entity.history
        committed = set(store.committed)
        known = {key for key, _ in committed}
        deleted = before.deleted
        for number, entry in enumerate(after.entries[-count:] if count > 0 else ()):
            violation = violation or self._wrong(entry, history, before.version + number + 1, known, store)
            committed.add((entry.message, history))
            known.add(entry.message)
            deleted = entry.message == self._deletes
            latest = grown(history, entry.message)
            history = "" if deleted else latest
        if told != latest:
            violation = violation or OVERWRITTEN
        if deleted != after.deleted:
            violation = violation or "serial_execution: a deletion was lost or made up"
        return frozenset(committed), violation

    def _wrong(self, entry: Entry, history: str, version: int, known: set[str], store: Store) -> str | None:
        """What is wrong with committing an entry on this history as this version. Streams blot out digests and versions."""
        if entry.message in known:
            return f"at_most_one_state_change: {entry.message} is committed a second time"
        if entry.message in store.parked & self._alone(store):
            return f"parked_is_unprocessed: {entry.message} is committed, but it lies parked"
        if entry.digest not in {"", digest_of(entry.message, history, entry.at if self._dates else None)}:
            return f"serial_execution: {entry.message} was not handled on the state it follows"
        if entry.version not in {0, version}:
            return f"serial_execution: {entry.message} is entered as version {entry.version} and made version {version}"
        return None


def _dropped(before: Entity, after: Entity, store: Store) -> str | None:
    """What is wrong with the entries that a commit drops."""
    kept = {entry.message for entry in after.ledger.entries}
    paid = store.published | store.overdue
    for entry in before.ledger.entries:
        if entry.message not in kept and entry.owed is not None and entry.message not in paid:
            return f"nothing_lost: the ledger forgets {entry.message}, but its output was never published"
    return None


_WITNESSED: Final[dict[type[Any], str]] = {DeleteProcessed: "a record was forgotten"}
