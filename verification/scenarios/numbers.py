"""The scenarios of the outbox whose messages have numbers."""

from __future__ import annotations

from typing import Final

from exactlyonce import Outbox
from verification.scenarios.outbox import LATE, OTHER, OWN, PARKED, RECORD, STALE
from verification.world.scenario import UNLIMITED, Budget, Scenario

FOUND: Final = "a channel that left was found"
MEMORY: Final = "starts from what it knows"
A1: Final = ("a", 1)
A2: Final = ("a", 2)
A3: Final = ("a", 3)
B1: Final = ("b", 1)
C1: Final = ("c", 1)
NUMBERS: Final = Outbox(window=1)
ONE_CHANNEL: Final = Outbox(window=1, channels=1)
STAGED: Final = Outbox(window=1, inline_limit=0, channels=1)
EVERYTHING: Final = Budget(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED)
EARLY_A, EARLY_B, EARLY_C = (f"{began:012x}" for began in (1, 2, 3))
"""Channels whose ids say that they began in this order."""
FORGOT: Final = "channels were forgotten"
REFUSED: Final = "a message of a forgotten channel was refused"
Places = tuple[tuple[str, int] | None, ...]


def _scenario(
    name: str, copies: tuple[int, ...], places: Places, strategy: Outbox, *seen: str, **more: object
) -> Scenario:
    return Scenario(name, copies, strategy, places=places, witnesses=frozenset(seen), **more)  # type: ignore[arg-type]


SMALL: Final = (
    _scenario("numbers: every fault", (2, 1), (A1, A2), NUMBERS, OWN, OTHER, LATE, STALE, budget=Budget(1, 1, 1, 1)),
    _scenario("numbers in the wrong order", (2, 1), (A2, A1), NUMBERS, OTHER, STALE, budget=Budget(crashes=1, stale=1)),
    _scenario("numbers: several messages in a commit", (2, 1), (A1, A2), NUMBERS, OTHER, group=2, budget=Budget(1, 1)),
    _scenario("numbers: a channel leaves", (2, 1), (A1, B1), ONE_CHANNEL, FOUND, OTHER, budget=Budget(1, 1)),
    _scenario(
        "numbers: a channel leaves and comes back",
        (2, 1, 1),
        (A1, B1, A2),
        ONE_CHANNEL,
        FOUND,
        workers=1,
        budget=Budget(crashes=1, stale=1),
    ),
    _scenario(
        "numbers: a channel leaves, lost writes and stale reads",
        (2, 1),
        (A1, B1),
        ONE_CHANNEL,
        FOUND,
        LATE,
        STALE,
        workers=1,
        budget=Budget(1, 1, 1, 1),
    ),
    _scenario(
        "numbers beside foreign messages", (2, 1, 1), (None, A1, A2), NUMBERS, RECORD, workers=1, budget=Budget(1, 1)
    ),
    _scenario("numbers: marking by idle workers", (2, 1), (A1, A2), NUMBERS, OTHER, budget=Budget(1), marking=True),
    _scenario("numbers: the sweeper", (1, 1), (A1, A2), NUMBERS, OTHER, LATE, budget=Budget(1, 1, sweeps=1)),
    _scenario(
        "numbers: the settler",
        (1, 1),
        (A1, B1),
        ONE_CHANNEL,
        PARKED,
        LATE,
        STALE,
        budget=Budget(1, 1, 0, 1, poisoned=1),
    ),
    _scenario("numbers: from memory", (2, 1), (A1, A2), NUMBERS, MEMORY, OTHER, budget=Budget(1, 1), remembering=True),
    _scenario(
        "numbers: from memory, stale reads",
        (2, 1, 1),
        (A1, A2, A3),
        NUMBERS,
        MEMORY,
        OTHER,
        budget=Budget(crashes=1, stale=1),
        remembering=True,
    ),
    _scenario(
        "numbers: from memory, a channel leaves",
        (2, 1, 1),
        (A1, B1, A2),
        ONE_CHANNEL,
        MEMORY,
        FOUND,
        budget=Budget(crashes=1),
        remembering=True,
    ),
    _scenario(
        "numbers: from memory, marking",
        (2, 1),
        (A1, A2),
        NUMBERS,
        MEMORY,
        budget=Budget(1, 1),
        remembering=True,
        marking=True,
    ),
    _scenario("numbers: staged outputs", (1, 1), (A1, B1), STAGED, OTHER, LATE, budget=Budget(unknown=1)),
    _scenario(
        "forgetting: two channels, every fault",
        (2, 2),
        ((EARLY_A, 1), (EARLY_B, 1)),
        ONE_CHANNEL,
        FORGOT,
        REFUSED,
        LATE,
        STALE,
        workers=1,
        budget=Budget(1, 1, 0, 1, forgettings=1),
    ),
    _scenario(
        "forgetting: a channel with a gap survives",
        (1, 1, 2),
        ((EARLY_A, 2), (EARLY_B, 1), (EARLY_C, 1)),
        ONE_CHANNEL,
        FORGOT,
        REFUSED,
        STALE,
        workers=1,
        budget=Budget(crashes=1, stale=1, forgettings=2),
    ),
    _scenario(
        "forgetting: from memory",
        (2, 1),
        ((EARLY_A, 1), (EARLY_B, 1)),
        ONE_CHANNEL,
        FORGOT,
        REFUSED,
        MEMORY,
        budget=Budget(crashes=1, forgettings=1),
        remembering=True,
    ),
)

