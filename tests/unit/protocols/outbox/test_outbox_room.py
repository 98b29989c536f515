"""A document has a largest size: what does not fit beside other messages waits for the next commit, or fails alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Before, Handle, Handled
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import LoadEntity, Publish
from exactlyonce.errors import EntityTooLarge, HandlerFailed
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, entity_document
from exactlyonce.records.outbox import Answer, Sequence, Sequences
from exactlyonce.testing.world import World
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, deposit, ledger_queue
from tests.unit.script import Script, attempt

OUTBOX = Outbox()


async def test_what_was_published_makes_room_for_the_next_outputs() -> None:
    world = World([ledger_queue], random=Random(1))
    process, entity = world.process(), accounts()
    for number in range(6):
        await process.deliver(entity, deposit(f"m-{number}", answers=1_500))
    await process.close()
    (partition,) = world.store.entities.values()
    sizes = [version.document.size for version in partition.log if version.document is not None]
    assert max(sizes) <= MAX_DOCUMENT_BYTES
    assert len(world.published) == 6 * 1_500


def large(number: int) -> Envelope:
    """A message whose output takes so much room that a document has two of these."""
    return deposit(f"m-{number}", padding="x", repeat=600_000)


def test_what_others_owe_is_sent_once_more_where_it_takes_the_room() -> None:
    script = Script()
    for number in range(2):
        script.play(attempt(OUTBOX, large(number)))
        script.restart()
    played = script.play(attempt(OUTBOX, large(2)))
    assert played.requests == [LoadEntity, Publish]
    assert (played.again.progressed, len(played.only(Publish).outputs)) == (True, 2)
    assert script.play(attempt(OUTBOX, large(2))).finished.processed == ("web/m-2",)
    assert (len(script.entries), script.book.open) == (1, {})


def test_where_that_is_not_answered_nothing_leaves() -> None:
    script = Script()
    for number in range(2):
        script.play(attempt(OUTBOX, large(number)), {Publish: UNKNOWN})
    assert not script.play(attempt(OUTBOX, large(2)), {Publish: UNKNOWN}).again.progressed
    assert len(script.entries) == 2


def test_a_large_answer_that_leaves_makes_room() -> None:
    def answering(before: Before, envelope: Envelope) -> Handled:
        return Handled(Json('{"id":"a"}'), answer=Answer(body=f'"{"x" * 800_000}"', asked=envelope.asked or ""))

    script = Script()
    for number in range(3):
        message = replace(deposit(f"m-{number}"), asked="f")
        assert script.play(attempt(OUTBOX, message, handle=answering)).finished.processed == (f"web/m-{number}",)


def test_every_message_of_a_group_takes_room() -> None:
    script = Script()
    group = (deposit(f"m-{number}", padding="x", repeat=40_000, answers=12) for number in range(4))
    again = script.play(attempt(OUTBOX, *group)).again
    assert again.progressed
    assert again.processed == ("web/m-0", "web/m-1", "web/m-2")
    assert script.ledger.version == 3


def noted() -> Script:
    """An entity with a large state."""
    return Script(Json.of({"id": "a", "owner": "a", "total": 0, "history": [], "note": "x" * 400_000}))


TOO_LARGE = deposit("m-2", padding="x", repeat=30_000, answers=40)


def test_what_has_no_room_by_itself_fails_beside_others_at_once() -> None:
    finished = noted().play(attempt(OUTBOX, deposit("m-1"), TOO_LARGE)).finished
    assert finished.processed == ("web/m-1",)
    assert [key for key, _ in finished.failed] == ["web/m-2"]


def test_what_had_no_room_beside_others_is_committed_next() -> None:
    script = Script()
    group = tuple(deposit(f"m-{number}", padding="x", repeat=40_000, answers=12) for number in range(4))
    memory = script.play(attempt(OUTBOX, *group)).again.memory
    assert script.play(attempt(OUTBOX, *group, memory=memory)).finished.processed == ("web/m-3",)
    assert {mark.hash for mark in script.marks} == {message_hash(f"web/m-{number}") for number in range(4)}


def test_what_failed_before_a_message_that_is_too_large_is_still_reported() -> None:
    finished = noted().play(attempt(OUTBOX, breaking("m-1"), TOO_LARGE)).finished
    assert [(key, type(error)) for key, error in finished.failed] == [
        ("web/m-1", HandlerFailed),
        ("web/m-2", EntityTooLarge),
    ]


def numbers_of(kilobytes: int) -> Sequences:
    """Numbers given out to so many receivers, of about a kilobyte each."""
    return tuple(Sequence("boards", f"board/{number:04}{'k' * 920}", "c", 1) for number in range(kilobytes))


def holding(sequences: Sequences) -> Script:
    """An entity that has processed one message, and given out these numbers."""
    script = Script()
    script.play(attempt(OUTBOX, deposit("m-1", answers=0)))
    script.put(entity_document(Json('{"id":"a"}'), replace(script.ledger, sequences=sequences)))
    return script


def handling(kilobytes: int, sequences: Sequences) -> Handle:
    """A handler that leaves a state of so many kilobytes and these numbers, and sends nothing."""
    body = Json.of({"id": "a", "padding": "x" * kilobytes * 1000})
    return lambda before, envelope: Handled(body, sequences=sequences)


class TestNumbersTakeRoom:
    @pytest.mark.parametrize("before", [0, 800])
    def test_those_of_before_and_those_given_out_now(self, before: int) -> None:
        script = holding(numbers_of(before))
        played = script.play(attempt(OUTBOX, deposit("m-2"), handle=handling(800, numbers_of(800))))
        assert [type(error) for _, error in played.finished.failed] == [EntityTooLarge]
        assert not any(partition.log for partition in script.store.library.values())

    def test_a_state_that_fits_beside_them_is_committed(self) -> None:
        script = holding(numbers_of(0))
        played = script.play(attempt(OUTBOX, deposit("m-2"), handle=handling(600, numbers_of(800))))
        assert played.finished.processed == ("web/m-2",)
        assert script.document is not None
        assert script.document.size <= MAX_DOCUMENT_BYTES


def test_a_large_state_is_counted_once() -> None:
    script = Script(Json.of({"id": "a", "owner": "a", "total": 0, "history": [], "note": "x" * 900_000}))
    for message in ("m-1", "m-2"):
        assert script.play(attempt(OUTBOX, deposit(message))).finished.processed == (f"web/{message}",)
