"""Deciding about messages that the host gave up on: each was processed, or is parked behind a fence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Envelope, Outbox
from exactlyonce.attempt import Handle, Memory, Settled
from exactlyonce.effects.companions import FindEntries, HasCompanions, LoadCompanions, ReplaceCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import FindPages, HasPages, Park
from exactlyonce.errors import HandlerFailed, LedgerRemoved, NonDeterministicHandler
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.companions import ColocatedRecord
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import stated_place
from exactlyonce.values.frozen_json import Json
from tests.asking import settle, settle_by, sweep
from tests.samples import breaking, deposit
from tests.unit.boards import BOARD, Readers, scored
from tests.unit.bookkeeping import tx
from tests.unit.protocols import sourcing
from tests.unit.protocols.by_protocol import COMPANIONS, PROTOCOLS
from tests.unit.script import ABSENT, AT, ENTITY, Played, Script, attempt, numbers, work_for

REASON = "its handler raised ValueError"
FOREIGN = Json.of({"id": "a", "owner": "a", "total": 3})
POISON = deposit("m-9")
MEMORY = Memory(entity_token="0:-1#0")


def nothing_yet(protocol: str) -> tuple[Script, Envelope]:
    """A world in which nothing was processed, and a message."""
    return (Readers(), scored(1, answers=1)) if protocol == "resequencer" else (Script(), deposit("m-1"))


def processed(protocol: str, replies: dict[Any, Any] | None = None) -> tuple[Script, Envelope]:
    """A world in which the message was processed."""
    script, message = nothing_yet(protocol)
    if isinstance(script, Readers):
        script.attempted(message, replies=replies)
    else:
        script.play(attempt(PROTOCOLS[protocol], message), replies)
    return script, message


def settled(
    protocol: str,
    script: Script,
    message: Envelope,
    replies: dict[Any, Any] | None = None,
    handle: Handle | None = None,
) -> Played:
    work = script.work(message) if isinstance(script, Readers) else work_for(message, handle=handle)
    return script.play(settle_by(protocol, work, REASON, MEMORY), replies)


@COMPANIONS
class TestAPoisonMessage:
    def test_it_is_parked_behind_a_fence(self, protocol: str) -> None:
        script, message = nothing_yet(protocol)
        played = settled(protocol, script, message)
        assert played.kinds == [LoadEntity, LoadCompanions, SaveEntity, Begin, Park]
        entity = BOARD if protocol == "resequencer" else ENTITY
        key = f"{message.source}/{message.id}"
        place = stated_place(message)
        assert (place is None) == (protocol != "resequencer")
        parked = ParkedMessage(entity.key, key, REASON, AT, message.to_json(), place=place)
        assert played.only(Park).message == parked
        assert isinstance(played.result, Settled)
        assert played.result.outcome == "parked"
        assert (script.body, script.ledger.protocol, script.ledger.version) == (None, protocol, 0)

    @pytest.mark.parametrize(
        ("kind", "reply"),
        [
            (LoadEntity, BEHIND),
            (LoadEntity, UNKNOWN),
            (LoadCompanions, BEHIND),
            (LoadCompanions, UNKNOWN),
            (SaveEntity, UNKNOWN),
            (SaveEntity, Conflict("0:-1#9")),
            (Park, UNKNOWN),
        ],
    )
    def test_an_effect_without_an_answer_is_the_last_one(self, protocol: str, kind: Any, reply: Any) -> None:
        script, message = nothing_yet(protocol)
        played = settled(protocol, script, message, {kind: reply})
        assert played.kinds[-1] is kind
        assert played.again.reason

    def test_one_that_is_processed_meanwhile_is_not_parked(self, protocol: str) -> None:
        script, message = nothing_yet(protocol)

        def beaten(effect: Any) -> Any:
            if isinstance(script, Readers):
                script.attempted(message)
            else:
                script.play(attempt(PROTOCOLS[protocol], message))
            return script.usual(effect)

        played = settled(protocol, script, message, {SaveEntity: beaten})
        assert played.again.reason
        assert settled(protocol, script, message).result.outcome == "processed"

    def test_what_another_protocol_processed_is_refused(self, protocol: str) -> None:
        script, message = processed(protocol)
        for other in PROTOCOLS:
            if other != protocol:
                with pytest.raises(ConfigurationError, match=f"'{protocol}'.*'{other}'"):
                    settled(other, script, message)

    def test_a_ledger_that_was_removed_is_refused(self, protocol: str) -> None:
        script, message = processed(protocol)
        script.put(Json.of(script.body))
        with pytest.raises(LedgerRemoved):
            settled(protocol, script, message)
        assert [type(effect) for effect in script.asked] == [LoadEntity, HasCompanions, SaveEntity]


@COMPANIONS
class TestAMessageThatWasProcessed:
    def test_it_is_not_parked(self, protocol: str) -> None:
        played = settled(protocol, *processed(protocol))
        assert isinstance(played.result, Settled)
        assert played.result.outcome == "processed"
        assert (played.all(Park), played.all(SaveEntity)) == ([], [])

    def test_what_it_owes_is_published(self, protocol: str) -> None:
        script, message = processed(protocol, {Publish: UNKNOWN})
        assert script.published == []
        assert settled(protocol, script, message).result.outcome == "processed"
        assert [output.envelope.value["source"] for output in script.published] == [str(script.entity)]

    def test_what_may_not_have_been_published_is_tried_again(self, protocol: str) -> None:
        script, message = processed(protocol, {Publish: UNKNOWN})
        assert settled(protocol, script, message, {Publish: UNKNOWN}).again.reason


def test_a_co_located_record_is_settled_too() -> None:
    script, message = processed("colocated", {Publish: UNKNOWN})
    assert settled("colocated", script, message).kinds == [LoadEntity, LoadCompanions, Publish, ReplaceCompanions]
    (record,) = script.companions
    assert isinstance(record, ColocatedRecord)
    assert record.owed is None


class TestAStream:
    def test_a_duplicate_is_handled_again(self) -> None:
        script, message = processed("stream")
        assert settled("stream", script, message).kinds == [LoadEntity, LoadCompanions, FindEntries, Publish]
        assert numbers(script.published) == [1, 1]

    def test_one_that_cannot_be_handled_again_stays_where_it_is(self) -> None:
        script, message = processed("stream")
        changed = work_for().handle
        with pytest.raises(NonDeterministicHandler):
            settled("stream", script, message, handle=lambda before, _: changed(before, deposit("m-1", amount=9)))
        with pytest.raises(HandlerFailed):
            settled("stream", script, message, handle=lambda before, _: changed(before, breaking("m-1")))

    def test_an_entity_seen_in_an_older_view_than_its_stream_is_looked_at_again(self) -> None:
        script, _ = processed("stream")
        stale = script.usual(LoadEntity(ENTITY))
        script.play(attempt(VersionStream(), deposit("m-2")))
        played = settled("stream", script, deposit("m-2"), {LoadEntity: stale})
        assert "older view" in played.again.reason

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_without_its_stream_nothing_is_decided(self, reply: NoAnswer) -> None:
        assert settled("stream", *processed("stream"), {FindEntries: reply}).again.reason


class TestAReadModel:
    def test_a_message_that_is_held_is_in_good_hands(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        played = settled("resequencer", readers, scored(2))
        assert (played.requests, played.result.outcome) == ([LoadEntity, LoadCompanions], "processed")

    def test_a_message_without_a_number_was_never_taken(self) -> None:
        readers = Readers()
        played = settled("resequencer", readers, replace(scored(1), extensions=()))
        assert played.kinds == [LoadEntity, SaveEntity, Begin, Park]

    def test_a_message_with_the_number_of_another_is_parked(self) -> None:
        readers = Readers()
        readers.delivered(scored(1, id="x"))
        assert settled("resequencer", readers, scored(1, id="y")).result.outcome == "parked"

    def test_what_this_process_published_is_paid(self) -> None:
        script, message = processed("resequencer", {Publish: UNKNOWN})
        assert not script.book.pays(tx(1))
        settled("resequencer", script, message)
        assert script.book.pays(tx(1))

    def test_parking_keeps_what_is_held(self) -> None:
        readers = Readers()
        readers.delivered(scored(3), scored(1, id="x"))
        settled("resequencer", readers, scored(1, id="y"))
        assert (readers.seen, readers.held) == (["1"], {"s": ((3, 3),)})


@COMPANIONS
def test_a_message_whose_data_was_elsewhere_is_parked_as_it_came(protocol: str) -> None:
    script, message = nothing_yet(protocol)
    came = message.by_reference("https://account.blob.core.windows.net/blobs/a")
    work = script.work(message) if isinstance(script, Readers) else work_for(message)
    played = script.play(settle_by(protocol, work, REASON, MEMORY, came))
    assert played.only(Park).message.envelope == came.to_json()
    assert played.only(Park).message.message == f"{message.source}/{message.id}"


def test_a_stream_of_states_is_not_settled_as_one_of_events() -> None:
    script = Script()
    script.play(attempt(VersionStream(3), deposit("m-1")))
    work = sourcing.work(sourcing.accounts(VersionStream(3)), deposit("m-1"))
    with pytest.raises(ConfigurationError, match="holds no events, but its type applies some"):
        script.play(settle_by("stream", work, "given up", Memory()))
    assert len(script.published) == 1


@COMPANIONS
def test_its_record_is_looked_for_in_the_view_that_is_fenced(protocol: str) -> None:
    script, message = nothing_yet(protocol)
    played = settled(protocol, script, message)
    assert played.only(LoadEntity).token == "0:-1#0"
    assert played.only(LoadCompanions).token == "0:-1#0"
    assert played.only(SaveEntity).etag is None


def committed(*numbers: int) -> Script:
    """An entity that owes the output of each of these messages, whose process crashed before publishing."""
    script = Script()
    for number in numbers:
        script.play(attempt(Outbox(), deposit(f"m-{number}")), {Publish: UNKNOWN})
    script.restart()
    return script


def given_up(script: Script, replies: dict[Any, Any] | None = None, memory: Memory | None = None) -> Played:
    """Settle a message of the outbox."""
    return script.play(settle(ENTITY, POISON, REASON, ABSENT, memory or Memory()), replies)


class TestTheOutboxKnowsAMessage:
    def test_its_mark_proves_it_and_what_it_owes_is_published(self) -> None:
        script = committed(1, 9, 2)
        played = given_up(script)
        assert played.requests == [LoadEntity, Publish]
        assert played.only(Publish).outputs == tuple(
            script.entries[1].owed_outputs(ENTITY, script.ledger.to, script.ledger.sequences)
        )
        assert played.result.outcome == "processed"

    def test_one_that_owes_nothing_needs_nothing(self) -> None:
        script = committed(9)
        script.play(sweep(ENTITY, Memory()))
        assert given_up(script).requests == [LoadEntity]

    def test_what_may_not_have_been_published_keeps_it_unsettled(self) -> None:
        assert given_up(committed(9), {Publish: UNKNOWN}).again.reason

    def test_a_page_proves_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(draft, "MOST_MARKS", 1)
        monkeypatch.setattr(draft, "MARKS_STAY", 0)
        script = committed(9, 1, 2)
        played = given_up(script)
        assert played.requests == [LoadEntity, Publish], "it has left, and is owed still"
        script.play(sweep(ENTITY, Memory()))
        played = given_up(script)
        assert played.requests == [LoadEntity, FindPages]
        assert played.only(FindPages).token == script.ledger.token == "0:-1#1"
        assert played.result.outcome == "processed"
        assert given_up(script, {FindPages: UNKNOWN}).again.reason


class TestTheOutboxParksAMessage:
    def test_it_is_parked_behind_a_fence_that_changes_nothing(self) -> None:
        script = committed(1)
        before = script.document
        played = given_up(script)
        assert played.kinds == [LoadEntity, SaveEntity, Begin, Park]
        assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (before, '"1"')
        assert played.only(Park).message == ParkedMessage(ENTITY.key, "web/m-9", REASON, AT, POISON.to_json())
        assert played.result == Settled("parked", Memory(entity_token="0:-1#2"))

    def test_of_an_absent_entity_the_fence_is_a_tombstone_that_knows_nothing(self) -> None:
        script = Script()
        played = given_up(script)
        assert played.only(SaveEntity).etag is None
        assert script.document == entity_document(ABSENT, Ledger(type="account", entity=ENTITY.key, deleted=True))
        assert (script.ledger.version, script.entries) == (0, ())

    def test_a_document_that_has_no_ledger_yet_is_fenced_as_it_is(self) -> None:
        script = Script(FOREIGN)
        played = given_up(script)
        assert played.kinds == [LoadEntity, HasPages, SaveEntity, Begin, Park]
        assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (FOREIGN, '"1"')

    def test_a_tombstone_is_fenced_as_it_is(self) -> None:
        tombstone = entity_document(ABSENT, Ledger(3, left=3, deleted=True))
        assert given_up(Script(tombstone)).only(SaveEntity).document == tombstone

    def test_after_a_conflict_of_the_fence_the_next_load_sees_what_won(self) -> None:
        played = given_up(committed(1), {SaveEntity: Conflict("0:-1#200")})
        assert played.again.memory.entity_token == "0:-1#200"


def test_a_fence_forgets_the_document_it_made_outdated_and_nothing_else() -> None:
    script = Script()
    memory = script.play(attempt(Outbox(), deposit("m-1"))).finished.memory
    assert memory.saved is not None
    after = given_up(script, {SaveEntity: Saved("etag-7", "0:-1#7")}, memory).result.memory
    assert (after.saved, after.entity_token) == (None, "0:-1#7")


def test_a_message_parked_for_an_absent_entity_starts_it_when_it_is_sent_again() -> None:
    script = Script()
    assert given_up(script).result.outcome == "parked"
    assert script.play(attempt(Outbox(), POISON)).finished.processed == ("web/m-9",)
    assert (script.ledger.version, script.ledger.deleted) == (1, False)
