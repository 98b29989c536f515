"""Deciding about messages that the host gave up on, and asking whether one is known: each was processed, or is parked behind a
fence."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import ConfigurationError, Envelope, Outbox
from exactlyonce.effects.attempt import Handle, Memory, Settled
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, Saved, SaveEntity
from exactlyonce.effects.library import FindPages, Park
from exactlyonce.errors import HandlerFailed, NonDeterministicHandler
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.library import ParkedMessage
from exactlyonce.records.outbox import stated_place
from tests.asking import settle, settle_by, sweep
from tests.samples import breaking, deposit
from tests.unit.boards import BOARD, Readers, scored
from tests.unit.protocols import sourcing
from tests.unit.protocols.by_protocol import COMPANIONS, PROTOCOLS
from tests.unit.script import ABSENT, AT, ENTITY, Played, Script, attempt, work_for

REASON = "its handler raised ValueError"
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

    def test_an_uncertain_publish_is_tried_again(self, protocol: str) -> None:
        script, message = processed(protocol, {Publish: UNKNOWN})
        assert settled(protocol, script, message, {Publish: UNKNOWN}).again.reason


class TestAStream:
    def test_one_that_cannot_be_handled_again_stays_where_it_is(self) -> None:
        script, message = processed("stream")
        changed = work_for().handle
        with pytest.raises(NonDeterministicHandler):
            settled("stream", script, message, handle=lambda before, _: changed(before, deposit("m-1", amount=9)))
        with pytest.raises(HandlerFailed):
            settled("stream", script, message, handle=lambda before, _: changed(before, breaking("m-1")))


class TestAReadModel:
    def test_a_message_that_is_held_is_in_good_hands(self, readers: Readers) -> None:
        readers.delivered(scored(2))
        played = settled("resequencer", readers, scored(2))
        assert (played.requests, played.result.outcome) == ([LoadEntity, LoadCompanions], "processed")

    def test_a_message_with_the_number_of_another_is_parked(self, readers: Readers) -> None:
        readers.delivered(scored(1, id="x"))
        assert settled("resequencer", readers, scored(1, id="y")).result.outcome == "parked"


@COMPANIONS
def test_a_message_whose_data_was_elsewhere_is_parked_as_it_came(protocol: str) -> None:
    script, message = nothing_yet(protocol)
    came = message.by_reference("https://account.blob.core.windows.net/blobs/a")
    work = script.work(message) if isinstance(script, Readers) else work_for(message)
    played = script.play(settle_by(protocol, work, REASON, MEMORY, came))
    assert played.only(Park).message.envelope == came.to_json()
    assert played.only(Park).message.message == f"{message.source}/{message.id}"


def test_a_stream_of_states_is_not_settled_as_one_of_events(script: Script) -> None:
    script.play(attempt(VersionStream(3), deposit("m-1")))
    work = sourcing.work(sourcing.accounts(VersionStream(3)), deposit("m-1"))
    with pytest.raises(ConfigurationError, match="holds no events, but its type applies some"):
        script.play(settle_by("stream", work, "given up", Memory()))
    assert len(script.published) == 1


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

    def test_an_uncertain_publish_keeps_the_message_unsettled(self) -> None:
        assert given_up(committed(9), {Publish: UNKNOWN}).again.reason


class TestTheOutboxParksAMessage:
    def test_it_is_parked_behind_a_fence_that_changes_nothing(self) -> None:
        script = committed(1)
        before = script.document
        played = given_up(script)
        assert played.kinds == [LoadEntity, SaveEntity, Begin, Park]
        assert (played.only(SaveEntity).document, played.only(SaveEntity).etag) == (before, '"1"')
        assert played.only(Park).message == ParkedMessage(ENTITY.key, "web/m-9", REASON, AT, POISON.to_json())
        assert played.result == Settled("parked", Memory(entity_token="0:-1#2"))

    def test_after_a_conflict_of_the_fence_the_next_load_sees_what_won(self) -> None:
        played = given_up(committed(1), {SaveEntity: Conflict("0:-1#200")})
        assert played.again.memory.entity_token == "0:-1#200"


def test_a_fence_forgets_the_document_it_made_outdated_and_nothing_else(script: Script) -> None:
    memory = script.play(attempt(Outbox(), deposit("m-1"))).finished.memory
    assert memory.saved is not None
    after = given_up(script, {SaveEntity: Saved("etag-7", "0:-1#7")}, memory).result.memory
    assert (after.saved, after.entity_token) == (None, "0:-1#7")


def asked(protocol: str, script: Any, message: Any, replies: dict[Any, Any] | None = None) -> Played:
    entity = BOARD if protocol == "resequencer" else ENTITY
    played: Played = script.play(PROTOCOLS[protocol].knows(entity, message, MEMORY), replies)
    return played


@COMPANIONS
class TestKnowing:
    def test_a_message_that_was_processed_is_known(self, protocol: str) -> None:
        script, message = processed(protocol)
        played = asked(protocol, script, message)
        assert played.result is True
        assert played.kinds == [LoadEntity, LoadCompanions]

    def test_one_that_never_came_is_not_known(self, protocol: str) -> None:
        script, message = nothing_yet(protocol)
        played = asked(protocol, script, message)
        assert played.result is False
        assert played.kinds == [LoadEntity, LoadCompanions]
        assert played.only(LoadEntity).token == "0:-1#0"
        assert all(effect.token == "0:-1#0" for effect in played.all(LoadCompanions))

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    @pytest.mark.parametrize("kind", [LoadEntity, LoadCompanions])
    def test_without_an_answer_it_is_asked_again(self, protocol: str, kind: Any, reply: Any) -> None:
        script, message = nothing_yet(protocol)
        played = asked(protocol, script, message, {kind: reply})
        assert played.kinds[-1] is kind
        assert played.again.reason


def test_a_read_model_knows_no_message_without_a_number() -> None:
    script, _ = nothing_yet("resequencer")
    played = asked("resequencer", script, deposit("m-1"))
    assert (played.result, played.kinds) == (False, [LoadEntity])
