"""Writes, and what they mention."""

from __future__ import annotations

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import DeleteParked, DeleteProcessed, DeleteStaged, Park, Stage, WriteProcessed
from verification.checker.beside.batches import BesideWrite, described_beside, messages_beside, transactions_beside
from verification.checker.store import ledger_of

Write = SaveEntity | WriteProcessed | Stage | DeleteStaged | DeleteProcessed | Park | DeleteParked | BesideWrite


def described(write: Write) -> str:  # noqa: PLR0911
    """A write, for a story."""
    match write:
        case SaveEntity():
            return "saves the entity" if write.etag else "creates the entity"
        case WriteProcessed():
            return f"writes records of {', '.join(record.message for record in write.records)}"
        case Stage():
            return f"stages outputs of {', '.join(document.message for document in write.documents)}"
        case DeleteStaged():
            return f"deletes the staged outputs {', '.join(write.transactions)}"
        case DeleteProcessed():
            return f"deletes the records of {', '.join(key for key, _ in write.records)}"
        case Park():
            return f"parks {write.message.message}"
        case DeleteParked():
            return f"deletes the parked document of {write.message}"
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return described_beside(write)


def transactions_in(write: Write) -> frozenset[str]:
    """Transaction ids that a write mentions."""
    match write:
        case SaveEntity():
            return frozenset(entry.tx for entry in ledger_of(write.document).entries)
        case WriteProcessed():
            return frozenset(record.tx for record in write.records)
        case Stage():
            return frozenset(document.tx for document in write.documents)
        case DeleteStaged():
            return frozenset(write.transactions)
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return transactions_beside(write)
        case DeleteProcessed() | Park() | DeleteParked():
            return frozenset()


def messages_in(write: Write) -> frozenset[str]:  # noqa: PLR0911
    """Keys of the messages that a write mentions."""
    match write:
        case SaveEntity():
            return frozenset(entry.message for entry in ledger_of(write.document).entries)
        case WriteProcessed():
            return frozenset(record.message for record in write.records)
        case Stage():
            return frozenset(document.message for document in write.documents)
        case DeleteProcessed():
            return frozenset(key for key, _ in write.records)
        case Park():
            return frozenset({write.message.message})
        case DeleteParked():
            return frozenset({write.message})
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return messages_beside(write)
        case DeleteStaged():
            return frozenset()
