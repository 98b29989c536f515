"""Clean-up of staged messages. Age only chooses the candidates; safety never rests on a clock alone."""

from __future__ import annotations

from dataclasses import dataclass

from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import Step
from exactlyonce.effects.library import DeleteStaged
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.steps.load import fence, load
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The candidates were judged.

    Attributes:
        transactions: names of the staged documents to be deleted. Deleting is best effort; the rest are candidates again, so
            a job counts by reading.
    """

    transactions: tuple[str, ...]
    memory: Memory


def clean_staged(entity: EntityRef, candidates: tuple[str, ...], absent: Json, memory: Memory) -> Step[Cleaned | Again]:
    """Delete staged documents that no kept message names, nor ever will. At most 4 effects.

    First the fence, then the deletion. Transaction ids are made after an entity is loaded, so an attempt that could still
    commit one of the candidates loaded before this did, and its commit fails on the fence.

    Args:
        candidates: transaction ids of staged documents older than the horizon. The horizon only spares live attempts a
            disturbance.
        absent: the document's id and partition key properties, for the tombstone of an entity that does not exist.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was deleted.
    """
    view = yield from load(entity, Outbox(), memory)
    if isinstance(view, Again):
        return view
    named = view.ledger.transactions
    garbage = tuple(tx for tx in candidates if tx not in named)
    if not garbage:
        return Cleaned((), view.memory)
    fenced = yield from fence(entity, view, absent)
    if isinstance(fenced, Again):
        return fenced
    # Delete the staged messages. The ledger does not name them, nor ever will. The rest are candidates next time.
    yield from DeleteStaged(entity, garbage)
    return Cleaned(garbage, fenced)
