"""What an attempt of the outbox asks, step by step, from a loaded and from a remembered document; when marks leave in
pages, and what there is room for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.effects.attempt import SHARED, Again, Before, Handle, Handled, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer, Step, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    CloseNumbers,
    DeletePages,
    FindPages,
    FindPagesAbove,
    FindPaid,
    FoundPages,
    HasPages,
    KeepAnswers,
    OpenNumbers,
    WritePage,
    Written,
)
from exactlyonce.errors import DatabaseRestored, EntityTooLarge, HandlerFailed, LedgerRemoved
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.outbox.draft import MARKS_STAY, MOST_MARKS
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, entity_document, read_entity, split
from exactlyonce.records.outbox import Answer, Sequence, Sequences
from exactlyonce.testing.world import World
from exactlyonce.values.envelope import STABLE_TIME, message_hash, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from tests.asking import sweep
from tests.samples import accounts, breaking, close, deposit, ledger_queue
from tests.unit.bookkeeping import tx
from tests.unit.protocols.outbox.test_answers import opened
from tests.unit.script import ABSENT, AT, ENTITY, ORDERED, Replies, Script, attempt

OUTBOX = Outbox()


def processed(*numbers: int, published: bool = True) -> Script:
    """An entity that processed messages, one after the other; in the end another process plays."""
    script = Script()
    for number in numbers:
        script.play(attempt(OUTBOX, deposit(f"m-{number}")), {} if published else {Publish: UNKNOWN})
    script.restart()
    return script


class TestTheFirstTime:
    def test_everything_is_committed_at_once_published_and_then_paid(self, script: Script) -> None:
        played = script.play(attempt(OUTBOX, deposit("m-1", answers=2)))
        assert played.kinds == [LoadEntity, HasPages, FindPaid, OpenNumbers, SaveEntity, Publish, CloseNumbers]
        (mark,), (entry,) = script.marks, script.entries
        assert (mark.hash, mark.kind, mark.timed, mark.sent) == (message_hash("web/m-1"), "f", False, "--")
        assert (entry.cause, entry.tx) == (mark.hash, tx(1))
        assert (
            tuple(entry.owed_outputs(ENTITY, script.ledger.to, script.ledger.sequences)) == played.only(Publish).outputs
        )
        assert script.book.pays(tx(1))

    def test_the_next_commit_drops_what_is_paid(self, script: Script) -> None:
        for number in (1, 2):
            script.play(attempt(OUTBOX, deposit(f"m-{number}")))
        assert [entry.tx for entry in script.entries] == [tx(2)]
        assert {mark.hash for mark in script.marks} == {message_hash("web/m-1"), message_hash("web/m-2")}


class TestADuplicate:
    def test_it_publishes_what_is_owed_before_it_is_acknowledged(self) -> None:
        script = processed(1, published=False)
        played = script.play(attempt(OUTBOX, deposit("m-1")))
        assert played.kinds == [LoadEntity, FindPaid, Publish, CloseNumbers]
        owed = tuple(script.entries[0].owed_outputs(ENTITY, script.ledger.to, script.ledger.sequences))
        assert played.only(Publish) == Publish(owed, ENTITY)
        assert played.only(CloseNumbers).transactions == (tx(1),)

    def test_only_what_copies_owe_is_needed_for_certain(self) -> None:
        script = processed(1, 2, published=False)
        played = script.play(attempt(OUTBOX, deposit("m-2"), deposit("m-3")))
        paid = played.only(FindPaid)
        assert (paid.transactions, paid.needed) == ((tx(1), tx(2)), (tx(2),))

    def test_a_lost_save_keeps_its_number_open_until_a_later_view_lacks_its_entry(self, script: Script) -> None:
        script.play(attempt(OUTBOX, deposit("m-1")), {SaveEntity: UNKNOWN})
        assert not script.book.pays(tx(1))
        script.play(attempt(OUTBOX, deposit("m-1")))
        assert not script.book.pays(tx(1)), "the view was no later one"
        script.play(attempt(OUTBOX, deposit("m-2")))
        assert script.book.pays(tx(1))


@pytest.mark.parametrize(
    "replies",
    [
        {LoadEntity: BEHIND},
        {LoadEntity: UNKNOWN},
        {HasPages: BEHIND},
        {HasPages: UNKNOWN},
        {HasPages: True, SaveEntity: UNKNOWN},
        {HasPages: True, SaveEntity: Conflict(None)},
        {OpenNumbers: UNKNOWN},
        {SaveEntity: UNKNOWN},
        {SaveEntity: Conflict("0:-1#9")},
        {Publish: UNKNOWN},
    ],
)
def test_an_effect_without_an_answer_is_the_last_one(replies: Replies) -> None:
    played = Script().play(attempt(OUTBOX, deposit("m-1")), replies)
    assert played.kinds[-1] is [*replies][-1]
    assert played.again.memory.saved is None


def test_a_document_of_the_application_is_adopted_after_one_look_for_pages() -> None:
    script = Script(Json.of({"id": "a", "owner": "a", "total": 3}))
    played = script.play(attempt(OUTBOX, deposit("m-1")))
    assert played.requests == [LoadEntity, HasPages, SaveEntity, Publish]


class TestAnEntityThatWasRemoved:
    def test_it_is_refused_behind_a_fence(self, script: Script) -> None:
        with pytest.raises(LedgerRemoved, match="no message is"):
            script.play(attempt(OUTBOX, deposit("m-1")), {HasPages: True})
        assert [type(effect) for effect in script.asked] == [LoadEntity, HasPages, SaveEntity]

    def test_its_tombstone_keeps_the_token_for_other_processes(self, script: Script) -> None:
        for memory in (Memory(library_token="0:-1#5"), Memory()):
            with pytest.raises(LedgerRemoved):
                script.play(attempt(OUTBOX, deposit("m-1"), memory=memory), {HasPages: True})
            assert script.asked[1] == HasPages(ENTITY, "0:-1#5")

    @pytest.mark.parametrize("document", [None, Json.of({"id": "a", "owner": "a"})])
    def test_a_process_that_knows_it_asks_for_pages_at_its_session_token(self, document: Json | None) -> None:
        played = Script(document).play(attempt(OUTBOX, deposit("m-1"), memory=Memory(library_token="0:-1#5")))
        assert played.only(HasPages) == HasPages(ENTITY, "0:-1#5")


class TestTheSweeper:
    def test_it_publishes_what_is_owed_and_drops_it(self) -> None:
        script = processed(1, 2, published=False)
        played = script.play(sweep(ENTITY, Memory()))
        assert played.kinds == [LoadEntity, FindPaid, Publish, CloseNumbers, SaveEntity]
        assert (len(played.only(Publish).outputs), script.entries, script.ledger.version) == (2, (), 2)


def trusting(script: Script) -> Memory:
    """The memory of a process whose document was the newest as often as it takes."""
    memory = Memory()
    for number in range(1, TRUSTED + 2):
        memory = script.play(attempt(OUTBOX, timed(number), memory=memory)).finished.memory
    assert memory.saved is not None
    assert memory.saved.right == TRUSTED
    return memory


def counted(memory: Memory, right: int) -> Memory:
    """The memory, as if its document had been the newest so often in a row."""
    assert memory.saved is not None
    return replace(memory, saved=replace(memory.saved, right=right))


def by_another_process(script: Script) -> None:
    """Let another process commit a message."""
    script.play(attempt(OUTBOX, timed(9)))


def test_once_it_was_right_twice_a_message_takes_one_request(script: Script) -> None:
    memory = trusting(script)
    for number in (4, 5, 6):
        played = script.play(attempt(OUTBOX, timed(number), memory=memory))
        assert played.requests == [SaveEntity, Publish]
        assert played.finished.processed == (f"web/m-{number}",)
        memory = played.finished.memory
    assert script.ledger.version == len(script.marks) == 6


def test_a_document_whose_parts_are_not_remembered_is_read(script: Script) -> None:
    memory = trusting(script)
    assert memory.saved is not None
    memory = replace(memory, saved=replace(memory.saved, parts=None))
    played = script.play(attempt(OUTBOX, timed(4), memory=memory))
    assert played.requests == [SaveEntity, Publish]
    assert script.ledger.version == 4


def test_a_duplicate_takes_none(script: Script) -> None:
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, timed(2), memory=memory))
    assert played.requests == []
    assert played.finished.processed == ()


def test_an_unknown_save_leads_to_a_load(script: Script) -> None:
    memory = trusting(script)
    again = script.play(attempt(OUTBOX, timed(4), memory=memory), {SaveEntity: UNKNOWN}).again
    assert script.play(attempt(OUTBOX, timed(4), memory=again.memory)).kinds[0] is LoadEntity


@pytest.mark.parametrize(("right", "loads"), [(0, 2), (SHARED, 4)])
def test_a_document_is_trusted_after_it_was_right_twice_and_four_times_where_it_had_changed(
    right: int, loads: int
) -> None:
    script = Script()
    memory = counted(trusting(script), right)
    first = []
    for number in range(4, 4 + TRUSTED - right + 1):
        played = script.play(attempt(OUTBOX, timed(number), memory=memory))
        first.append(played.requests[0])
        memory = played.finished.memory
    assert first == [*[LoadEntity] * loads, SaveEntity]


@pytest.mark.parametrize("outdated", [True, False])
def test_a_handler_that_raises_on_a_remembered_state_runs_once_more_on_the_loaded_one_and_that_counts(
    outdated: bool,
) -> None:
    script = Script()
    memory = trusting(script)
    if outdated:
        by_another_process(script)
    seen: list[int] = []

    def handle(before: Before, envelope: Envelope) -> Handled:
        assert before.body is not None
        seen.append(before.body.value["total"])
        if before.version == TRUSTED + 2:
            raise HandlerFailed(f"It refuses {envelope.id} as long as nobody else has paid.")
        return Handled(before.body)

    finished = script.play(attempt(OUTBOX, timed(10), memory=memory, handle=handle)).finished
    assert seen == ([3, 4] if outdated else [3, 3])
    assert finished.processed == (("web/m-10",) if outdated else ())
    assert [type(error) for _, error in finished.failed] == ([] if outdated else [HandlerFailed])


@pytest.fixture
def few_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two marks are kept."""
    monkeypatch.setattr(draft, "MOST_MARKS", 2)
    monkeypatch.setattr(draft, "MARKS_STAY", 1)


