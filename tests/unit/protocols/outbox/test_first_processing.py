"""What an attempt of the outbox asks, step by step: for new messages, for duplicates, and after replies that prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid, HasPages, OpenNumbers
from exactlyonce.errors import LedgerRemoved
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from tests.asking import sweep
from tests.samples import breaking, deposit
from tests.unit.bookkeeping import tx
from tests.unit.script import ENTITY, Script, attempt

OUTBOX = Outbox()


def processed(*numbers: int, published: bool = True) -> Script:
    """An entity that processed messages, one after the other; in the end another process plays."""
    script = Script()
    for number in numbers:
        script.play(attempt(OUTBOX, deposit(f"m-{number}")), {} if published else {Publish: UNKNOWN})
    script.restart()
    return script


class TestTheFirstTime:
    def test_everything_is_committed_at_once_published_and_then_paid(self) -> None:
        script = Script()
        played = script.play(attempt(OUTBOX, deposit("m-1", answers=2)))
        assert played.kinds == [LoadEntity, HasPages, FindPaid, OpenNumbers, SaveEntity, Publish, CloseNumbers]
        (mark,), (entry,) = script.marks, script.entries
        assert (mark.hash, mark.kind, mark.timed, mark.sent) == (message_hash("web/m-1"), "f", False, "--")
        assert (entry.cause, entry.tx) == (mark.hash, tx(1))
        assert (
            tuple(entry.owed_outputs(ENTITY, script.ledger.to, script.ledger.sequences)) == played.only(Publish).outputs
        )
        assert script.book.pays(tx(1))

    def test_the_next_commit_drops_what_is_paid(self) -> None:
        script = Script()
        for number in (1, 2):
            script.play(attempt(OUTBOX, deposit(f"m-{number}")))
        assert [entry.tx for entry in script.entries] == [tx(2)]
        assert {mark.hash for mark in script.marks} == {message_hash("web/m-1"), message_hash("web/m-2")}

    def test_what_nobody_is_known_to_have_published_stays(self) -> None:
        script = processed(1, published=False)
        script.play(attempt(OUTBOX, deposit("m-2")))
        assert [entry.tx for entry in script.entries] == [tx(1), tx(1, script.book.id)]

    def test_what_the_book_of_another_process_proves_is_dropped(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, deposit("m-1")))
        script.books = [script.book.document]
        script.restart()
        script.play(attempt(OUTBOX, deposit("m-2")))
        assert [entry.tx for entry in script.entries] == [tx(1, script.book.id)]

    def test_where_every_handler_raises_the_numbers_are_closed_and_nothing_is_written(self) -> None:
        script = Script()
        played = script.play(attempt(OUTBOX, breaking("m-1")))
        assert played.kinds == [LoadEntity, HasPages, FindPaid, OpenNumbers, CloseNumbers]
        assert (script.writes, script.book.open) == (0, {})

    def test_without_a_book_in_the_store_nothing_is_handled(self) -> None:
        played = Script().play(attempt(OUTBOX, deposit("m-1")), {OpenNumbers: UNKNOWN})
        assert played.kinds[-1] is OpenNumbers
        assert "book" in played.again.reason


class TestADuplicate:
    def test_it_publishes_what_is_owed_before_it_is_acknowledged(self) -> None:
        script = processed(1, published=False)
        played = script.play(attempt(OUTBOX, deposit("m-1")))
        assert played.kinds == [LoadEntity, FindPaid, Publish, CloseNumbers]
        owed = tuple(script.entries[0].owed_outputs(ENTITY, script.ledger.to, script.ledger.sequences))
        assert played.only(Publish) == Publish(owed, ENTITY)
        assert played.only(CloseNumbers).transactions == (tx(1),)

    def test_what_may_not_have_arrived_is_not_acknowledged(self) -> None:
        script = processed(1, published=False)
        assert script.play(attempt(OUTBOX, deposit("m-1")), {Publish: UNKNOWN}).again.reason
        assert not script.book.pays(tx(1))

    def test_one_that_is_paid_does_nothing(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, deposit("m-1")))
        assert script.play(attempt(OUTBOX, deposit("m-1"))).kinds == [LoadEntity, FindPaid]

    def test_only_what_copies_owe_is_needed_for_certain(self) -> None:
        script = processed(1, 2, published=False)
        played = script.play(attempt(OUTBOX, deposit("m-2"), deposit("m-3")))
        paid = played.only(FindPaid)
        assert (paid.transactions, paid.needed) == ((tx(1), tx(2)), (tx(2),))


class TestNumbersAreClosed:
    def test_a_lost_save_keeps_its_number_open_until_a_later_view_lacks_its_entry(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, deposit("m-1")), {SaveEntity: UNKNOWN})
        assert not script.book.pays(tx(1))
        script.play(attempt(OUTBOX, deposit("m-1")))
        assert not script.book.pays(tx(1)), "the view was no later one"
        script.play(attempt(OUTBOX, deposit("m-2")))
        assert script.book.pays(tx(1))

    def test_a_commit_that_was_told_as_a_conflict_is_found_and_finished(self) -> None:
        script = Script()

        def told_as_a_conflict(effect: Any) -> Conflict:
            script.usual(effect)
            return Conflict(None)

        script.play(attempt(OUTBOX, deposit("m-1")), {SaveEntity: told_as_a_conflict})
        played = script.play(attempt(OUTBOX, deposit("m-1")))
        assert played.requests == [LoadEntity, Publish]
        assert (len(script.published), script.book.pays(tx(1))) == (1, True)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (LoadEntity, BEHIND),
        (LoadEntity, UNKNOWN),
        (HasPages, BEHIND),
        (HasPages, UNKNOWN),
        (SaveEntity, UNKNOWN),
        (SaveEntity, Conflict("0:-1#9")),
        (Publish, UNKNOWN),
    ],
)
def test_an_effect_without_an_answer_is_the_last_one(kind: Any, reply: Any) -> None:
    played = Script().play(attempt(OUTBOX, deposit("m-1")), {kind: reply})
    assert played.kinds[-1] is kind
    assert played.again.memory.saved is None


def test_a_document_of_the_application_is_adopted_after_one_look_for_pages() -> None:
    script = Script(Json.of({"id": "a", "owner": "a", "total": 3}))
    played = script.play(attempt(OUTBOX, deposit("m-1")))
    assert played.requests == [LoadEntity, HasPages, SaveEntity, Publish]


class TestAnEntityThatWasRemoved:
    @pytest.mark.parametrize("document", [None, Json.of({"id": "a", "owner": "a"})])
    def test_a_process_that_knows_it_asks_for_pages_at_its_session_token(self, document: Json | None) -> None:
        played = Script(document).play(attempt(OUTBOX, deposit("m-1"), memory=Memory(library_token="0:-1#5")))
        assert played.only(HasPages) == HasPages(ENTITY, "0:-1#5")

    def test_its_tombstone_keeps_the_token_for_other_processes(self) -> None:
        script = Script()
        for memory in (Memory(library_token="0:-1#5"), Memory()):
            with pytest.raises(LedgerRemoved):
                script.play(attempt(OUTBOX, deposit("m-1"), memory=memory), {HasPages: True})
            assert script.asked[1] == HasPages(ENTITY, "0:-1#5")

    def test_it_is_refused_behind_a_fence(self) -> None:
        script = Script()
        with pytest.raises(LedgerRemoved, match="no message is"):
            script.play(attempt(OUTBOX, deposit("m-1")), {HasPages: True})
        assert [type(effect) for effect in script.asked] == [LoadEntity, HasPages, SaveEntity]

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict(None)])
    def test_without_the_fence_its_view_may_be_from_before_it(self, reply: NoAnswer | Conflict) -> None:
        played = Script().play(attempt(OUTBOX, deposit("m-1")), {HasPages: True, SaveEntity: reply})
        assert played.again.reason


class TestTheSweeper:
    def test_it_publishes_what_is_owed_and_drops_it(self) -> None:
        script = processed(1, 2, published=False)
        played = script.play(sweep(ENTITY, Memory()))
        assert played.kinds == [LoadEntity, FindPaid, Publish, CloseNumbers, SaveEntity]
        assert (len(played.only(Publish).outputs), script.entries, script.ledger.version) == (2, (), 2)

    def test_what_may_not_have_been_published_stays_owed(self) -> None:
        script = processed(1, published=False)
        assert script.play(sweep(ENTITY, Memory()), {Publish: UNKNOWN}).again.reason
        assert len(script.entries) == 1
