"""Paying what entries owe: their outputs are published, and their answers are kept."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.books import CloseNumbers, FindPaid
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.effects.requests import KeepAnswers
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.records.outputs import Output
from exactlyonce.values.identity import EntityRef


def paid_of(entity: EntityRef, ledger: Ledger, needed: tuple[OutboxEntry, ...]) -> FindPaid:
    """The question which entries of a ledger are paid; the answer has to be certain of those that are needed."""
    owing = ledger.outbox
    attempts = tuple(entry.at for entry in owing)
    return FindPaid(
        entity, ledger.version, tuple(entry.tx for entry in owing), attempts, tuple(entry.tx for entry in needed)
    )


def pay(
    entity: EntityRef,
    outputs: tuple[Output, ...],
    entries: tuple[OutboxEntry, ...],
    numbers: tuple[str, ...],
    memory: Memory,
) -> Step[Memory | Again]:
    """Publish what a commit owes, keep its answers, close its numbers. At most 3 effects.

    Args:
        entity: of the commit.
        outputs: of the commit.
        entries: of the commit.
        numbers: all transactions that the attempt opened.
        memory: what this process knows of the entity.
    """
    if outputs:
        # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are acknowledged,
        # so that none is lost.
        published = yield from Publish(outputs)
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
    kept = yield from _keep_answers(entity, entries, memory)
    if isinstance(kept, Again):
        return kept
    # Close the numbers. From now on the book proves that nothing of them is owed, and the next commit drops their entries.
    yield from CloseNumbers(numbers)
    return kept


def publish_owed(entity: EntityRef, entries: tuple[OutboxEntry, ...], view: View) -> Step[Memory | Again]:
    """Publish what these entries owe, keep their answers, and note that they are paid. At most 3 effects."""
    if not entries:
        return view.memory
    outputs = tuple(
        output for entry in entries for output in entry.owed_outputs(entity, view.ledger.to, view.ledger.sequences)
    )
    if outputs:
        # Publish what entries owe. Copies do no harm: their ids and their times are the same.
        published = yield from Publish(outputs, entity)
        if published is not PUBLISHED:
            return Again(view.memory, "owed outputs could not be published")
    kept = yield from _keep_answers(entity, entries, view.memory)
    if isinstance(kept, Again):
        return kept
    # Note that the entries are paid, also those of other processes.
    yield from CloseNumbers(tuple(entry.tx for entry in entries))
    return kept


def _keep_answers(entity: EntityRef, entries: tuple[OutboxEntry, ...], memory: Memory) -> Step[Memory | Again]:
    """Keep the answers of entries in the documents of their requests. At most one effect."""
    documents = tuple(
        RequestDocument(entity.key, entry.request, entry.at, None, entry.answer)
        for entry in entries
        if entry.request is not None
    )
    if not documents:
        return memory
    # Keep the answers, each in the document of its request, if that is there. A document that is gone was closed by its caller:
    # written anew, it would stay for ever.
    kept = yield from KeepAnswers(entity, documents)
    if isinstance(kept, NoAnswer):
        return Again(memory, "whether the answers were kept is not known")
    return replace(memory, library_token=kept.token)
