"""The age check: which time of a message it is judged by, and of which messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from exactlyonce import Envelope
from exactlyonce.attempt import Before, Handled
from exactlyonce.errors import MessageFromTheFuture, TooOldToJudge, UndatedMessage
from exactlyonce.handling.runner import AgeCheck
from exactlyonce.values.envelope import EntityRef, milliseconds
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from tests.samples import SENT, deposit

ENTITY = EntityRef("account", ("a",), "a")
DONE = Handled(Json("{}"))
OLDEST = Lifetimes().oldest_judged(SENT)
MILLISECOND = timedelta(milliseconds=1)


def checked(envelope: Envelope, *, forgets: bool = True, sent: bool = False) -> Handled:
    """The result of a handler that does nothing, for a message that came at the time of the samples."""
    before = Before(None, SENT, "tx-1", sent=() if sent else None)
    return AgeCheck(lambda *_: DONE, ENTITY, Lifetimes(), lambda _: forgets)(before, envelope)


def stable(age: timedelta) -> Envelope:
    """A message whose copies all carry the time of this age, and that says the present."""
    return deposit("m-1").with_stable_time(milliseconds(SENT - age))


def test_a_message_that_says_no_stable_time_is_judged_by_its_own() -> None:
    assert checked(replace(deposit("m-1"), time=SENT - OLDEST)) == DONE
    with pytest.raises(TooOldToJudge, match="web/m-1 on entity account/a"):
        checked(replace(deposit("m-1"), time=SENT - OLDEST - MILLISECOND))
    with pytest.raises(UndatedMessage):
        checked(replace(deposit("m-1"), time=None))


def test_the_time_that_all_copies_share_is_the_one_that_counts() -> None:
    assert checked(replace(stable(timedelta(0)), time=SENT - 2 * OLDEST)) == DONE
    assert checked(replace(stable(OLDEST), time=None)) == DONE
    with pytest.raises(TooOldToJudge):
        checked(stable(OLDEST + MILLISECOND))
    with pytest.raises(MessageFromTheFuture):
        checked(stable(-timedelta(days=1) - MILLISECOND))


def test_an_id_may_carry_that_time() -> None:
    named = replace(deposit("m-1"), id=f"{milliseconds(SENT - 2 * OLDEST):012x}-7000-8000-000000000000")
    id = f"{named.id[:8]}-{named.id[8:]}"
    with pytest.raises(TooOldToJudge):
        checked(replace(named, id=id))
    assert checked(replace(named, id=id).with_stable_time()) == DONE, "its sender promises another time"


def test_neither_a_message_that_is_never_forgotten_nor_one_that_is_handled_again_is_judged() -> None:
    assert checked(stable(2 * OLDEST), forgets=False) == DONE
    assert checked(stable(2 * OLDEST), sent=True) == DONE