@pytest.mark.usefixtures("few_marks")
class TestMarksThatLeft:
    def memory(self, script: Script) -> Memory:
        """The memory of a process that trusts a document of which the marks of messages 1 and 2 have left."""
        memory = script.play(attempt(OUTBOX, timed(4), memory=trusting(script))).finished.memory
        return counted(memory, TRUSTED)

    def test_a_copy_whose_mark_has_left_takes_one_look(self, script: Script) -> None:
        played = script.play(attempt(OUTBOX, timed(2), memory=self.memory(script)))
        assert played.requests == [FindPages]
        assert played.only(FindPages).token == script.ledger.token
        assert played.finished.processed == ()

    def test_a_younger_message_is_known_or_new_without_a_look(self, script: Script) -> None:
        memory = self.memory(script)
        assert script.play(attempt(OUTBOX, timed(4), memory=memory)).requests == []
        assert script.play(attempt(OUTBOX, timed(5), memory=memory)).requests == [SaveEntity, Publish]

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_a_look_that_is_not_answered_leads_to_the_loaded_document(self, reply: NoAnswer) -> None:
        """The token in a remembered ledger may be one that no replica will ever reach, and that was exchanged meanwhile."""
        script = Script()
        played = script.play(attempt(OUTBOX, timed(2), memory=self.memory(script)), {FindPages: [reply]})
        assert played.requests == [FindPages, LoadEntity, FindPages]


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


