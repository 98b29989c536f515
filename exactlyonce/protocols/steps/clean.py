"""Clean-up of companions: co-located records, entries of a version stream, documents of numbers.

Age chooses the candidates. A companion older than the retention has no copy of its message still to arrive, and every attempt
running at its time has long finished or failed. The second condition is `may_go`, whose answer never changes back: a record
without debt never owes again, an entry never changes, a released message is never held again, and a read model's next number
only grows. So a view of any age will do, and nothing is fenced. The entity itself always stays.

*Co-located records* go unless they owe. No look at the entity is needed:

- A process still writing an old record drops its debt, and overwrites existing records only: nothing comes back.
- A sweeper that read the record owing, long ago, publishes its outputs once more. Copies have the same ids.
- A batch under way for a copy, begun where the record was not seen, fails only on the record, if nothing else came to the
  entity since. Age protects here: no request lives nearly as long as the retention.

*Stream entries* go by the kind of the stream, so the ledger is read. A duplicate inside the retention needs its own entry,
and the entries that lead to the state before. Entries are created in the order of their versions and never overwritten, so
all entries before an old one are old too, listed or not.

- Patches lead from younger entries back to older ones, so no younger entry needs an old one. A deletion cut short does no
  harm.
- Events lead forward from a whole state. An interval, from one whole state to before the next, goes when its last entry is
  old, and thus all of it. The newest interval has no last entry yet. If the last entry of an interval went first, the rest
  stays until a later interval goes.
- Attempts, settler and clean-up of blobs look for entries of messages that may still arrive. A replay of deleted versions
  raises, and publishes nothing of that part; a read model asks for missing messages (`gap_timeout`) long before.
- A ledger has the kind of its stream from the first entry on. An older view shows no kind, and then nothing goes.

*Documents of numbers* go below the ledger's `next`, unless they hold a message:

- The outputs of a released message are owed by the ledger, not by the document.
- A copy is recognized by number alone, with or without the document. The document only distinguishes copies from other
  messages with the same number, and records skips. After the retention, another message with an old number is dropped like a
  copy.
- A skipped message may arrive just now, and its batch replaces the document. If the batch comes first, the document has
  changed, and stays. If the deletion comes first, the batch fails, and the next attempt sees the number below `next`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from exactlyonce.effects.attempt import Again, Finished, Memory, Strategy
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import DeleteBlobs
from exactlyonce.protocols.steps.load import fence, load
from exactlyonce.records.blobs import Author, ListedBlob
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry, id_of
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

Kind = Literal["processed", "entry", "numbered"]


def is_candidate(kind: Kind, age: timedelta, retention: timedelta, *, unfinished: bool, place: int, last: int) -> bool:
    """Whether a companion is old enough for `clean_companions`, and may go. The rule for the search of candidates.

    Args:
        kind: `_kind` of the companion.
        age: age by the server's `_ts`. Every write resets the age, so no companion looks older than it is.
        retention: `Retention.kept` of the application.
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
        newest: version of the newest entry older than the retention; 0 if there is none.
        snapshot_every, event_sourced: from the entity's ledger; `snapshot_every` is None without a stream.
    """
    if snapshot_every is None:
        return 0
    return newest // snapshot_every * snapshot_every if event_sourced else newest


def clean_by_ledger(
    strategy: Strategy, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
) -> Step[Finished | Again]:
    """Load the entity, and delete the candidates that its ledger no longer needs. At most 5 effects.

    Args:
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
    """Delete the candidates that may go. At most 2 effects. The deletion has no reply: count by reading.

    The list only proves that documents with these ETags are old. Each document is read again; a changed document stays, being
    younger. Deleting is conditional on the judged ETag, so a late deletion takes nothing written since. Remaining documents
    are candidates again.

    Args:
        candidates: ids and ETags, as read when their age was judged; at most 100, oldest first.
        ledger: ledger of the entity, in a view from after the reads; empty where none is needed.

    Raises:
        StoredDataError: a document cannot be trusted; nothing was deleted.
    """
    if not candidates:
        return Finished(memory)
    # Read the candidates again. A companion written since is no longer old, and stays.
    loaded = yield from LoadCompanions(entity, tuple(id for id, _ in candidates))
    if isinstance(loaded, NoAnswer):
        return Again(memory, "the candidates for clean-up could not be read")
    old = {
        (id_of(entity, item), etag): item
        for item, etag in loaded.companions
        if (id_of(entity, item), etag) in candidates
    }
    newest = max((item.version for item in old.values() if isinstance(item, StreamEntry)), default=0)
    garbage = tuple(key for key, item in old.items() if _may_go(item, ledger, newest))
    if garbage:
        # Delete those that may go, as they were judged. A late deletion takes nothing written since.
        yield from DeleteCompanions(entity, garbage)
    return Finished(memory)


