"""What the sweeper asks of an entity whose kept messages are due, and what it makes of every reply."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Before, Handle, Handled, Memory, Work
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid, FoundStaged, LoadStaged, OpenNumbers, Stage
from exactlyonce.errors import DamagedDocument, EntityTooLarge
from exactlyonce.protocols.outbox.due import MOST_RELEASED, due_in
from exactlyonce.records.outbox import Kept, Output
from exactlyonce.values.envelope import Envelope, derived_id, message_hash, message_key
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.script import ABSENT, AT, ENTITY, Played, Script, attempt

DUE = AT + timedelta(days=14)


def kept(id: str, due: datetime = DUE) -> tuple[datetime, Output]:
    return due, Output(id, "receipts", deposit(id).to_json())


def keeping(messages: Sequence[tuple[datetime, Output]]) -> Handle:
    """A handler that keeps these messages, and sends nothing."""
    return lambda before, envelope: Handled(Json('{"id":"a"}'), kept=tuple(messages))


def keeper(*ids: str) -> Script:
    """An entity that keeps messages, all of them due."""
    script = Script()
    script.play(attempt(Outbox(), deposit("m-1"), handle=keeping([kept(id) for id in ids])))
    script.at = DUE
    return script


def swept(script: Script, replies: dict[Any, Any] | None = None) -> Played:
    def send(before: Before, message: Output) -> Handled:
        assert before.body is not None
        return Handled(before.body, outputs=(message,), cancelled=frozenset({message.id}))

    def refuse(before: Before, envelope: Envelope) -> Handled:
        raise AssertionError(f"Nobody handles {envelope.id} at {before.at}.")

    return script.play(Outbox().sweep(Work(ENTITY, (), refuse, ABSENT, release=send), Memory()), replies)


def test_due_messages_are_read_at_the_ledgers_token_committed_and_then_published() -> None:
    script = keeper("k-1", "k-2")
    token, (stored,) = script.ledger.token, {item.tx for item in script.ledger.kept}
    played = swept(script)
    opened = [OpenNumbers, SaveEntity, Publish, CloseNumbers]
    assert played.kinds == [LoadEntity, FindPaid, Begin, LoadStaged, *opened]
    assert (played.only(LoadStaged).transactions, played.only(LoadStaged).token) == ((stored,), token)
    assert [output.envelope.value["type"] for output in script.published] == ["account.deposit"] * 2
    assert script.ledger.kept == ()


def test_a_release_has_a_mark_and_what_it_sends_an_id_that_derives_from_it() -> None:
    script = keeper("k-1")
    swept(script)
    by_kind = {mark.kind: mark for mark in script.marks}
    assert {kind: mark.sent for kind, mark in by_kind.items()} == {"f": "~", "l": "-"}
    release = by_kind["l"]
    assert release.hash == message_hash(message_key("web", "release:k-1"))
    (output,) = script.published
    assert output.id == Envelope.read(output.envelope.text).id == derived_id(ENTITY, release.hash, 0)


@pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9"), Conflict(None)])
def test_without_an_acknowledged_commit_nothing_is_published_and_nothing_progressed(reply: Any) -> None:
    script = keeper("k-1")
    played = swept(script, {SaveEntity: reply})
    assert not played.again.progressed
    assert not script.published


def test_before_they_are_due_nothing_is_read() -> None:
    script = keeper("k-1")
    script.at = DUE - timedelta(seconds=1)
    assert swept(script).kinds == [LoadEntity, FindPaid, Begin]


@given(number=st.integers(0, 5 * MOST_RELEASED), minute=st.integers(0, 10**6))
def test_each_kept_message_has_its_turn_within_as_many_minutes_as_all_fill_commits(number: int, minute: int) -> None:
    """So those that cannot be released keep nobody waiting."""
    messages = [Kept(f"k-{n}", DUE + timedelta(seconds=n), "tx") for n in range(number)]
    began = DUE + timedelta(days=1, minutes=minute)
    turns = [
        due_in(tuple(reversed(messages)), began + timedelta(minutes=m)) for m in range(-(-number // MOST_RELEASED))
    ]
    assert all(0 < len(turn) <= MOST_RELEASED for turn in turns)
    assert sorted((item for turn in turns for item in turn), key=lambda item: item.due) == messages
    assert all([*turn] == sorted(turn, key=lambda item: item.due) for turn in turns)


def test_kept_messages_take_room_in_the_document() -> None:
    played = Script().play(attempt(Outbox(), deposit("m-1"), handle=keeping([kept(f"k-{n}") for n in range(40_000)])))
    ((_, error),) = played.finished.failed
    assert isinstance(error, EntityTooLarge)
    assert not played.all(Stage)


def test_what_is_owed_is_published_and_what_cannot_be_released_is_reported_all_the_same() -> None:
    script = keeper("k-1")
    script.play(attempt(Outbox(), deposit("m-2")), {Publish: UNKNOWN})
    played = swept(script, {LoadStaged: FoundStaged(())})
    assert played.only(Publish).outputs
    assert [type(error) for _, error in played.finished.stopped] == [DamagedDocument]
    assert [item.id for item in script.ledger.kept] == ["k-1"]


@pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
def test_without_the_stored_messages_nothing_is_committed(reply: Any) -> None:
    played = swept(keeper("k-1"), {LoadStaged: reply})
    assert played.again.reason == "kept messages could not be read"
    assert not played.all(SaveEntity)


def test_more_may_be_due_so_it_goes_on_at_once() -> None:
    again = swept(keeper("k-1")).again
    assert (again.reason, again.progressed) == ("more may be due", True)