STREAM: Final = _scenario(
    "endless stream with channels: 2 workers, 2 messages",
    (1, 1),
    (A1, ("b", 2)),
    ONE_CHANNEL,
    FOUND,
    OTHER,
    budget=Budget(crashes=UNLIMITED),
    delayed=0,
    endless=True,
)
"""Any number of messages in two channels, of which the ledger has room for one; explored by every test run."""

LARGE: Final = (
    _scenario(
        "endless stream with channels: 2 workers, 2 messages of either channel",
        (1, 1, 1, 1),
        (A1, ("b", 2), A3, ("b", 4)),
        ONE_CHANNEL,
        FOUND,
        OTHER,
        budget=Budget(crashes=UNLIMITED),
        delayed=0,
        endless=True,
        flight=2,
    ),
    _scenario(
        "three channels, four messages, room for one",
        (2, 1, 1, 1),
        (A1, B1, A2, C1),
        ONE_CHANNEL,
        FOUND,
        workers=1,
        budget=Budget(crashes=UNLIMITED, stale=UNLIMITED),
    ),
    _scenario(
        "three channels, four messages, room for one, lost writes",
        (1, 1, 2, 1),
        (A1, B1, A2, C1),
        ONE_CHANNEL,
        FOUND,
        workers=1,
        budget=Budget(1, 1, 0, 1),
    ),
    _scenario(
        "two channels, room for one, two workers", (2, 1, 1), (A1, B1, A2), ONE_CHANNEL, FOUND, budget=Budget(1, 1)
    ),
    _scenario(
        "forgetting: a channel goes on, lost writes",
        (2, 1, 1),
        ((EARLY_A, 1), (EARLY_A, 2), (EARLY_B, 1)),
        ONE_CHANNEL,
        FORGOT,
        REFUSED,
        LATE,
        STALE,
        workers=1,
        budget=Budget(unknown=1, stale=1, forgettings=1),
    ),
    _scenario(
        "forgetting: two workers",
        (2, 1),
        ((EARLY_A, 1), (EARLY_B, 1)),
        ONE_CHANNEL,
        FORGOT,
        REFUSED,
        OTHER,
        STALE,
        budget=Budget(crashes=1, stale=1, forgettings=1),
    ),
    _scenario(
        "forgetting: a gap closes",
        (2, 1, 1, 1),
        ((EARLY_A, 1), (EARLY_A, 2), (EARLY_B, 1), (EARLY_C, 1)),
        ONE_CHANNEL,
        FORGOT,
        REFUSED,
        STALE,
        workers=1,
        budget=Budget(stale=UNLIMITED, forgettings=1),
    ),
    _scenario("one channel, two workers, everything", (2, 2), (A1, A2), NUMBERS, OWN, LATE, STALE, budget=EVERYTHING),
    _scenario(
        "one channel, three numbers", (2, 1, 1), (A1, A2, A3), NUMBERS, OWN, LATE, STALE, workers=1, budget=EVERYTHING
    ),
)