def _may_go(companion: Companion, ledger: Ledger, newest: int) -> bool:
    """`may_go`, for a companion."""
    match companion:
        case ColocatedRecord():
            return may_go("processed", unfinished=companion.owed is not None, place=0, last=0)
        case StreamEntry():
            last = last_entry(newest, snapshot_every=ledger.snapshot_every, event_sourced=ledger.event_sourced)
            return may_go("entry", unfinished=companion.owed is not None, place=companion.version, last=last)
        case NumberedMessage():
            following = next(
                (reception.next for reception in ledger.receptions if reception.channel == companion.channel), 1
            )
            held, number = companion.held is not None, companion.number
            return may_go("numbered", unfinished=held, place=number, last=following - 1)


# Clean-up of blobs whose attempts were never committed.


@dataclass(frozen=True, slots=True)
class CleanedBlobs:
    """The candidates were judged.

    Attributes:
        names: names of the blobs to be deleted. Deleting is best effort; the rest are candidates again.
    """

    names: tuple[str, ...]
    memory: Memory


def blob_candidates(
    listed: Iterable[ListedBlob], *, horizon: timedelta, retention: timedelta
) -> dict[str, tuple[ListedBlob, ...]]:
    """The blobs that `clean_blobs` may judge, by the key of their entity.

    Args:
        horizon: age below which attempts may be alive, and are left undisturbed.
        retention: shortest age at which the proof of a commit may be gone: co-located records, stream entries, pages. A blob
            is written before its commit, so a blob is older than its proof; at half the retention, the proof is still there.
            Older blobs are never judged, since their proof may be gone.
    """
    candidates: dict[str, tuple[ListedBlob, ...]] = {}
    for blob in listed:
        if blob.author is not None and horizon < blob.age < retention / 2:
            key = blob.author.entity.key
            candidates[key] = (*candidates.get(key, ()), blob)
    return candidates


def clean_blobs(
    entity: EntityRef,
    candidates: tuple[ListedBlob, ...],
    absent: Json,
    memory: Memory,
    strategy: Strategy,
) -> Step[CleanedBlobs | Again]:
    """Delete blobs of attempts that were not committed, nor ever will be. At most 5 effects.

    The transaction id of an attempt proves its commit: in the ledger; later in a page, written before the mark left; in other
    protocols in a companion, committed with the entity. All proofs are read in a view at least as new as the ledger. If the
    fence holds, the ledger was the newest. Every attempt that had written a blob had loaded the entity before the fence, and
    so can commit no more. The proof of another attempt at the same message says nothing about this attempt.

    A read model keeps no transaction ids once its outputs are published. There the proof is the document of the message's
    number: its time equals the blob's attempt time, to the microsecond. If two attempts at one message have the same time,
    the blobs of both stay.

    Args:
        candidates: blobs chosen by `blob_candidates`, at most 100; blobs of other entities are left alone. Older blobs would
            look like garbage, as their proof may be deleted. The same happens after somebody deletes the library's documents
            of the entity, or the entity, by hand.
        absent: id and partition key properties of the document, for the tombstone of an absent entity.

    Raises:
        StoredDataError: a document cannot be trusted; nothing was deleted.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    named = {tx for _, tx in view.ledger.blobs}
    unnamed = tuple(
        (blob.name, blob.author)
        for blob in candidates
        if blob.author is not None and blob.author.entity.key == entity.key and blob.author.tx not in named
    )
    authors = tuple(author for _, author in unnamed)
    committed = yield from strategy.committed(entity, authors, view.ledger, view.memory)
    if isinstance(committed, Again):
        return committed
    garbage = tuple(name for name, author in unnamed if author not in committed)
    if not garbage:
        return CleanedBlobs((), view.memory)
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    # Delete the blobs. No commit names them, nor ever will. The rest are candidates next time.
    yield from DeleteBlobs(garbage)
    return CleanedBlobs(garbage, fenced)


def committed_by_companions(
    entity: EntityRef, ids: Mapping[Author, str | None], memory: Memory
) -> Step[frozenset[Author] | Again]:
    """The attempts that a companion proves committed, or may prove. At most one effect.

    Args:
        ids: id of each attempt's proving companion; None if not recorded.
    """
    recorded = tuple(dict.fromkeys(id for id in ids.values() if id is not None))
    if not recorded:
        return frozenset(ids)
    # Read the companions of the blobs' messages. A companion is written by the commit it proves, so a view at the entity's
    # session token has it.
    read = yield from LoadCompanions(entity, recorded, memory.entity_token)
    if isinstance(read, NoAnswer):
        return Again(memory, "the companions of the entity could not be read")
    companions = [companion for companion, _ in read.companions]
    return frozenset(
        author for author, id in ids.items() if id is None or any(_proves(author, item) for item in companions)
    )


def _proves(author: Author, companion: Companion) -> bool:
    """Whether a companion belongs to this attempt's commit."""
    if isinstance(companion, NumberedMessage):
        return (companion.message, companion.at) == (author.message, author.at)
    return companion.tx == author.tx
