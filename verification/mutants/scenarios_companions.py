"""Small worlds of one partition in which a mutant may show, from the cheapest to the most expensive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.stream.protocol import VersionStream
from verification.scenarios.companions import (
    COLOCATED,
    DELETES,
    IN_ORDER,
    IN_TIME,
    KEEPS,
    KEEPS_ONCE,
    LOST,
    ONE,
    ONE_AT_A_TIME,
    ORDERED,
    REBUILDING,
    SKIPPING,
    STREAM,
    TWO,
    TWO_SOURCES,
    numbered,
)
from verification.twins.modules import Patch, constant
from verification.world.scenario import UNLIMITED, Budget, Message, Request, Scenario


def _world(name: str, messages: tuple[Message, ...], strategy: Any, *, workers: int = 1, **more: Any) -> Scenario:
    """A world in which every attempt has transaction ids of its own."""
    budget = {key: more.pop(key) for key in tuple(more) if key in Budget.__dataclass_fields__}
    copies = tuple(message.copies for message in messages)
    amounts = Budget(**budget)
    return Scenario(
        name, copies, messages=messages, strategy=strategy, workers=workers, budget=amounts, apart=True, **more
    )


DELETES_ONCE: Final = Message(1, "deletes")
SHAKY: Final = Message(raises=True)
SHAKY_FIRST: Final = Message(number=1, raises=True)
SAME_TIMES: Final = (
    Message(source="a", number=1, time=1),
    Message(source="a", number=2, time=1),
    Message(source="b", number=1, time=1),
)
FOUR_AND_ONE: Final = numbered(1, 1, 1, 1, source="a") + numbered(1, source="b")
STOPPING: Final = (Message(source="a", number=1, raises=True), Message(source="b", number=1))
ASKED: Final = (Request(0), Request(1))
ASKED_ONCE: Final = (Request(0), None)
SWEPT: Final = {"sweeps": UNLIMITED}
READS: Final = {"stale": UNLIMITED}
FAULTS: Final = {"crashes": 1, "unknown": 1, "repeated": 1}
TENDED: Final = {"nudges": UNLIMITED}

STREAMS: Final = (
    _world("stream: a lonely message", (ONE,), STREAM, **FAULTS),
    _world("stream: copies", (TWO,), STREAM, **FAULTS, **READS),
    _world("stream: three in turn", (TWO, ONE, ONE), STREAM, **READS),
    _world("stream: whole states, ways back", (TWO, ONE, ONE), VersionStream(20), crashes=1),
    _world("stream: whole states only", (TWO, ONE), VersionStream(1), crashes=1),
    _world("stream: one that changes nothing", (KEEPS, ONE), STREAM, crashes=1),
    _world("stream: one that deletes", (ONE, DELETES), STREAM, crashes=1),
    _world("stream: a group", (TWO, ONE), STREAM, group=2, crashes=1, **READS),
    _world("stream: a handler that raises", (SHAKY, TWO), STREAM, group=2, raising=1),
    _world("stream: handlers that raise", (SHAKY, SHAKY), STREAM, group=2, raising=1),
    _world(
        "stream: a copy whose handler raises", (Message(2, raises=True), ONE), STREAM, group=2, raising=1, crashes=1
    ),
    _world("stream: a group with one that deletes", (DELETES_ONCE, ONE), STREAM, group=2, crashes=1),
    _world("stream: ways back over a deletion", (ONE, DELETES, ONE), VersionStream(20), **READS),
    _world("stream: no ledger", (TWO,), STREAM, adopted=True, **FAULTS, **READS),
    _world("stream: events", (TWO, KEEPS_ONCE), STREAM, sourced=True, crashes=1),
    _world("stream: events of three", (DELETES, TWO, ONE), STREAM, sourced=True, **READS),
    _world("stream: events, in whole states", (ONE, TWO), VersionStream(1), sourced=True, crashes=1),
    _world("stream: sent again", (ONE, ONE, ONE), STREAM, crashes=1, replays=1),
    _world("stream: sent again, lost replies", (ONE, ONE), STREAM, crashes=1, unknown=1, replays=1),
    _world("stream: sent again, stale reads", (TWO, ONE), STREAM, replays=1, **READS),
    _world("stream: events, sent again", (ONE, ONE), STREAM, sourced=True, crashes=1, replays=1),
    _world("stream: asked for one", (ONE, ONE, ONE), STREAM, crashes=1, replays=1, missing=(2, 2)),
    _world("stream: asked for two, lost replies", (ONE, KEEPS_ONCE, ONE), STREAM, unknown=1, replays=1, missing=(1, 2)),
    _world("stream: asked for two, stale reads", (ONE, ONE), STREAM, crashes=1, replays=1, missing=(1, 2), **READS),
    _world("stream: given back", (ONE,), STREAM, workers=2, poisoned=1, returned=1),
    _world("stream: given up", (TWO,), STREAM, poisoned=1, **FAULTS, **READS),
    _world("stream: given up, two", (ONE, TWO), STREAM, poisoned=1, **READS),
    _world("stream: cleaned", (ONE, TWO), STREAM, forgotten=1, unknown=1, **READS),
    _world("stream: cleaned of events", (ONE, ONE, TWO), STREAM, sourced=True, forgotten=1, crashes=1),
    _world("stream: cleaned of events, stale reads", (ONE, TWO), STREAM, sourced=True, forgotten=1, **READS),
    _world("stream: requests", (TWO, ONE), STREAM, requests=ASKED, crashes=1, unknown=1, **SWEPT),
    _world("stream: a request in a group", (TWO, ONE), STREAM, requests=ASKED_ONCE, group=2, crashes=1, **SWEPT),
    _world("stream: two at once", (ONE, ONE), STREAM, workers=2, crashes=1),
    _world("stream: copies at once", (TWO,), STREAM, workers=2, **FAULTS),
    _world("stream: copies at once, stale reads", (TWO,), STREAM, workers=2, **READS),
)

RECORDED: Final = (
    _world("co-located: a lonely message", (ONE,), COLOCATED, **FAULTS),
    _world("co-located: copies", (TWO,), COLOCATED, **FAULTS, **READS),
    _world("co-located: two in turn", (TWO, ONE), COLOCATED, crashes=1),
    _world("co-located: a group", (TWO, ONE), COLOCATED, group=2, crashes=1),
    _world("co-located: keeping and deleting", (KEEPS, DELETES), COLOCATED, crashes=1),
    _world("co-located: a handler that raises", (SHAKY, TWO), COLOCATED, group=2, raising=1),
    _world("co-located: handlers that raise", (SHAKY, SHAKY), COLOCATED, group=2, raising=1),
    _world("co-located: a group with one that deletes", (DELETES_ONCE, ONE), COLOCATED, group=2, crashes=1),
    _world("co-located: no ledger", (TWO,), COLOCATED, adopted=True, **FAULTS, **READS),
    _world("co-located: swept", (ONE,), COLOCATED, sweeps=1, crashes=1, unknown=1, **READS),
    _world("co-located: given back", (ONE,), COLOCATED, workers=2, poisoned=1, returned=1),
    _world("co-located: given up", (TWO,), COLOCATED, poisoned=1, **FAULTS, **READS),
    _world("co-located: cleaned", (TWO,), COLOCATED, forgotten=1, crashes=1, unknown=1),
    _world("co-located: requests", (TWO, ONE), COLOCATED, requests=ASKED, crashes=1, unknown=1, **SWEPT),
    _world("co-located: a request in a group", (TWO, ONE), COLOCATED, requests=ASKED_ONCE, group=2, crashes=1, **SWEPT),
    _world("co-located: two at once", (ONE, ONE), COLOCATED, workers=2, crashes=1),
    _world("co-located: copies at once", (TWO,), COLOCATED, workers=2, crashes=1, unknown=1),
    _world("co-located: swept at once", (ONE, ONE), COLOCATED, workers=2, sweeps=1),
)

RESEQUENCED: Final = (
    _world("read model: a lonely message", numbered(1), IN_ORDER, **FAULTS),
    _world("read model: copies", numbered(2), IN_ORDER, **FAULTS, **READS),
    _world("read model: two", numbered(1, 1), IN_ORDER, **FAULTS),
    _world("read model: two, stale reads", numbered(2, 1), IN_ORDER, crashes=1, **READS),
    _world("read model: three", numbered(1, 1, 1), IN_ORDER, crashes=1),
    _world("read model: a group", numbered(2, 1, 1), IN_ORDER, group=3),
    _world("read model: tokens", numbered(2, 1), IN_ORDER, tokens=True, crashes=1, **READS),
    _world(
        "read model: a handler that raises",
        (SHAKY_FIRST, *numbered(0, 1)[1:]),
        IN_ORDER,
        raising=1,
        crashes=1,
        **TENDED,
    ),
    _world("read model: two with one number", (*numbered(1, 1), Message(2, number=1)), IN_ORDER, crashes=1),
    _world("read model: no ledger", numbered(1, 1), IN_ORDER, adopted=True, crashes=1, **READS),
    _world("read model: one by one", numbered(1, 1, 1), IN_ORDER, crashes=1),
    _world("read model: room for three", numbered(1, 1, 1, 1), IN_ORDER),
    _world("read model: room for three, two sources", TWO_SOURCES, IN_ORDER, **READS),
    _world("read model: room for three, four of one source", FOUR_AND_ONE, IN_ORDER),
    _world("read model: room for three, one order", ORDERED, IN_TIME, **TENDED),
    _world("read model: two sources, of which one stops", STOPPING, IN_ORDER, raising=1, **TENDED),
    _world("read model: two sources", TWO_SOURCES, IN_ORDER, crashes=1),
    _world("read model: skipped", numbered(1, 1), SKIPPING, crashes=1, **TENDED),
    _world("read model: skipped, three", numbered(1, 0, 1), SKIPPING, **TENDED, **READS),
    _world("read model: skipped in parts", numbered(0, 0, 0, 0, 1), SKIPPING, crashes=1, unknown=1, **TENDED),
    _world("read model: asked for", LOST, REBUILDING, crashes=1, unknown=1, **TENDED),
    _world("read model: given back", numbered(1), IN_ORDER, workers=2, poisoned=1, returned=1),
    _world("read model: given up", numbered(1, 1), IN_ORDER, poisoned=1, **FAULTS),
    _world("read model: given up, stale reads", numbered(1, 1), IN_ORDER, poisoned=1, crashes=1, **READS),
    _world("read model: given up, two sources", TWO_SOURCES[::2], IN_ORDER, poisoned=1, crashes=1, **READS),
    _world("read model: given up, one number", (*numbered(1), Message(number=1)), IN_ORDER, poisoned=1),
    _world("read model: cleaned", numbered(2, 1), IN_ORDER, forgotten=1, crashes=1),
    _world("read model: cleaned, two sources", TWO_SOURCES[:3], IN_ORDER, forgotten=1),
    _world("read model: one order, same times", SAME_TIMES, IN_TIME, **TENDED),
    _world("read model: one order", ORDERED, IN_TIME, crashes=1, **TENDED),
    _world("read model: two at once", numbered(1, 1), IN_ORDER, workers=2, crashes=1),
    _world("read model: copies at once", numbered(2, 1), IN_ORDER, workers=2),
    _world("read model: books", numbered(1, 1), IN_ORDER, books=True, crashes=1),
    _world("read model: books, swept", numbered(1, 1), IN_ORDER, books=True, crashes=1, **SWEPT),
    _world("read model: copies at once, stale reads", numbered(2, 1), IN_ORDER, workers=2, **READS),
)

WORLDS_OF_COMPANIONS: Final = (*STREAMS, *RECORDED, *RESEQUENCED)

ROOM_FOR_THREE: Final = (constant(resequencing, "BATCH_DOCUMENTS", 3),)
PATCHES: Final[Mapping[str, tuple[Patch, ...]]] = {
    "read model: one by one": ONE_AT_A_TIME,
    "read model: room for three": ROOM_FOR_THREE,
    "read model: room for three, two sources": ROOM_FOR_THREE,
    "read model: room for three, four of one source": ROOM_FOR_THREE,
    "read model: room for three, one order": ROOM_FOR_THREE,
    "read model: skipped in parts": ROOM_FOR_THREE,
}
"""What is patched in every twin in these worlds, so that batches are small."""

STATES_OF_COMPANIONS: Final = {
    "stream: a lonely message": 135,
    "stream: copies": 376,
    "stream: three in turn": 138,
    "stream: whole states, ways back": 446,
    "stream: whole states only": 152,
    "stream: one that changes nothing": 152,
    "stream: one that deletes": 152,
    "stream: a group": 1_008,
    "stream: a handler that raises": 173,
    "stream: handlers that raise": 42,
    "stream: a copy whose handler raises": 1_279,
    "stream: a group with one that deletes": 226,
    "stream: ways back over a deletion": 138,
    "stream: no ledger": 538,
    "stream: events": 152,
    "stream: events of three": 613,
    "stream: events, in whole states": 152,
    "stream: sent again": 238,
    "stream: sent again, lost replies": 838,
    "stream: sent again, stale reads": 143,
    "stream: events, sent again": 116,
    "stream: asked for one": 210,
    "stream: asked for two, lost replies": 848,
    "stream: asked for two, stale reads": 170,
    "stream: given back": 95,
    "stream: given up": 3_842,
    "stream: given up, two": 220,
    "stream: cleaned": 1_138,
    "stream: cleaned of events": 912,
    "stream: cleaned of events, stale reads": 114,
    "stream: requests": 3_864,
    "stream: a request in a group": 731,
    "stream: two at once": 498,
    "stream: copies at once": 1_141,
    "stream: copies at once, stale reads": 42,
    "co-located: a lonely message": 178,
    "co-located: copies": 670,
    "co-located: two in turn": 170,
    "co-located: a group": 518,
    "co-located: keeping and deleting": 236,
    "co-located: a handler that raises": 161,
    "co-located: handlers that raise": 50,
    "co-located: a group with one that deletes": 290,
    "co-located: no ledger": 974,
    "co-located: swept": 494,
    "co-located: given back": 135,
    "co-located: given up": 6_482,
    "co-located: cleaned": 273,
    "co-located: requests": 3_942,
    "co-located: a request in a group": 775,
    "co-located: two at once": 1_010,
    "co-located: copies at once": 1_180,
    "co-located: swept at once": 532,
    "read model: a lonely message": 142,
    "read model: copies": 330,
    "read model: two": 1_185,
    "read model: two, stale reads": 314,
    "read model: three": 286,
    "read model: a group": 274,
    "read model: tokens": 344,
    "read model: a handler that raises": 296,
    "read model: two with one number": 439,
    "read model: no ledger": 198,
    "read model: one by one": 607,
    "read model: room for three": 225,
    "read model: room for three, two sources": 393,
    "read model: room for three, four of one source": 1_201,
    "read model: room for three, one order": 106,
    "read model: two sources, of which one stops": 42,
    "read model: two sources": 1_778,
    "read model: skipped": 197,
    "read model: skipped, three": 116,
    "read model: skipped in parts": 288,
    "read model: asked for": 1_242,
    "read model: given back": 62,
    "read model: given up": 8_152,
    "read model: given up, stale reads": 586,
    "read model: given up, two sources": 736,
    "read model: given up, one number": 41,
    "read model: cleaned": 544,
    "read model: cleaned, two sources": 248,
    "read model: one order, same times": 96,
    "read model: one order": 835,
    "read model: two at once": 284,
    "read model: copies at once": 214,
    "read model: books": 228,
    "read model: books, swept": 608,
    "read model: copies at once, stale reads": 677,
}
"""Of the shipped protocols. Pinned by a test."""
