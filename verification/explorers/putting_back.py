"""What a restored database has lost: later versions of an entity whose pages are there, or all of them, or its pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from verification.explorers.reductions import State, tidied
from verification.world.amounts import spent
from verification.world.answers import World
from verification.world.scenario import PLACES
from verification.world.store import ABSENT, Entity, history_of, is_removed
from verification.world.workers import Workers

REMOVED: Final = "The entity is deleted"


def put_back(world: World, workers: Workers, state: State) -> Iterator[tuple[str, State]]:
    """Every way to put an entity back, with what is said of it. Processes begin anew, and queues stay as they are."""
    store, queue, standing, delayed, left = state
    for number, entity in enumerate(store.entities):
        for position, version in enumerate(entity.versions[:-1], entity.first):
            if version.document is None:
                continue
            etag = str(entity.newest + 1)
            back = world.stores.entity(entity.newest + 1, (replace(version, etag=etag),))
            kept, undone = _kept(store.committed, back)
            after = world.stores.changed(
                world.stores.with_entity(store, number, back),
                committed=kept,
                undone=store.undone | undone,
                put_back=store.put_back + 1,
            )
            idle = tuple(workers.idle() for _ in standing)
            after, idle = tidied(world.stores, workers, after, idle, delayed)
            said = f"The entity is put back to version {position}"
            yield said, (after, queue, idle, delayed, spent(left, PLACES["put_back"]))


def removed(world: World, workers: Workers, state: State) -> Iterator[tuple[str, State]]:
    """Every way to delete an entity that has pages. What was processed stays so: no message may be handled once more."""
    store, queue, standing, delayed, left = state
    for number, (entity, library) in enumerate(zip(store.entities, store.libraries, strict=True)):
        gone = world.stores.with_entity(store, number, world.stores.entity(entity.newest + 1, (ABSENT,)))
        if entity.truth.document is not None and is_removed(gone.entities[number], library):
            idle = tuple(workers.idle(item.memories, item.book) for item in standing)
            after, idle = tidied(world.stores, workers, gone, idle, delayed)
            yield REMOVED, (after, queue, idle, delayed, spent(left, PLACES["removed"]))


def emptied(world: World, state: State) -> Iterator[tuple[str, State]]:
    """Every way to lose the pages of an entity, with what is said of it."""
    store, queue, standing, delayed, left = state
    for number, library in enumerate(store.libraries):
        pages = tuple(id for id in library.now if id.startswith("page:"))
        if not pages:
            continue
        lost = world.stores.library((*library.writes, *((id, None) for id in pages)))
        after = world.stores.changed(world.stores.with_library(store, number, lost), emptied=store.emptied + 1)
        yield "The pages are lost", (after, queue, standing, delayed, spent(left, PLACES["emptied"]))


def _kept(committed: frozenset[tuple[str, str]], entity: Entity) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """What is committed where an entity was put back, and the keys of messages of which that is no longer true."""
    history = history_of(entity.truth.document)
    kept = frozenset(item for item in committed if item[0].partition("/")[2] in history.split(">"))
    return kept, frozenset(key for key, _ in committed - kept)
