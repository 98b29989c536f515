"""Writes, and what they mention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import (
    DeleteChannels,
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    Park,
    Stage,
    WriteRecords,
)
from exactlyonce.effects.requests import KeepAnswers
from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.records.library import ChannelDocument, ProcessedRecord, Seal
from verification.world.store import ledger_of

OfCompanions = SaveBatch | ReplaceCompanions | DeleteCompanions
Write = (
    SaveEntity
    | WriteRecords
    | Stage
    | DeleteStaged
    | DeleteChannels
    | DeleteProcessed
    | Park
    | DeleteParked
    | KeepAnswers
    | OfCompanions
)
BestEffort = DeleteStaged | DeleteChannels | DeleteProcessed | DeleteParked | ReplaceCompanions | DeleteCompanions


def described(write: Write) -> str:  # noqa: C901, PLR0911
    """A write, for a story."""
    match write:
        case SaveEntity():
            return "saves the entity" if write.etag else "creates the entity"
        case WriteRecords():
            return f"writes {', '.join(_recorded(record) for record in write.records)}"
        case Stage():
            return f"stages outputs of {', '.join(document.message for document in write.documents)}"
        case DeleteStaged():
            return f"deletes the staged outputs {', '.join(write.transactions)}"
        case DeleteChannels():
            return f"deletes the documents of channels {', '.join(write.documents)}"
        case DeleteProcessed():
            return f"deletes the records of {', '.join(key for key, _ in write.records)}"
        case Park():
            return f"parks {write.message.message}"
        case DeleteParked():
            return f"deletes the parked document of {write.message}"
        case KeepAnswers():
            return f"keeps the answers to {', '.join(document.request for document in write.documents)}"
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return _described_companions(write)


def transactions_in(write: Write) -> frozenset[str]:
    """Transaction ids that a write mentions."""
    match write:
        case SaveEntity():
            ledger = ledger_of(write.document)
            return frozenset(filter(None, (ledger.apart.turn, *ledger.transactions)))
        case WriteRecords():
            return frozenset(filter(None, map(_transaction_of, write.records)))
        case Stage():
            return frozenset(document.tx for document in write.documents)
        case DeleteStaged():
            return frozenset(write.transactions)
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            named = {one.tx for one in companions_in(write) if not isinstance(one, NumberedMessage)}
            entries = ledger_of(write.document).entries if isinstance(write, SaveBatch) else ()
            return frozenset((*named, *(entry.tx for entry in entries)))
        case DeleteChannels() | DeleteProcessed() | Park() | DeleteParked() | KeepAnswers():
            return frozenset()


def messages_in(write: Write) -> frozenset[str]:  # noqa: PLR0911
    """Keys of the messages that a write mentions."""
    match write:
        case SaveEntity():
            return frozenset(entry.message for entry in ledger_of(write.document).entries)
        case WriteRecords():
            return frozenset(record.message for record in write.records if isinstance(record, ProcessedRecord))
        case Stage():
            return frozenset(document.message for document in write.documents)
        case DeleteProcessed():
            return frozenset(key for key, _ in write.records)
        case Park():
            return frozenset({write.message.message})
        case DeleteParked():
            return frozenset({write.message})
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return frozenset(one.message for one in companions_in(write) if one.message is not None)
        case DeleteStaged() | DeleteChannels() | KeepAnswers():
            return frozenset()


def parts_of(effect: BestEffort) -> Iterator[ReplaceCompanions | DeleteCompanions]:
    """A write of several companions, one by one."""
    match effect:
        case ReplaceCompanions(companions=replaced) if len(replaced) > 1:
            yield from (replace(effect, companions=(one,)) for one in replaced)
        case DeleteCompanions(companions=deleted) if len(deleted) > 1:
            yield from (replace(effect, companions=(one,)) for one in deleted)


def companions_in(write: OfCompanions) -> tuple[Companion, ...]:
    """The companions that a write holds."""
    match write:
        case SaveBatch():
            return (*write.create, *(one for one, _ in write.replace))
        case ReplaceCompanions():
            return tuple(one for one, _ in write.companions)
        case DeleteCompanions():
            return ()


def _described_companions(write: OfCompanions) -> str:
    """A write, for a story."""
    if isinstance(write, DeleteCompanions):
        return f"deletes {', '.join(id for id, _ in write.companions)}"
    if isinstance(write, ReplaceCompanions):
        return f"writes down that {', '.join(map(_named, companions_in(write)))} owes nothing"
    held = [one for one in companions_in(write) if isinstance(one, NumberedMessage) and one.held is not None]
    done = [one for one in companions_in(write) if not (isinstance(one, NumberedMessage) and one.held is not None)]
    parts = [f"holds {', '.join(map(_named, held))}"] if held else []
    parts += [f"commits {', '.join(map(_named, done))}"] if done else []
    return " and ".join(parts) or "saves what it drafted"


def _recorded(record: ProcessedRecord | ChannelDocument | Seal) -> str:
    match record:
        case ProcessedRecord():
            return f"the record of {record.message}"
        case ChannelDocument():
            return f"the document of channel {record.name}"
        case Seal():
            return "the seal"


def _transaction_of(record: ProcessedRecord | ChannelDocument | Seal) -> str | None:
    match record:
        case ProcessedRecord():
            return record.tx
        case ChannelDocument():
            return record.turn
        case Seal():
            return None


def _named(companion: Companion) -> str:
    return companion.message or "a number without a message"
