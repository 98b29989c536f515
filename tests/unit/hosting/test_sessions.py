"""Service Bus sessions: a destination names the entity of a message, and the envelope carries it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest

from exactlyonce import Context, Destination, message
from exactlyonce.effects.attempt import Before
from exactlyonce.errors import HandlerFailed
from exactlyonce.handling.routes import Routes
from exactlyonce.records.outbox import NUMBER, RECEIVER, Output
from exactlyonce.values.envelope import EntityRef, Origin


@message("sessions.hit")
@dataclass
class Hit:
    player: Any = "p-1"
    padding: str = ""


GAMES = Destination("games", (Hit,), session_by=lambda hit: hit.player)
BOARDS = Destination("boards", (Hit,), to="board", entity_by=lambda hit: hit.player)
ARCHIVE = Destination("archive", (Hit,))
LIMITS = dict.fromkeys(("games", "boards", "archive"), 500)


def context(blobs: str | None = None) -> Context:
    origin = Origin(EntityRef("range", ("game-7",), "game-7"), "web/m-1")
    routes = Routes.to((GAMES, BOARDS, ARCHIVE), LIMITS, blobs=blobs)
    trace = (("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),)
    return Context(origin, Before(None, datetime(2026, 1, 1, tzinfo=timezone.utc), ""), routes, trace=trace)


def sent(given: Context) -> list[dict[str, Any]]:
    return [output.envelope.value for output in given.outputs]


def test_a_message_to_a_destination_with_sessions_carries_its_session() -> None:
    given = context()
    given.announce(Hit("p-7"))
    games, boards, archive = sent(given)
    assert games[RECEIVER] == "p-7"
    assert NUMBER not in games
    assert games["traceparent"].startswith("00-")
    assert (boards[RECEIVER], NUMBER in boards) == ("board/p-7", False)
    assert RECEIVER not in archive


def test_a_message_that_travels_by_reference_keeps_its_session() -> None:
    given = context(blobs="https://a.example/blobs")
    given.send("games", Hit("p-7", "x" * 1000))
    [envelope] = sent(given)
    assert (envelope[RECEIVER], envelope.get("data")) == ("p-7", None)


@pytest.mark.parametrize("session", ["", None, 7, "p\x857"], ids=repr)
def test_an_invalid_session_is_refused_and_nothing_is_sent(session: Any) -> None:
    given = context()
    is_text = isinstance(session, str)
    says = "session of a message to 'games'" if is_text else "session_by= of destination 'games' gave (None|an int)"
    with pytest.raises(ValueError if is_text else HandlerFailed, match=says):
        given.send("games", Hit(session))
    assert given.outputs == ()


def test_sessions_change_no_ids() -> None:
    with_sessions, without = context(), context()
    with_sessions.send("games", Hit())
    without.send("archive", Hit())

    def ids(given: Context) -> list[str]:
        outputs: tuple[Output, ...] = given.outputs
        return [output.id for output in outputs]

    assert ids(with_sessions) == ids(without)
