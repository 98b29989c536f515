"""The algorithm of the published library, in this project's effects and records: the first of the broken twins.

Steps and order are the published ones; the words are ours. The entity carries a transaction-id marker (a ledger with one entry,
which is not finished yet). Outputs are staged under the transaction id before the commit. A record in the library's partition,
a page with one mark, says that a message is done. Every attempt first finishes what the marker names.

Each known repair is a switch, so that the checker shows which fault it ends and what it costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Conflict, Loaded, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged, FindPages, LoadStaged, Stage, WritePage, Written
from exactlyonce.protocols.steps.load import since_of_outputs
from exactlyonce.records import ledger as records
from exactlyonce.records.ledger import Ledger, Page
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.values.envelope import EntityRef, Envelope, key_of, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json

NONE: Final = -1
"""The version of no page."""
WHATEVER: Final = "*"
"""In place of an ETag: save, whatever is there. The world of the checker knows it; no adapter does."""
_FOR_EVER: Final = 2**31 - 1


class Deletion(Enum):
    """What becomes of the staged outputs when the save that should have committed them does not report success."""

    ON_FAILURE = auto()
    """They are deleted: as published."""
    ON_CONFLICT = auto()
    """They are deleted if the reply was a conflict, but not if there was none."""
    AFTER_LOOKING = auto()
    """They are deleted if the entity, read again, does not carry this transaction's marker."""
    NEVER = auto()
    """They stay until clean-up: the repair."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """What is done otherwise than published.

    Attributes:
        conditional_create: an entity that was absent is created on the condition that it still is.
        deletion: of staged outputs after a save without success.
        staged_token: the marker carries the session token of the staging, and the attempt that finishes it reads with that.
        record_token: the cleared marker carries the session token of the record, and the look for a record uses it.
        record_again: a record is also written where the staged outputs are gone: the reply is how to learn a token that
            covers the record.
        fresh_etag: after finishing another transaction the attempt goes on with the ETag of that save, not of its load.
    """

    conditional_create: bool = False
    deletion: Deletion = Deletion.ON_FAILURE
    staged_token: bool = False
    record_token: bool = False
    record_again: bool = False
    fresh_etag: bool = False


AS_PUBLISHED: Final = Repairs()
REPAIRED: Final = Repairs(
    conditional_create=True,
    deletion=Deletion.NEVER,
    staged_token=True,
    record_token=True,
    record_again=True,
    fresh_etag=True,
)


@dataclass(frozen=True, slots=True)
class PublishedAlgorithm:
    """A strategy like any other, for the checker only.

    Two things are in our vocabulary. A record of theirs holds the outputs, and an attempt that finds it sends them; a record of
    ours says that they were sent, so they are sent before it is written. Their record is written and the staged outputs are
    deleted in one batch; here the deletion follows. Neither makes a fault, nor hides one of those found.
    """

    repairs: Repairs = AS_PUBLISHED

    @property
    def group_limit(self) -> int:
        """One message at a time."""
        return 1

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """The entity forgets at once; records stay."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Load, finish what is unfinished, look for a record, handle, stage, commit, finish."""
        loaded = yield from LoadEntity(work.entity, memory.entity_token)
        if isinstance(loaded, NoAnswer):
            return Again(memory, "the entity could not be read")
        memory = replace(memory, entity_token=loaded.token)
        stored = records.read_entity(work.entity, loaded.document)
        seen = _Seen(loaded.document, loaded.etag, stored.ledger or Ledger(), memory)
        if seen.ledger.outbox:
            finished = yield from self._finish(work.entity, seen)
            if isinstance(finished, Again):
                return finished
            # As published, the ETag stays that of the load, so that this attempt can only end in a conflict.
            seen = finished if self.repairs.fresh_etag else replace(finished, etag=seen.etag)
        message = key_of(work.messages[0])
        token = seen.ledger.token if self.repairs.record_token else seen.memory.library_token
        found = yield from FindPages(work.entity, (), (message_hash(message),), NONE, token)
        if isinstance(found, NoAnswer):
            return Again(seen.memory, "records could not be read")
        if found.pages:
            return Finished(seen.memory)
        begun = yield from Begin((message,))
        if not begun.given:
            return Finished(seen.memory)
        since = since_of_outputs(work.messages[0].since, begun.at, work.send_limit)
        before = Before(stored.body, begun.at, begun.given[0], seen.ledger.sequences, since=since)
        handled = work.handle(before, work.messages[0])
        ledger = _marked(work.entity, seen.ledger, message, handled, begun)
        outcome = yield from self._commit(work.entity, message, handled, replace(seen, ledger=ledger))
        return outcome

    def _commit(self, entity: EntityRef, message: str, handled: Handled, seen: _Seen) -> Step[Finished | Again]:
        """Stage the outputs, save state and marker, finish; after a save without success, undo the staging."""
        entry = seen.ledger.outbox[0]
        outputs = StagedOutputs(entity.key, message, entry.tx, entry.at, handled.outputs)
        staged = yield from Stage(entity, (outputs,))
        if not isinstance(staged, Written):
            return Again(seen.memory, "whether the outputs were staged is not known")
        seen = self._wrote(seen, staged)
        document = records.entity_document(handled.body, seen.ledger)
        condition = seen.etag if seen.etag is not None or self.repairs.conditional_create else WHATEVER
        saved = yield from SaveEntity(entity, document, condition)
        if not isinstance(saved, Saved):
            yield from self._undo(entity, entry.tx, saved)
            return Again(seen.memory, "the entity was not saved")
        memory = replace(seen.memory, entity_token=saved.token)
        finished = yield from self._finish(entity, _Seen(document, saved.etag, seen.ledger, memory))
        return finished if isinstance(finished, Again) else Finished(finished.memory, processed=(message,))

    def _finish(self, entity: EntityRef, seen: _Seen) -> Step[_Seen | Again]:
        """Send and record what the marker names, then clear it. Staged outputs that are gone mean that it was done."""
        entry = seen.ledger.outbox[0]
        token = seen.ledger.token if self.repairs.staged_token else seen.memory.library_token
        found = yield from LoadStaged(entity, (entry.tx,), token)
        if isinstance(found, NoAnswer):
            return Again(seen.memory, "staged outputs could not be read")
        if found.documents:
            published = yield from Publish(found.documents[0].outputs)
            if published is not PUBLISHED:
                return Again(seen.memory, "the outputs could not be published")
        if found.documents or self.repairs.record_again:
            recorded = yield from WritePage(entity, _record(entity, seen.ledger), _FOR_EVER)
            if not isinstance(recorded, Written):
                return Again(seen.memory, "whether the record was written is not known")
            seen = self._wrote(seen, recorded)
        if found.documents:
            yield from DeleteStaged(entity, (entry.tx,))
        cleared = replace(seen.ledger, outbox=())
        document = with_ledger(seen.document, cleared)
        saved = yield from SaveEntity(entity, document, seen.etag)
        if not isinstance(saved, Saved):
            return Again(seen.memory, "the marker was not cleared")
        return _Seen(document, saved.etag, cleared, replace(seen.memory, entity_token=saved.token))

    def _wrote(self, seen: _Seen, reply: Written) -> _Seen:
        """After a write to the library's partition: its token is known to this process; repaired, to all."""
        carried = self.repairs.staged_token or self.repairs.record_token
        token = reply.token if carried else None
        memory = replace(seen.memory, library_token=reply.token)
        return replace(seen, ledger=replace(seen.ledger, token=token), memory=memory)

    def _undo(self, entity: EntityRef, tx: str, reply: Conflict | NoAnswer) -> Step[None]:
        """What is published for a save that failed, and the ways to do less of it."""
        deletion = self.repairs.deletion
        if deletion is Deletion.NEVER or (deletion is Deletion.ON_CONFLICT and not isinstance(reply, Conflict)):
            return
        if deletion is Deletion.AFTER_LOOKING:
            looked = yield from LoadEntity(entity)
            if isinstance(looked, NoAnswer) or _is_marked(entity, looked, tx):
                return
        yield from DeleteStaged(entity, (tx,))


