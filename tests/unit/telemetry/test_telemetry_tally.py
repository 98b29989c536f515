"""The tally: the outcome of a run, derived from effects and replies."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from exactlyonce.effects.attempt import Again, Finished, Memory
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Begin, Begun, Opened
from exactlyonce.effects.effect import Together as Both
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import FindPages, FindPaid, FoundPages, OpenNumbers
from exactlyonce.errors import HandlerFailed
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger, Mark, Page, entity_document, written
from exactlyonce.records.outbox import OutboxEntry, Place
from exactlyonce.telemetry.tally import Tally
from exactlyonce.values.envelope import EntityRef, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json

ENTITY = EntityRef("account", ("a",), "a")
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATER = datetime(2026, 1, 2, tzinfo=timezone.utc)
NOTHING = Finished(Memory())
KEY = "web/m-1"


MARK = Mark(milliseconds(AT), message_hash(KEY), "f", timed=True, content="abcd").text
OTHER = Mark(milliseconds(AT), message_hash("web/m-0"), "f", timed=True, content="abcd").text


def document(*marks: str, outbox: tuple[OutboxEntry, ...] = (), protocol: str = "outbox") -> Json:
    ledger = Ledger(version=len(marks), marks=written(marks), outbox=outbox, type="account", protocol=protocol)
    return entity_document(Json('{"id":"a","owner":"a"}'), ledger)


def entry(tx: str) -> OutboxEntry:
    return OutboxEntry(message_hash(KEY), tx, AT, milliseconds(AT))


def loaded(*marks: str, outbox: tuple[OutboxEntry, ...] = (), protocol: str = "outbox") -> tuple[Any, Any]:
    return LoadEntity(ENTITY), Loaded(document(*marks, outbox=outbox, protocol=protocol), "1", 1, None)


def in_page() -> tuple[Any, Any]:
    at = milliseconds(AT)
    return FindPages(ENTITY, (at,), (), 1, None), FoundPages((Page(ENTITY.key, 1, 33, at, at, MARK),))


def opened(tx: str, at: datetime = AT) -> tuple[Any, Any]:
    return OpenNumbers(ENTITY, 0, (KEY,)), Opened(at, (tx,))


def with_companions(*companions: Companion) -> tuple[Any, Any]:
    return LoadCompanions(ENTITY, ("x",)), FoundCompanions(tuple((companion, "1") for companion in companions))


def begun(tx: str, at: datetime = AT) -> tuple[Any, Any]:
    return Begin(more=1), Begun(at, (tx,))


def numbered(*, held: bool, at: datetime = AT, message: str | None = KEY) -> NumberedMessage:
    return NumberedMessage(ENTITY.key, Place("c1", ENTITY.source, 1), "web", message, at, Json("{}") if held else None)


def record(tx: str) -> ColocatedRecord:
    return ColocatedRecord(ENTITY.key, KEY, tx, 1, AT, (), "d", None, None)


def stream_entry(tx: str) -> StreamEntry:
    return StreamEntry(ENTITY.key, KEY, tx, 1, AT, Json("{}"), None, True, (), "d")


def outcome(*attempts: list[tuple[Any, Any]], finished: Finished = NOTHING) -> str:
    """What became of the message after these attempts, the last of which finished."""
    tally = Tally([KEY])
    for number, attempt in enumerate(attempts, start=1):
        tally.begin()
        for effect, reply in attempt:
            tally.note(effect, reply)
        tally.end(finished if number == len(attempts) else Again(Memory(), "why"))
    return tally.outcomes(finished)[KEY]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (loaded(MARK), "ledger"),
        (loaded(outbox=(entry("t-0"),)), "ledger"),
        ((FindPaid(ENTITY, 7, (), ()), frozenset()), "ledger"),  # The process remembers the document.
        (in_page(), "page"),
        (with_companions(record("t-0")), "record"),
        (with_companions(stream_entry("t-0")), "stream"),
        (with_companions(numbered(held=False)), "number"),
        (with_companions(numbered(held=True)), "number"),
        (loaded(protocol="resequencer"), "number"),
    ],
)
def test_a_duplicate_is_found_in_the_replies_to_reads(seen: tuple[Any, Any], expected: str) -> None:
    assert outcome([seen, begun("t-1", AT)]) == expected


def test_two_concurrent_reads_count_as_two() -> None:
    load, reply = loaded()
    find, found = in_page()
    assert outcome([(Both(load, find), (reply, found))]) == "page"


def test_an_entry_tells_whether_an_earlier_attempt_committed_a_message() -> None:
    """A conflict may be of this attempt's own save, which the SDK repeated."""
    found = loaded(MARK, outbox=(entry("t-1"),))
    conflict = (SaveEntity(ENTITY, document(MARK, outbox=(entry("t-1"),)), None), Conflict(None))
    assert outcome([opened("t-1"), conflict], [found]) == "processed"
    assert outcome([opened("t-2"), conflict], [found]) == "ledger"


