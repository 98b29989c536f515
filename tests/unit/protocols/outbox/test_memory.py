"""Attempts that start from the document that this process saved last: one request, and never a wrong conclusion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce import Envelope, HandlerFailed, Outbox
from exactlyonce.attempt import Before, Handled, Memory
from exactlyonce.effects.blobs import WriteOnce
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import DeleteChannels, FindChannels, HasRecords, Stage, WriteRecords
from exactlyonce.effects.publish import Publish
from exactlyonce.protocols.outbox.protocol import TRUSTED
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import read_entity
from exactlyonce.values.frozen_json import Json
from tests.samples import close, deposit
from tests.unit.protocols.outbox.test_numbered import key, numbered
from tests.unit.script import ENTITY, Script, attempt, work_for

OUTBOX = Outbox()


def trusting(script: Script, strategy: Outbox = OUTBOX) -> Memory:
    """The memory of a process whose document was the newest as often as it takes."""
    memory = Memory()
    for number in range(1, TRUSTED + 2):
        memory = script.play(attempt(strategy, numbered(number), memory=memory)).finished.memory
    assert memory.saved is not None
    assert memory.saved.right == TRUSTED
    return memory


def counted(memory: Memory, right: int) -> Memory:
    """The memory, as if its document had been the newest so often in a row."""
    assert memory.saved is not None
    return replace(memory, saved=replace(memory.saved, right=right))


def test_once_it_was_right_twice_a_message_takes_one_request() -> None:
    script = Script()
    memory = trusting(script)
    for number in (4, 5, 6):
        played = script.play(attempt(OUTBOX, numbered(number), memory=memory))
        assert played.kinds == [Begin, SaveEntity, Publish]
        assert played.finished.processed == (key(number),)
        memory = played.finished.memory
    assert script.ledger.channels[0].received == ((1, 6),)


@pytest.mark.parametrize("message", [numbered(4), close("m-4"), deposit("m-4", amount=3)])
@pytest.mark.parametrize("marked", [True, False])
def test_the_parts_that_are_remembered_are_those_of_the_document(message: Envelope, *, marked: bool) -> None:
    script = Script()
    memory = script.play(attempt(OUTBOX, message, memory=trusting(script))).finished.memory
    if marked:
        memory = script.play(OUTBOX.mark(ENTITY, memory)).finished.memory
    if memory.saved is not None:
        assert memory.saved.parts == read_entity(ENTITY, memory.saved.document)


def test_a_document_whose_parts_are_not_remembered_is_read() -> None:
    script = Script()
    memory = trusting(script)
    assert memory.saved is not None
    memory = replace(memory, saved=replace(memory.saved, parts=None))
    played = script.play(attempt(OUTBOX, numbered(4), memory=memory))
    assert played.kinds == [Begin, SaveEntity, Publish]
    assert script.ledger.channels[0].received == ((1, 4),)


def test_a_duplicate_takes_none() -> None:
    script = Script()
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, numbered(2), memory=memory))
    assert played.kinds == []
    assert played.finished.processed == ()


def test_what_a_duplicate_owes_is_published_all_the_same() -> None:
    script = Script()
    memory = replace(trusting(script), published=frozenset())
    played = script.play(attempt(OUTBOX, numbered(3), memory=memory))
    assert played.kinds == [Publish]


def test_an_outdated_document_leads_to_a_conflict_and_then_to_a_load() -> None:
    script = Script()
    memory = trusting(script)
    script.play(attempt(OUTBOX, numbered(1, "c2")))  # Another process.
    again = script.play(attempt(OUTBOX, numbered(4), memory=memory)).again
    assert again.memory.saved is None
    played = script.play(attempt(OUTBOX, numbered(4), memory=again.memory))
    assert played.kinds[0] is LoadEntity
    assert played.finished.processed == (key(4),)


def test_after_an_unknown_publish_no_attempt_starts_from_the_document_before_the_commit() -> None:
    """Its save would be in vain."""
    script = Script()
    again = script.play(attempt(OUTBOX, numbered(4), memory=trusting(script)), {Publish: UNKNOWN}).again
    assert again.memory.saved is None
    played = script.play(attempt(OUTBOX, numbered(4), numbered(5), memory=again.memory))
    assert played.kinds == [LoadEntity, Publish, Begin, SaveEntity, Publish]
    assert played.finished.processed == (key(5),)


def test_after_a_fence_nothing_is_trusted() -> None:
    script = Script()
    settling = OUTBOX.settle(work_for(deposit("m-1")), deposit("m-1"), "why", trusting(script))
    memory = script.play(settling).result.memory
    assert memory.saved is None
    assert script.play(attempt(OUTBOX, numbered(4), memory=memory)).kinds[0] is LoadEntity


def test_an_unknown_save_leads_to_a_load() -> None:
    script = Script()
    memory = trusting(script)
    again = script.play(attempt(OUTBOX, numbered(4), memory=memory), {SaveEntity: UNKNOWN}).again
    assert script.play(attempt(OUTBOX, numbered(4), memory=again.memory)).kinds[0] is LoadEntity


def test_a_document_that_was_not_the_newest_is_as_one_that_never_was() -> None:
    script = Script()
    memory = counted(trusting(script), TRUSTED - 1)
    script.play(attempt(OUTBOX, numbered(1, "c2")))  # Another process.
    played = script.play(attempt(OUTBOX, numbered(4), memory=memory))
    assert played.kinds[0] is LoadEntity
    saved = played.finished.memory.saved
    assert saved is not None
    assert saved.right == 0


def test_a_document_that_changed_between_is_trusted_anew_after_it_was_right_twice() -> None:
    script = Script()
    memory = trusting(script)
    memory = counted(memory, 0)
    kinds = []
    for number in (4, 5, 6):
        played = script.play(attempt(OUTBOX, numbered(number), memory=memory))
        kinds.append(played.kinds[0])
        memory = played.finished.memory
    assert kinds == [LoadEntity, LoadEntity, Begin]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (replace(numbered(9), type="account.break"), HandlerFailed),
        (numbered(2, id="another"), None),
        (replace(numbered(4), source="shop/other"), None),
    ],
    ids=["its handler raises", "a fork", "another source"],
)
def test_whatever_else_an_attempt_ends_with_is_judged_on_a_loaded_document(
    message: Envelope, error: type[Exception] | None
) -> None:
    """A handler may raise because the remembered state is hours old."""
    script = Script()
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, message, memory=memory))
    assert LoadEntity in played.kinds
    ((_, failed),) = played.finished.failed
    assert error is None or isinstance(failed, error)


def test_a_message_that_fails_on_a_remembered_document_has_its_whole_group_judged_on_a_loaded_one() -> None:
    script = Script()
    memory = trusting(script)
    played = script.play(attempt(OUTBOX, replace(numbered(4), type="account.break"), numbered(5), memory=memory))
    assert played.kinds[:3] == [Begin, LoadEntity, Begin]
    assert played.finished.processed == (key(5),)


def test_what_has_to_be_staged_is_handled_again_on_a_loaded_document() -> None:
    script = Script()
    memory = trusting(script)
    played = script.play(attempt(Outbox(inline_limit=0), numbered(4), memory=memory))
    assert played.kinds == [Begin, LoadEntity, Begin, Stage, SaveEntity, Publish]
    assert played.only(Stage).documents[0].tx == script.entries[-1].tx


def test_a_blob_is_written_only_from_a_loaded_document() -> None:
    script = Script()
    memory = trusting(script)

    def handle(before: Before, envelope: Envelope) -> Handled:
        return Handled(before.body or Json("{}"), blobs=(Blob(f"{before.tx}/report", b"text", "text/plain"),))

    played = script.play(attempt(OUTBOX, numbered(4), memory=memory, handle=handle))
    assert played.kinds == [Begin, LoadEntity, Begin, WriteOnce, SaveEntity]


def test_a_document_that_was_never_processed_is_not_trusted() -> None:
    """Whether it may be adopted is asked by every attempt on it."""
    script = Script(Json('{"id":"a","owner":"a"}'))
    memory = Memory()
    for _ in range(TRUSTED + 2):
        played = script.play(attempt(OUTBOX, replace(numbered(1), type="account.break"), memory=memory))
        assert played.kinds == [LoadEntity, HasRecords, Begin]
        memory = played.finished.memory


def test_channels_leave_only_from_a_loaded_document() -> None:
    script, strategy = Script(), Outbox(channels=1)
    memory = trusting(script, strategy)
    played = script.play(attempt(strategy, numbered(1, "c2"), memory=memory))
    assert played.kinds == [Begin, LoadEntity, Begin, WriteRecords, SaveEntity, Publish]


def a_channel_left(script: Script, strategy: Outbox) -> Memory:
    """The memory of a process that trusts a document which channel c1 has left."""
    memory = trusting(script, strategy)
    return counted(script.play(attempt(strategy, numbered(1, "c2"), memory=memory)).finished.memory, TRUSTED)


def test_a_copy_through_a_channel_that_left_takes_one_look() -> None:
    script, strategy = Script(), Outbox(channels=1)
    memory = a_channel_left(script, strategy)
    played = script.play(attempt(strategy, numbered(2), memory=memory))
    assert played.only(FindChannels) == FindChannels(ENTITY, ("c1",), script.ledger.token)
    assert played.kinds == [FindChannels]
    assert played.finished.processed == ()


def test_a_message_of_a_channel_that_left_is_committed_without_a_load() -> None:
    script, strategy = Script(), Outbox(channels=2)
    memory = trusting(script, strategy)
    for channel in ("c2", "c3"):
        memory = script.play(attempt(strategy, numbered(1, channel), memory=memory)).finished.memory
    played = script.play(attempt(strategy, numbered(4), memory=counted(memory, TRUSTED)))
    assert played.kinds == [FindChannels, Begin, SaveEntity, Publish, DeleteChannels]
    assert {one.id: one.received for one in script.ledger.channels} == {"c3": ((1, 1),), "c1": ((1, 4),)}


def test_where_the_remembered_document_is_not_the_newest_nothing_is_committed() -> None:
    script, strategy = Script(), Outbox(channels=2)
    memory = a_channel_left(script, Outbox(channels=1))
    script.play(attempt(strategy, numbered(4)))
    played = script.play(attempt(strategy, numbered(4), memory=memory))
    assert played.kinds == [FindChannels, Begin, SaveEntity]
    assert script.ledger.version == 5


@pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
def test_a_look_that_is_not_answered_leads_to_the_loaded_document(reply: NoAnswer) -> None:
    """The token in a remembered ledger may be one that no replica will ever reach, and that was exchanged meanwhile."""
    script, strategy = Script(), Outbox(channels=1)
    memory = a_channel_left(script, strategy)
    played = script.play(attempt(strategy, numbered(2), memory=memory), {FindChannels: reply})
    assert played.kinds == [FindChannels, LoadEntity, FindChannels]


def test_where_channels_have_left_those_that_are_there_are_known_from_memory() -> None:
    script, strategy = Script(), Outbox(channels=1)
    memory = trusting(script, strategy)
    memory = script.play(attempt(strategy, numbered(1, "c2"), memory=memory)).finished.memory
    played = script.play(attempt(strategy, numbered(2, "c2"), memory=counted(memory, TRUSTED)))
    assert played.kinds == [Begin, SaveEntity, Publish]


def test_with_a_foreign_message_records_are_looked_for_so_the_entity_is_loaded_beside_it() -> None:
    script = Script()
    played = script.play(attempt(OUTBOX, numbered(4), deposit("m-1"), memory=trusting(script)))
    assert played.kinds[0] is Together


def test_the_embedded_ledger_is_loaded_for_the_time_of_its_last_write() -> None:
    script, strategy = Script(), Outbox.embedded()
    memory = Memory()
    for number in range(1, 6):
        played = script.play(attempt(strategy, numbered(number), memory=memory))
        assert played.kinds[0] is LoadEntity
        memory = played.finished.memory


def test_the_embedded_ledger_is_not_remembered_where_nothing_is_left_to_mark() -> None:
    script, strategy = Script(), Outbox.embedded()
    script.play(strategy.mark(ENTITY, script.play(attempt(strategy, numbered(1))).finished.memory))
    assert script.play(attempt(strategy, numbered(1))).finished.memory.saved is None


def test_a_mark_is_remembered_too() -> None:
    script = Script()
    memory = script.play(OUTBOX.mark(ENTITY, trusting(script))).finished.memory
    assert script.entries == ()
    played = script.play(attempt(OUTBOX, numbered(4), memory=memory))
    assert played.kinds == [Begin, SaveEntity, Publish]
    assert played.finished.processed == (key(4),)
