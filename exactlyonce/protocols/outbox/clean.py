"""Clean-up: deleting what nothing refers to any more. Age only chooses the candidates; safety never rests on a clock alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.blobs import DeleteBlobs
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import DeleteProcessed, DeleteStaged, LoadProcessed
from exactlyonce.protocols.outbox.draft import View
from exactlyonce.protocols.steps.fence import fence, look
from exactlyonce.records.blobs import Author, ListedBlob
from exactlyonce.records.companions import Companion, NumberedMessage, entry_id, record_id
from exactlyonce.records.ledger import Protocol
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The candidates were judged.

    Attributes:
        transactions: whose staged documents were to be deleted. Deleting is best effort; what remains is a candidate again,
            so a job counts by reading.
        memory: for whatever this process does next on the entity.
    """

    transactions: tuple[str, ...]
    memory: Memory


def clean_staged(entity: EntityRef, candidates: tuple[str, ...], absent: Json, memory: Memory) -> Step[Cleaned | Again]:
    """Delete staged documents that no entry names, nor ever will. At most 4 effects.

    First the fence, then the deletion. Transaction ids are made after an entity is loaded, so an attempt that could still
    commit one of the candidates loaded before this did, and its commit fails on the fence. Whether there is a record does
    not matter: it would mean that the outputs were published.

    Args:
        entity: whose staged documents they are.
        candidates: transaction ids of staged documents older than the horizon, which only keeps this from disturbing
            attempts that are alive.
        absent: the document's id and partition key properties, for the tombstone of an entity that does not exist.
        memory: what this process knows of the entity.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was deleted.
    """
    view = yield from look(entity, memory)
    if isinstance(view, Again):
        return view
    named = frozenset(entry.tx for entry in view.ledger.entries)
    garbage = tuple(tx for tx in candidates if tx not in named)
    if not garbage:
        return Cleaned((), view.memory)
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    # Delete the staged outputs. No entry names them, nor ever will. What remains is a candidate next time.
    yield from DeleteStaged(entity, garbage)
    return Cleaned(garbage, fenced)


def clean_processed(entity: EntityRef, records: tuple[tuple[str, str], ...]) -> Step[None]:
    """Delete processed records older than the retention, as they were read. One effect, without an answer: count by reading.

    A record whose message may no longer arrive has nothing left to prevent. It needs no look at the ledger and no fence:

    - A record owes nothing, since it is written after publishing.
    - An attempt that wrote records may have crashed before the commit that drops their entries, so a record can lie beside
      its entry. Whoever lets that entry go later writes the record anew, before that commit, whether or not it exists; so
      an entry never leaves without one.
    - If it is being written anew just now, its ETag has changed and it stays; if it is deleted first, writing creates it.

    Args:
        entity: whose records they are.
        records: key of the message and ETag of each, as they were read when their age was judged by the server's time of
            writing. That is never before the message's commit, so nothing looks older than it is.
    """
    if records:
        # Delete the records, as they were read. No copy of their messages can still arrive. A record that is being written
        # anew has another ETag, and stays.
        yield from DeleteProcessed(entity, records)


@dataclass(frozen=True, slots=True)
class CleanedBlobs:
    """The candidates were judged.

    Attributes:
        names: of the blobs that were to be deleted. Deleting is best effort; what remains is a candidate again.
        memory: for whatever this process does next on the entity.
    """

    names: tuple[str, ...]
    memory: Memory


def blob_candidates(
    listed: Iterable[ListedBlob], *, horizon: timedelta, retention: timedelta
) -> dict[str, tuple[ListedBlob, ...]]:
    """Those of the blobs that `clean_blobs` may judge, by the key of the entity that they are about.

    Args:
        listed: blobs.
        horizon: age below which attempts may be alive, which clean-up had better not disturb.
        retention: shortest age at which anything that tells of a commit may be gone: processed records, co-located records,
            stream entries, entries of `Outbox.embedded()`. A blob is written before its commit, and so is older than what
            tells of it; when it is half as old as the retention, that is still there. Blobs that are older are never judged:
            nobody knows any more whether they were committed.
    """
    found: dict[str, tuple[ListedBlob, ...]] = {}
    for blob in listed:
        if blob.author is not None and horizon < blob.age < retention / 2:
            key = blob.author.entity.key
            found[key] = (*found.get(key, ()), blob)
    return found


