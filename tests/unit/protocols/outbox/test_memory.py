"""Attempts that start from the document that this process saved last: one request, and never a wrong conclusion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.attempt import SHARED, Before, Handled, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer, Together
from exactlyonce.effects.entity import LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import FindPages, HasPages, KeepAnswers, WriteOnce, WritePage
from exactlyonce.errors import HandlerFailed
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import read_entity
from exactlyonce.values.envelope import STABLE_TIME, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from tests.samples import breaking, close, deposit
from tests.unit.protocols.outbox.test_opened import opened
from tests.unit.script import AT, Script, attempt, work_for

OUTBOX = Outbox()


def timed(number: int) -> Envelope:
    """A message that came about so many milliseconds after the start."""
    return replace(deposit(f"m-{number}"), extensions=((STABLE_TIME, stable_text(milliseconds(AT) + number)),))


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


def test_once_it_was_right_twice_a_message_takes_one_request() -> None:
    script = Script()
    memory = trusting(script)
    for number in (4, 5, 6):
        played = script.play(attempt(OUTBOX, timed(number), memory=memory))
        assert played.requests == [SaveEntity, Publish]
        assert played.finished.processed == (f"web/m-{number}",)
        memory = played.finished.memory
    assert script.ledger.version == len(script.marks) == 6


@pytest.mark.parametrize("message", [timed(4), close("m-4"), deposit("m-4", amount=3)])
def test_the_parts_that_are_remembered_are_those_of_the_document(message: Envelope) -> None:
    script = Script()
    saved = script.play(attempt(OUTBOX, message, memory=trusting(script))).finished.memory.saved
    assert saved is not None
    assert saved.parts == read_entity(script.entity, saved.document)


def test_a_document_whose_parts_are_not_remembered_is_read() -> None:
    script = Script()
    memory = trusting(script)
    assert memory.saved is not None
    memory = replace(memory, saved=replace(memory.saved, parts=None))
    played = script.play(attempt(OUTBOX, timed(4), memory=memory))
    assert played.requests == [SaveEntity, Publish]
    assert script.ledger.version == 4


def test_a_duplicate_takes_none() -> None:
    script = Script()
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, timed(2), memory=memory))
    assert played.requests == []
    assert played.finished.processed == ()


def test_what_a_duplicate_owes_is_published_all_the_same() -> None:
    script = Script()
    memory = trusting(script)
    script.restart()
    assert script.play(attempt(OUTBOX, timed(3), memory=memory)).requests == [Publish]


def test_an_outdated_document_leads_to_a_conflict_and_then_to_a_load() -> None:
    script = Script()
    memory = trusting(script)
    by_another_process(script)
    again = script.play(attempt(OUTBOX, timed(4), memory=memory)).again
    assert again.memory.saved is None
    played = script.play(attempt(OUTBOX, timed(4), memory=again.memory))
    assert played.kinds[0] is LoadEntity
    assert played.finished.processed == ("web/m-4",)


def test_after_an_unknown_publish_no_attempt_starts_from_the_document_before_the_commit() -> None:
    """Its save would be in vain."""
    script = Script()
    again = script.play(attempt(OUTBOX, timed(4), memory=trusting(script)), {Publish: UNKNOWN}).again
    assert again.memory.saved is None
    played = script.play(attempt(OUTBOX, timed(4), timed(5), memory=again.memory))
    assert played.requests == [LoadEntity, Publish, SaveEntity, Publish]
    assert played.finished.processed == ("web/m-5",)


def test_after_a_fence_nothing_is_trusted() -> None:
    script = Script()
    settling = OUTBOX.settle(work_for(deposit("m-9")), deposit("m-9"), "why", trusting(script))
    memory = script.play(settling).result.memory
    assert memory.saved is None
    assert script.play(attempt(OUTBOX, timed(4), memory=memory)).kinds[0] is LoadEntity


def test_an_unknown_save_leads_to_a_load() -> None:
    script = Script()
    memory = trusting(script)
    again = script.play(attempt(OUTBOX, timed(4), memory=memory), {SaveEntity: UNKNOWN}).again
    assert script.play(attempt(OUTBOX, timed(4), memory=again.memory)).kinds[0] is LoadEntity


def test_a_document_that_was_not_the_newest_is_taken_for_shared() -> None:
    script = Script()
    memory = counted(trusting(script), TRUSTED - 1)
    by_another_process(script)
    played = script.play(attempt(OUTBOX, timed(4), memory=memory))
    assert played.kinds[0] is LoadEntity
    saved = played.finished.memory.saved
    assert saved is not None
    assert saved.right == SHARED


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


def test_a_message_that_fails_on_a_remembered_document_has_its_whole_group_judged_on_a_loaded_one() -> None:
    """A handler may raise because the remembered state is hours old."""
    script = Script()
    played = script.play(attempt(OUTBOX, breaking("m-4"), timed(5), memory=trusting(script)))
    assert played.requests == [LoadEntity, SaveEntity, Publish]
    assert played.finished.processed == ("web/m-5",)
    assert [type(error) for _, error in played.finished.failed] == [HandlerFailed]
    assert script.book.open == {}, "the numbers of the first try are closed"


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


def test_a_blob_is_written_from_a_remembered_document_too() -> None:
    def handle(before: Before, envelope: Envelope) -> Handled:
        return Handled(before.body or Json("{}"), blobs=(Blob(f"{before.tx}/report", b"text", "text/plain"),))

    script = Script()
    played = script.play(attempt(OUTBOX, timed(4), memory=trusting(script), handle=handle))
    assert played.requests == [WriteOnce, SaveEntity]


def test_an_opened_request_is_looked_for_so_the_entity_is_loaded_beside_it() -> None:
    script = Script()
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, opened(script, "r-1"), memory=memory))
    assert played.requests == [Together, SaveEntity, Publish, KeepAnswers]


def test_a_document_that_was_never_processed_is_not_trusted() -> None:
    """Whether it may be adopted is asked by every attempt on it."""
    script = Script(Json('{"id":"a","owner":"a"}'))
    memory = Memory()
    for _ in range(TRUSTED + 2):
        played = script.play(attempt(OUTBOX, breaking("m-1"), memory=memory))
        assert played.requests[:2] == [LoadEntity, HasPages]
        memory = played.finished.memory


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

    def test_marks_leave_from_a_remembered_document_too(self) -> None:
        script = Script()
        played = script.play(attempt(OUTBOX, timed(4), memory=trusting(script)))
        assert played.requests == [WritePage, SaveEntity, Publish]

    def test_a_copy_whose_mark_has_left_takes_one_look(self) -> None:
        script = Script()
        played = script.play(attempt(OUTBOX, timed(2), memory=self.memory(script)))
        assert played.requests == [FindPages]
        assert played.only(FindPages).token == script.ledger.token
        assert played.finished.processed == ()

    def test_where_the_remembered_document_is_not_the_newest_nothing_is_committed(self) -> None:
        script = Script()
        memory = self.memory(script)
        by_another_process(script)
        version = script.ledger.version
        played = script.play(attempt(OUTBOX, timed(1), timed(5), memory=memory))
        assert played.requests == [FindPages, SaveEntity]
        assert script.ledger.version == version

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_a_look_that_is_not_answered_leads_to_the_loaded_document(self, reply: NoAnswer) -> None:
        """The token in a remembered ledger may be one that no replica will ever reach, and that was exchanged meanwhile."""
        script = Script()
        played = script.play(attempt(OUTBOX, timed(2), memory=self.memory(script)), {FindPages: [reply]})
        assert played.requests == [FindPages, LoadEntity, FindPages]

    def test_what_is_younger_is_known_or_new_without_a_look(self) -> None:
        script = Script()
        memory = self.memory(script)
        assert script.play(attempt(OUTBOX, timed(4), memory=memory)).requests == []
        assert script.play(attempt(OUTBOX, timed(5), memory=memory)).requests == [SaveEntity, Publish]
