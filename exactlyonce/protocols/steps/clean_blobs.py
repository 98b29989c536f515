"""Deleting blobs of attempts that were never committed."""

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
        retention: shortest age at which the proof of a commit may be gone: co-located records, stream entries, pages. A blob
            is written before its commit, and so is older than its proof; when it is half as old as the retention, the proof is
            still there. Older blobs are never judged: whether they were committed is not known any more.
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
    strategy: Strategy,
) -> Step[CleanedBlobs | Again]:
    """Delete blobs of attempts that were not committed, nor ever will be. At most 5 effects.

    The transaction id of an attempt proves its commit: in an entry of the ledger; once that has left, in a page, which was
    written before; in the other protocols in a companion, which is committed with the entity. All of these are read in a view
    at least as new as the ledger. If the fence holds, the ledger was the newest; every attempt that had written a blob had
    loaded the entity before the fence, and so can commit no more. The proof of another attempt at the same message proves
    nothing more, nor less.

    A read model keeps no transaction ids once its outputs are published. The document of the message's number proves the
    commit by the time of its attempt, which the blob has as well, to the microsecond. Should two attempts at one message have
    the same time, the blobs of both stay.

    Args:
        entity: whose attempts wrote them.
        candidates: blobs as `blob_candidates` picks them, at most 100; those of other entities are left alone. The proof
            of older ones may be deleted, so that they would look like garbage; so they would after somebody has deleted the
            library's documents of the entity, or the entity, by hand.
        absent: the document's id and partition key properties, for the tombstone of an entity that does not exist.
        memory: what this process knows of the entity.
        strategy: of the entity.

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
    # Delete the blobs. No commit names them, nor ever will. What remains is a candidate next time.
    yield from DeleteBlobs(garbage)
    return CleanedBlobs(garbage, fenced)


def committed_by_companions(
    entity: EntityRef, ids: Mapping[Author, str | None], memory: Memory
) -> Step[frozenset[Author] | Again]:
    """Those of the attempts that a companion proves committed, or might. At most one effect.

    Args:
        entity: whose attempts they are.
        ids: of the companion that would prove each; None if that is not known.
        memory: what this process knows of the entity.
    """
    known = tuple(dict.fromkeys(id for id in ids.values() if id is not None))
    if not known:
        return frozenset(ids)
    # Read the companions of the blobs' messages. They were written by the commits that they prove, so a view at the
    # entity's session token has them.
    read = yield from LoadCompanions(entity, known, memory.entity_token)
    if isinstance(read, NoAnswer):
        return Again(memory, "the companions of the entity could not be read")
    found = [companion for companion, _ in read.companions]
    return frozenset(author for author, id in ids.items() if id is None or any(_proves(author, one) for one in found))


def _proves(author: Author, one: Companion) -> bool:
    """Whether a companion is of the commit of just this attempt."""
    if isinstance(one, NumberedMessage):
        return (one.message, one.at) == (author.message, author.at)
    return one.tx == author.tx
