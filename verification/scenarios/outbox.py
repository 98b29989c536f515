"""The scenarios of the outbox: small ones for the tests, large ones for `make model`."""

from __future__ import annotations

from typing import Final

from verification.explorers.explorer import FROM_MEMORY
from verification.world.answers import FOUND
from verification.world.scenario import UNLIMITED, Budget, world_of
from verification.world.writes import CUT

GONE: Final = "staged outputs were gone"
OWN: Final = "own success seen as a conflict"
OTHER: Final = "somebody else's commit won"
LATE: Final = "a delayed write took effect"
STALE: Final = "stale load"
BEHIND: Final = "a replica was behind"
PARKED: Final = "a message was parked"
CLEANED: Final = "staged outputs were cleaned up"
EVERYTHING: Final = Budget(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED)


SMALL: Final = (
    world_of(
        "duplicates, crash, lost and repeated writes", (2, 1), OWN, OTHER, LATE, budget=Budget(1, 1, 1), states=53_616,
    ),
    world_of("stale reads", (2, 1), OTHER, STALE, BEHIND, crashes=1, stale=1, states=6_169),
    world_of("several messages in a commit", (2, 1), OTHER, group=2, crashes=1, states=3_565),
    world_of("processes that remember tokens", (2, 1), OTHER, crashes=1, tokens=True, states=2_989),
    world_of(
        "an entity is deleted and comes back", (1, 2), OTHER, LATE, crashes=1, unknown=1, deletes=True, states=17_213,
    ),
    world_of("the sweeper during processing", (1, 1), OTHER, LATE, crashes=1, unknown=1, sweeps=1, states=30_131),
    world_of(
        "the settler during processing", (1, 1), PARKED, LATE, STALE, budget=Budget(1, 1, 0, 1, poisoned=1),
        states=53_974,
    ),
    world_of(
        "two entities that feed a third", (1, 1, 0, 0), OTHER, crashes=1, targets=(0, 1, 2, 2),
        feeds=(2, 3, None, None), states=10_560,
    ),
    world_of("outputs have numbers", (2, 1), OTHER, LATE, numbers=True, crashes=1, unknown=1, states=17_213),
    world_of("pages: three messages", (2, 1, 1), CUT, FOUND, OTHER, crashes=1, states=27_621),
    world_of(
        "pages: room for none, every fault", (2, 1), CUT, FOUND, OWN, LATE, STALE, BEHIND, room=0, workers=1,
        budget=Budget(1, 1, 1, 1), states=12_933,
    ),
    world_of(
        "pages: room for none, three messages", (2, 1, 1), CUT, FOUND, LATE, STALE, room=0, workers=1,
        budget=Budget(1, 1, 0, 1), states=32_392,
    ),
    world_of(
        "pages: room for none, two workers", (2, 1), CUT, FOUND, LATE, OTHER, room=0, crashes=1, unknown=1,
        states=25_380,
    ),
    world_of(
        "pages: one message has no time", (2, 1, 1), CUT, FOUND, room=0, workers=1, since=(None, 0, 0), crashes=1,
        unknown=1, states=7_361,
    ),
    world_of(
        "pages: a younger message comes first", (2, 1, 1), CUT, FOUND, room=0, workers=1, since=(1, 0, 2), crashes=1,
        unknown=1, states=12_810,
    ),
    world_of("pages: groups", (2, 1, 1), CUT, FOUND, workers=1, group=2, crashes=1, states=2_220),
    world_of(
        "pages: the settler", (2, 1), CUT, FOUND, PARKED, room=0, workers=1, budget=Budget(1, 1, 0, 1, poisoned=1),
        states=30_360,
    ),
    world_of(
        "from memory", (2, 1), FROM_MEMORY, CUT, FOUND, room=0, remembering=True, workers=1, budget=Budget(1, 1, 0, 1),
        states=3_983,
    ),
    world_of(
        "from memory, two workers", (2, 1), FROM_MEMORY, OTHER, room=0, remembering=True, crashes=1, stale=1,
        states=7_789,
    ),
)  # fmt: skip

LARGE: Final = (
    world_of("two of two", (2, 2), OTHER, budget=Budget(1, 1, 1)),
    world_of("three workers", (2, 1), OTHER, workers=3, crashes=1, unknown=1),
    world_of("all faults", (2, 1), OWN, LATE, STALE, budget=Budget(1, 1, 1, 1)),
    world_of("pages: three messages, lost writes", (2, 1, 1), CUT, LATE, OTHER, crashes=1, unknown=1),
    world_of("pages: four messages", (2, 1, 1, 1), CUT, FOUND, workers=1, budget=Budget(1, 1, 1, 1)),
    world_of(
        "pages: room for none, two workers, every fault", (2, 1), CUT, LATE, OTHER, room=0, budget=Budget(1, 1, 1, 1),
    ),
    world_of("pages: groups, two workers", (2, 1, 1), CUT, OTHER, group=2, crashes=1, unknown=1),
    world_of(
        "pages: one message has no time, two workers", (2, 1, 1), CUT, room=0, since=(None, 0, 0), crashes=1, unknown=1,
    ),
    world_of(
        "from memory, three messages", (2, 1, 1), FROM_MEMORY, OTHER, room=0, remembering=True, crashes=1, stale=1,
    ),
)  # fmt: skip
