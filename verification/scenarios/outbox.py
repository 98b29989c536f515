"""The scenarios that are explored: small ones by every test run, large ones by `make model`."""

from __future__ import annotations

from typing import Final

from exactlyonce import Outbox
from verification.world.scenario import UNLIMITED, Budget, Scenario

RECORD: Final = "duplicate found its record"
GONE: Final = "staged outputs were gone"
OWN: Final = "own success seen as a conflict"
OTHER: Final = "somebody else's commit won"
LATE: Final = "a delayed write took effect"
STALE: Final = "stale load"
BEHIND: Final = "a replica was behind"
PARKED: Final = "a message was parked"
CLEANED: Final = "staged outputs were cleaned up"
FORGOTTEN: Final = "a record was forgotten"

INLINE: Final = Outbox(window=1)
STAGED: Final = Outbox.transaction_id()
EVERYTHING: Final = Budget(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED)


def _scenario(name: str, copies: tuple[int, ...], strategy: Outbox, *seen: str, **more: object) -> Scenario:
    return Scenario(name, copies, strategy, witnesses=frozenset(seen), **more)  # type: ignore[arg-type]


SMALL: Final = (
    _scenario(
        "duplicates, crash, lost and repeated writes", (2, 1), INLINE, RECORD, OWN, OTHER, LATE, budget=Budget(1, 1, 1)
    ),
    _scenario("stale reads", (2, 1), INLINE, RECORD, OTHER, STALE, BEHIND, budget=Budget(crashes=1, stale=1)),
    _scenario("a window of two", (2, 1, 1), Outbox(window=2), RECORD, OTHER, budget=Budget(crashes=1)),
    _scenario(
        "a window of three, one worker", (2, 1, 1, 1), Outbox(window=3), RECORD, workers=1, budget=Budget(crashes=1)
    ),
    _scenario("several messages in a commit", (2, 1), Outbox(window=2), OTHER, group=2, budget=Budget(crashes=1)),
    _scenario("more messages than the window holds", (2, 1), INLINE, RECORD, OTHER, group=2, budget=Budget(crashes=1)),
    _scenario("staged outputs, lost writes", (1, 1), STAGED, OTHER, LATE, budget=Budget(unknown=1)),
    _scenario("staged outputs, repeated writes", (1, 1), STAGED, OTHER, GONE, OWN, budget=Budget(1, repeated=1)),
    _scenario("marking by idle workers", (2, 1), INLINE, RECORD, OTHER, budget=Budget(crashes=1), marking=True),
    _scenario("processes that remember tokens", (2, 1), INLINE, RECORD, OTHER, budget=Budget(crashes=1), tokens=True),
    _scenario(
        "an entity is deleted and comes back", (1, 2), INLINE, RECORD, OTHER, LATE, budget=Budget(1, 1), deletes=True
    ),
    _scenario("everything embedded", (2, 1), Outbox.embedded(), OWN, OTHER, LATE, STALE, budget=Budget(1, 1, 1, 1)),
    _scenario("the sweeper during processing", (1, 1), INLINE, OTHER, LATE, budget=Budget(1, 1, sweeps=1)),
    _scenario(
        "the settler during processing", (1, 1), INLINE, PARKED, LATE, STALE, budget=Budget(1, 1, 0, 1, poisoned=1)
    ),
    _scenario("clean-up, lost and repeated writes", (1,), STAGED, CLEANED, LATE, budget=Budget(1, 1, 1, cleanings=1)),
    _scenario(
        "clean-up, lost writes and stale loads", (1,), STAGED, CLEANED, LATE, budget=Budget(1, 1, 0, 1, cleanings=1)
    ),
    _scenario(
        "clean-up, repeated writes and stale loads", (1,), STAGED, CLEANED, budget=Budget(1, 0, 1, 1, cleanings=1)
    ),
    _scenario("retention during processing", (2, 1), INLINE, RECORD, FORGOTTEN, budget=Budget(crashes=1, forgotten=1)),
    _scenario(
        "two entities that feed a third",
        (1, 1, 0, 0),
        INLINE,
        RECORD,
        OTHER,
        budget=Budget(crashes=1),
        targets=(0, 1, 2, 2),
        feeds=(2, 3, None, None),
    ),
)