@pytest.mark.parametrize(("at", "expected"), [(AT, "processed"), (LATER, "ledger")])
def test_without_an_entry_the_mark_tells_whether_a_save_of_unknown_outcome_was_applied(
    at: datetime, expected: str
) -> None:
    """The mark of an untimed message has the time of its attempt."""
    mine, theirs = (
        Mark(milliseconds(time), message_hash(KEY), "f", timed=False, content="abcd").text for time in (AT, at)
    )
    lost = (SaveEntity(ENTITY, document(mine), None), UNKNOWN)
    assert outcome([opened("t-1"), lost], [loaded(theirs)]) == expected
    assert outcome([opened("t-1")], [loaded(theirs)]) == "ledger"


@pytest.mark.parametrize(
    "found",
    [with_companions(record("t-1")), with_companions(stream_entry("t-1")), with_companions(numbered(held=False))],
)
def test_a_message_committed_by_an_earlier_attempt_is_no_duplicate(found: tuple[Any, Any]) -> None:
    lost = (SaveEntity(ENTITY, document(), None), UNKNOWN)
    assert outcome([begun("t-1"), lost], [found]) == "processed"
    assert outcome([begun("t-2", LATER), lost], [found]) != "processed"


def test_a_message_that_an_attempt_of_this_run_held_is_held() -> None:
    save = SaveBatch(ENTITY, document(), None, (numbered(held=True),))
    assert outcome([begun("t-1")], [with_companions(numbered(held=True))]) == "held"
    assert outcome([begun("t-1"), (save, Saved("1", None))]) == "held"


def test_a_message_after_its_number_was_skipped_is_a_duplicate() -> None:
    save = SaveBatch(ENTITY, document(), None, (), ((numbered(held=False, at=LATER), "1"),))
    assert outcome([begun("t-1"), (save, Saved("1", None))]) == "number"


def test_results_of_strategies_take_precedence() -> None:
    error = HandlerFailed("its own fault")
    assert outcome([loaded(MARK)], finished=Finished(Memory(), (KEY,))) == "processed"
    assert outcome([], finished=Finished(Memory(), failed=((KEY, error),))) == "failed"
    assert outcome([], finished=Finished(Memory(), stopped=((KEY, error),))) == "held"


@pytest.mark.parametrize(
    "save",
    [
        SaveEntity(ENTITY, document(MARK, OTHER), None),
        SaveBatch(ENTITY, document(), None, (record("t-1"),)),
        SaveBatch(ENTITY, document(), None, (stream_entry("t-1"),)),
        SaveBatch(ENTITY, document(), None, (numbered(held=False),)),
        SaveBatch(ENTITY, document(), None, (), ((numbered(held=False), "1"),)),
    ],
    ids=["entity", "record", "stream", "created", "replaced"],
)
def test_an_attempt_that_committed_and_did_not_finish_has_committed(save: SaveEntity | SaveBatch) -> None:
    tally = Tally([KEY])
    tally.note(*(opened("t-1") if isinstance(save, SaveEntity) else begun("t-1")))
    tally.note(save, Saved("1", None))
    tally.end(Again(Memory(), "the outputs could not be published"))
    assert list(tally.processed) == [KEY]
    assert tally.outcomes(NOTHING) == {KEY: "processed"}


def test_an_attempt_of_unknown_outcome_has_not_committed() -> None:
    tally = Tally([KEY])
    tally.note(*opened("t-1"))
    tally.note(SaveEntity(ENTITY, document(MARK), None), UNKNOWN)
    tally.end(Again(Memory(), "whether the entity was saved is not known"))
    assert list(tally.processed) == []


def test_saves_without_messages_count_nothing() -> None:
    tally = Tally()
    tally.note(*begun("t-1"))
    numbers = (numbered(held=True), numbered(held=False, message=None), numbered(held=False, at=LATER))
    tally.note(SaveBatch(ENTITY, document(), None, numbers), Saved("1", None))
    tally.note(SaveEntity(ENTITY, document(MARK), None), Saved("1", None))  # As a sweep drops what is paid.
    tally.end(Again(Memory(), "why"))
    assert list(tally.processed) == []
