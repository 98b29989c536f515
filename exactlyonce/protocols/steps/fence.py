"""Proving that a view of an entity is current, without changing the entity.

A read alone proves no absence: the view may be stale, and a commit that has yet to land looks like one that never will. A
fence, which saves the entity as it was loaded if it is still so, proves both at once: the view was current, and every commit
still under way fails, since its condition is an older version. Whatever is begun later loads the entity anew.
"""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import LoadEntity, Saved, SaveEntity
from exactlyonce.protocols.outbox.draft import View
from exactlyonce.protocols.outbox.protocol import never_had_a_ledger, start_over
from exactlyonce.protocols.steps.ownership import require_own
from exactlyonce.records.ledger import Ledger, Protocol, entity_document, read_entity
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef


def look(entity: EntityRef, memory: Memory, protocol: Protocol = "outbox") -> Step[View | Again]:
    """Load an entity of this protocol. At most 3 effects; the third only where a ledger seems to have been removed.

    Raises:
        StoredDataError: the document cannot be trusted.
        ConfigurationError: it belongs to another protocol.
    """
    # Load the entity. The view may be old: then a save fails, and an absence proves nothing without a fence.
    loaded = yield from LoadEntity(entity, memory.entity_token)
    if isinstance(loaded, NoAnswer):
        return Again(memory, "the entity could not be read")
    memory = replace(memory, entity_token=loaded.token)
    stored = read_entity(entity, loaded.document)
    require_own(entity, stored.ledger, protocol)
    if stored.ledger is None:
        adoptable = yield from never_had_a_ledger(entity, loaded, protocol)
        if not adoptable:
            return Again(memory, "whether the entity ever had a ledger is not certain")
    ledger = replace(stored.ledger or Ledger(), type=entity.type, protocol=protocol)
    return View(loaded.document, loaded.etag, loaded.timestamp, stored.body, ledger, frozenset(), memory)


def fence(entity: EntityRef, view: View, absent: Json) -> Step[Memory | Again]:
    """Save the entity unchanged, if it is still as it was loaded; return what to remember. One effect.

    A document without a ledger stays without one: its new ETag is all that a fence needs, and whether to adopt it is for the
    first message that is processed. An absent entity becomes a tombstone, since without a document there is no condition that
    a create under way could fail on.

    Args:
        entity: to be fenced.
        view: what was loaded of it.
        absent: what to save if there is nothing: the document's id and partition key properties.
    """
    document = view.document
    if document is None:
        document = entity_document(absent, replace(view.ledger, deleted=True))
    # Fence: save the entity unchanged, or a tombstone if it is absent. If it is saved, the view was current, and every
    # commit still under way will fail.
    saved = yield from SaveEntity(entity, document, view.etag)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    return replace(view.memory, entity_token=saved.token, saved=None)
