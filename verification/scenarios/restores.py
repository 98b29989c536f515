"""The scenarios in which a database has lost something: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Any, Final

from verification.explorers.explorer import PAGES_LOST, TOLD
from verification.scenarios.outbox import LATE
from verification.world.scenario import Scenario, world_of
from verification.world.writes import IN_THE_WAY, PAGES_GONE


def _scenario(name: str, copies: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    return world_of(name, copies, *seen, **{"workers": 1, "room": 0, **more})


SMALL: Final = (
    _scenario("put back: three messages", (2, 2, 1), IN_THE_WAY, PAGES_GONE, since=(0, 1, 1), put_back=1, states=723),
    _scenario("put back: lost writes", (2, 1, 1), IN_THE_WAY, PAGES_GONE, LATE, put_back=1, unknown=1, states=2_184),
    _scenario("put back: room for one", (1, 2, 2, 1), IN_THE_WAY, since=(0, 1, 1, 2), room=1, put_back=1, states=3_068),
    _scenario("put back: two workers", (2, 2), LATE, workers=2, since=(0, 1), put_back=1, unknown=1, states=12_290),
    _scenario("put back: stale reads", (2, 2), since=(0, 1), put_back=1, stale=1, crashes=1, states=1_652),
    _scenario("put back: one message has no time", (2, 2, 1), IN_THE_WAY, since=(None, 0, 0), put_back=1, states=739),
    _scenario("put back twice", (2, 2, 1), IN_THE_WAY, since=(0, 1, 1), put_back=2, states=973),
    _scenario("removed: three messages", (2, 2, 1), TOLD, since=(0, 1, 1), removed=1, states=505),
    _scenario("removed: room for one", (1, 2, 2), TOLD, since=(0, 1, 1), room=1, removed=1, crashes=1, states=1_528),
    _scenario(
        "removed: the sweeper", (2, 2), TOLD, since=(0, 1), removed=1, crashes=1, sweeps=1, stale=1, states=6_882,
    ),
    _scenario(
        "removed: processes remember", (2, 2, 1), TOLD, since=(0, 1, 1), removed=1, stale=1, tokens=True, states=1_817,
    ),
    _scenario("pages are lost", (2, 2), PAGES_LOST, since=(0, 1), emptied=1, crashes=1, states=440),
)  # fmt: skip

LARGE: Final = (
    _scenario("put back: four messages", (2, 2, 2, 2), IN_THE_WAY, since=(0, 1, 1, 2), put_back=1),
    _scenario("put back: two workers, three messages", (2, 2, 1), IN_THE_WAY, LATE, workers=2, put_back=1, unknown=1),
    _scenario("put back: room for two", (1, 1, 1, 1, 1), IN_THE_WAY, room=2, put_back=1, unknown=1),
)
