"""What the writes of one partition mention, and how a story tells of them."""

from __future__ import annotations

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.records.ledger import read_entity

BesideWrite = SaveBatch | ReplaceCompanions | DeleteCompanions


def described_beside(write: BesideWrite) -> str:
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


def companions_in(write: BesideWrite) -> tuple[Companion, ...]:
    """The companions that a write holds."""
    match write:
        case SaveBatch():
            return (*write.create, *(one for one, _ in write.replace))
        case ReplaceCompanions():
            return tuple(one for one, _ in write.companions)
        case DeleteCompanions():
            return ()


def transactions_beside(write: BesideWrite) -> frozenset[str]:
    """Transaction ids that a write mentions."""
    beside = {one.tx for one in companions_in(write) if not isinstance(one, NumberedMessage)}
    if isinstance(write, SaveBatch) and (ledger := read_entity(write.entity, write.document).ledger) is not None:
        beside.update(entry.tx for entry in ledger.entries)
    return frozenset(beside)


def messages_beside(write: BesideWrite) -> frozenset[str]:
    """Keys of the messages that a write mentions."""
    return frozenset(one.message for one in companions_in(write) if one.message is not None)


def _named(companion: Companion) -> str:
    return companion.message or "a number without a message"
