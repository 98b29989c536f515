"""Paying what entries owe: their outputs are published, and then their answers are kept."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import LoadStaged
from exactlyonce.effects.publish import PUBLISHED, Owed, Publish
from exactlyonce.protocols.outbox.draft import Draft
from exactlyonce.protocols.outbox.opened import keep_answers
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.ledger import Entry
from exactlyonce.values.identity import EntityRef


def pay(entity: EntityRef, draft: Draft, memory: Memory) -> Step[Memory | Again]:
    """Publish what a commit owes, and keep its answers. At most 2 effects."""
    if draft.outputs:
        # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are acknowledged,
        # so that none is lost.
        published = yield from Publish(draft.outputs)
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
    kept = yield from keep_answers(entity, draft.entries, memory)
    return kept


def publish_owed(entity: EntityRef, entries: tuple[Entry, ...], view: View) -> Step[Memory | Again]:
    """Publish what these entries owe and this process does not know to be published, and keep their answers."""
    owing = tuple(entry for entry in entries if entry.owed is not None and entry.tx not in view.memory.published)
    outputs = tuple(output for entry in owing for output in entry.owed_outputs(entity.source))
    if not owing:
        return view.memory
    if staged := tuple(entry.tx for entry in owing if entry.owed == "staged"):
        # Read the staged outputs. Missing ones were published: they are deleted only after the commit that dropped their
        # entry, or behind a fence, so only a stale load leads here.
        found = yield from LoadStaged(entity, staged, view.ledger.token)
        if isinstance(found, NoAnswer):
            return Again(view.memory, "staged outputs could not be read")
        outputs += tuple(output for document in found.documents for output in document.outputs)
    if outputs:
        # Publish what entries owe. Copies do no harm: their ids are the same.
        published = yield from Publish(outputs, Owed(entity, min(entry.at for entry in owing)))
        if published is not PUBLISHED:
            return Again(view.memory, "owed outputs could not be published")
    memory = yield from keep_answers(entity, owing, view.memory)
    if isinstance(memory, Again):
        return memory
    return replace(memory, published=memory.published | {entry.tx for entry in owing})
