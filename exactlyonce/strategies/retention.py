"""Clean-up: deleting what nothing refers to any more. Age only chooses the candidates; safety never rests on a clock alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from exactlyonce.effects import DeleteProcessed, DeleteStaged, Step
from exactlyonce.errors import ConfigurationError
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Again, Memory
from exactlyonce.identity import EntityRef
from exactlyonce.strategies.fencing import fence, look


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
        yield from DeleteProcessed(entity, records)


def require_retention(
    retention: timedelta, *, delivery_limit: timedelta, requeue_limit: timedelta, longest_owed: timedelta
) -> None:
    """Refuse to clean up records that a copy of their message may still need.

    Args:
        retention: age from which processed records are deleted.
        delivery_limit: longest time a queue keeps a message.
        requeue_limit: age above which a parked message is no longer sent again.
        longest_owed: for how long the entity that has waited longest has owed outputs; zero if none does.

    Raises:
        ConfigurationError: the retention is too short, or something is owed for more than half of it.
    """
    if longest_owed > retention / 2:
        raise ConfigurationError(
            f"An entity has owed outputs for {longest_owed}, more than half of the retention of {retention}. Nothing was "
            "deleted. Find out why they cannot be published (is their destination still configured?), and let the sweeper "
            "finish them first."
        )
    if retention <= (needed := delivery_limit + requeue_limit + longest_owed):
        raise ConfigurationError(
            f"The retention of {retention} has to be longer than any copy of a message may take to arrive, which is {needed}: "
            f"the delivery limit ({delivery_limit}), the age up to which parked messages are sent again ({requeue_limit}), "
            f"and what is owed now ({longest_owed}). Nothing was deleted. Set a longer one."
        )
