"""A document that has no room for more lets its entries go, however few they are: an entity does not wedge on its ledger."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from exactlyonce import EntityTooLarge, HandlerFailed, Outbox
from exactlyonce.attempt import Handle, Handled
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, entity_document
from exactlyonce.records.sequences import Sequence, Sequences
from exactlyonce.testing.world import World
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, deposit, ledger_queue
from tests.unit.script import Script, attempt


async def test_many_small_outputs_make_entries_leave_before_the_window_is_full() -> None:
    world = World([ledger_queue], random=Random(1))
    process, entity = world.process(), accounts(Outbox(inline_limit=0))
    for number in range(8):
        await process.deliver(entity, deposit(f"m-{number}", answers=3_500))
    await process.close()
    (partition,) = world.store.entities.values()
    sizes = [version.document.size for version in partition.log if version.document is not None]
    assert max(sizes) <= MAX_DOCUMENT_BYTES
    assert len(world.published) == 8 * 3_500
    assert any(partition.log for partition in world.store.library.values()), "records were written"


async def test_what_departing_entries_owe_is_published_first() -> None:
    world = World([ledger_queue], random=Random(1))
    entity = accounts(Outbox(window=64, inline_limit=None))
    for number in range(40):
        process = world.process()  # It dies before it marks, so that every entry still owes as far as anybody knows.
        await process.deliver(entity, deposit(f"m-{number}", padding="x", repeat=45_000))
        await process.crash()
    commits = {commit.message for commit in world.facts().commits}
    assert commits == {f"web/m-{number}" for number in range(40)}


async def test_where_the_ledger_keeps_everything_the_error_says_what_to_use() -> None:
    world = World([ledger_queue], random=Random(1))
    entity = accounts(Outbox.embedded())
    text = None
    for number in range(40):
        process = world.process()
        try:
            await process.deliver(entity, deposit(f"m-{number}", padding="x", repeat=45_000))
        except EntityTooLarge as error:
            text = str(error)
        await process.crash()
    assert text is not None
    assert "use Outbox()" in text


def test_every_message_of_a_group_takes_room() -> None:
    script = Script()
    group = (deposit(f"m-{number}", padding="x", repeat=40_000, answers=12) for number in range(4))
    again = script.play(attempt(Outbox.embedded(), *group)).again
    assert again.progressed
    assert [entry.message for entry in script.entries] == ["web/m-0", "web/m-1", "web/m-2"]


def test_what_has_no_room_by_itself_fails_beside_others_at_once() -> None:
    group = (deposit("m-1"), deposit("m-2", padding="x", repeat=30_000, answers=52))
    finished = Script().play(attempt(Outbox(inline_limit=None), *group)).finished
    assert finished.processed == ("web/m-1",)
    assert [key for key, _ in finished.failed] == ["web/m-2"]


def test_what_had_no_room_beside_others_is_committed_next() -> None:
    script = Script()
    group = tuple(deposit(f"m-{number}", padding="x", repeat=40_000, answers=12) for number in range(4))
    memory = script.play(attempt(Outbox(inline_limit=None), *group)).again.memory
    assert script.play(attempt(Outbox(inline_limit=None), *group, memory=memory)).finished.processed == ("web/m-3",)


def test_what_failed_before_a_message_that_is_too_large_is_still_reported() -> None:
    script = Script()
    group = (breaking("m-1"), deposit("m-2", padding="x", repeat=30_000, answers=52))
    finished = script.play(attempt(Outbox(inline_limit=None), *group)).finished
    assert [(key, type(error)) for key, error in finished.failed] == [
        ("web/m-1", HandlerFailed),
        ("web/m-2", EntityTooLarge),
    ]


def numbers_of(kilobytes: int) -> Sequences:
    """Numbers given out to so many receivers, of about a kilobyte each."""
    return tuple(Sequence("boards", f"board/{number:04}{'k' * 920}", "c", 1) for number in range(kilobytes))


def holding(sequences: Sequences) -> Script:
    """An entity with one entry, which owes nothing, that has given out these numbers."""
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1")))
    entry = replace(script.entries[0], owed=None)
    script.put(entity_document(Json('{"id":"a"}'), replace(script.ledger, entries=(entry,), sequences=sequences)))
    return script


def handling(kilobytes: int, sequences: Sequences) -> Handle:
    """A handler that leaves a state of so many kilobytes and these numbers, and sends nothing."""
    body = Json.of({"id": "a", "padding": "x" * kilobytes * 1000})
    return lambda before, envelope: Handled(body, sequences=sequences)


class TestNumbersTakeRoom:
    def test_what_stays_when_entries_leave_is_counted(self) -> None:
        numbers = numbers_of(800)
        script = holding(numbers)
        finished = script.play(attempt(Outbox(window=1), deposit("m-2"), handle=handling(800, numbers))).finished
        ((key, error),) = finished.failed
        assert (key, type(error)) == ("web/m-2", EntityTooLarge)
        assert not any(partition.log for partition in script.store.library.values()), "no records were written"

    def test_numbers_given_out_now_are_counted(self) -> None:
        script = holding(numbers_of(0))
        played = script.play(attempt(Outbox.embedded(), deposit("m-2"), handle=handling(800, numbers_of(800))))
        assert [type(error) for _, error in played.finished.failed] == [EntityTooLarge]

    def test_those_of_before_are_counted_once(self) -> None:
        numbers = numbers_of(800)
        script = holding(numbers)
        played = script.play(attempt(Outbox(), deposit("m-2"), handle=handling(600, numbers)))
        assert played.finished.processed == ("web/m-2",)
        assert [entry.message for entry in script.entries] == ["web/m-1", "web/m-2"]
        assert script.document is not None
        assert script.document.size <= MAX_DOCUMENT_BYTES


def test_a_large_state_is_counted_once() -> None:
    document = Json.of({"id": "a", "owner": "a", "total": 0, "history": [], "note": "x" * 900_000})
    for strategy in (Outbox(), Outbox.embedded()):
        script = Script(document)
        script.play(attempt(strategy, deposit("m-1")))
        played = script.play(attempt(strategy, deposit("m-2")))
        assert played.finished.failed == ()
        assert [entry.message for entry in script.entries] == ["web/m-1", "web/m-2"]
