"""Marks that leave in pages: when, which, and how they are looked for; and pages that are lost, or of another history."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import Again, Before, Handled
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer, Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    DeletePages,
    FindPages,
    FindPagesAbove,
    FoundAbove,
    FoundPages,
    WritePage,
    Written,
)
from exactlyonce.errors import DatabaseRestored
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox.draft import MARKS_STAY, MOST_MARKS, leaving
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import entity_document, split
from exactlyonce.records.outbox import Answer
from exactlyonce.values.envelope import STABLE_TIME, message_hash, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from tests.samples import accounts, deposit
from tests.unit.bookkeeping import tx
from tests.unit.script import ABSENT, AT, ENTITY, ORDERED, Script, attempt

OUTBOX = Outbox()
NOW = milliseconds(AT)
MARKS = MOST_MARKS + 2
LEFT = MARKS - MARKS_STAY


def timed(number: int, since: int | None = None) -> Envelope:
    """A message that came about so many milliseconds after the start, or at another time."""
    stable = ((STABLE_TIME, stable_text(NOW + (number if since is None else since))),)
    return replace(deposit(f"m-{number}"), extensions=stable)


def full(*more: Envelope, timed_ones: bool = True) -> Script:
    """An entity of whose first messages pages tell: 33 messages, and the one that made 21 of them leave."""
    script = Script()
    script.play(
        attempt(OUTBOX, *((timed if timed_ones else lambda number: deposit(f"m-{number}"))(n) for n in range(MARKS)))
    )
    for message in more or (timed(33),):
        script.play(attempt(OUTBOX, message))
    return script


class TestLeaving:
    def test_more_than_31_marks_lose_the_oldest_with_the_next_commit_and_12_stay(self) -> None:
        script = full(timed(33, -5))
        (page,) = script.pages
        assert (page.number, page.version, page.begin, page.until) == (1, 33, NOW, NOW + LEFT - 1)
        assert (len(split(page.marks)), len(script.marks), page.hashes) == (LEFT, MARKS_STAY + 1, ())
        ledger = script.ledger
        assert (ledger.version, ledger.left, ledger.cut, ledger.complete) == (34, LEFT, 1, page.until)
        assert script.marks[0].since == NOW - 5, "the new message is the oldest of those that stay"

    def test_the_page_is_written_before_the_commit_and_depends_on_the_loaded_ledger_alone(self) -> None:
        script = full(timed(33))
        ledger = replace(script.ledger, marks=script.pages[0].marks, left=0, cut=0, version=LEFT)
        assert leaving(ENTITY, ledger) is None
        script = Script()
        script.play(attempt(OUTBOX, *map(timed, range(33))))
        pages = [
            script.play(attempt(OUTBOX, timed(number)), {SaveEntity: UNKNOWN}).only(WritePage).page
            for number in (40, 50)
        ]
        assert pages[0] == pages[1]

    def test_untimed_messages_are_among_the_hashes(self) -> None:
        (page,) = full(timed_ones=False).pages
        assert len(page.hashes) == LEFT

    def test_answers_above_two_kilobytes_leave_together_with_the_next_commit(self) -> None:
        def answering(before: Before, envelope: Envelope) -> Handled:
            return Handled(Json('{"id":"a"}'), answer=Answer(body=f'"{"x" * 1_500}"', asked=envelope.asked or ""))

        script = Script()
        for number in (1, 2, 3):
            script.play(attempt(OUTBOX, replace(deposit(f"m-{number}"), asked="f"), handle=answering))
        (page,) = script.pages
        assert [answer.cause for answer in page.answers] == [message_hash("web/m-1"), message_hash("web/m-2")]
        assert (page.marks, page.hashes) == ("", tuple(answer.cause for answer in page.answers))
        assert (script.ledger.left, script.ledger.cut, len(script.ledger.answers)) == (0, 1, 1)
        played = script.play(attempt(OUTBOX, replace(deposit("m-1"), asked="f"), handle=answering))
        assert played.requests[1:] == [FindPages]
        assert played.finished.answers[0][1].body == page.answers[0].answer.body

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_a_page_that_may_not_be_written_keeps_the_commit_from_being_made(self, reply: NoAnswer) -> None:
        script = Script()
        script.play(attempt(OUTBOX, *map(timed, range(33))))
        assert SaveEntity not in script.play(attempt(OUTBOX, timed(33)), {WritePage: reply}).kinds

    def test_where_the_container_is_behind_the_ledger_nothing_more_is_forgotten(self) -> None:
        script = full()
        script.play(attempt(OUTBOX, *map(timed, range(34, 54))))
        played = script.play(attempt(OUTBOX, timed(54)), {WritePage: Written("0:-1#0")})
        assert "session token" in played.again.reason
        assert SaveEntity not in played.kinds


class TestBlobs:
    def test_the_mark_of_an_old_message_stays_until_a_page_proves_its_blobs(self) -> None:
        def painting(before: Before, envelope: Envelope) -> Handled:
            return Handled(Json('{"id":"a"}'), blobs=(Blob(f"{before.tx}/picture", b"", "t/x"),))

        script = Script()
        script.play(attempt(OUTBOX, timed(1, -int(timedelta(days=29) / timedelta(milliseconds=1))), handle=painting))
        script.at += timedelta(days=2)
        script.play(attempt(OUTBOX, *(timed(number, 10**8) for number in range(2, 34))))
        assert len(script.marks) == 33
        script.play(attempt(OUTBOX, timed(34, 10**8)))
        assert script.pages[0].blobs == (tx(1),)

    def test_one_without_blobs_goes_with_age(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, timed(1, -int(timedelta(days=29) / timedelta(milliseconds=1)))))
        script.at += timedelta(days=2)
        script.play(attempt(OUTBOX, timed(2, 10**8)))
        assert (len(script.marks), script.ledger.left, script.pages) == (1, 1, [])


class TestLooking:
    def test_a_timed_message_younger_than_all_that_left_is_not_looked_for(self) -> None:
        assert FindPages not in full().play(attempt(OUTBOX, timed(99))).kinds

    def test_an_older_one_is_looked_for_by_its_time_at_the_ledgers_token(self) -> None:
        script = full()
        played = script.play(attempt(OUTBOX, timed(3)))
        assert played.only(FindPages) == FindPages(ENTITY, (NOW + 3,), (), 1, script.ledger.token)
        assert played.finished.processed == ()

    def test_one_as_old_as_the_newest_that_left_is_looked_for(self) -> None:
        assert full().play(attempt(OUTBOX, timed(LEFT - 1))).finished.processed == ()

    def test_an_untimed_one_is_looked_for_by_its_hash(self) -> None:
        script = full(timed_ones=False)
        known = script.marks[0].hash
        gone = next(n for n in range(33) if message_hash(f"web/m-{n}") in script.pages[0].hashes)
        assert known not in script.pages[0].hashes
        played = script.play(attempt(OUTBOX, deposit(f"m-{gone}")))
        assert played.only(FindPages).hashes == (message_hash(f"web/m-{gone}"),)
        assert played.finished.processed == ()

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_a_look_without_an_answer_is_never_taken_for_absence(self, reply: NoAnswer) -> None:
        assert full().play(attempt(OUTBOX, timed(3)), {FindPages: reply}).again.reason

    def test_a_page_of_a_later_version_is_no_evidence(self) -> None:
        script = full()
        later = replace(script.pages[0], number=2, version=90, begin=0, until=0, marks=script.pages[0].marks)
        other = replace(script.pages[0], marks="")
        played = script.play(attempt(OUTBOX, timed(3)), {FindPages: FoundPages((later, other))})
        assert played.finished.processed == ("web/m-3",)


class TestLostPages:
    def attempt(self, message: Envelope) -> Step[object]:
        from exactlyonce.attempt import Memory, Work

        runner = Runner(accounts(), ENTITY, ORDERED)
        return OUTBOX.attempt(Work(ENTITY, (message,), runner, ABSENT, refusal=Lifetimes().refusal), Memory())

    def test_where_the_newest_page_is_gone_what_it_might_know_is_refused(self) -> None:
        played = full().play(self.attempt(timed(200, 2)), {FindPages: FoundPages(())})
        ((_, error),) = played.finished.failed
        assert isinstance(error, DatabaseRestored)

    def test_where_nothing_so_old_is_judged_any_more_it_may_be_gone(self) -> None:
        script = full()
        script.at += timedelta(days=29)
        message = replace(deposit("m-200"), time=script.at)
        assert script.play(self.attempt(message), {FindPages: FoundPages(())}).finished.processed == ("web/m-200",)

    def test_what_came_about_before_pages_were_lost_is_refused_though_others_were_written_since(self) -> None:
        script = full()
        body = Json.of(script.body)
        script.put(entity_document(body, replace(script.ledger, lost=script.ledger.complete)))
        ((_, error),) = script.play(self.attempt(timed(200, 2))).finished.failed
        assert isinstance(error, DatabaseRestored)
        assert script.play(self.attempt(timed(201, 10**6))).finished.processed == ("web/m-201",)


def found_above(script: Script) -> FoundAbove:
    found = script.store.perform(FindPagesAbove(ENTITY, 0, None))
    assert isinstance(found, FoundAbove)
    return found


class TestAnotherHistory:
    def test_its_pages_are_deleted_behind_a_fence_the_newest_first(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, *map(timed, range(33))))
        before = script.document
        for numbers in (range(33, 60), range(60, 80), range(80, 99)):
            script.play(attempt(OUTBOX, *map(timed, numbers)))
        assert [page.number for page in script.pages] == [1, 2, 3]
        assert before is not None
        script.put(before)
        played = script.play(attempt(OUTBOX, timed(500)))
        assert played.requests == [type(effect) for effect in played.effects if type(effect) in played.requests]
        assert len(played.all(WritePage)) == 1, "the page after the first one is the same"
        script.play(attempt(OUTBOX, *(timed(number) for number in range(501, 520))))
        played = script.play(attempt(OUTBOX, timed(600)))
        assert [number for number, _ in played.only(DeletePages).pages] == [3, 2]
        assert isinstance(played.result, Again)
        assert [page.number for page in script.pages] == [1]
        assert script.play(attempt(OUTBOX, timed(600))).finished.processed == ("web/m-600",)

    def test_a_page_is_in_the_way_though_the_one_before_was_deleted_for_its_age(self) -> None:
        script = Script()
        script.play(attempt(OUTBOX, *map(timed, range(33))))
        before = script.document
        for numbers in (range(33, 60), range(60, 80), range(80, 99)):
            script.play(attempt(OUTBOX, *map(timed, numbers)))
        assert before is not None
        script.put(before)
        (etag,) = [etag for page, etag in found_above(script).pages if page.number == 1]
        script.store.perform(DeletePages(ENTITY, ((1, etag),)))
        script.play(attempt(OUTBOX, *(timed(number) for number in range(501, 530))))
        undone = timed(40)
        assert script.ledger.cut == 1
        assert script.play(attempt(OUTBOX, undone)).again.reason, "page 2 is of the other history"
        assert script.play(attempt(OUTBOX, undone)).finished.processed == ("web/m-40",)

    def test_without_a_fence_nothing_is_deleted(self) -> None:
        script = full()
        script.play(attempt(OUTBOX, *map(timed, range(34, 54))))
        played = script.play(attempt(OUTBOX, timed(99)), {WritePage: OTHER, SaveEntity: UNKNOWN})
        assert played.requests[-2:] == [FindPagesAbove, SaveEntity]
        assert DeletePages not in played.kinds
