"""The scenarios in which messages come by requests, whose clients want the committed answer."""

from __future__ import annotations

from typing import Any, Final

from exactlyonce import Colocated, VersionStream
from exactlyonce.effects.attempt import Strategy
from verification.explorers.requests import LEFT, REFUSED
from verification.scenarios.outbox import LATE, OTHER, OWN, STALE
from verification.world.answers import ANSWERED_THERE, FOUND
from verification.world.outbox import LARGE_BODY
from verification.world.scenario import UNLIMITED, Message, Request, Scenario, scenario_of, world_of

STREAM: Final = VersionStream(snapshot_every=2)
K0: Final = Request(0)
K1: Final = Request(1)
K2: Final = Request(2)
OTHER_BODY: Final = Request(0, "c")
"""Another request under the first one's key."""
LARGE_ANSWER: Final = Request(0, LARGE_BODY)
Requests = tuple[Request | None, ...]


def _scenario(name: str, copies: tuple[int, ...], requests: Requests, *seen: str, **more: Any) -> Scenario:
    return world_of(name, copies, LEFT, *seen, requests=requests, sweeps=UNLIMITED, **more)


def _with_companions(
    kind: str, name: str, strategy: Strategy, messages: tuple[Message, ...], *seen: str, queued: int = 0, **more: Any
) -> Scenario:
    """A scenario of a protocol whose records are companions; so many of the messages, the last ones, come by queues."""
    asked = len(messages) - queued
    requests = tuple(Request(number) if number < asked else None for number in range(len(messages)))
    name = f"requests: {kind}, {name}"
    return scenario_of(name, messages, strategy, LEFT, *seen, requests=requests, sweeps=UNLIMITED, **more)


SMALL: Final = (
    _scenario("requests: lost replies", (2,), (K0,), OWN, OTHER, LATE, crashes=1, unknown=1, repeated=1),
    _scenario("requests: marks leave", (2, 1), (K0, K1), FOUND, room=0, crashes=1),
    _scenario("requests: keys have no time", (2, 1), (K0, K1), FOUND, room=0, since=(None, None), crashes=1),
    _scenario(
        "requests: stale reads, one instance", (2, 1), (K0, K1), FOUND, STALE, workers=1, room=0, crashes=1, unknown=1,
        stale=1,
    ),
    _scenario("requests: two bodies under one key", (1, 1), (K0, OTHER_BODY), REFUSED, crashes=1, unknown=1),
    _scenario(
        "requests: two bodies in one commit", (1, 1, 1), (K0, OTHER_BODY, K2), REFUSED, workers=1, group=3, room=0,
        crashes=1, states=2_157,
    ),
    _scenario(
        "requests: beside messages from a queue", (2, 1), (K0, None), workers=1, group=2, room=0, crashes=1, unknown=1,
    ),
    _scenario(
        "requests: a large answer leaves before its mark", (2, 1), (LARGE_ANSWER, K1), ANSWERED_THERE, room=3,
        crashes=1, states=17_434,
    ),
)  # fmt: skip

IN_ONE_PARTITION: Final = (
    _with_companions(
        "co-located", "lost replies", Colocated(), (Message(copies=2),), OWN, OTHER, LATE, crashes=1, unknown=1,
        repeated=1,
    ),
    _with_companions(
        "co-located", "stale reads", Colocated(), (Message(copies=2), Message()), STALE, crashes=1, stale=1,
    ),
    _with_companions(
        "stream", "lost replies", STREAM, (Message(copies=2),), OWN, OTHER, LATE, crashes=1, unknown=1, repeated=1,
        states=2_261,
    ),
    _with_companions("stream", "stale reads", STREAM, (Message(copies=2), Message()), STALE, crashes=1, stale=1),
    _with_companions(
        "stream", "groups beside messages from a queue", STREAM, (Message(copies=2), Message()), queued=1, workers=1,
        group=2, crashes=1, unknown=1,
    ),
)  # fmt: skip
"""Of protocols whose records are companions."""

LARGE: Final = (
    _scenario(
        "requests: two instances, all faults", (2, 1), (K0, K1), OWN, LATE, STALE, crashes=1, unknown=1, repeated=1,
        stale=1,
    ),
    _scenario(
        "requests: two bodies and another key in groups", (2, 1, 1), (K0, OTHER_BODY, K2), REFUSED, group=2, crashes=1,
    ),
)  # fmt: skip
