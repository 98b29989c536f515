"""The poison settler: a message that a queue gave up on is finished, parked, or put aside, and its poison queue is emptied."""

from __future__ import annotations

import base64
import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Colocated, Entity, Envelope, Outbox, Resequencer, TryAgainLater, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import HandlerFailed, MalformedMessage
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import UNREADABLE, require_readable
from exactlyonce.hosting.deliveries.settlement import aside_place
from exactlyonce.hosting.deliveries.triggers import MOST, Failures
from exactlyonce.stores.memory.store import Fate
from exactlyonce.values.envelope import key_of, message_key
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, deposit
from tests.unit.boards import BOARDS, scored
from tests.unit.fated import Fated
from tests.unit.hosting.settlers import SECRET, Place, dated
from tests.unit.script import AT

STRATEGIES: dict[str, Strategy] = {"outbox": Outbox(), "colocated": Colocated(), "stream": VersionStream()}

TOO_OLD = replace(deposit("m-2"), time=AT - timedelta(days=20))
"""A message that is too old to go back to its queue."""


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
async def test_an_unprocessed_message_is_parked_unchanged_with_the_reason(place: Place, strategy: Strategy) -> None:
    kind, poison = accounts(strategy), dated(breaking("m-1"))
    for delivery in (1, 2):
        with pytest.raises(HandlerFailed) as raised:
            await place.process().deliver(kind, poison)
        place.failures.note(kind.name, key_of(poison), raised.value, delivery)
    assert await place.settle(kind, poison) == "parked"
    parked = place.parked(kind.ref("a"), "web/m-1")
    assert parked is not None
    assert parked.envelope == poison.to_json()
    assert parked.reason == "its queue gave it up; delivery 2 failed with HandlerFailed (RuntimeError)"
    assert not place.published


async def test_a_held_message_is_finished_and_an_unknown_one_parked(place: Place) -> None:
    boards = BOARDS.using(Resequencer())
    place.saw_fail(boards, "s/m-3")
    await place.process().deliver(boards, scored(2))
    assert await place.settle(boards, scored(2)) == "processed"
    assert await place.settle(boards, scored(3)) == "parked"
    assert place.parked(boards.ref("b"), "s/m-3") is not None


BAD: dict[str, tuple[bytes | Envelope, str]] = {
    "not JSON": (f"{{{SECRET}".encode(), "MalformedMessage"),
    "not an envelope": (b'{"note": "what-the-body-says"}', "MalformedMessage"),
    "unknown type": (Envelope("web", "m-1", "account.rob", Json.of({"note": SECRET})), "UnknownMessageType"),
    "failing validation": (Envelope("web", "m-1", "account.deposit", Json.of({"account": [SECRET]})), "InvalidMessage"),
    "an entity that cannot be": (
        Envelope("web", "m-1", "account.deposit", Json.of({"account": "a/b"})),
        "InvalidMessage",
    ),
    "data that cannot be fetched": (deposit("m-1").by_reference("https://evil.example/a"), "MalformedMessage"),
}


@pytest.mark.parametrize("case", BAD)
async def test_an_undecidable_message_is_put_aside_with_its_body(
    case: str, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    body, reason = BAD[case]
    kind = accounts()
    assert await place.settle(kind, body) == "parked"
    key = key_of(body) if isinstance(body, Envelope) else message_key(UNREADABLE, "q-1")
    parked = place.parked(aside_place(kind), key)
    assert parked is not None
    assert parked.reason.split(" ")[0].rstrip(":") == reason
    assert SECRET not in parked.reason + caplog.text
    assert (key in caplog.text, caplog.records[0].levelno) == (True, logging.ERROR)
    if isinstance(body, Envelope):
        assert parked.envelope == body.to_json()
        require_readable(key)
    else:
        assert base64.b64decode(parked.envelope.value["data"]["body_base64"]) == body
        with pytest.raises(MalformedMessage, match="--bodies"):
            require_readable(key)


async def test_the_reason_of_an_unknown_type_names_it_and_the_types_there_are(place: Place) -> None:
    kind = accounts()
    body, _ = BAD["unknown type"]
    assert await place.settle(kind, body) == "parked"
    reason = place.reason(aside_place(kind), "web/m-1") or ""
    assert reason.startswith("UnknownMessageType: it has the type 'account.rob'; entity 'account' handles: account.")


@pytest.mark.parametrize(
    ("kind", "message"), [(accounts(), TOO_OLD), (accounts(), b"{"), (accounts(Colocated()), TOO_OLD)]
)
async def test_while_the_store_does_not_answer_a_message_stays_in_its_queue(
    place: Place, kind: Entity[Any], message: Envelope | bytes
) -> None:
    place.store._trouble = Fated(Fate.LOST_BEFORE)
    with pytest.raises(TryAgainLater):
        await place.settle(kind, message)


def replay_request(first: int, last: int) -> Envelope:
    asked = {"source": "account/a", "destination": "receipts", "key": "r", "first": first, "last": last}
    return Envelope("board/b", "r-1", "exactlyonce.replay", Json.of(asked))


async def test_a_replay_request_is_answered(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[str] = []

    async def answer(_: Maintenance, __: Entity[Any], request: Envelope) -> int:
        answered.append(request.id)
        return 1

    monkeypatch.setattr(Maintenance, "answer", answer)
    assert await place.settle(accounts(VersionStream()), replay_request(1, 1)) == "processed"
    assert answered == ["r-1"]


@pytest.mark.parametrize("strategy", [VersionStream(), Outbox()])
async def test_an_unanswerable_replay_request_is_put_aside_once(place: Place, strategy: Strategy) -> None:
    kind = accounts(strategy)
    broken = Envelope("board/b", "r-1", "exactlyonce.replay", Json.of({"source": "account/a"}))
    for _ in range(3):
        assert await place.settle(kind, broken) == "parked"
    assert place.reason(aside_place(kind), "board%2Fb/r-1") == "InvalidMessage, asked by board/b"
    assert len(place.store.library) == 1


def test_failures_of_a_bounded_number_of_messages_are_remembered_the_latest_of_each() -> None:
    failures = Failures()
    failures.note("account", "web/m-1", TryAgainLater(SECRET), None)  # The host does not say which delivery it is.
    assert failures.reason("account", "web/m-1") == "its queue gave it up; failed with TryAgainLater"
    for number in (*range(MOST), 0, MOST):
        failures.note("account", f"web/{number}", TryAgainLater(), 1)
    assert "did not see why" in failures.reason("account", "web/1")
    assert "did not see why" not in failures.reason("account", "web/0")
    assert len(failures._seen) == MOST


async def test_a_body_that_its_adapter_fails_on_is_put_aside(place: Place) -> None:
    def adapter(body: bytes) -> Envelope:
        raise KeyError(body.decode())

    kind = accounts()
    assert await place.settle(kind, SECRET.encode(), adapter=adapter) == "parked"
    assert place.reason(aside_place(kind), message_key(UNREADABLE, "q-1")) == "MalformedMessage (KeyError)"


async def test_a_message_whose_key_is_not_valid_is_put_aside(place: Place) -> None:
    kind = accounts()
    kind.paths = ("/owner", "/region")
    assert await place.settle(kind, deposit("m-1")) == "parked"
    assert place.reason(aside_place(kind), "web/m-1") == "ConfigurationError"
