"""Contracts of companions and stream entries; parts of `StoreContract`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
)
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.errors import DamagedDocument, NewerSchema
from exactlyonce.records.companions import StreamEntry, entry_id, id_of, record_id
from exactlyonce.records.outbox import OutputRef, Place
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import (
    LEVELS,
    OWNED,
    a_colocated,
    a_numbered,
    an_entry,
    an_owing_entry,
    companions_now,
    companions_of,
    entries,
    owned_entity,
    put,
    reply_to,
    save,
    together,
    unique,
)
from exactlyonce.values.envelope import EntityRef

# ruff: noqa: S101  # A suite asserts.


MOST_OWING: Final = 100
Search = Callable[[AsyncStore, EntityRef], Awaitable[Any]]
SEARCHES: Final[dict[str, Search]] = {
    "load_companions of one": lambda store, entity: store.perform(
        LoadCompanions(entity, (record_id(entity, "web/1"),))
    ),
    "load_companions of two": lambda store, entity: store.perform(
        LoadCompanions(entity, (record_id(entity, "web/1"), record_id(entity, "web/2")))
    ),
    "find_owing": lambda store, entity: store.perform(FindOwing(entity)),
}


class CompanionContract:
    """Companions are read for one entity only, and replaced only if unchanged since the read."""

    async def test_companions_come_in_the_order_asked_for_and_absent_ones_are_left_out(self, store: AsyncStore) -> None:
        entity = owned_entity()
        first, second, third = (an_entry(entity, number, f"web/{number}") for number in (1, 2, 3))
        saved = await together(store, entity, first, second, third)
        ids = [entry_id(entity, f"web/{number}") for number in (3, 7, 1, 3)]
        loaded = await companions_of(store, entity, *ids, token=saved.token)
        assert [companion for companion, _ in loaded] == [third, first]

    async def test_nothing_is_found_for_an_entity_nobody_saved(self, store: AsyncStore) -> None:
        entity = owned_entity()
        ids = (entry_id(entity, "web/1"), entry_id(entity, "web/2"))
        assert await companions_of(store, entity, *ids) == await companions_of(store, entity, ids[0]) == ()
        assert await entries(store, entity, (1, 9), token=None) == []
        assert await store.perform(FindNumbered(entity, "c1", (1, 9))) == FoundNumbered(())
        assert await owing(store, entity) == ()
        assert await store.perform(HasCompanions(entity)) is False

    async def test_a_question_for_nothing_has_no_answer(self, store: AsyncStore) -> None:
        entity = owned_entity()
        saved = await together(store, entity, an_entry(entity, 1))
        assert await companions_of(store, entity, token=saved.token) == ()
        assert await entries(store, entity, token=saved.token) == []

    async def test_records_that_owe_outputs_are_found_until_they_do_not(self, store: AsyncStore) -> None:
        entity = owned_entity()
        await together(
            store,
            entity,
            a_colocated(entity, "web/1", 1, owes=True),
            a_colocated(entity, "web/2", 2),
            a_colocated(entity, "web/3", 3, owes=True),
            an_entry(entity, 4),
            (entry := an_owing_entry(entity, 5)),
            a_numbered(entity),
        )
        records_owing = await owing(store, entity)
        records = {a_colocated(entity, f"web/{number}", number, owes=True) for number in (1, 3)}
        assert {companion for companion, _ in records_owing} == {*records, entry}
        settled = tuple((replace(companion, owed=None, owing_since=None), etag) for companion, etag in records_owing)
        await store.perform(ReplaceCompanions(entity, settled))
        assert await owing(store, entity) == ()

    async def test_at_most_a_hundred_owing_records_are_found(self, store: AsyncStore) -> None:
        entity = owned_entity()
        etag = None
        for first in (0, 60):
            records = [a_colocated(entity, f"web/{number}", owes=True) for number in range(first, first + 60)]
            etag = (await together(store, entity, *records, etag=etag)).etag
        assert len(await owing(store, entity)) == MOST_OWING

    async def test_whether_an_entity_has_companions_can_be_asked(self, store: AsyncStore) -> None:
        entity = owned_entity()
        saved = await save(store, entity)
        assert await store.perform(HasCompanions(entity)) is False
        numbered = a_numbered(entity)
        await together(store, entity, numbered, etag=saved.etag)
        assert await store.perform(HasCompanions(entity)) is True
        ((_, etag),) = await companions_of(store, entity, id_of(entity, numbered))
        await store.perform(DeleteCompanions(entity, ((id_of(entity, numbered), etag),)))
        assert await store.perform(HasCompanions(entity)) is False

    @pytest.mark.parametrize("type", [OWNED, LEVELS])
    async def test_entities_that_share_a_partition_do_not_see_each_others_companions(
        self, store: AsyncStore, type: str
    ) -> None:
        owner = unique()
        first, other, third = (owned_entity(owner, type) for _ in range(3))
        records = [a_colocated(entity, "web/1", owes=True) for entity in (first, other)]
        await together(store, first, records[0], an_entry(first, 1))
        await together(store, other, records[1], an_entry(other, 2))
        saved = await together(store, third)
        for entity, record, version in ((first, records[0], 1), (other, records[1], 2)):
            assert await entries(store, entity, (1, 9), token=saved.token) == [version]
            assert [companion for companion, _ in await owing(store, entity)] == [record]
            loaded = await companions_of(store, entity, record_id(entity, "web/1"), token=saved.token)
            assert [companion for companion, _ in loaded] == [record]
        assert await companions_of(store, third, record_id(third, "web/1"), token=saved.token) == ()
        assert await store.perform(HasCompanions(third)) is False

    async def test_companions_that_have_changed_are_not_written_over_and_hinder_no_others(
        self, store: AsyncStore
    ) -> None:
        entity = owned_entity()
        old = [an_entry(entity, number, f"web/{number}") for number in (1, 2, 3, 4)]
        new = [replace(entry, digest="new") for entry in old]
        ids = [id_of(entity, entry) for entry in old]
        saved = await together(store, entity, *old[:3])
        read = [etag for _, etag in await companions_of(store, entity, *ids, token=saved.token)]
        changed = replace(old[1], digest="changed")
        await store.perform(ReplaceCompanions(entity, ((changed, read[1]),)))
        await store.perform(ReplaceCompanions(entity, ((new[1], read[1]),)))
        replacements = zip(new, [*read, read[0]], strict=True)
        await store.perform(ReplaceCompanions(entity, tuple(replacements)))
        assert await companions_now(store, entity, *ids) == (new[0], changed, new[2])

    @pytest.mark.parametrize("count", [1, 2])
    async def test_without_an_etag_whatever_exists_is_written_over(self, store: AsyncStore, count: int) -> None:
        entity = owned_entity()
        old = [an_entry(entity, number, f"web/{number}") for number in range(count)]
        new = tuple(replace(entry, digest="new") for entry in old)
        await together(store, entity, *old)
        absent = an_entry(entity, 9, "web/9")
        await store.perform(ReplaceCompanions(entity, ((absent, None),)))
        await store.perform(ReplaceCompanions(entity, tuple((entry, None) for entry in (*new, absent))))
        assert await companions_now(store, entity, *(id_of(entity, entry) for entry in (*new, absent))) == new

    async def test_companions_are_deleted_only_as_they_were_read(self, store: AsyncStore) -> None:
        entity = owned_entity()
        companions = [an_entry(entity, number, f"web/{number}") for number in (1, 2, 3)]
        ids = [id_of(entity, companion) for companion in companions]
        saved = await together(store, entity, *companions)
        read = [etag for _, etag in await companions_of(store, entity, *ids, token=saved.token)]
        changed = replace(companions[1], digest="changed")
        await store.perform(ReplaceCompanions(entity, ((changed, read[1]),)))
        await store.perform(DeleteCompanions(entity, ((ids[1], read[1]),)))
        assert await companions_now(store, entity, *ids) == (companions[0], changed, companions[2])
        absent = (entry_id(entity, "web/9"), read[0])
        await store.perform(DeleteCompanions(entity, (*zip(ids, read, strict=True), absent)))
        assert await companions_now(store, entity, *ids) == (changed,)

    @pytest.mark.parametrize("search", SEARCHES)
    @pytest.mark.parametrize(
        ("name", "value", "error"), [("owed", "nothing", DamagedDocument), ("schema", 2, NewerSchema)]
    )
    async def test_a_companion_that_cannot_be_read_is_never_left_out(
        self, store: AsyncStore, search: str, name: str, value: object, error: type[Exception]
    ) -> None:
        entity = owned_entity()
        await put(store, entity, a_colocated(entity, "web/1", owes=True), **{name: value})
        with pytest.raises(error, match=name):
            await SEARCHES[search](store, entity)

    async def test_a_document_of_the_users_is_not_taken_for_a_companion(self, store: AsyncStore) -> None:
        entity = owned_entity()
        id = record_id(entity, "web/1")
        await save(store, EntityRef(OWNED, entity.partition, id), entity=entity.key)
        assert await store.perform(HasCompanions(entity)) is False
        for ids in ((id,), (id, record_id(entity, "web/2"))):
            with pytest.raises(DamagedDocument, match="the library did not write the document"):
                await store.perform(LoadCompanions(entity, ids))

    async def test_a_companion_is_not_taken_for_an_entity(self, store: AsyncStore) -> None:
        entity = owned_entity()
        record = a_colocated(entity, "web/1")
        saved = await together(store, entity, record)
        same = EntityRef(OWNED, entity.partition, id_of(entity, record))
        with pytest.raises(DamagedDocument, match="Derive another id in key="):
            await store.perform(LoadEntity(same, saved.token))


async def owing(store: AsyncStore, entity: EntityRef) -> tuple[tuple[Any, str], ...]:
    """The records that owe outputs, each with its ETag."""
    return (await reply_to(store, FindOwing(entity), FoundCompanions)).companions


# Entries of a version stream.


class StreamContract:
    """Entries are read by their versions, and versions by the numbers that they sent."""

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
        ((entry, etag),) = (
            await reply_to(store, FindEntries(entity, ((1, 1),), saved.token), FoundCompanions)
        ).companions
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
        sent = {3: ["c1 5"], 2: ["c1 3", "c2 1", "c1 4"], 1: ["c1 2", "c1 1"], 4: ["c3 3", "c2 2"], 5: []}
        await together(store, entity, *(an_entry_that_sent(entity, version, *sent[version]) for version in sent))
        saved = await together(store, other, an_entry_that_sent(other, 7, "c1 3"), an_entry(other, 8))
        for numbers, versions in [((1, 99), (1, 2, 3)), ((2, 3), (1, 2)), ((4, 4), (2,)), ((6, 9), ())]:
            reply = await store.perform(FindNumbered(entity, "c1", numbers, saved.token))
            assert reply == FoundNumbered(versions)

    async def test_an_entry_that_cannot_be_read_is_never_left_out(self, store: AsyncStore) -> None:
        entity = owned_entity()
        await put(store, entity, an_entry(entity, 1), envelope=None)
        with pytest.raises(DamagedDocument, match="envelope"):
            await entries(store, entity, (1, 1), token=None)


def an_entry_that_sent(entity: EntityRef, version: int, *places: str) -> StreamEntry:
    """An entry with outputs at these places: each a channel and a number."""
    sent = [(channel, int(number)) for channel, number in map(str.split, places)]
    outputs = (OutputRef(f"o-{number}", "boards", Place(channel, "board/b", number)) for channel, number in sent)
    return replace(an_entry(entity, version), outputs=tuple(outputs))