def clean_blobs(
    entity: EntityRef,
    candidates: tuple[ListedBlob, ...],
    absent: Json,
    memory: Memory,
    protocol: Protocol = "outbox",
) -> Step[CleanedBlobs | Again]:
    """Delete blobs of attempts that were not committed, nor ever will be. At most 5 effects.

    An attempt that was committed is told of by its transaction id: in an entry of the ledger, or, once that has left, in the
    processed record, which was written before; in the other protocols in what lies beside the entity, which is committed with
    it. All of these are read in a view at least as new as the ledger. If the fence holds, the ledger was the newest; every
    attempt that had written a blob had loaded the entity before the fence, and so can commit no more. A record of the same
    message with another transaction id proves nothing more, nor less: it is of another attempt.

    A read model keeps no transaction ids once its outputs are published. The document of the message's number tells of the
    commit by the time of its attempt, which the blob has as well, to the microsecond. Should two attempts at one message have
    the same time, the blobs of both stay.

    Args:
        entity: whose attempts wrote them.
        candidates: blobs as `blob_candidates` picks them, at most 100; those of other entities are left alone. What told of
            older ones may be gone, and then they would look like garbage; so they would where somebody has deleted the
            library's documents of the entity, or the entity, by hand.
        absent: the document's id and partition key properties, for the tombstone of an entity that does not exist.
        memory: what this process knows of the entity.
        protocol: of the entity.

    Raises:
        StoredDataError: a document cannot be trusted; nothing was deleted.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from look(entity, memory, protocol)
    if isinstance(view, Again):
        return view
    named = {entry.tx for entry in view.ledger.entries}
    unnamed = tuple(
        (blob.name, blob.author)
        for blob in candidates
        if blob.author is not None and blob.author.entity.key == entity.key and blob.author.tx not in named
    )
    committed = yield from _committed(entity, tuple(author for _, author in unnamed), view, protocol)
    if isinstance(committed, Again):
        return committed
    garbage = tuple(name for name, author in unnamed if author not in committed)
    if not garbage:
        return CleanedBlobs((), view.memory)
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    # Delete the blobs. No commit names them, nor ever will. What remains is a candidate next time.
    yield from DeleteBlobs(garbage)
    return CleanedBlobs(garbage, fenced)


def _committed(
    entity: EntityRef, authors: tuple[Author, ...], view: View, protocol: Protocol
) -> Step[frozenset[Author] | Again]:
    """Those of the authors that are told of, or could have been, elsewhere than in the ledger. At most one effect."""
    if protocol == "outbox" and authors:
        messages = tuple(dict.fromkeys(author.message for author in authors))
        # Read the records of the blobs' messages. A record with an attempt's transaction id proves its commit, and was
        # written before the entry left.
        records = yield from LoadProcessed(entity, messages, view.ledger.token)
        if isinstance(records, NoAnswer):
            return Again(view.memory, "the records of the messages could not be read")
        told = {record.tx for record in records.records}
        return frozenset(author for author in authors if author.tx in told)
    ids = {author: id for author in authors if (id := _told_by(entity, author, protocol)) is not None}
    if not ids:
        return frozenset(authors)
    # Read the companions of the blobs' messages. They were written by the commits that they prove, so a view at the
    # entity's session token has them.
    beside = yield from LoadCompanions(entity, tuple(dict.fromkeys(ids.values())), view.memory.entity_token)
    if isinstance(beside, NoAnswer):
        return Again(view.memory, "the records beside the entity could not be read")
    found = [companion for companion, _ in beside.companions]
    return frozenset(author for author in authors if author not in ids or any(_tells_of(author, one) for one in found))


def _told_by(entity: EntityRef, author: Author, protocol: Protocol) -> str | None:
    """Id of the document beside the entity that would tell of an author's commit; None if that is not known."""
    match protocol:
        case "colocated":
            return record_id(entity, author.message)
        case "stream":
            return entry_id(entity, author.message)
        case _:
            return author.told


def _tells_of(author: Author, one: Companion) -> bool:
    """Whether a document beside the entity is of the commit of just this attempt."""
    if isinstance(one, NumberedMessage):
        return (one.message, one.at) == (author.message, author.at)
    return one.tx == author.tx
