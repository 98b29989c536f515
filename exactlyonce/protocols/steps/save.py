"""Saving an entity: fences, what a save that was not acknowledged leads to, and what is written before a commit.

A read alone proves no absence: the view may be stale, and a commit that has yet to land looks like one that never will. A
fence, which saves the entity as it was loaded if it is still so, proves both at once: the view was current, and every commit
still under way fails, since its condition is an older version. Whatever is begun later loads the entity anew.
"""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.blobs import KEPT, WriteOnce
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import LEDGER, Ledger, entity_document
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef


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


def start_over(memory: Memory, reply: Conflict | NoAnswer) -> Again:
    """What a save that was not acknowledged leads to: load again. The conflict's token shows what won, oneself included."""
    if isinstance(reply, NoAnswer):
        return Again(replace(memory, saved=None), "whether the entity was saved is not known")
    token = reply.token or memory.entity_token
    return Again(replace(memory, saved=None, entity_token=token), "the entity was changed meanwhile, or saved twice")


def with_ledger(document: Json, ledger: Ledger) -> Json:
    """The document with this ledger in place of its own."""
    properties = document.value
    del properties[LEDGER]
    return entity_document(Json.of(properties), ledger)


def write_blobs(blobs: tuple[Blob, ...], memory: Memory) -> Step[Again | None]:
    """Write blobs before the commit that relies on them; None if they are there. At most one effect."""
    if blobs:
        # Write blobs. Before the commit, so that every committed address has its blob. Names are fresh: one that exists was
        # written by an earlier send of this request.
        kept = yield from WriteOnce(blobs)
        if kept is not KEPT:
            return Again(memory, "whether the blobs were written is not known")
    return None
