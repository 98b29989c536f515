"""Clean-up of companions: co-located records, entries of a version stream, documents of numbers.

Age chooses the candidates: older than the retention, so that no copy of what they are about can still arrive, and every attempt
that ran when they were written has long finished or failed. What else decides is `may_go`, and all that it asks stays as it was
once read: a record that owes nothing owes nothing ever after, an entry never changes, a released message is never held again,
what a read model handles next only grows. So a view of any age will do, and nothing is fenced. The entity itself always stays.

*Co-located records*, unless they owe. No look at the entity:

- Who still writes an old record drops what it owed, and writes over what exists only: nothing comes back.
- A sweeper that read it owing, long ago, publishes once more what was published. Copies have the same ids.
- A batch under way for a copy, begun where the record was not seen, fails on the record alone if nothing else came to the
  entity since. That is what age is for: no request lives nearly as long as the retention.

*Stream entries*, by the kind of the stream, for which the ledger is read. A duplicate inside the retention needs its own entry
and those that lead to the state before it. Entries are created in the order of their versions and never written over, so all
before an old one are old too, whether or not they are listed.

- Ways back lead from younger entries to older ones: whichever old ones are gone, nobody younger needs them. So a deletion that
  was cut short does no harm.
- Events lead forward from a whole state: an interval, from one whole state to before the next, goes when its last entry is old,
  so that all of it is. The one that new entries join has no last entry yet. What is left of an interval whose last entry went
  first stays until a later interval goes.
- Attempts, settler and clean-up of blobs look for entries of messages that may still arrive. A replay from what is gone
  raises, and publishes nothing of that part; a read model asks for what it lacks (`gap_timeout`) long before.
- A ledger has the kind of its stream from the first entry on. A view from before shows none, and then nothing goes.

*Documents of numbers* below the ledger's `next`, unless they hold a message:

- What a released message sent is owed by the ledger, and not by its document.
- A copy is known by its number alone, with or without the document, which only distinguishes copies from other messages with
  that number, and records skipped ones. After the retention, another message with an old number is dropped like a copy.
- If a message that was skipped comes just now, its batch replaces the document. Either that comes first, and the document has
  changed and stays; or the batch fails, and the next attempt finds the number below `next`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from exactlyonce.attempt import Again, Finished, Memory, Strategy
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.protocols.steps.load import load
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, id_of
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.envelope import EntityRef

Kind = Literal["processed", "entry", "numbered"]


def is_candidate(kind: Kind, age: timedelta, retention: timedelta, *, unfinished: bool, place: int, last: int) -> bool:
    """Whether a companion is old enough for `clean_companions`, and may go. The rule for the search of candidates.

    Args:
        kind: its `_kind`.
        age: since it was written, by the server's `_ts`. Every write makes it younger, so it never looks older than it is.
        retention: of the application, as `Retention.kept` has it.
        unfinished, place, last: as for `may_go`.
    """
    return age > retention and may_go(kind, unfinished=unfinished, place=place, last=last)


def may_go(kind: Kind, *, unfinished: bool, place: int, last: int) -> bool:
    """Whether a companion that is older than the retention may be deleted.

    ========= ================== ============== =========================================
    kind      unfinished         place          last
    ========= ================== ============== =========================================
    processed `owed` is not null any            any
    entry     `owed` is not null `version`      `last_entry` of its stream
    numbered  `held` is not null `number`       one before `next` in its channel's reception
    ========= ================== ============== =========================================
    """
    return not unfinished and (kind == "processed" or place <= last)


def last_entry(newest: int, *, snapshot_every: int | None, event_sourced: bool) -> int:
    """The newest version of a stream whose entry may go; 0 for none.

    Args:
        newest: version of the newest entry that is older than the retention; 0 if there is none.
        snapshot_every, event_sourced: as the entity's ledger says; `snapshot_every` is None where no stream is known of.
    """
    if snapshot_every is None:
        return 0
    return newest // snapshot_every * snapshot_every if event_sourced else newest


def clean_by_ledger(
    strategy: Strategy, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
) -> Step[Finished | Again]:
    """Load the entity, and delete those of the candidates that its ledger lets go. At most 5 effects.

    Args:
        strategy: of the entity.
        entity, candidates, memory: as for `clean_companions`.

    Raises:
        StoredDataError: a document cannot be trusted; nothing was deleted.
        ConfigurationError: the entity belongs to another protocol.
    """
    if not candidates:
        return Finished(memory)
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    cleaned = yield from clean_companions(entity, candidates, view.ledger, view.memory)
    return cleaned


def clean_companions(
    entity: EntityRef, candidates: tuple[tuple[str, str], ...], ledger: Ledger, memory: Memory
) -> Step[Finished | Again]:
    """Delete those of the candidates that may go. At most 2 effects; the deletion is not answered: count by reading.

    The list is trusted only in that these documents, with these ETags, are old. Each is read again; what has changed since
    stays, as its age is another. Deleting is conditional on the ETag that was judged, so that a deletion that arrives late
    takes nothing that was written since. What it did not take is a candidate again.

    Args:
        entity: whose companions they are.
        candidates: id and ETag of each, as they were read when their age was judged; at most 100, oldest first.
        ledger: of the entity, in a view from after that; an empty one where none is needed.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: a document cannot be trusted; nothing was deleted.
    """
    if not candidates:
        return Finished(memory)
    # Read the candidates again. What was written since is no longer old, and stays.
    found = yield from LoadCompanions(entity, tuple(id for id, _ in candidates))
    if isinstance(found, NoAnswer):
        return Again(memory, "what is to be cleaned up could not be read")
    old = {
        (id_of(entity, one), etag): one for one, etag in found.companions if (id_of(entity, one), etag) in candidates
    }
    newest = max((one.version for one in old.values() if isinstance(one, StreamEntry)), default=0)
    garbage = tuple(key for key, one in old.items() if _may_go(one, ledger, newest))
    if garbage:
        # Delete those that may go, as they were judged. A deletion that arrives late takes nothing that was written since.
        yield from DeleteCompanions(entity, garbage)
    return Finished(memory)


def _may_go(companion: Companion, ledger: Ledger, newest: int) -> bool:
    """What `may_go` says of a companion."""
    match companion:
        case ColocatedRecord():
            return may_go("processed", unfinished=companion.owed is not None, place=0, last=0)
        case StreamEntry():
            last = last_entry(newest, snapshot_every=ledger.snapshot_every, event_sourced=ledger.event_sourced)
            return may_go("entry", unfinished=companion.owed is not None, place=companion.version, last=last)
        case NumberedMessage():
            following = next((one.next for one in ledger.receptions if one.channel == companion.channel), 1)
            held, number = companion.held is not None, companion.number
            return may_go("numbered", unfinished=held, place=number, last=following - 1)
