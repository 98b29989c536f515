"""Processes that a test kills at a step, and replies of the store that it loses: every flow ends as if nothing had happened."""

from __future__ import annotations

from typing import Literal

import pytest

from exactlyonce import Colocated, Destination, Outbox, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import ConfigurationError
from exactlyonce.testing import App, Killed
from exactlyonce.testing.interruptions import Lost, Planned
from tests.unit.testing.test_app import DISPLAYS, PLACES, Count, Counted, Counter, Total, counting

When = Literal["before", "after"]
LOSSES: tuple[tuple[Lost | None, ...], ...] = (
    *((item,) for item in ("reply", "request")),
    *((item, other) for item in ("reply", "request", None) for other in ("reply", "request")),
)


def counts(strategy: Strategy) -> App:
    counters = counting(strategy)
    return App(counters, DISPLAYS, destinations=(*PLACES[1:], Destination("counts", to=counters)))


def assert_two_counts_end_as_if_nothing_had_happened(app: App) -> None:
    for id in ("m-1", "m-2"):
        app.send("counts", Count(to="outside"), message_id=id)
    app.advance(minutes=5)
    assert app.host.interruptions.planned == []
    assert not app.host.losses.planned
    assert app.state(app.taker("counts"), "c") == Counter(total=2)
    assert app.outputs("outside") == (Counted(key="c", total=1), Counted(key="c", total=2))
    assert app.state(DISPLAYS, "c") == Total(total=2)
    assert app.parked() == ()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["SaveEntity", "Publish"])
@pytest.mark.parametrize("skip", [0, 1])
def test_wherever_a_process_is_killed_a_message_counts_once(when: When, step: str, skip: int) -> None:
    app = counts(Outbox())
    process = app.once
    app.kill(when, step, of=app.taker("counts"), skip=skip)
    assert_two_counts_end_as_if_nothing_had_happened(app)
    assert app.host.kills == 1
    assert app.once is not process


@pytest.mark.parametrize("writes", LOSSES)
def test_whatever_reply_is_lost_a_message_counts_once(writes: tuple[Lost | None, ...]) -> None:
    app = counts(Outbox())
    app.lose(*writes)
    assert_two_counts_end_as_if_nothing_had_happened(app)


def test_a_request_that_is_lost_is_made_again_and_a_reply_that_is_lost_is_looked_for() -> None:
    def writes(*lost: Lost) -> int:
        app = counts(Outbox())
        app.lose(*lost, of=app.taker("counts"))
        assert_two_counts_end_as_if_nothing_had_happened(app)
        return app.host.accounts.documents.writes

    assert writes() == writes("reply") == writes("request")


def test_losses_are_planned_as_often_as_asked() -> None:
    app = counts(Outbox())
    app.lose(None, "reply", times=2)
    assert list(app.host.losses.planned) == [None, "reply", None, "reply"]


@pytest.mark.parametrize("strategy", [Colocated(), VersionStream()], ids=["Colocated", "VersionStream"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_is_a_step_too(strategy: Strategy, when: When) -> None:
    app = counts(strategy)
    app.kill(when, "SaveBatch")
    app.send("counts", Count(to="outside"))
    assert app.host.kills == 1
    assert app.state(app.taker("counts"), "c") == Counter(total=1)


def test_a_caller_whose_process_is_killed_asks_again() -> None:
    app = counts(Outbox())
    app.kill("after", "SaveEntity")
    with pytest.raises(Killed, match="with the same key"):
        app.ask(app.taker("counts"), Count(to="outside"), key="k")
    assert app.ask(app.taker("counts"), Count(to="outside"), key="k").replayed
    assert app.state(app.taker("counts"), "c") == Counter(total=1)


def test_losses_of_one_type_leave_the_others_alone() -> None:
    app = counts(Outbox())
    app.lose(None, "reply", of=DISPLAYS)
    assert app.host.interruptions.planned == [Planned("reply", app.host.interruptions.planned[0].steps, "display", 1)]
    assert_two_counts_end_as_if_nothing_had_happened(app)


def test_a_message_that_arrived_is_sent_again_under_its_identity() -> None:
    app = counts(Outbox())
    app.send("counts", Count(to="outside"), message_id="m-1")
    app.send_again("counts")
    app.send_again("outside", 0)
    assert app.outputs("outside") == (Counted(key="c", total=1),)
    with pytest.raises(IndexError):
        app.send_again("outside", 7)


def test_a_step_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="There is no step 'Save'; there are: Park, Publish"):
        counts(Outbox()).kill("before", "Save")
