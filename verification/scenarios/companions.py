"""The scenarios of one partition: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from exactlyonce.handling.entities import Entity
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.resequencer.gaps import Rebuild
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.protocols.stream.protocol import VersionStream
from verification.explorers.explorer import COPY, PART, REFUSED, SENT_AGAIN, STOPPED
from verification.scenarios.outbox import BEHIND, LATE, OTHER, OWN, PARKED, STALE
from verification.twins.alterations import seeing
from verification.twins.modules import around, twin_of
from verification.world.answers import ASKED
from verification.world.scenario import UNLIMITED, Budget, Message, scenario_of
from verification.world.writes import DELETED, HELD, RESUMED

ONE_AT_A_TIME: Final = (around(Release._has_room, seeing(BATCH_DOCUMENTS=1)),)  # noqa: SLF001
"""Batches that have room for one message only, so that a release takes several."""

ONE, TWO = Message(), Message(2)
KEEPS, DELETES, KEEPS_ONCE = Message(2, "keeps"), Message(2, "deletes"), Message(1, "keeps")
FAULTS: Final = Budget(crashes=1, unknown=1, repeated=1, stale=UNLIMITED)
"""Every fault once, and any read as old as its token allows."""
READS: Final = Budget(stale=UNLIMITED)
FRESH: Final = Budget(crashes=1, unknown=1, repeated=1)
RECORD: Final = "duplicate found its record"
WITHOUT_TOKENS: Final = (RECORD, OWN, OTHER, LATE, STALE)
SEEN: Final = (*WITHOUT_TOKENS, BEHIND)
READ: Final = SEEN[1:]

STREAM, COLOCATED, IN_ORDER = VersionStream(2), Colocated(), Resequencer()


def numbered(*copies: int, source: str = "web", **more: Any) -> tuple[Message, ...]:
    return tuple(Message(item, source=source, number=number, **more) for number, item in enumerate(copies, 1))


@dataclass
class Nothing:
    """The state of an entity of which only its name matters."""


def sender() -> Entity[Nothing]:
    """Who sends what a read model asks for again."""
    return Entity("sender", state=Nothing, container="senders", strategy=STREAM)


TWO_SOURCES: Final = numbered(1, 1, source="a") + numbered(1, 1, source="b")
TWO_CHANNELS: Final = numbered(1, 1) + numbered(1, channel=2)
ORDERED: Final = (
    Message(source="a", number=1, time=1),
    Message(source="a", number=2, time=3),
    Message(source="b", number=1, time=2),
)
IN_CHANNELS: Final = (*ORDERED[:2], Message(source="a", number=1, channel=2, time=2))
IN_TIME: Final = Resequencer(order="time", max_wait=timedelta(days=100))
SKIPPING: Final = Resequencer(gap_timeout=timedelta(0), on_gap="skip")
REBUILDING: Final = Resequencer(gap_timeout=timedelta(0), on_gap=Rebuild(sender(), "sender"))
LOST: Final = Message(0, number=1), Message(0, number=2), Message(number=3)
"""Two messages that do not come unless they are asked for, and one that has to wait for them."""
ONE_BY_ONE: Final = twin_of("released one by one", Resequencer, *ONE_AT_A_TIME)()

STREAMS: Final = (
    scenario_of("stream: all faults", (TWO, TWO), STREAM, *SEEN, budget=FAULTS, states=46_142),
    scenario_of(
        "stream: a whole state in every entry", (TWO, ONE), VersionStream(1), *SEEN, budget=FAULTS, states=21_754,
    ),
    scenario_of("stream: ways back only", (TWO, ONE), VersionStream(20), *SEEN, budget=FAULTS, states=21_754),
    scenario_of("stream: distinct attempts", (ONE, ONE), STREAM, *SEEN, budget=FAULTS, apart=True, states=45_320),
    scenario_of("stream: a message that changes nothing", (KEEPS, ONE), STREAM, *SEEN, budget=FAULTS, states=21_754),
    scenario_of("stream: a message that deletes", (ONE, DELETES), STREAM, *SEEN, budget=FAULTS, states=21_754),
    scenario_of("stream: groups of two", (ONE, ONE), STREAM, *SEEN, group=2, budget=FAULTS, states=37_180),
    scenario_of("stream: event-sourced", (TWO, KEEPS_ONCE), STREAM, *SEEN, budget=FAULTS, sourced=True, states=21_754),
    scenario_of(
        "stream: event-sourced, three messages", (DELETES, TWO, ONE), STREAM, RECORD, STALE, budget=READS, sourced=True,
        states=4_066,
    ),
    scenario_of("stream: three messages", (TWO, ONE, ONE), STREAM, RECORD, OTHER, STALE, budget=READS, states=1_181),
    scenario_of("stream: tokens remembered", (ONE, ONE), STREAM, *SEEN, budget=FAULTS, tokens=True, states=53_767),
    scenario_of(
        "stream: a document without a ledger", (TWO,), STREAM, *SEEN, budget=FAULTS, adopted=True, states=1_837,
    ),
    scenario_of("stream: sent again", (TWO, ONE), STREAM, SENT_AGAIN, budget=READS, unknown=1, replays=1, states=5_695),
    scenario_of("stream: sent again, a crash", (ONE, ONE), STREAM, SENT_AGAIN, crashes=1, replays=1, states=920),
    scenario_of(
        "stream: asked for what is missing", (TWO, ONE, ONE), STREAM, SENT_AGAIN, budget=READS, replays=1,
        missing=(2, 2), states=3_976,
    ),
    scenario_of("stream: the settler", (TWO,), STREAM, *SEEN, PARKED, budget=FAULTS, poisoned=1, states=10_594),
)  # fmt: skip

RECORDED: Final = (
    scenario_of("co-located: all faults", (TWO, ONE), COLOCATED, *WITHOUT_TOKENS, budget=FAULTS, states=90_780),
    scenario_of(
        "co-located: distinct attempts", (ONE, ONE), COLOCATED, RECORD, OWN, OTHER, LATE, budget=FRESH, apart=True,
        states=19_582,
    ),
    scenario_of(
        "co-located: groups of two", (TWO, ONE), COLOCATED, RECORD, OTHER, group=2, crashes=1, unknown=1, states=63_189,
    ),
    scenario_of(
        "co-located: keeping and deleting", (KEEPS, DELETES), COLOCATED, RECORD, OTHER, crashes=1, unknown=1,
        states=40_208,
    ),
    scenario_of(
        "co-located: tokens remembered", (ONE, ONE), COLOCATED, RECORD, OTHER, BEHIND, budget=FAULTS, repeated=0,
        tokens=True, states=43_890,
    ),
    scenario_of(
        "co-located: a document without a ledger", (TWO,), COLOCATED, *WITHOUT_TOKENS, budget=FAULTS, adopted=True,
        states=3_639,
    ),
    scenario_of(
        "co-located: the sweeper", (ONE, ONE), COLOCATED, RECORD, budget=FAULTS, repeated=0, sweeps=1, states=34_080,
    ),
    scenario_of("co-located: the settler", (TWO,), COLOCATED, *SEEN, PARKED, budget=FAULTS, poisoned=1, states=21_013),
)  # fmt: skip

RESEQUENCED: Final = (
    scenario_of(
        "resequencer: all faults", numbered(1, 1), IN_ORDER, OWN, OTHER, LATE, HELD, COPY, budget=FRESH, states=8_416,
    ),
    scenario_of(
        "resequencer: copies", numbered(2, 1), IN_ORDER, OTHER, LATE, HELD, COPY, crashes=1, unknown=1, states=9_388,
    ),
    scenario_of(
        "resequencer: distinct attempts", numbered(1, 1), IN_ORDER, HELD, COPY, budget=FRESH, apart=True, states=10_481,
    ),
    scenario_of("resequencer: two sources", TWO_SOURCES, IN_ORDER, HELD, OTHER, crashes=1),
    scenario_of(
        "resequencer: two channels of one source", TWO_CHANNELS, IN_ORDER, HELD, OTHER, crashes=1, states=5_334,
    ),
    scenario_of("resequencer: two sources, stale reads", TWO_SOURCES, IN_ORDER, HELD, OTHER, STALE, budget=READS),
    scenario_of(
        "resequencer: released one by one", numbered(1, 1), ONE_BY_ONE, HELD, PART, LATE, crashes=1, unknown=1,
        states=4_974,
    ),
    scenario_of(
        "resequencer: groups of two", numbered(1, 1, 1), IN_ORDER, HELD, OTHER, group=2, budget=READS, crashes=1,
    ),
    scenario_of(
        "resequencer: a handler that raises", (Message(number=1, raises=True), Message(number=2)), IN_ORDER, STOPPED,
        RESUMED, crashes=1, raising=1, nudges=UNLIMITED, states=6_544,
    ),
    scenario_of(
        "resequencer: two messages with one number", (*numbered(1, 1), Message(2, number=1)), IN_ORDER, REFUSED, HELD,
        budget=READS, crashes=1,
    ),
    scenario_of(
        "resequencer: a document without a ledger", numbered(1, 1), IN_ORDER, HELD, crashes=1, unknown=1, adopted=True,
        states=3_193,
    ),
    scenario_of("resequencer: one order", ORDERED, IN_TIME, HELD, COPY, crashes=1, nudges=UNLIMITED),
    scenario_of("resequencer: one order, two channels", IN_CHANNELS, IN_TIME, HELD, nudges=UNLIMITED),
    scenario_of("resequencer: gaps skipped", numbered(1, 1, 1), SKIPPING, HELD, crashes=1, nudges=UNLIMITED),
    scenario_of(
        "resequencer: gaps skipped, copies", numbered(2, 1), SKIPPING, HELD, COPY, budget=READS, crashes=1,
        nudges=UNLIMITED,
    ),
    scenario_of(
        "resequencer: lost messages asked for", (*LOST[1:], Message(2, number=1)), REBUILDING, ASKED, HELD, COPY,
        crashes=1, nudges=UNLIMITED,
    ),
    scenario_of("resequencer: the settler", numbered(1, 1), IN_ORDER, PARKED, crashes=1, unknown=1, poisoned=1),
)  # fmt: skip

ONCE: Final = Budget(crashes=1, unknown=1, forgotten=1)
CLEANED: Final = (
    scenario_of("stream: clean-up", (ONE, TWO), STREAM, *SEEN, DELETED, budget=FAULTS, forgotten=1, states=31_057),
    scenario_of(
        "stream: clean-up, three messages", (ONE, TWO, ONE), STREAM, DELETED, budget=READS, forgotten=2, states=21_185,
    ),
    scenario_of(
        "stream: clean-up of events", (ONE, ONE, TWO), STREAM, DELETED, budget=ONCE, unknown=0, sourced=True,
        states=12_894,
    ),
    scenario_of(
        "stream: clean-up of events, stale reads", (ONE, ONE, TWO), STREAM, DELETED, budget=READS, forgotten=2,
        sourced=True, states=9_111,
    ),
    scenario_of("co-located: clean-up", (TWO, ONE), COLOCATED, DELETED, budget=ONCE, unknown=0, states=7_280),
    scenario_of(
        "co-located: clean-up, sweeper and settler", (TWO,), COLOCATED, DELETED, PARKED, crashes=1, stale=UNLIMITED,
        forgotten=1, sweeps=1, poisoned=1, states=4_905,
    ),
    scenario_of("resequencer: clean-up", numbered(2, 1), IN_ORDER, HELD, DELETED, budget=ONCE),
    scenario_of(
        "resequencer: clean-up, three messages", numbered(1, 1, 1), IN_ORDER, HELD, DELETED, budget=ONCE, unknown=0,
    ),
)  # fmt: skip

SMALL: Final = (*STREAMS, *RECORDED, *RESEQUENCED, *CLEANED)

LARGE: Final = (
    scenario_of(
        "resequencer: three messages, all faults", numbered(1, 1, 1), IN_ORDER, *READ, HELD, COPY, budget=FAULTS,
    ),
    scenario_of("resequencer: copies of three messages", numbered(2, 1, 1), IN_ORDER, HELD, COPY, crashes=1, unknown=1),
    scenario_of("resequencer: three one by one", numbered(1, 1, 1), ONE_BY_ONE, HELD, PART, LATE, crashes=1, unknown=1),
    scenario_of("resequencer: the settler, all faults", numbered(1, 1), IN_ORDER, PARKED, budget=FRESH, poisoned=1),
    scenario_of("stream: all faults, distinct attempts", (TWO, TWO), STREAM, *SEEN, budget=FAULTS, apart=True),
    scenario_of("stream: three messages, all faults", (TWO, ONE, ONE), STREAM, *SEEN, budget=FAULTS),
    scenario_of("stream: three workers", (TWO, ONE), STREAM, *SEEN, budget=FAULTS, workers=3),
    scenario_of("stream: groups of two, copies", (TWO, ONE), STREAM, *SEEN, budget=FAULTS, group=2),
    scenario_of("stream: two crashes, two lost", (TWO, ONE), STREAM, *SEEN, budget=FAULTS, crashes=2, unknown=2),
    scenario_of(
        "co-located: all faults, distinct attempts", (TWO, TWO), COLOCATED, *WITHOUT_TOKENS, budget=FAULTS, apart=True,
    ),
    scenario_of("co-located: three messages", (TWO, ONE, ONE), COLOCATED, RECORD, OTHER, LATE, budget=FRESH),
    scenario_of("co-located: three workers", (TWO, ONE), COLOCATED, RECORD, OTHER, LATE, budget=FRESH, workers=3),
    scenario_of(
        "co-located: groups of two, all faults", (TWO, ONE), COLOCATED, *WITHOUT_TOKENS, budget=FAULTS, group=2,
    ),
    scenario_of("resequencer: copies, all faults", numbered(2, 1, 1), IN_ORDER, *READ, HELD, COPY, budget=FAULTS),
    scenario_of("resequencer: more copies", numbered(2, 2, 1), IN_ORDER, OWN, LATE, HELD, COPY, budget=FRESH),
    scenario_of(
        "resequencer: three messages, distinct attempts", numbered(1, 1, 1), IN_ORDER, *READ, HELD, budget=FAULTS,
        apart=True,
    ),
    scenario_of("resequencer: two sources, all faults", TWO_SOURCES[:3], IN_ORDER, *READ, HELD, budget=FAULTS),
    scenario_of("resequencer: two sources, lost writes", TWO_SOURCES, IN_ORDER, LATE, HELD, crashes=1, unknown=1),
    scenario_of("resequencer: one by one, repeated writes", numbered(2, 1, 1), ONE_BY_ONE, OWN, PART, budget=FRESH),
    scenario_of(
        "resequencer: groups of two, lost writes", numbered(1, 1, 1), IN_ORDER, HELD, LATE, group=2, budget=FRESH,
    ),
    scenario_of(
        "resequencer: three workers", numbered(1, 1, 1), IN_ORDER, OTHER, HELD, workers=3, crashes=1, unknown=1,
    ),
    scenario_of(
        "resequencer: one order, two of each", (*ORDERED, Message(source="b", number=2, time=3)), IN_TIME, HELD,
        crashes=1, nudges=UNLIMITED,
    ),
    scenario_of("resequencer: one order, groups", ORDERED, IN_TIME, HELD, group=2, nudges=UNLIMITED),
    scenario_of("resequencer: one order, stale reads", ORDERED, IN_TIME, HELD, STALE, budget=READS, nudges=UNLIMITED),
    scenario_of("resequencer: four messages", numbered(1, 1, 1, 1), IN_ORDER, OTHER, HELD, crashes=1, unknown=1),
)  # fmt: skip