def test_after_an_unknown_publish_no_attempt_starts_from_the_document_before_the_commit(script: Script) -> None:
    """Its save would be in vain."""
    again = script.play(attempt(OUTBOX, timed(4), memory=trusting(script)), {Publish: UNKNOWN}).again
    assert again.memory.saved is None
    played = script.play(attempt(OUTBOX, timed(4), timed(5), memory=again.memory))
    assert played.requests == [LoadEntity, Publish, SaveEntity, Publish]
    assert played.finished.processed == ("web/m-5",)


def test_an_outdated_document_leads_to_a_conflict_and_then_to_a_load(script: Script) -> None:
    memory = trusting(script)
    by_another_process(script)
    again = script.play(attempt(OUTBOX, timed(4), memory=memory)).again
    assert again.memory.saved is None
    played = script.play(attempt(OUTBOX, timed(4), memory=again.memory))
    assert played.kinds[0] is LoadEntity
    assert played.finished.processed == ("web/m-4",)


def test_a_message_that_fails_on_a_remembered_document_has_its_whole_group_judged_on_a_loaded_one() -> None:
    """A handler may raise because the remembered state is hours old."""
    script = Script()
    played = script.play(attempt(OUTBOX, breaking("m-4"), timed(5), memory=trusting(script)))
    assert played.requests == [LoadEntity, SaveEntity, Publish]
    assert played.finished.processed == ("web/m-5",)
    assert [type(error) for _, error in played.finished.failed] == [HandlerFailed]
    assert script.book.open == {}, "the numbers of the first try are closed"


