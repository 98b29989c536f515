"""Channels that leave the ledger: documents in the library's partition know what was received through them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteChannels,
    FindChannels,
    WriteRecords,
)
from exactlyonce.effects.publish import Publish
from exactlyonce.records.channels import Channel
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import ChannelDocument
from exactlyonce.values.frozen_json import Json
from tests.unit.protocols.outbox.test_numbered import OUTBOX, full, key, numbered, received
from tests.unit.script import ENTITY, Script, attempt


class TestChannelsThatLeave:
    def test_where_one_more_begins_all_that_the_commit_does_not_touch_leave(self) -> None:
        script = Script()
        full(script)
        before = script.ledger
        played = script.play(attempt(OUTBOX, numbered(2, "c5"), numbered(1, "c99")))
        assert played.kinds == [LoadEntity, Begin, WriteRecords, SaveEntity, Publish]
        assert [channel.id for channel in script.ledger.channels] == ["c5", "c99"]
        documents = [one for one in played.only(WriteRecords).records if isinstance(one, ChannelDocument)]
        assert {one.channel for one in documents} == {one for one in before.channels if one.id != "c5"}
        assert {one.version for one in documents} == {before.version}
        assert script.ledger.apart.channels
        assert script.ledger.token is not None

    def test_what_their_messages_owe_is_published_first(self) -> None:
        """A document of a channel means: done. Otherwise an old view and a new document would lose the outputs."""
        script = Script()
        full(script)
        script.play(attempt(OUTBOX, numbered(2, "c1")), {Publish: UNKNOWN})
        played = script.play(attempt(OUTBOX, numbered(1, "c99")))
        assert played.kinds == [LoadEntity, Begin, Publish, WriteRecords, SaveEntity, Publish]
        assert [entry.message for entry in script.entries] == [key(1, "c99")]

    def test_a_write_that_was_not_answered_is_no_write(self) -> None:
        script = Script()
        full(script)
        played = script.play(attempt(OUTBOX, numbered(1, "c99")), {WriteRecords: UNKNOWN})
        assert played.all(SaveEntity) == []
        assert "not known" in played.again.reason

    def test_a_message_of_one_that_left_is_looked_for_at_the_ledgers_token(self) -> None:
        script = Script()
        full(script)
        received(script, numbered(1, "c99"))
        played = script.play(attempt(OUTBOX, numbered(1, "c7")))
        assert played.kinds == [LoadEntity, FindChannels]
        assert played.only(FindChannels) == FindChannels(ENTITY, ("c7",), script.ledger.token)
        assert played.finished.processed == ()

    def test_it_comes_back_with_all_that_documents_say_and_they_go(self) -> None:
        script = Script()
        full(script)
        received(script, numbered(1, "c99"))
        played = script.play(attempt(OUTBOX, numbered(2, "c7")))
        assert played.kinds == [LoadEntity, FindChannels, Begin, SaveEntity, Publish, DeleteChannels]
        (channel,) = (one for one in script.ledger.channels if one.id == "c7")
        assert channel.received == ((1, 2),)
        assert script.play(attempt(OUTBOX, numbered(1, "c7"))).kinds == [LoadEntity]

    def test_all_documents_of_a_channel_count(self) -> None:
        script = Script()
        full(script)
        received(script, numbered(1, "c99"))
        late = ChannelDocument(ENTITY.key, Channel("c7", "shop/c7", ((2, 3),)), 1)
        script.store.perform(WriteRecords(ENTITY, (late,)))
        assert script.play(attempt(OUTBOX, *(numbered(one, "c7") for one in (1, 2, 3)))).finished.processed == ()
        assert script.play(attempt(OUTBOX, numbered(4, "c7"))).finished.processed == (key(4, "c7"),)

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_without_an_answer_nothing_is_concluded(self, reply: object) -> None:
        script = Script()
        full(script)
        received(script, numbered(1, "c99"))
        assert script.play(attempt(OUTBOX, numbered(1, "c7")), {FindChannels: reply}).kinds == [
            LoadEntity,
            FindChannels,
        ]

    def test_documents_of_a_channel_that_did_not_come_back_stay(self) -> None:
        """A copy of one channel comes together with a new message of another."""
        script = Script()
        full(script)
        received(script, numbered(1, "c99"))
        played = script.play(attempt(OUTBOX, numbered(1, "c7"), numbered(2, "c8")))
        assert played.only(DeleteChannels).documents == (f"c8:{OUTBOX.channels}",)
        assert script.play(attempt(OUTBOX, numbered(1, "c7"))).finished.processed == ()

    def test_they_leave_where_the_document_has_no_room_for_them(self) -> None:
        script = Script()
        channels = tuple(Channel(f"c{count}", "s" * 30_000) for count in range(49))
        document = entity_document(Json('{"id":"a","owner":"a"}'), replace(Ledger(type="account"), channels=channels))
        script.put(document)
        played = script.play(attempt(OUTBOX, numbered(1, "c99", padding="x" * 30_000)))
        assert played.finished.processed == (key(1, "c99"),)
        assert [channel.id for channel in script.ledger.channels] == ["c99"]
        assert len(played.only(WriteRecords).records) == len(channels) + 1, "and the seal"

    def test_where_none_has_left_an_unknown_channel_is_new(self) -> None:
        script = Script()
        received(script, numbered(1))
        assert script.play(attempt(OUTBOX, numbered(1, "c2"))).kinds == [LoadEntity, Begin, SaveEntity, Publish]
