"""Small worlds in which a mutant may show, from the cheapest to the most expensive."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from exactlyonce import Outbox
from verification.scenarios.numbers import A1, A2, A3, B1, EARLY_A, EARLY_B, NUMBERS, ONE_CHANNEL
from verification.scenarios.requests import LARGE_ANSWER
from verification.world.scenario import UNLIMITED, Budget, Request, Scenario

STAGED: Final = Outbox.transaction_id()
ONE: Final = Outbox(window=1, channels=1)
STAGED_ONE: Final = Outbox(window=1, inline_limit=0, channels=1)


def _opened(number: int) -> Request:
    return Request(number, opened=True)


WORLDS: Final = (
    Scenario("a lonely message", (1,), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1, repeated=1)),
    Scenario("a lonely message, staged", (1,), STAGED, workers=1, budget=Budget(crashes=1, unknown=1, repeated=1)),
    Scenario("two in turn", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1)),
    Scenario("two in turn, staged", (2, 1), STAGED, workers=1, budget=Budget(crashes=1)),
    Scenario("a number", (2,), NUMBERS, workers=1, places=(A1,), budget=Budget(crashes=1, unknown=1, repeated=1)),
    Scenario("numbers in turn", (2, 1), NUMBERS, workers=1, places=(A1, A2), budget=Budget(crashes=1)),
    Scenario("a channel leaves", (2, 1), ONE_CHANNEL, workers=1, places=(A1, B1), budget=Budget(crashes=1)),
    Scenario("two at once", (1, 1), Outbox(window=1), budget=Budget(crashes=1)),
    Scenario("copies at once", (2,), Outbox(window=1), budget=Budget(crashes=1, unknown=1)),
    Scenario("a group", (1, 1, 1), Outbox(window=2), workers=1, group=2, budget=Budget(crashes=1)),
    Scenario("a group, staged", (1, 1), Outbox(window=2, inline_limit=0), workers=1, group=2, budget=Budget(crashes=1)),
    Scenario("copies in a group", (2, 1), Outbox(window=2), workers=1, group=2, budget=Budget(crashes=1)),
    Scenario("a deletion", (1, 2), Outbox(window=1), workers=1, budget=Budget(crashes=1), deletes=True),
    Scenario("a deletion in a group", (1, 2), Outbox(window=2), workers=1, group=2, budget=Budget(1), deletes=True),
    Scenario("swept", (1,), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1, sweeps=1)),
    Scenario("swept, staged", (1,), STAGED, workers=1, budget=Budget(crashes=1, unknown=1, sweeps=1)),
    Scenario("given up", (1,), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1, poisoned=1)),
    Scenario("given back", (1,), Outbox(window=1), budget=Budget(poisoned=1, returned=1)),
    Scenario("given up, two messages", (1, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, poisoned=1)),
    Scenario("given up, stale reads", (1, 1), Outbox(window=1), workers=1, budget=Budget(1, stale=1, poisoned=1)),
    Scenario("cleaned", (1,), STAGED, workers=1, budget=Budget(crashes=1, cleanings=1)),
    Scenario("forgotten", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, forgotten=1)),
    Scenario(
        "everything embedded", (2, 1), Outbox.embedded(), workers=1, budget=Budget(crashes=1, unknown=1, repeated=1)
    ),
    Scenario("marking", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, unknown=1), marking=True),
    Scenario("remembered tokens", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1), tokens=True),
    Scenario("stale reads", (2, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, stale=1)),
    Scenario(
        "remembered tokens, stale reads",
        (2, 1),
        Outbox(window=1),
        workers=1,
        budget=Budget(crashes=1, stale=1),
        tokens=True,
    ),
    Scenario("stale reads, staged", (2,), STAGED, budget=Budget(crashes=1, stale=1)),
    Scenario(
        "marking, stale reads", (2,), Outbox(window=1), workers=1, budget=Budget(unknown=1, stale=1), marking=True
    ),
    Scenario("two at once, lost writes", (1, 1), Outbox(window=1), budget=Budget(unknown=1, repeated=1)),
    Scenario("two at once, staged", (1, 1), STAGED, budget=Budget(crashes=1)),
    Scenario("swept, stale reads", (1, 1), Outbox(window=1), workers=1, budget=Budget(crashes=1, stale=1, sweeps=1)),
    Scenario("given up at once", (1, 1), Outbox(window=1), budget=Budget(crashes=1, poisoned=1)),
    Scenario("cleaned, stale reads", (1,), STAGED, workers=1, budget=Budget(crashes=1, stale=1, cleanings=1)),
    Scenario("cleaned at once", (1,), STAGED, budget=Budget(crashes=1, cleanings=1)),
    Scenario("cleaned at once, lost writes", (1,), STAGED, budget=Budget(unknown=1, cleanings=1)),
    Scenario("swept at once", (1, 1), Outbox(window=1), budget=Budget(crashes=1, sweeps=1)),
    Scenario("stale reads at once", (2, 1), Outbox(window=1), budget=Budget(stale=1)),
    Scenario("marking at once", (2, 1), Outbox(window=1), marking=True),
    Scenario("a window of two", (2, 1, 1), Outbox(window=2), workers=1, budget=Budget(crashes=1)),
    Scenario("more than the window", (1, 1), Outbox(window=1), workers=1, group=2, budget=Budget(crashes=1)),
    *(
        replace(world, name=f"requests: {world.name}", workers=1, requests=(Request(0), Request(1)))
        for world in (
            Scenario("in turn", (2, 1), Outbox(window=1), budget=Budget(crashes=1, sweeps=UNLIMITED)),
            Scenario("lost replies", (2, 1), Outbox(window=1), budget=Budget(unknown=1, stale=1, sweeps=UNLIMITED)),
            Scenario("in a group", (2, 1), Outbox(window=1), group=2, budget=Budget(sweeps=UNLIMITED)),
        )
    ),
    *(
        replace(world, name=f"opened: {world.name}", workers=1, requests=tuple(map(_opened, range(len(world.copies)))))
        for world in (
            Scenario("in turn", (2,), Outbox(window=1), budget=Budget(crashes=1, sweeps=UNLIMITED)),
            Scenario("lost replies", (2,), Outbox(window=1), budget=Budget(unknown=1, stale=1, sweeps=UNLIMITED)),
            Scenario("in a group", (1, 1), Outbox(window=1), group=2, budget=Budget(sweeps=UNLIMITED)),
            Scenario("marking", (2,), Outbox(window=1), marking=True, budget=Budget(unknown=1, sweeps=UNLIMITED)),
        )
    ),
    *(
        replace(world, name=f"numbers: {world.name}")
        for world in (
            Scenario("in the wrong order", (2, 1), ONE, workers=1, places=(A2, A1), budget=Budget(crashes=1)),
            Scenario("a channel leaves", (2, 1), ONE, workers=1, places=(A1, B1), budget=Budget(1, 1)),
            Scenario("a channel comes back", (2, 1, 1), ONE, workers=1, places=(A1, B1, A2), budget=Budget(1, 1)),
            Scenario(
                "with foreign messages", (2, 1, 1), ONE, workers=1, places=(None, A1, A2), budget=Budget(crashes=1)
            ),
            Scenario("a group", (1, 1, 1), ONE, workers=1, group=2, places=(A1, A2, B1), budget=Budget(crashes=1)),
            Scenario("a group with a foreign message", (1, 1, 1), ONE, workers=1, group=3, places=(A1, None, None)),
            Scenario("staged", (2, 1), STAGED_ONE, workers=1, places=(A1, A2), budget=Budget(crashes=1)),
            Scenario("swept", (1, 1), ONE, workers=1, places=(A1, A2), budget=Budget(1, 1, sweeps=1)),
            Scenario("swept, staged", (1,), STAGED_ONE, workers=1, places=(A1,), budget=Budget(1, 1, sweeps=1)),
            Scenario("given up", (1, 1), ONE, workers=1, places=(A1, B1), budget=Budget(1, 1, poisoned=1)),
            Scenario("marking", (2, 1), ONE, workers=1, places=(A1, A2), budget=Budget(1, 1), marking=True),
            Scenario("from memory", (2, 1), ONE, workers=1, places=(A1, A2), budget=Budget(1, 1), remembering=True),
            Scenario(
                "from memory, staged",
                (2, 1),
                STAGED_ONE,
                workers=1,
                places=(A1, A2),
                budget=Budget(1),
                remembering=True,
            ),
            Scenario(
                "from memory, a channel leaves",
                (2, 1, 1),
                ONE,
                workers=1,
                places=(A1, B1, A2),
                budget=Budget(1),
                remembering=True,
            ),
            Scenario("stale reads", (2, 1), ONE, workers=1, places=(A1, B1), budget=Budget(1, stale=1)),
            Scenario("two at once", (1, 1), ONE, places=(A1, A2), budget=Budget(1, 1)),
            Scenario("from memory, at once", (1, 1, 1), ONE, places=(A1, A2, A3), remembering=True),
        )
    ),
    *(
        replace(world, name=f"kept: {world.name}", workers=1, keeps=frozenset({0}))
        for world in (
            Scenario("released", (1,), Outbox(window=1), budget=Budget(crashes=1, unknown=1, sweeps=UNLIMITED)),
            Scenario("stale reads", (1,), Outbox(window=1), budget=Budget(stale=1, sweeps=UNLIMITED)),
            Scenario("cleaned", (1,), Outbox(window=1), budget=Budget(crashes=1, cleanings=1, sweeps=UNLIMITED)),
            *(
                Scenario(name, (1, 1), strategy, cancels=cancels, group=group, budget=Budget(1, sweeps=UNLIMITED))
                for name, strategy, cancels, group in (
                    ("cancelled", Outbox(window=1), (None, 0), 1),
                    ("cancelled in a group", Outbox(window=3), (None, 0), 2),
                    ("staged outputs", Outbox(window=1, inline_limit=0), (None, None), 1),
                )
            ),
        )
    ),
    Scenario(
        "kept: two in a group",
        (1, 1),
        Outbox(window=3),
        workers=1,
        group=2,
        budget=Budget(crashes=1, sweeps=UNLIMITED),
        keeps=frozenset({0, 1}),
        cancels=(None, None),
    ),
    Scenario(
        "requests: a large answer",
        (2, 1),
        Outbox(window=3),
        workers=1,
        budget=Budget(crashes=1, sweeps=UNLIMITED),
        requests=(LARGE_ANSWER, Request(1)),
    ),
    Scenario(
        "numbers: forgetting, from memory",
        (2, 1),
        ONE_CHANNEL,
        workers=1,
        places=((EARLY_A, 1), (EARLY_B, 1)),
        budget=Budget(crashes=1, forgettings=1),
        remembering=True,
    ),
)

STATES: Final = {
    "a lonely message": 123,
    "a lonely message, staged": 770,
    "two in turn": 186,
    "two in turn, staged": 648,
    "a number": 120,
    "numbers in turn": 100,
    "a channel leaves": 116,
    "two at once": 728,
    "copies at once": 615,
    "a group": 688,
    "a group, staged": 427,
    "copies in a group": 385,
    "a deletion": 186,
    "a deletion in a group": 385,
    "swept": 231,
    "swept, staged": 926,
    "given up": 218,
    "given back": 83,
    "given up, two messages": 358,
    "given up, stale reads": 1_218,
    "cleaned": 67,
    "forgotten": 257,
    "everything embedded": 1_728,
    "marking": 3_177,
    "remembered tokens": 220,
    "stale reads": 717,
    "remembered tokens, stale reads": 941,
    "stale reads, staged": 5_802,
    "marking, stale reads": 213,
    "two at once, lost writes": 5_160,
    "two at once, staged": 10_202,
    "swept, stale reads": 741,
    "given up at once": 1_862,
    "cleaned, stale reads": 303,
    "cleaned at once": 423,
    "cleaned at once, lost writes": 1_259,
    "swept at once": 4_084,
    "stale reads at once": 2_218,
    "marking at once": 2_368,
    "a window of two": 574,
    "more than the window": 340,
    "requests: in turn": 656,
    "requests: lost replies": 7_919,
    "requests: in a group": 348,
    "opened: in turn": 253,
    "opened: lost replies": 2_194,
    "opened: in a group": 1_449,
    "opened: marking": 751,
    "numbers: in the wrong order": 100,
    "numbers: a channel leaves": 790,
    "numbers: a channel comes back": 7_477,
    "numbers: with foreign messages": 632,
    "numbers: a group": 1_548,
    "numbers: a group with a foreign message": 718,
    "numbers: staged": 207,
    "numbers: swept": 1_678,
    "numbers: swept, staged": 636,
    "numbers: given up": 2_152,
    "numbers: marking": 1_568,
    "numbers: from memory": 678,
    "numbers: from memory, staged": 216,
    "numbers: from memory, a channel leaves": 797,
    "numbers: stale reads": 395,
    "numbers: two at once": 2_246,
    "numbers: from memory, at once": 1_042,
    "kept: released": 1_092,
    "kept: stale reads": 54,
    "kept: cleaned": 168,
    "kept: cancelled": 829,
    "kept: cancelled in a group": 919,
    "kept: staged outputs": 1_764,
    "kept: two in a group": 1_740,
    "requests: a large answer": 611,
    "numbers: forgetting, from memory": 425,
}
"""Of the shipped strategy. Pinned by a test."""
