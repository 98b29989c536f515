"""Writes, and what they mention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from exactlyonce.effects.companions import DeleteCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import DeletePages, DeleteStaged, KeepAnswers, Park, Stage, Unpark, WritePage
from exactlyonce.records.companions import Companion, NumberedMessage
from exactlyonce.records.ledger import split
from exactlyonce.records.outbox import transaction
from verification.world.books import BookWritten
from verification.world.store import messages_of, transactions_of


@dataclass(frozen=True, slots=True)
class WriteDown:
    """A process writes its book.

    Attributes:
        id: of the book.
        written: what it says.
    """

    id: str
    written: BookWritten


OfCompanions = SaveBatch | ReplaceCompanions | DeleteCompanions
Write = (
    SaveEntity | WritePage | Stage | DeleteStaged | DeletePages | Park | Unpark | KeepAnswers | WriteDown | OfCompanions
)
BestEffort = DeleteStaged | DeletePages | Unpark | ReplaceCompanions | DeleteCompanions


def described(write: Write) -> str:  # noqa: C901, PLR0911
    """A write, for a story."""
    match write:
        case SaveEntity():
            return "saves the entity" if write.etag else "creates the entity"
        case WritePage():
            marks = len(split(write.page.marks))
            return f"writes page {write.page.number}, of version {write.page.version}, with {marks} marks"
        case Stage():
            return f"stages outputs of {', '.join(document.message for document in write.documents)}"
        case DeleteStaged():
            return f"deletes the staged outputs {', '.join(write.transactions)}"
        case DeletePages():
            return f"deletes the pages after {', '.join(str(after) for after, _ in write.pages) or 'none'}"
        case WriteDown():
            said = write.written
            return f"writes the book {write.id}: {sorted(said.open)} are open, {sorted(said.paid)} are closed"
        case Park():
            return f"parks {write.message.message}"
        case Unpark():
            return f"deletes the parked document of {write.message}"
        case KeepAnswers():
            return f"keeps the answers to {', '.join(document.request for document in write.documents)}"
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return _described_companions(write)


def transactions_in(write: Write) -> frozenset[str]:
    """Transaction ids that a write mentions."""
    match write:
        case SaveEntity():
            return transactions_of(write.document)
        case Stage():
            return frozenset(document.tx for document in write.documents)
        case DeleteStaged():
            return frozenset(write.transactions)
        case WriteDown():
            return frozenset(transaction(write.id, item) for item in write.written.open | write.written.paid)
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            named = {item.tx for item in companions_in(write) if not isinstance(item, NumberedMessage)}
            owing = transactions_of(write.document) if isinstance(write, SaveBatch) else frozenset()
            return owing.union(named)
        case WritePage() | DeletePages() | Park() | Unpark() | KeepAnswers():
            return frozenset()


def messages_in(write: Write) -> frozenset[str]:
    """Keys of the messages that a write mentions. Saves of the outbox name hashes, for which nobody asks."""
    match write:
        case Stage():
            return frozenset(document.message for document in write.documents)
        case Park():
            return frozenset({write.message.message})
        case Unpark():
            return frozenset({write.message})
        case SaveBatch() | ReplaceCompanions() | DeleteCompanions():
            return frozenset(item.message for item in companions_in(write) if item.message is not None)
        case SaveEntity():
            return messages_of(write.document)
        case WritePage() | DeleteStaged() | DeletePages() | KeepAnswers() | WriteDown():
            return frozenset()


def parts_of(effect: BestEffort) -> Iterator[ReplaceCompanions | DeleteCompanions]:
    """A write of several companions, one by one."""
    match effect:
        case ReplaceCompanions(companions=replaced) if len(replaced) > 1:
            yield from (replace(effect, companions=(item,)) for item in replaced)
        case DeleteCompanions(companions=deleted) if len(deleted) > 1:
            yield from (replace(effect, companions=(item,)) for item in deleted)


def companions_in(write: OfCompanions) -> tuple[Companion, ...]:
    """The companions that a write holds."""
    match write:
        case SaveBatch():
            return (*write.create, *(item for item, _ in write.replace))
        case ReplaceCompanions():
            return tuple(item for item, _ in write.companions)
        case DeleteCompanions():
            return ()


def _described_companions(write: OfCompanions) -> str:
    """A write, for a story."""
    if isinstance(write, DeleteCompanions):
        return f"deletes {', '.join(id for id, _ in write.companions)}"
    if isinstance(write, ReplaceCompanions):
        return f"writes down that {', '.join(map(_named, companions_in(write)))} owes nothing"
    held = [item for item in companions_in(write) if isinstance(item, NumberedMessage) and item.held is not None]
    done = [item for item in companions_in(write) if not (isinstance(item, NumberedMessage) and item.held is not None)]
    parts = [f"holds {', '.join(map(_named, held))}"] if held else []
    parts += [f"commits {', '.join(map(_named, done))}"] if done else []
    return " and ".join(parts) or "saves what it drafted"


def _named(companion: Companion) -> str:
    return companion.message or "a number without a message"