def test_an_opened_request_is_looked_for_so_the_entity_is_loaded_beside_it(script: Script) -> None:
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, opened(script, "r-1"), memory=memory))
    assert played.requests == [Together, SaveEntity, Publish, KeepAnswers]


@pytest.mark.parametrize("message", [timed(4), close("m-4"), deposit("m-4", amount=3)])
def test_the_parts_that_are_remembered_are_those_of_the_document(message: Envelope, script: Script) -> None:
    saved = script.play(attempt(OUTBOX, message, memory=trusting(script))).finished.memory.saved
    assert saved is not None
    assert saved.parts == read_entity(script.entity, saved.document)


class TestLeaving:
    def test_more_than_31_marks_lose_the_oldest_with_the_next_commit_and_12_stay(self) -> None:
        script = full(timed(33, -5))
        (page,) = script.pages
        assert (page.number, page.version, page.begin, page.until) == (1, 33, NOW, NOW + LEFT - 1)
        assert (len(split(page.marks)), len(script.marks), page.hashes) == (LEFT, MARKS_STAY + 1, ())
        ledger = script.ledger
        assert (ledger.version, ledger.left, ledger.cut, ledger.complete) == (34, LEFT, 1, page.until)
        assert script.marks[0].since == NOW - 5, "the new message is the oldest of those that stay"

    def test_answers_above_two_kilobytes_leave_together_with_the_next_commit(self, script: Script) -> None:
        def answering(before: Before, envelope: Envelope) -> Handled:
            return Handled(Json('{"id":"a"}'), answer=Answer(body=f'"{"x" * 1_500}"', asked=envelope.asked or ""))

        for number in (1, 2, 3):
            script.play(attempt(OUTBOX, replace(deposit(f"m-{number}"), asked="f"), handle=answering))
        (page,) = script.pages
        assert [answer.cause for answer in page.answers] == [message_hash("web/m-1"), message_hash("web/m-2")]
        assert (page.marks, page.hashes) == ("", tuple(answer.cause for answer in page.answers))
        assert (script.ledger.left, script.ledger.cut, len(script.ledger.answers)) == (0, 1, 1)
        played = script.play(attempt(OUTBOX, replace(deposit("m-1"), asked="f"), handle=answering))
        assert played.requests[1:] == [FindPages]
        assert played.finished.answers[0][1].body == page.answers[0].answer.body

    def test_where_the_container_is_behind_the_ledger_nothing_more_is_forgotten(self) -> None:
        script = full()
        script.play(attempt(OUTBOX, *map(timed, range(34, 54))))
        played = script.play(attempt(OUTBOX, timed(54)), {WritePage: Written("0:-1#0")})
        assert "session token" in played.again.reason
        assert SaveEntity not in played.kinds

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_a_page_that_may_not_be_written_keeps_the_commit_from_being_made(self, reply: NoAnswer) -> None:
        script = Script()
        script.play(attempt(OUTBOX, *map(timed, range(33))))
        assert SaveEntity not in script.play(attempt(OUTBOX, timed(33)), {WritePage: reply}).kinds


class TestBlobs:
    def test_the_mark_of_an_old_message_stays_until_a_page_proves_its_blobs(self, script: Script) -> None:
        def painting(before: Before, envelope: Envelope) -> Handled:
            return Handled(Json('{"id":"a"}'), blobs=(Blob(f"{before.tx}/picture", b"", "t/x"),))

        script.play(attempt(OUTBOX, timed(1, -int(timedelta(days=29) / timedelta(milliseconds=1))), handle=painting))
        script.at += timedelta(days=2)
        script.play(attempt(OUTBOX, *(timed(number, 10**8) for number in range(2, 34))))
        assert len(script.marks) == 33
        script.play(attempt(OUTBOX, timed(34, 10**8)))
        assert script.pages[0].blobs == (tx(1),)

    def test_one_without_blobs_goes_with_age(self, script: Script) -> None:
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

    def test_an_untimed_one_is_looked_for_by_its_hash(self) -> None:
        script = full(timed_ones=False)
        known = script.marks[0].hash
        gone = next(n for n in range(33) if message_hash(f"web/m-{n}") in script.pages[0].hashes)
        assert known not in script.pages[0].hashes
        played = script.play(attempt(OUTBOX, deposit(f"m-{gone}")))
        assert played.only(FindPages).hashes == (message_hash(f"web/m-{gone}"),)
        assert played.finished.processed == ()

    def test_a_page_of_a_later_version_is_no_evidence(self) -> None:
        script = full()
        later = replace(script.pages[0], number=2, version=90, begin=0, until=0, marks=script.pages[0].marks)
        other = replace(script.pages[0], marks="")
        played = script.play(attempt(OUTBOX, timed(3)), {FindPages: FoundPages((later, other))})
        assert played.finished.processed == ("web/m-3",)


