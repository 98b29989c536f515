"""Putting messages aside, discarding them, and exchanging a session token that the account will never reach."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Outbox
from exactlyonce.attempt import Memory, Remembered, Settled
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    FindPages,
    FoundParked,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    Unpark,
)
from exactlyonce.errors import DatabaseRestored
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.protocols.outbox.repair import TokenReset, reset_token
from exactlyonce.protocols.steps.load import with_ledger
from exactlyonce.protocols.steps.park import discard, put_aside
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import ParkedMessage, StagedOutputs
from exactlyonce.records.outbox import Kept
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, deposit
from tests.unit.protocols.outbox.test_pages import full, timed
from tests.unit.script import AT, ENTITY, Played, Script, attempt

BODY = Json.of({**accounts().shape.tombstone(ENTITY).value, "total": 3})
AHEAD = "0:-1#913"
PLACE = EntityRef("account", (), "exactlyonce.put-aside")
PARKED = ParkedMessage(ENTITY.key, "web/m-9", "its handler raised ValueError", AT, deposit("m-9").to_json())
NO_ANSWERS = pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
OUTBOX = Outbox()


def with_token(token: str | None, **ledger: Any) -> Script:
    return Script(entity_document(BODY, Ledger(43, token=token, type="account", left=43, complete=7, **ledger)))


def reset(script: Script, *others: Any, replies: dict[Any, Any] | None = None) -> Played:
    """Ask for it where no replica is at the token, unless said otherwise; the kept messages are read with these replies."""
    return script.play(reset_token(ENTITY, Memory()), {LoadStaged: [BEHIND, *others], **(replies or {})})


class TestATokenAheadOfTheAccount:
    def test_it_is_exchanged_for_that_of_a_write_made_now_and_what_left_before_counts_as_lost(self) -> None:
        script = with_token(AHEAD)
        played = reset(script)
        assert played.kinds == [LoadEntity, LoadStaged, Begin, Stage, DeleteStaged, SaveEntity]
        assert played.only(LoadStaged).token == AHEAD
        assert played.only(SaveEntity).etag == '"1"'
        ledger = Ledger(43, token="0:-1#1", type="account", entity=ENTITY.key, left=43, complete=7, lost=7)
        assert script.document == entity_document(BODY, ledger)
        assert played.result == TokenReset("reset", Memory("0:-1#2", "0:-1#1"))

    def test_what_was_written_for_its_token_goes_again(self) -> None:
        played = reset(with_token(AHEAD))
        (staged,) = played.only(Stage).documents
        assert (staged.entity, staged.outputs) == (ENTITY.key, ())
        assert played.only(DeleteStaged).transactions == (staged.tx,)

    def test_one_that_a_replica_has_reached_stays(self) -> None:
        played = reset(with_token(AHEAD), replies={LoadStaged: FoundStaged(())})
        assert played.kinds == [LoadEntity, LoadStaged]
        assert played.result.outcome == "not ahead"

    @pytest.mark.parametrize("script", [Script(), with_token(None), Script(BODY)])
    def test_where_there_is_none_nothing_is_asked(self, script: Script) -> None:
        played = reset(script)
        assert not {LoadStaged, Stage, SaveEntity} & set(played.kinds)
        assert played.result.outcome == "no token"

    def test_kept_messages_that_are_lost_are_reported(self) -> None:
        due = AT + timedelta(days=9)
        kept = (Kept("o-1", due, "there-kept"), Kept("o-2", due, "gone-kept"))
        script = with_token(AHEAD, kept=kept)
        there = StagedOutputs(ENTITY.key, "web/m-1", "there-kept", AT, ())
        played = reset(script, FoundStaged((there,)))
        _, asked = played.all(LoadStaged)
        assert (asked.transactions, asked.token) == (("there-kept", "gone-kept"), "0:-1#1")
        assert played.result.kept == ("o-2",)
        assert script.ledger.kept == kept

    def test_a_write_that_finds_itself_there_gives_a_token_as_well(self) -> None:
        script = with_token(AHEAD)
        reset(script, replies={Stage: Conflict("0:-1#77")})
        assert script.ledger.token == "0:-1#77"

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict(None)])
    def test_without_a_token_of_a_write_nothing_is_saved(self, reply: Any) -> None:
        played = reset(with_token(AHEAD), replies={Stage: reply})
        assert played.kinds[-1] is Stage
        assert played.again.reason

    @NO_ANSWERS
    def test_without_an_answer_to_a_read_nothing_is_saved(self, reply: NoAnswer) -> None:
        assert reset(with_token(AHEAD), replies={LoadEntity: reply}).kinds == [LoadEntity]
        assert reset(with_token(AHEAD), replies={LoadStaged: UNKNOWN}).kinds == [LoadEntity, LoadStaged]
        played = reset(with_token(AHEAD, kept=(Kept("o-1", AT, "tx-kept"),)), reply)
        assert played.kinds[-1] is LoadStaged
        assert played.again.reason

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#200")])
    def test_if_it_was_not_saved_it_is_tried_again_and_what_was_written_is_gone(self, reply: Any) -> None:
        played = reset(with_token(AHEAD), replies={SaveEntity: reply})
        assert played.kinds[-2:] == [DeleteStaged, SaveEntity]
        assert played.again.reason

    def test_another_protocol_has_none(self) -> None:
        with pytest.raises(ConfigurationError, match="processed by the protocol 'stream'"):
            reset(with_token(None, protocol="stream", snapshot_every=3))

    def test_afterwards_messages_are_processed_but_for_those_that_a_lost_page_may_know(self) -> None:
        script = full()
        there, gone = timed(3), timed(200, 2)
        put_ahead(script)
        assert "no replica of the library's container" in script.play(attempt(OUTBOX, there)).again.reason
        assert script.play(reset_token(ENTITY, Memory())).result.outcome == "reset"
        assert script.ledger.lost == script.ledger.complete
        assert script.play(attempt(OUTBOX, there)).finished.processed == ()
        ((_, error),) = script.play(attempt(OUTBOX, gone)).finished.failed
        assert isinstance(error, DatabaseRestored)
        assert script.play(attempt(OUTBOX, timed(201))).finished.processed == ("web/m-201",)

    def test_a_process_that_remembers_the_entity_as_it_was_goes_on_all_the_same(self) -> None:
        script = full()
        put_ahead(script)
        again = script.play(attempt(OUTBOX, timed(3))).again
        memory = remembering(again.memory, script)
        script.play(reset_token(ENTITY, Memory()))
        assert script.play(attempt(OUTBOX, timed(3), memory=memory)).requests == [FindPages, LoadEntity, FindPages]


def put_ahead(script: Script) -> None:
    """Let the ledger have the token of a write that the account has lost."""
    assert script.document is not None
    script.put(with_ledger(script.document, replace(script.ledger, token=AHEAD)))


def remembering(memory: Memory, script: Script) -> Memory:
    """The memory of a process that trusts the document as it is now."""
    loaded = script.store.perform(LoadEntity(ENTITY))
    assert isinstance(loaded, Loaded)
    assert loaded.document is not None
    assert loaded.etag is not None
    return replace(memory, saved=Remembered(loaded.document, loaded.etag, TRUSTED))


class TestPuttingAside:
    def test_a_message_is_parked_with_its_reason_in_a_place_of_its_own(self) -> None:
        played = Script().play(put_aside(PLACE, deposit("m-9"), "MalformedMessage", Memory()))
        assert played.kinds == [Begin, Park]
        parked = ParkedMessage(PLACE.key, "web/m-9", "MalformedMessage", AT, deposit("m-9").to_json())
        assert played.only(Park) == Park(PLACE, parked)
        assert played.result == Settled("parked", Memory())

    def test_without_an_answer_it_is_tried_again(self) -> None:
        assert Script().play(put_aside(PLACE, deposit("m-9"), "", Memory()), {Park: UNKNOWN}).again.reason


class TestDiscarding:
    def test_a_note_takes_the_place_of_a_parked_message_as_it_was_read(self) -> None:
        found = FoundParked(PARKED, '"7"', AT)
        played = Script().play(discard(ENTITY, "web/m-9", Memory(library_token="0:-1#5")), {LoadParked: found})
        assert played.only(LoadParked) == LoadParked(ENTITY, "web/m-9", "0:-1#5")
        assert played.only(Unpark) == Unpark(ENTITY, "web/m-9", '"7"')
        assert played.result is True

    def test_one_that_is_not_parked_is_reported(self) -> None:
        played = Script().play(discard(ENTITY, "web/m-9", Memory()))
        assert played.kinds == [LoadParked]
        assert played.result is False

    @NO_ANSWERS
    def test_one_that_cannot_be_read_is_tried_again(self, reply: NoAnswer) -> None:
        played = Script().play(discard(ENTITY, "web/m-9", Memory()), {LoadParked: reply})
        assert played.kinds == [LoadParked]
        assert played.again.reason
