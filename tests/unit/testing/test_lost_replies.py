"""Replies of the store that a test has lost: every flow ends as if nothing had happened."""

from __future__ import annotations

import pytest

from exactlyonce import Destination, Outbox
from exactlyonce.testing import App
from exactlyonce.testing.interruptions import Lost
from tests.unit.testing.test_app import DISPLAYS, PLACES, Count, Counted, Counter, Total, counting

LOSSES: tuple[tuple[Lost | None, ...], ...] = (
    *((item,) for item in ("reply", "request")),
    *((item, other) for item in ("reply", "request", None) for other in ("reply", "request")),
)


def played(*writes: Lost | None, of_counters: bool = False) -> App:
    """Two counts, while the store loses some writes: of all, or of those to the counter."""
    counters = counting(Outbox())
    app = App(counters, DISPLAYS, destinations=(*PLACES[1:], Destination("counts", to=counters)))
    app.lose(*writes, of=counters if of_counters else None)
    for id in ("m-1", "m-2"):
        app.send("counts", Count(to="outside"), message_id=id)
    app.advance(minutes=5)
    return app


@pytest.mark.parametrize("writes", LOSSES)
def test_whatever_reply_is_lost_a_message_counts_once(writes: tuple[Lost | None, ...]) -> None:
    app = played(*writes)
    assert not app.host.losses.planned
    assert app.state(app.taker("counts"), "c") == Counter(total=2)
    assert app.outputs("outside") == (Counted(key="c", total=1), Counted(key="c", total=2))
    assert app.state(DISPLAYS, "c") == Total(total=2)
    assert app.parked() == ()


def test_a_request_that_is_lost_is_made_again_and_a_reply_that_is_lost_is_looked_for() -> None:
    losses: tuple[tuple[Lost, ...], ...] = ((), ("reply",), ("request",))
    writes = {loss: played(*loss, of_counters=True).host.accounts.documents.writes for loss in losses}
    assert writes[("reply",)] == writes[()]
    assert writes[("request",)] == writes[()]


def test_losses_are_planned_as_often_as_asked() -> None:
    app = played()
    app.lose(None, "reply", times=2)
    assert list(app.host.losses.planned) == [None, "reply", None, "reply"]
