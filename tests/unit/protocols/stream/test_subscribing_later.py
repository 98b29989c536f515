"""A destination that subscribes later: what a stream sent before then is sent again as it was, and not to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from exactlyonce import Context, Destination, Entity, Envelope, VersionStream, message
from exactlyonce.effects.attempt import Memory, Work
from exactlyonce.errors import NonDeterministicHandler
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.stream.replay import replay
from exactlyonce.records.outbox import Output
from exactlyonce.values.frozen_json import Json
from tests.samples import Account
from tests.unit.script import ENTITY, Played, Script

STREAM = VersionStream(snapshot_every=3)


@message("subscribing.opened")
@dataclass
class Opened:
    account: str
    times: int = 1


@message("subscribing.announced", event=True)
@dataclass
class Announced:
    id: str


@message("subscribing.noted", event=True)
@dataclass
class Noted:
    id: str


ACCOUNTS: Entity[Account] = Entity(
    "account", state=Account, container="accounts", partition_key="/owner", strategy=STREAM
)


@ACCOUNTS.handles(Opened, key=lambda opened: opened.account)
def opened_(state: Account, given: Opened, context: Context) -> Account:
    for _ in range(given.times):
        context.announce(Announced(context.new_id()))
        context.announce(Noted(context.new_id()))
        context.send("letters", Announced(context.new_id()))
    return Account(state.total + 1)


def routes(**receives: tuple[type, ...]) -> Routes:
    """Destinations in this order, with what they receive; every one is numbered for one read model."""
    names = {"letters": (), **receives}
    destinations = tuple(
        Destination(name, types, to="reader", entity_by=lambda _: "r", ordered=True) for name, types in names.items()
    )
    return Routes.to(destinations, dict.fromkeys(names, 1_000_000))


class World:
    """An account whose destinations change."""

    def __init__(self, **receives: tuple[type, ...]) -> None:
        self.script = Script()
        self.subscribe(**receives)

    def subscribe(self, **receives: tuple[type, ...]) -> None:
        self._runner = Runner(ACCOUNTS, ENTITY, routes(**receives))

    def delivered(self, id: str, times: int = 1) -> Played:
        envelope = Envelope("web", id, "subscribing.opened", Json.of({"account": "a", "times": times}))
        return self.script.play(STREAM.attempt(self._work(envelope), Memory()))

    def replayed(self) -> None:
        self.script.play(replay(self._work(), (1, 2), Memory()))

    def sent(self) -> list[Output]:
        """What was published since it was asked last."""
        published = list(self.script.published)
        self.script.published.clear()
        return published

    def _work(self, *messages: Envelope) -> Work:
        return Work(ENTITY, messages, self._runner, self._runner.absent)


LATER: list[dict[str, Any]] = [
    {"new": (Announced,), "old": (Announced,)},
    {"old": (Announced,), "new": (Announced,)},
    {"first": (Noted,), "old": (Announced,), "last": (Announced, Noted)},
]


@pytest.mark.parametrize("later", LATER)
def test_duplicates_and_replays_send_what_was_sent_and_new_messages_go_to_all(later: dict[str, Any]) -> None:
    world = World(old=(Announced,))
    world.delivered("m-1", times=2)
    world.delivered("m-2")
    before = world.sent()
    world.subscribe(**later)
    assert world.delivered("m-1", times=2).finished.failed == ()
    world.delivered("m-2")
    assert world.sent() == before
    world.replayed()
    assert world.sent() == before
    world.delivered("m-3")
    places = [(item.destination, item.place.number) for item in world.sent() if item.place is not None]
    announced = [(name, 4 if name == "old" else 1) for name, types in later.items() if Announced in types]
    noted = [(name, 2 if Announced in types else 1) for name, types in later.items() if Noted in types]
    assert places == [*announced, *noted, ("letters", 4)]


def test_a_destination_that_is_gone_cannot_be_sent_to_again() -> None:
    world = World(old=(Announced,), other=(Announced,))
    world.delivered("m-1")
    world.sent()
    world.subscribe(old=(Announced,))
    ((_, error),) = world.delivered("m-1").finished.failed
    assert isinstance(error, NonDeterministicHandler)
    assert world.sent() == []