@dataclass(frozen=True, slots=True)
class _Seen:
    """The entity as an attempt knows it."""

    document: Json | None
    etag: str | None
    ledger: Ledger
    memory: Memory


def with_ledger(document: Json | None, ledger: Ledger) -> Json:
    properties = document.value if document is not None else {}
    properties.pop(records.LEDGER, None)
    return records.entity_document(Json.of(properties), ledger)


def _is_marked(entity: EntityRef, loaded: Loaded, tx: str) -> bool:
    ledger = records.read_entity(entity, loaded.document).ledger or Ledger()
    return any(entry.tx == tx for entry in ledger.outbox)


def _marked(entity: EntityRef, ledger: Ledger, message: str, handled: Handled, begun: Begun) -> Ledger:
    """The ledger of the commit of a message, with its marker."""
    cause = message_hash(message)
    to = tuple(dict.fromkeys((*ledger.to, *(output.destination for output in handled.outputs))))
    sent = "".join(records.destination_digit(to.index(output.destination)) for output in handled.outputs)
    mark = records.Mark(milliseconds(begun.at), cause, "f", timed=False, content="----", sent=sent)
    return replace(
        ledger,
        version=ledger.version + 1,
        entity=entity.key,
        type=entity.type,
        deleted=handled.deleted,
        sequences=handled.sequences,
        marks=mark.text,
        to=to,
        left=ledger.version,
        outbox=(OutboxEntry(cause, begun.given[0], begun.at),),
    )


def _record(entity: EntityRef, ledger: Ledger) -> Page:
    """The record of the message whose marker a ledger has."""
    mark = ledger.marks
    return Page(entity.key, ledger.version, ledger.version, 0, 0, mark, to=ledger.to, hashes=(records.hash_in(mark),))