STREAM: Final = _scenario(
    "endless stream, inline: 2 workers, 2 messages, copies of one", (2, 1), INLINE, RECORD, OWN, OTHER, STALE, BEHIND,
    budget=EVERYTHING, delayed=0, endless=True,
)  # fmt: skip
"""Every fault but writes that land late, any number of times, for any number of messages; explored by every test run."""

LARGE: Final = (
    _scenario("staged outputs, crash", (2, 1), STAGED, RECORD, GONE, OTHER, budget=Budget(crashes=1)),
    _scenario("two of two, inline", (2, 2), INLINE, RECORD, OTHER, budget=Budget(1, 1, 1)),
    _scenario("three workers, inline", (2, 1), INLINE, RECORD, OTHER, workers=3, budget=Budget(1, 1)),
    _scenario("all faults, inline", (2, 1), INLINE, RECORD, OWN, LATE, STALE, budget=Budget(1, 1, 1, 1)),
    _scenario("two crashes, staged", (2, 1), STAGED, RECORD, GONE, budget=Budget(crashes=2)),
    _scenario("all faults, staged", (1, 1), STAGED, GONE, OWN, LATE, STALE, budget=Budget(1, 1, 1, 1)),
    _scenario("a window of two, lost writes", (2, 1, 1), Outbox(window=2), RECORD, LATE, budget=Budget(1, 1)),
    _scenario("a window of three, crash", (2, 1, 1, 1), Outbox(window=3), RECORD, budget=Budget(crashes=1)),
    _scenario("groups in a window of two, staged", (2, 1, 1), Outbox(window=2, inline_limit=0), GONE, group=2),
    _scenario("groups in a window of two", (2, 1, 1), Outbox(window=2), RECORD, group=2, budget=Budget(crashes=1)),
    _scenario("marking under lost writes", (2, 1), INLINE, RECORD, LATE, budget=Budget(1, 1), marking=True),
    _scenario("the sweeper, staged", (1, 1), STAGED, OTHER, budget=Budget(crashes=1, sweeps=2)),
    _scenario("the settler, staged", (1, 1), STAGED, PARKED, LATE, budget=Budget(1, 1, poisoned=1)),
    _scenario("clean-up, all faults", (1,), STAGED, CLEANED, LATE, budget=Budget(1, 1, 1, 1, cleanings=1)),
    _scenario("clean-up, two messages", (1, 1), STAGED, CLEANED, GONE, budget=Budget(crashes=1, cleanings=1)),
    _scenario(
        "sweeper, settler and retention", (1, 1), INLINE, PARKED, FORGOTTEN,
        budget=Budget(1, 1, sweeps=1, poisoned=1, forgotten=1),
    ),
    _scenario(
        "the talk: 2 workers, 6 deliveries of 3 messages", (2, 2, 2), STAGED, RECORD, GONE, OTHER,
        budget=Budget(crashes=UNLIMITED), linearizable=True,
    ),
    _scenario(
        "the talk, and requests that fail without a crash", (2, 2, 2), STAGED, RECORD, GONE, OTHER,
        budget=Budget(UNLIMITED, UNLIMITED), linearizable=True,
    ),
    _scenario(
        "endless stream, inline: 2 workers, 2 messages", (2, 2), INLINE, RECORD, OWN, OTHER, STALE, BEHIND,
        budget=EVERYTHING, delayed=0, endless=True,
    ),
    _scenario(
        "endless stream, staged: 2 workers, 2 messages", (1, 1), STAGED, GONE, OWN, OTHER, STALE, BEHIND,
        budget=EVERYTHING, delayed=0, endless=True,
    ),
    _scenario(
        "endless stream, a window of two", (1, 1), Outbox(window=2), RECORD, OWN, OTHER, STALE, BEHIND,
        budget=EVERYTHING, delayed=0, endless=True,
    ),
    _scenario(
        "endless stream with a delayed write", (2, 2), INLINE, RECORD, OWN, OTHER, LATE, STALE, BEHIND,
        budget=EVERYTHING, delayed=1, endless=True,
    ),
    _scenario(
        "endless stream: 3 workers, 2 messages", (2, 1), INLINE, RECORD, OTHER, STALE, workers=3,
        budget=EVERYTHING, delayed=0, endless=True,
    ),
    _scenario(
        "endless stream: 2 workers, 3 messages", (1, 1, 1), INLINE, RECORD, OTHER, STALE,
        budget=EVERYTHING, delayed=0, endless=True,
    ),
)  # fmt: skip
