"""Putting messages aside, discarding them, and exchanging a session token that the account will never reach."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Outbox
from exactlyonce.attempt import Again, Finished, Memory, Settled
from exactlyonce.drivers.blocking_driver import BlockingDriver
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
)
from exactlyonce.effects.publish import PUBLISHED
from exactlyonce.protocols.outbox.token import TokenReset, reset_token
from exactlyonce.protocols.steps.park import discard, put_aside
from exactlyonce.protocols.steps.save import with_ledger
from exactlyonce.records.kept import Kept
from exactlyonce.records.ledger import Ledger, entity_document, read_entity
from exactlyonce.records.library import ParkedMessage
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from tests.samples import accounts, deposit
from tests.unit.script import AT, ENTITY, Played, Script, attempt

BODY = Json.of({**accounts().shape.tombstone(ENTITY).value, "total": 3})
AHEAD = "0:-1#913"
PLACE = EntityRef("account", (), "exactlyonce.put-aside")
PARKED = ParkedMessage(ENTITY.key, "web/m-9", "its handler raised ValueError", AT, deposit("m-9").to_json())
NO_ANSWERS = pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
STAGING = Outbox(inline_limit=0)


def with_token(token: str | None, **ledger: Any) -> Script:
    return Script(entity_document(BODY, Ledger(43, token, type="account", **ledger)))


def reset(script: Script, replies: dict[Any, Any] | None = None) -> Played:
    """Ask for it where no replica is at the token, unless said otherwise."""
    return script.play(reset_token(ENTITY, Memory()), {FindProcessed: BEHIND, **(replies or {})})


class TestATokenAheadOfTheAccount:
    def test_it_is_exchanged_for_that_of_a_write_made_now_and_nothing_else_is_changed(self) -> None:
        script = with_token(AHEAD)
        played = reset(script)
        assert played.kinds == [LoadEntity, FindProcessed, Begin, Stage, SaveEntity, DeleteStaged]
        assert played.only(FindProcessed).token == AHEAD
        assert played.only(SaveEntity).etag == '"1"'
        assert script.document == entity_document(BODY, Ledger(43, "0:-1#1", type="account"))
        assert played.result == TokenReset("reset", (), Memory("0:-1#2", "0:-1#1"))

    def test_what_was_written_for_its_token_goes_again(self) -> None:
        played = reset(with_token(AHEAD))
        (staged,) = played.only(Stage).documents
        assert (staged.entity, staged.outputs) == (ENTITY.key, ())
        assert played.only(DeleteStaged).transactions == (staged.tx,)

    def test_one_that_a_replica_has_reached_stays(self) -> None:
        played = reset(with_token(AHEAD), {FindProcessed: Found(frozenset(), "0:-1#914")})
        assert played.kinds == [LoadEntity, FindProcessed]
        assert played.result.outcome == "not ahead"

    @pytest.mark.parametrize("script", [Script(), with_token(None), Script(BODY)])
    def test_where_there_is_none_nothing_is_asked(self, script: Script) -> None:
        played = reset(script)
        assert not {FindProcessed, Stage, SaveEntity} & set(played.kinds)
        assert played.result.outcome == "no token"

    def test_staged_outputs_that_are_lost_are_reported(self) -> None:
        script = Script()
        staged = [script.play(attempt(STAGING, deposit(f"m-{one}"))).only(Stage).documents[0] for one in (1, 2)]
        played = reset(script, {LoadStaged: FoundStaged((staged[0],))})
        assert played.only(LoadStaged).transactions == tuple(one.tx for one in staged)
        assert played.only(LoadStaged).token == script.ledger.token
        assert played.result.lost == ("web/m-2",)
        assert script.ledger.owing == {one.tx for one in staged}

    def test_kept_messages_that_are_lost_are_reported(self) -> None:
        script, due = Script(), AT + timedelta(days=9)
        (there,) = script.play(attempt(STAGING, deposit("m-1"))).only(Stage).documents
        kept = (Kept("o-1", due, there.tx), Kept("o-2", due, "gone-kept"))
        script = with_token(AHEAD, kept=kept)
        played = reset(script, {LoadStaged: FoundStaged((there,))})
        assert played.only(LoadStaged).transactions == (there.tx, "gone-kept")
        assert (played.result.lost, played.result.kept) == ((), ("o-2",))
        assert script.ledger.kept == kept

    def test_a_write_that_finds_itself_there_gives_a_token_as_well(self) -> None:
        script = with_token(AHEAD)
        reset(script, {Stage: Conflict("0:-1#77")})
        assert script.ledger.token == "0:-1#77"

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict(None)])
    def test_without_a_token_of_a_write_nothing_is_saved(self, reply: Any) -> None:
        played = reset(with_token(AHEAD), {Stage: reply})
        assert played.kinds[-1] is Stage
        assert played.again.reason

    @NO_ANSWERS
    def test_without_an_answer_to_a_read_nothing_is_saved(self, reply: NoAnswer) -> None:
        assert reset(with_token(AHEAD), {LoadEntity: reply}).kinds == [LoadEntity]
        assert reset(with_token(AHEAD), {FindProcessed: UNKNOWN}).kinds == [LoadEntity, FindProcessed]
        script = Script()
        script.play(attempt(STAGING, deposit("m-1")))
        played = reset(script, {LoadStaged: reply})
        assert played.kinds[-1] is LoadStaged
        assert played.again.reason

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#200")])
    def test_if_it_was_not_saved_it_is_tried_again_and_what_was_written_goes(self, reply: Any) -> None:
        played = reset(with_token(AHEAD), {SaveEntity: reply})
        assert played.kinds[-1] is DeleteStaged
        assert played.again.reason

    def test_another_protocol_has_none(self) -> None:
        with pytest.raises(ConfigurationError, match="processed by the protocol 'stream'"):
            reset(with_token(None, protocol="stream"))

    def test_afterwards_messages_are_processed_and_records_that_survived_are_found(self) -> None:
        store, strategy = MemoryStore(lambda: AT), Outbox(window=1)
        driver = BlockingDriver(store, lambda _: PUBLISHED, Runtime())
        for number in (1, 2, 3):
            driver.run(attempt(strategy, deposit(f"m-{number}")))
        self.put_ahead(store)
        stuck = driver.run(attempt(strategy, deposit("m-1")))
        assert isinstance(stuck, Again)
        assert "no replica of the library's container is at the session token" in stuck.reason
        done = driver.run(reset_token(ENTITY, Memory()))
        assert isinstance(done, TokenReset)
        assert done.outcome == "reset"
        known, fresh = (driver.run(attempt(strategy, deposit(message))) for message in ("m-1", "m-4"))
        assert isinstance(known, Finished)
        assert isinstance(fresh, Finished)
        assert (known.processed, fresh.processed) == ((), ("web/m-4",))

    @staticmethod
    def put_ahead(store: MemoryStore) -> None:
        """Let the ledger have the token of a write that the account has lost."""
        loaded = store.perform(LoadEntity(ENTITY))
        assert isinstance(loaded, Loaded)
        assert loaded.document is not None
        view = read_entity(ENTITY, loaded.document)
        assert view.ledger is not None
        ahead = with_ledger(loaded.document, replace(view.ledger, token=AHEAD))
        assert isinstance(store.perform(SaveEntity(ENTITY, ahead, loaded.etag)), Saved)


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
    def test_a_parked_message_is_deleted_as_it_was_read(self) -> None:
        found = FoundParked(PARKED, '"7"', AT)
        played = Script().play(discard(ENTITY, "web/m-9", Memory(library_token="0:-1#5")), {LoadParked: found})
        assert played.only(LoadParked) == LoadParked(ENTITY, "web/m-9", "0:-1#5")
        assert played.only(DeleteParked) == DeleteParked(ENTITY, "web/m-9", '"7"')
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
