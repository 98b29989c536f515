"""The contract of a store for entries of a version stream; a part of `StoreContract`."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce.effects.companions import DeleteCompanions, FindEntries, FindNumbered, FoundCompanions, FoundNumbered
from exactlyonce.errors import DamagedDocument
from exactlyonce.records.companions import StreamEntry, id_of
from exactlyonce.records.outputs import OutputRef
from exactlyonce.records.places import Place
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    OWNED,
    a_colocated,
    an_entry,
    entries,
    owned_entity,
    put,
    save,
    together,
    unique,
)
from exactlyonce.values.identity import EntityRef


class StreamContract:
    """Finding entries by their versions, and versions by the numbers they sent."""

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_entries_are_found_by_their_versions_and_come_in_their_order(
        self, store: AsyncStore, type: str
    ) -> None:
        entity = owned_entity(type=type)
        token, etag = None, None
        for versions in ((1, 2), (10, 3), (9, 4), (20, 11)):
            created = [an_entry(entity, version) for version in versions]
            saved = await together(store, entity, *created, etag=etag)
            token, etag = saved.token, saved.etag
        assert await entries(store, entity, (2, 4), token=token) == [2, 3, 4]
        assert await entries(store, entity, (10, 99), (1, 1), token=token) == [1, 10, 11, 20]
        assert await entries(store, entity, (1, 10), (9, 11), token=token) == [1, 2, 3, 4, 9, 10, 11]
        assert await entries(store, entity, (5, 8), (12, 19), (4, 3), token=token) == []

    async def test_an_entry_that_was_found_can_be_deleted_as_it_was(self, store: AsyncStore) -> None:
        entity = owned_entity()
        saved = await together(store, entity, an_entry(entity, 1), an_entry(entity, 2))
        reply = await store.perform(FindEntries(entity, ((1, 1),), saved.token))
        assert isinstance(reply, FoundCompanions)
        ((entry, etag),) = reply.companions
        await store.perform(DeleteCompanions(entity, ((id_of(entity, entry), etag),)))
        later = await save(store, EntityRef(OWNED, entity.partition, unique()))
        assert await entries(store, entity, (1, 2), token=later.token) == [2]

    async def test_other_companions_with_versions_are_no_entries(self, store: AsyncStore) -> None:
        entity = owned_entity()
        saved = await together(store, entity, a_colocated(entity, "web/1", 1), an_entry(entity, 2))
        assert await entries(store, entity, (1, 2), token=saved.token) == [2]

    async def test_the_versions_that_sent_numbers_of_a_channel_are_found_in_their_order(
        self, store: AsyncStore
    ) -> None:
        entity = owned_entity()
        other = owned_entity(str(entity.partition[0]))
        sent = {
            3: [("c1", 5)],
            2: [("c1", 3), ("c2", 1), ("c1", 4)],
            1: [("c1", 2), ("c1", 1)],
            4: [("c3", 3), ("c2", 2)],
            5: [],
        }
        await together(store, entity, *(an_entry_that_sent(entity, version, sent[version]) for version in sent))
        saved = await together(store, other, an_entry_that_sent(other, 7, [("c1", 3)]), an_entry(other, 8))
        assert await numbered(store, entity, (1, 99), token=saved.token) == (1, 2, 3)
        assert await numbered(store, entity, (2, 3), token=saved.token) == (1, 2)
        assert await numbered(store, entity, (4, 4), token=saved.token) == (2,)
        assert await numbered(store, entity, (6, 9), token=saved.token) == ()

    async def test_an_entry_that_cannot_be_read_is_never_left_out(self, store: AsyncStore) -> None:
        entity = owned_entity()
        await put(store, entity, an_entry(entity, 1), envelope=None)
        with pytest.raises(DamagedDocument, match="envelope"):
            await entries(store, entity, (1, 1), token=None)


async def numbered(
    store: AsyncStore, entity: EntityRef, numbers: tuple[int, int], token: str | None
) -> tuple[int, ...]:
    """The versions that sent numbers of channel c1."""
    reply = await store.perform(FindNumbered(entity, "c1", numbers, token))
    assert isinstance(reply, FoundNumbered)
    return reply.versions


def an_entry_that_sent(entity: EntityRef, version: int, sent: list[tuple[str, int]]) -> StreamEntry:
    """An entry with outputs of these channels and numbers."""
    outputs = (OutputRef(f"o-{number}", "boards", Place(channel, "board/b", number)) for channel, number in sent)
    return replace(an_entry(entity, version), outputs=tuple(outputs))
