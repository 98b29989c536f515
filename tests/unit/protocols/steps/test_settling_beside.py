"""Deciding about messages that the host gave up on, where records lie beside the entity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Envelope, HandlerFailed, LedgerRemoved, NonDeterministicHandler
from exactlyonce.attempt import Handle, Memory, Settled, Strategy
from exactlyonce.effects.companions import FindEntries, HasCompanions, LoadCompanions, ReplaceCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer
from exactlyonce.effects.entity import Conflict, LoadEntity, SaveEntity
from exactlyonce.effects.library import Park
from exactlyonce.effects.publish import Publish
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.companions import ColocatedRecord
from exactlyonce.records.library import ParkedMessage
from exactlyonce.values.frozen_json import Json
from tests.asking import settle_by
from tests.samples import breaking, deposit
from tests.unit.boards import BOARD, RESEQUENCER, Readers, scored
from tests.unit.playing import AT, ENTITY, Played
from tests.unit.playing_beside import Beside, attempt, numbers, work_for
from tests.unit.protocols import sourcing

REASON = "its handler raised ValueError"
STRATEGIES: dict[str, Strategy] = {"colocated": Colocated(), "stream": VersionStream(), "resequencer": RESEQUENCER}
ALL = pytest.mark.parametrize("protocol", STRATEGIES)
MEMORY = Memory(entity_token="0:-1#0")


def nothing_yet(protocol: str) -> tuple[Beside, Envelope]:
    """A world in which nothing was processed, and a message."""
    return (Readers(), scored(1, answers=1)) if protocol == "resequencer" else (Beside(), deposit("m-1"))


def processed(protocol: str, replies: dict[Any, Any] | None = None) -> tuple[Beside, Envelope]:
    """A world in which the message was processed."""
    script, message = nothing_yet(protocol)
    if isinstance(script, Readers):
        script.attempted(message, replies=replies)
    else:
        script.play(attempt(STRATEGIES[protocol], message), replies)
    return script, message


def settled(
    protocol: str,
    script: Beside,
    message: Envelope,
    replies: dict[Any, Any] | None = None,
    handle: Handle | None = None,
) -> Played:
    work = script.work(message) if isinstance(script, Readers) else work_for(message, handle=handle)
    return script.play(settle_by(protocol, work, REASON, MEMORY), replies)


@ALL
class TestAPoisonMessage:
    def test_it_is_parked_behind_a_fence(self, protocol: str) -> None:
        script, message = nothing_yet(protocol)
        played = settled(protocol, script, message)
        assert played.kinds == [LoadEntity, LoadCompanions, SaveEntity, Begin, Park]
        entity = BOARD if protocol == "resequencer" else ENTITY
        key = f"{message.source}/{message.id}"
        assert played.only(Park).message == ParkedMessage(entity.key, key, REASON, AT, message.to_json())
        assert isinstance(played.result, Settled)
        assert played.result.outcome == "parked"
        assert (script.body, script.ledger.protocol, script.ledger.version) == (None, protocol, 0)

    def test_its_record_is_looked_for_in_the_view_that_is_fenced(self, protocol: str) -> None:
        script, message = nothing_yet(protocol)
        played = settled(protocol, script, message)
        assert played.only(LoadEntity).token == "0:-1#0"
        assert played.only(LoadCompanions).token == "0:-1#0"
        assert played.only(SaveEntity).etag is None

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
                script.play(attempt(STRATEGIES[protocol], message))
            return script.usual(effect)

        played = settled(protocol, script, message, {SaveEntity: beaten})
        assert played.again.reason
        assert settled(protocol, script, message).result.outcome == "processed"

    def test_what_another_protocol_processed_is_refused(self, protocol: str) -> None:
        script, message = processed(protocol)
        for other in STRATEGIES:
            if other != protocol:
                with pytest.raises(ConfigurationError, match=f"'{protocol}'.*'{other}'"):
                    settled(other, script, message)

    def test_a_ledger_that_was_removed_is_refused(self, protocol: str) -> None:
        script, message = processed(protocol)
        script.put(Json.of(script.body))
        with pytest.raises(LedgerRemoved):
            settled(protocol, script, message)
        assert [type(effect) for effect in script.asked] == [LoadEntity, HasCompanions, SaveEntity]


@ALL
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
        assert (played.kinds, played.result.outcome) == ([LoadEntity, LoadCompanions], "processed")

    def test_a_message_without_a_number_was_never_taken(self) -> None:
        readers = Readers()
        played = settled("resequencer", readers, replace(scored(1), extensions=()))
        assert played.kinds == [LoadEntity, SaveEntity, Begin, Park]

    def test_a_message_with_the_number_of_another_is_parked(self) -> None:
        readers = Readers()
        readers.delivered(scored(1, id="x"))
        assert settled("resequencer", readers, scored(1, id="y")).result.outcome == "parked"

    def test_what_this_process_published_is_remembered_for_marking(self) -> None:
        script, message = processed("resequencer", {Publish: UNKNOWN})
        memory = settled("resequencer", script, message).result.memory
        assert memory.published == {"tx-1"}
        script.play(RESEQUENCER.mark(BOARD, memory))
        assert script.ledger.owing_since is None

    def test_parking_keeps_what_is_held(self) -> None:
        readers = Readers()
        readers.delivered(scored(3), scored(1, id="x"))
        settled("resequencer", readers, scored(1, id="y"))
        assert (readers.seen, readers.held) == (["1"], {"s": ((3, 3),)})


@ALL
def test_a_message_whose_data_was_elsewhere_is_parked_as_it_came(protocol: str) -> None:
    script, message = nothing_yet(protocol)
    came = message.by_reference("https://account.blob.core.windows.net/blobs/a")
    work = script.work(message) if isinstance(script, Readers) else work_for(message)
    played = script.play(settle_by(protocol, work, REASON, MEMORY, came))
    assert played.only(Park).message.envelope == came.to_json()
    assert played.only(Park).message.message == f"{message.source}/{message.id}"


def test_a_stream_of_states_is_not_settled_as_one_of_events() -> None:
    script = Beside()
    script.play(attempt(VersionStream(3), deposit("m-1")))
    work = sourcing.work(sourcing.accounts(VersionStream(3)), deposit("m-1"))
    with pytest.raises(ConfigurationError, match="holds no events, but its type applies some"):
        script.play(settle_by("stream", work, "given up", Memory()))
    assert len(script.published) == 1