class TestLostPages:
    def attempt(self, message: Envelope) -> Step[object]:
        from exactlyonce.effects.attempt import Memory, Work

        runner = Runner(accounts(), ENTITY, ORDERED)
        return OUTBOX.attempt(Work(ENTITY, (message,), runner, ABSENT, refusal=Lifetimes().refusal), Memory())

    def test_where_the_newest_page_is_gone_what_it_might_know_is_refused(self) -> None:
        played = full().play(self.attempt(timed(200, 2)), {FindPages: FoundPages(())})
        ((_, error),) = played.finished.failed
        assert isinstance(error, DatabaseRestored)

    def test_a_message_older_than_lost_pages_is_refused_though_pages_were_written_since(self) -> None:
        script = full()
        body = Json.of(script.body)
        script.put(entity_document(body, replace(script.ledger, lost=script.ledger.complete)))
        ((_, error),) = script.play(self.attempt(timed(200, 2))).finished.failed
        assert isinstance(error, DatabaseRestored)
        assert script.play(self.attempt(timed(201, 10**6))).finished.processed == ("web/m-201",)


class TestAnotherHistory:
    def test_its_pages_are_deleted_behind_a_fence_the_newest_first(self, script: Script) -> None:
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

    def test_without_a_fence_nothing_is_deleted(self) -> None:
        script = full()
        script.play(attempt(OUTBOX, *map(timed, range(34, 54))))
        played = script.play(attempt(OUTBOX, timed(99)), {WritePage: OTHER, SaveEntity: UNKNOWN})
        assert played.requests[-2:] == [FindPagesAbove, SaveEntity]
        assert DeletePages not in played.kinds


async def test_published_outputs_make_room_for_the_next_outputs() -> None:
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


def test_outputs_that_others_owe_are_sent_once_more_where_they_take_the_room(script: Script) -> None:
    for number in range(2):
        script.play(attempt(OUTBOX, large(number)))
        script.restart()
    played = script.play(attempt(OUTBOX, large(2)))
    assert played.requests == [LoadEntity, Publish]
    assert (played.again.progressed, len(played.only(Publish).outputs)) == (True, 2)
    assert script.play(attempt(OUTBOX, large(2))).finished.processed == ("web/m-2",)
    assert (len(script.entries), script.book.open) == (1, {})


def test_where_that_is_not_answered_nothing_leaves(script: Script) -> None:
    for number in range(2):
        script.play(attempt(OUTBOX, large(number)), {Publish: UNKNOWN})
    assert not script.play(attempt(OUTBOX, large(2)), {Publish: UNKNOWN}).again.progressed
    assert len(script.entries) == 2


def test_a_large_answer_that_leaves_makes_room(script: Script) -> None:
    def answering(before: Before, envelope: Envelope) -> Handled:
        return Handled(Json('{"id":"a"}'), answer=Answer(body=f'"{"x" * 800_000}"', asked=envelope.asked or ""))

    for number in range(3):
        message = replace(deposit(f"m-{number}"), asked="f")
        assert script.play(attempt(OUTBOX, message, handle=answering)).finished.processed == (f"web/m-{number}",)


def test_every_message_of_a_group_takes_room(script: Script) -> None:
    group = (deposit(f"m-{number}", padding="x", repeat=40_000, answers=12) for number in range(4))
    again = script.play(attempt(OUTBOX, *group)).again
    assert again.progressed
    assert again.processed == ("web/m-0", "web/m-1", "web/m-2")
    assert script.ledger.version == 3


def noted() -> Script:
    """An entity with a large state."""
    return Script(Json.of({"id": "a", "owner": "a", "total": 0, "history": [], "note": "x" * 400_000}))


TOO_LARGE = deposit("m-2", padding="x", repeat=30_000, answers=40)


def test_a_message_without_room_by_itself_fails_beside_others_at_once() -> None:
    finished = noted().play(attempt(OUTBOX, deposit("m-1"), TOO_LARGE)).finished
    assert finished.processed == ("web/m-1",)
    assert [key for key, _ in finished.failed] == ["web/m-2"]


def test_a_failure_before_a_message_that_is_too_large_is_still_reported() -> None:
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
