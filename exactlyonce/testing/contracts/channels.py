"""The part of the contract for stores that is about channels that left, and about the seal."""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

from dataclasses import replace

from exactlyonce.effects.library import DeleteChannels, FindChannels, FoundChannels, HasRecords, WriteRecords, Written
from exactlyonce.records.channels import Channel
from exactlyonce.records.library import ChannelDocument, Seal
from exactlyonce.stores.port import AsyncStore
from exactlyonce.testing.contracts.samples import a_record, plain_entity
from exactlyonce.values.identity import EntityRef


class ChannelsContract:
    """Documents of channels are never changed, and all that there are of a channel are found."""

    async def test_all_documents_of_a_channel_are_found_as_they_were_written(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = (a_channel(entity, "c1", 3), a_channel(entity, "c1", 7), a_channel(entity, "c2", 7))
        token = await keep(store, entity, *documents)
        assert await found(store, entity, "c1", token=token) == {*documents[:2]}
        assert await found(store, entity, "c1", "c2", "c3", token=token) == {*documents}
        assert await found(store, entity, "c3", token=token) == set()

    async def test_documents_of_all_channels_are_found_and_turns_tell_them_apart(self, store: AsyncStore) -> None:
        entity = plain_entity()
        document = a_channel(entity, "c1", 3)
        documents = (document, replace(document, turn="tx-1"), a_channel(entity, "c2", 7))
        token = await keep(store, entity, *documents, a_record(entity, "web/m-1"))
        reply = await store.perform(FindChannels(entity, None, token))
        assert isinstance(reply, FoundChannels)
        assert set(reply.documents) == {*documents}
        await store.perform(DeleteChannels(entity, (document.name,)))
        token = await keep(store, entity, a_record(entity, "web/m-2"))
        assert await found(store, entity, "c1", token=token) == {documents[1]}

    async def test_a_document_may_be_written_twice_and_together_with_records(self, store: AsyncStore) -> None:
        entity = plain_entity()
        document = a_channel(entity, "c1", 3)
        await keep(store, entity, document)
        token = await keep(store, entity, a_record(entity, "web/m-1"), document, Seal(entity.key))
        assert await found(store, entity, "c1", token=token) == {document}

    async def test_channels_of_other_entities_are_not_found(self, store: AsyncStore) -> None:
        entity, other = plain_entity(), plain_entity()
        token = await keep(store, entity, a_channel(entity, "c1", 3))
        await keep(store, other, a_channel(other, "c1", 4))
        assert await found(store, entity, "c1", token=token) == {a_channel(entity, "c1", 3)}

    async def test_documents_are_deleted_one_by_one(self, store: AsyncStore) -> None:
        entity = plain_entity()
        documents = tuple(a_channel(entity, "c1", version) for version in (3, 7, 9))
        await keep(store, entity, *documents)
        await store.perform(DeleteChannels(entity, (documents[0].name, documents[2].name, "c9:1")))
        token = await keep(store, entity, a_record(entity, "web/m-1"))
        assert await found(store, entity, "c1", token=token) == {documents[1]}

    async def test_a_channel_or_a_seal_shows_that_there_was_a_ledger(self, store: AsyncStore) -> None:
        for record in (a_channel, lambda entity, *_: Seal(entity.key)):
            entity = plain_entity()
            assert await store.perform(HasRecords(entity)) is False
            await keep(store, entity, record(entity, "c1", 1))
            assert await store.perform(HasRecords(entity)) is True


def a_channel(entity: EntityRef, id: str, version: int) -> ChannelDocument:
    """The document of a channel with gaps."""
    return ChannelDocument(
        entity.key, Channel(id, "shop/ÄÖÜ", ((1, version), (version + 2, 2**53 - 1)), "aB/+9"), version
    )


async def keep(store: AsyncStore, entity: EntityRef, *records: object) -> str:
    """Write what a commit relies on; the token of the write."""
    reply = await store.perform(WriteRecords(entity, records))  # type: ignore[arg-type]
    assert isinstance(reply, Written)
    return reply.token


async def found(store: AsyncStore, entity: EntityRef, *channels: str, token: str) -> set[ChannelDocument]:
    """The documents of channels."""
    reply = await store.perform(FindChannels(entity, channels, token))
    assert isinstance(reply, FoundChannels)
    assert len(set(reply.documents)) == len(reply.documents)
    return set(reply.documents)
