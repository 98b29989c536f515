"""Clean-up of blobs whose attempts were never committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from exactlyonce.attempt import Again, Memory, Strategy
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import DeleteBlobs
from exactlyonce.protocols.steps.load import fence, load
from exactlyonce.records.blobs import Author, ListedBlob
from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class CleanedBlobs:
    """The candidates were judged.

    Attributes:
        names: names of the blobs to be deleted. Deleting is best effort; the rest are candidates again.
        memory: for this process's next step on the entity.
    """

    names: tuple[str, ...]
    memory: Memory


def blob_candidates(
    listed: Iterable[ListedBlob], *, horizon: timedelta, retention: timedelta
) -> dict[str, tuple[ListedBlob, ...]]:
    """The blobs that `clean_blobs` may judge, by the key of their entity.

    Args:
        listed: the listed blobs.
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
        entity: entity of the attempts.
        candidates: blobs chosen by `blob_candidates`, at most 100; blobs of other entities are left alone. Older blobs would
            look like garbage, as their proof may be deleted. The same happens after somebody deletes the library's documents
            of the entity, or the entity, by hand.
        absent: id and partition key properties of the document, for the tombstone of an absent entity.
        memory: this process's memory of the entity.
        strategy: strategy of the entity.

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
        entity: entity of the attempts.
        ids: id of each attempt's proving companion; None if not recorded.
        memory: this process's memory of the entity.
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
        author for author, id in ids.items() if id is None or any(_proves(author, one) for one in companions)
    )


def _proves(author: Author, one: Companion) -> bool:
    """Whether a companion belongs to this attempt's commit."""
    if isinstance(one, NumberedMessage):
        return (one.message, one.at) == (author.message, author.at)
    return one.tx == author.tx
