"""Small worlds in which a mutant may show, from the cheapest to the most expensive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.values.lifetimes import Retention
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
from verification.scenarios.outbox_ages import changing
from verification.scenarios.requests import LARGE_ANSWER
from verification.twins.modules import Patch, constant
from verification.world.scenario import UNLIMITED, Ages, Message, Reply, Request, Scenario, world_of

SWEPT: Final = {"sweeps": UNLIMITED}
ASKED: Final = (Request(0), Request(1))
OPENED: Final = (Request(0, opened=True), Request(1, opened=True))
ANSWERED: Final = (None, Reply(0, copies=2))
SECOND: Final = (None, None, Reply(0), Reply(0, version=2))


def _world(name: str, copies: tuple[int, ...], **more: Any) -> Scenario:
    """A world of one worker, unless there are others."""
    return world_of(name, copies, **{"workers": 1, **more})


def _keeping(name: str, cancels: tuple[int | None, ...], **more: Any) -> Scenario:
    copies = (1,) * len(cancels)
    return _world(f"kept: {name}", copies, keeps=frozenset({0}), cancels=cancels, **more, **SWEPT)


PLAIN: Final = (
    _world("a lonely message", (1,), crashes=1, unknown=1, repeated=1, states=125),
    _world("two in turn", (2, 1), crashes=1, states=120),
    _world("two in turn, room for none", (2, 1), room=0, crashes=1, states=152),
    _world("two at once", (1, 1), workers=2, crashes=1, states=444),
    _world("copies at once", (2,), workers=2, crashes=1, unknown=1, states=728),
    _world("a group", (1, 1, 1), group=2, crashes=1, states=507),
    _world("copies in a group", (2, 1), group=2, crashes=1, states=272),
    _world("a deletion", (1, 2), crashes=1, deletes=True, states=120),
    _world("outputs have numbers", (2, 1), numbers=True, crashes=1, states=120),
    _world("two entities", (1, 0), targets=(0, 1), feeds=(1, None), crashes=1, unknown=1, states=340),
    _world("swept", (1,), crashes=1, unknown=1, sweeps=1, states=214),
    _world("given up", (1,), crashes=1, unknown=1, poisoned=1, states=202),
    _world("given back", (1,), workers=2, poisoned=1, returned=1, states=71),
    _world("given up, two messages", (1, 1), crashes=1, poisoned=1, states=282),
    _world("given up, stale reads", (1, 1), crashes=1, stale=1, poisoned=1, states=876),
    _world("given up, room for none", (1, 1), room=0, crashes=1, sweeps=1, poisoned=1, states=898),
    _world("given up, copies, room for none", (2, 1), room=0, crashes=1, poisoned=1, states=691),
    _world("remembered tokens", (2, 1), crashes=1, tokens=True, states=126),
    _world("stale reads", (2, 1), crashes=1, stale=1, states=438),
    _world("remembered tokens, stale reads", (2, 1), crashes=1, stale=1, tokens=True, states=429),
    _world("two at once, lost writes", (1, 1), workers=2, unknown=1, repeated=1, states=3_014),
    _world("swept, stale reads", (1, 1), crashes=1, stale=1, sweeps=1, states=453),
    _world("given up at once", (1, 1), workers=2, crashes=1, poisoned=1, states=1_326),
    _world("swept at once", (1, 1), workers=2, crashes=1, sweeps=1, states=2_510),
    _world("stale reads at once", (2, 1), workers=2, stale=1, states=616),
    _world("from memory", (2, 1), room=0, remembering=True, crashes=1, unknown=1, states=1_377),
    _world("from memory, a group", (2, 1, 1), group=2, remembering=True, crashes=1, states=2_255),
    _world("from memory, at once", (1, 1, 1), workers=2, remembering=True, states=418),
)

PAGES: Final = (
    _world("pages: lost writes", (2, 1), room=0, unknown=1, repeated=1, states=592),
    _world("pages: stale reads", (2, 1), room=0, crashes=1, stale=1, states=567),
    _world("pages: three in turn", (2, 1, 1), room=0, states=56),
    _world("pages: three in turn, room for one", (2, 1, 1), crashes=1, states=460),
    _world("pages: one has no time", (2, 1, 1), room=0, since=(None, 0, 0), crashes=1, states=557),
    _world("pages: a younger one comes first", (2, 1, 1), room=0, since=(1, 0, 2), crashes=1, states=1_032),
    _world("pages: older ones come later", (2, 2, 1), since=(1, 0, 2), states=139),
    _world("pages: a group", (2, 1, 1), room=2, group=2, crashes=1, states=1_836),
    _world("pages: lost writes, stale reads", (2, 1), room=0, unknown=1, stale=1, states=637),
    _world("pages: swept", (2, 1), room=0, crashes=1, unknown=1, sweeps=1, states=4_162),
    _world("pages: two at once", (2, 1), room=0, workers=2, crashes=1, states=2_317),
    _world("pages: put back", (2, 2, 1), room=0, since=(0, 1, 1), put_back=1, states=723),
    _world("pages: put back, lost writes", (2, 1, 1), room=0, put_back=1, unknown=1, states=2_184),
    _world("pages: put back, one has no time", (2, 2, 1), room=0, since=(None, 0, 0), put_back=1, states=739),
    _world("pages: lost", (2, 2), room=0, since=(0, 1), emptied=1, crashes=1, states=440),
    _world("pages: lost, one has no time", (2, 2), room=0, since=(None, 0), emptied=1, states=55),
    _world("pages: marks go with age", (2, 1, 1), room=3, ages=Ages(5, (0, 5, 5)), states=1_337),
    _world("pages: they go with age", (2, 1), room=0, ages=Ages(6, (0, 1)), forgotten=UNLIMITED, states=3_664),
    _world("pages: one of two goes with age", (1, 2, 1), room=1, ages=Ages(5, (0, 4, 4)), states=2_216),
    _world(
        "pages: a retention is lengthened", (2, 1), room=0, ages=changing(Retention, 4, 2), forgotten=UNLIMITED,
        states=2_228,
    ),
    _world("pages: what is owed grows too old", (1,), ages=Ages(4, (0,)), crashes=1, sweeps=1, states=898),
)  # fmt: skip

BOOKS: Final = (
    _world("books: one process, then another", (2,), books=True, crashes=1, unknown=1, states=418),
    _world("books: two messages", (1, 1), books=True, crashes=1, states=220),
    _world("books: swept", (1, 1), books=True, crashes=1, sweeps=1, states=452),
    _world("books: given up", (1, 1), books=True, crashes=1, poisoned=1, states=1_076),
    _world("books: clients leave", (1,), books=True, requests=ASKED[:1], crashes=1, states=77, **SWEPT),
    _world("books: two processes", (1, 1), books=True, workers=2, unknown=1, states=8_691),
)

ASKING: Final = (
    _world("requests: in turn", (2, 1), requests=ASKED, room=0, crashes=1, states=487, **SWEPT),
    _world(
        "requests: keys have no time", (2, 1), requests=ASKED, room=0, since=(None, None), crashes=1, states=487,
        **SWEPT,
    ),
    _world("requests: lost replies", (2, 1), requests=ASKED, unknown=1, states=610, **SWEPT),
    _world("requests: stale reads", (2, 1), requests=ASKED, room=0, stale=1, states=291, **SWEPT),
    _world("requests: in a group", (2, 1), requests=ASKED, group=2, states=85, **SWEPT),
    _world(
        "requests: two bodies", (1, 1), requests=(Request(0), Request(0, "c")), crashes=1, unknown=1, states=751,
        **SWEPT,
    ),
    _world(
        "requests: a large answer", (2, 1), requests=(LARGE_ANSWER, ASKED[1]), room=3, crashes=1, states=452, **SWEPT,
    ),
    _world("opened: in turn", (2,), requests=OPENED[:1], crashes=1, states=231, **SWEPT),
    _world("opened: lost replies", (2,), requests=OPENED[:1], unknown=1, stale=1, states=1_264, **SWEPT),
    _world("opened: two requests", (1, 1), requests=OPENED, room=0, stale=1, states=3_023, **SWEPT),
    _world("opened: in a group", (1, 1), requests=OPENED, group=2, states=729, **SWEPT),
)  # fmt: skip

KEEPING: Final = (
    _keeping("released", (None,), crashes=1, unknown=1, states=680),
    _keeping("released, repeated saves", (None,), workers=2, repeated=1, states=296),
    _keeping("stale reads", (None,), stale=1, crashes=1, states=199),
    _keeping("cleaned", (None,), crashes=1, cleanings=1, states=174),
    _keeping("cleaned, lost replies", (None,), unknown=1, cleanings=1, states=464),
    _keeping("cancelled", (None, 0), crashes=1, states=426),
    _keeping("cancelled in a group", (None, 0), room=3, group=2, crashes=1, states=564),
    _keeping("cancelled, stale reads", (None, 0), stale=1, states=229),
    _keeping("deleted before it is due", (None, None, None), deletes=True, states=395),
)

CALLING: Final = (
    _world("calls: lost replies", (1, 0), replies=ANSWERED, crashes=1, unknown=1, states=336),
    _world("calls: stale reads", (1, 0), replies=ANSWERED, stale=1, crashes=1, states=157),
    _world("calls: in groups", (1, 1, 0, 0), replies=SECOND, group=2, crashes=1, states=762),
    _world("calls: room for none", (1, 1, 0, 0), replies=SECOND, room=0, stale=1, states=92),
)


def _of(name: str, messages: tuple[Message, ...], strategy: Any, **more: Any) -> Scenario:
    copies = tuple(message.copies for message in messages)
    return _world(name, copies, messages=messages, strategy=strategy, apart=True, **more)


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
ASKED_ONCE: Final = (Request(0), None)
READS: Final = {"stale": UNLIMITED}
FAULTS: Final = {"crashes": 1, "unknown": 1, "repeated": 1}
TENDED: Final = {"nudges": UNLIMITED}

STREAMS: Final = (
    _of("stream: a lonely message", (ONE,), STREAM, states=135, **FAULTS),
    _of("stream: copies", (TWO,), STREAM, states=376, **FAULTS, **READS),
    _of("stream: three in turn", (TWO, ONE, ONE), STREAM, states=138, **READS),
    _of("stream: whole states, ways back", (TWO, ONE, ONE), VersionStream(20), crashes=1, states=446),
    _of("stream: whole states only", (TWO, ONE), VersionStream(1), crashes=1, states=152),
    _of("stream: one that changes nothing", (KEEPS, ONE), STREAM, crashes=1, states=152),
    _of("stream: one that deletes", (ONE, DELETES), STREAM, crashes=1, states=152),
    _of("stream: a group", (TWO, ONE), STREAM, group=2, crashes=1, states=1_008, **READS),
    _of("stream: a handler that raises", (SHAKY, TWO), STREAM, group=2, raising=1, states=173),
    _of("stream: handlers that raise", (SHAKY, SHAKY), STREAM, group=2, raising=1, states=42),
    _of(
        "stream: a copy whose handler raises", (Message(2, raises=True), ONE), STREAM, group=2, raising=1, crashes=1,
        states=1_279,
    ),
    _of("stream: a group with one that deletes", (DELETES_ONCE, ONE), STREAM, group=2, crashes=1, states=226),
    _of("stream: ways back over a deletion", (ONE, DELETES, ONE), VersionStream(20), states=138, **READS),
    _of("stream: no ledger", (TWO,), STREAM, adopted=True, states=538, **FAULTS, **READS),
    _of("stream: events", (TWO, KEEPS_ONCE), STREAM, sourced=True, crashes=1, states=152),
    _of("stream: events of three", (DELETES, TWO, ONE), STREAM, sourced=True, states=613, **READS),
    _of("stream: events, in whole states", (ONE, TWO), VersionStream(1), sourced=True, crashes=1, states=152),
    _of("stream: sent again", (ONE, ONE, ONE), STREAM, crashes=1, replays=1, states=238),
    _of("stream: sent again, lost replies", (ONE, ONE), STREAM, crashes=1, unknown=1, replays=1, states=838),
    _of("stream: sent again, stale reads", (TWO, ONE), STREAM, replays=1, states=143, **READS),
    _of("stream: events, sent again", (ONE, ONE), STREAM, sourced=True, crashes=1, replays=1, states=116),
    _of("stream: asked for one", (ONE, ONE, ONE), STREAM, crashes=1, replays=1, missing=(2, 2), states=210),
    _of(
        "stream: asked for two, lost replies", (ONE, KEEPS_ONCE, ONE), STREAM, unknown=1, replays=1, missing=(1, 2),
        states=848,
    ),
    _of(
        "stream: asked for two, stale reads", (ONE, ONE), STREAM, crashes=1, replays=1, missing=(1, 2), states=170,
        **READS,
    ),
    _of("stream: given back", (ONE,), STREAM, workers=2, poisoned=1, returned=1, states=95),
    _of("stream: given up", (TWO,), STREAM, poisoned=1, states=3_842, **FAULTS, **READS),
    _of("stream: given up, two", (ONE, TWO), STREAM, poisoned=1, states=220, **READS),
    _of("stream: cleaned", (ONE, TWO), STREAM, forgotten=1, unknown=1, states=1_138, **READS),
    _of("stream: cleaned of events", (ONE, ONE, TWO), STREAM, sourced=True, forgotten=1, crashes=1, states=912),
    _of("stream: cleaned of events, stale reads", (ONE, TWO), STREAM, sourced=True, forgotten=1, states=114, **READS),
    _of("stream: requests", (TWO, ONE), STREAM, requests=ASKED, crashes=1, unknown=1, states=3_864, **SWEPT),
    _of(
        "stream: a request in a group", (TWO, ONE), STREAM, requests=ASKED_ONCE, group=2, crashes=1, states=731,
        **SWEPT,
    ),
    _of("stream: two at once", (ONE, ONE), STREAM, workers=2, crashes=1, states=498),
    _of("stream: copies at once", (TWO,), STREAM, workers=2, states=1_141, **FAULTS),
    _of("stream: copies at once, stale reads", (TWO,), STREAM, workers=2, states=42, **READS),
)  # fmt: skip

RECORDED: Final = (
    _of("co-located: a lonely message", (ONE,), COLOCATED, states=178, **FAULTS),
    _of("co-located: copies", (TWO,), COLOCATED, states=670, **FAULTS, **READS),
    _of("co-located: two in turn", (TWO, ONE), COLOCATED, crashes=1, states=170),
    _of("co-located: a group", (TWO, ONE), COLOCATED, group=2, crashes=1, states=518),
    _of("co-located: keeping and deleting", (KEEPS, DELETES), COLOCATED, crashes=1, states=236),
    _of("co-located: a handler that raises", (SHAKY, TWO), COLOCATED, group=2, raising=1, states=161),
    _of("co-located: handlers that raise", (SHAKY, SHAKY), COLOCATED, group=2, raising=1, states=50),
    _of("co-located: a group with one that deletes", (DELETES_ONCE, ONE), COLOCATED, group=2, crashes=1, states=290),
    _of("co-located: no ledger", (TWO,), COLOCATED, adopted=True, states=974, **FAULTS, **READS),
    _of("co-located: swept", (ONE,), COLOCATED, sweeps=1, crashes=1, unknown=1, states=494, **READS),
    _of("co-located: given back", (ONE,), COLOCATED, workers=2, poisoned=1, returned=1, states=135),
    _of("co-located: given up", (TWO,), COLOCATED, poisoned=1, states=6_482, **FAULTS, **READS),
    _of("co-located: cleaned", (TWO,), COLOCATED, forgotten=1, crashes=1, unknown=1, states=273),
    _of("co-located: requests", (TWO, ONE), COLOCATED, requests=ASKED, crashes=1, unknown=1, states=3_942, **SWEPT),
    _of(
        "co-located: a request in a group", (TWO, ONE), COLOCATED, requests=ASKED_ONCE, group=2, crashes=1, states=775,
        **SWEPT,
    ),
    _of("co-located: two at once", (ONE, ONE), COLOCATED, workers=2, crashes=1, states=1_010),
    _of("co-located: copies at once", (TWO,), COLOCATED, workers=2, crashes=1, unknown=1, states=1_180),
    _of("co-located: swept at once", (ONE, ONE), COLOCATED, workers=2, sweeps=1, states=532),
)  # fmt: skip

RESEQUENCED: Final = (
    _of("read model: a lonely message", numbered(1), IN_ORDER, states=142, **FAULTS),
    _of("read model: copies", numbered(2), IN_ORDER, states=330, **FAULTS, **READS),
    _of("read model: two", numbered(1, 1), IN_ORDER, states=1_185, **FAULTS),
    _of("read model: two, stale reads", numbered(2, 1), IN_ORDER, crashes=1, states=314, **READS),
    _of("read model: three", numbered(1, 1, 1), IN_ORDER, crashes=1, states=286),
    _of("read model: a group", numbered(2, 1, 1), IN_ORDER, group=3, states=274),
    _of("read model: tokens", numbered(2, 1), IN_ORDER, tokens=True, crashes=1, states=344, **READS),
    _of(
        "read model: a handler that raises", (SHAKY_FIRST, *numbered(0, 1)[1:]), IN_ORDER, raising=1, crashes=1,
        states=296, **TENDED,
    ),
    _of("read model: two with one number", (*numbered(1, 1), Message(2, number=1)), IN_ORDER, crashes=1, states=439),
    _of("read model: no ledger", numbered(1, 1), IN_ORDER, adopted=True, crashes=1, states=198, **READS),
    _of("read model: one by one", numbered(1, 1, 1), IN_ORDER, crashes=1, states=607),
    _of("read model: room for three", numbered(1, 1, 1, 1), IN_ORDER, states=225),
    _of("read model: room for three, two sources", TWO_SOURCES, IN_ORDER, states=393, **READS),
    _of("read model: room for three, four of one source", FOUR_AND_ONE, IN_ORDER, states=1_201),
    _of("read model: room for three, one order", ORDERED, IN_TIME, states=106, **TENDED),
    _of("read model: two sources, of which one stops", STOPPING, IN_ORDER, raising=1, states=42, **TENDED),
    _of("read model: two sources", TWO_SOURCES, IN_ORDER, crashes=1, states=1_778),
    _of("read model: skipped", numbered(1, 1), SKIPPING, crashes=1, states=197, **TENDED),
    _of("read model: skipped, three", numbered(1, 0, 1), SKIPPING, states=116, **TENDED, **READS),
    _of("read model: skipped in parts", numbered(0, 0, 0, 0, 1), SKIPPING, crashes=1, unknown=1, states=288, **TENDED),
    _of("read model: asked for", LOST, REBUILDING, crashes=1, unknown=1, states=1_242, **TENDED),
    _of("read model: given back", numbered(1), IN_ORDER, workers=2, poisoned=1, returned=1, states=62),
    _of("read model: given up", numbered(1, 1), IN_ORDER, poisoned=1, states=8_152, **FAULTS),
    _of("read model: given up, stale reads", numbered(1, 1), IN_ORDER, poisoned=1, crashes=1, states=586, **READS),
    _of("read model: given up, two sources", TWO_SOURCES[::2], IN_ORDER, poisoned=1, crashes=1, states=736, **READS),
    _of("read model: given up, one number", (*numbered(1), Message(number=1)), IN_ORDER, poisoned=1, states=41),
    _of("read model: cleaned", numbered(2, 1), IN_ORDER, forgotten=1, crashes=1, states=544),
    _of("read model: cleaned, two sources", TWO_SOURCES[:3], IN_ORDER, forgotten=1, states=248),
    _of("read model: one order, same times", SAME_TIMES, IN_TIME, states=96, **TENDED),
    _of("read model: one order", ORDERED, IN_TIME, crashes=1, states=835, **TENDED),
    _of("read model: two at once", numbered(1, 1), IN_ORDER, workers=2, crashes=1, states=284),
    _of("read model: copies at once", numbered(2, 1), IN_ORDER, workers=2, states=214),
    _of("read model: books", numbered(1, 1), IN_ORDER, books=True, crashes=1, states=228),
    _of("read model: books, swept", numbered(1, 1), IN_ORDER, books=True, crashes=1, states=608, **SWEPT),
    _of("read model: copies at once, stale reads", numbered(2, 1), IN_ORDER, workers=2, states=677, **READS),
)  # fmt: skip

ALL_WORLDS: Final[tuple[Scenario, ...]] = (
    *(*PLAIN, *PAGES, *BOOKS, *ASKING, *KEEPING, *CALLING),
    *(*STREAMS, *RECORDED, *RESEQUENCED),
)

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
