"""The scenarios that are explored: small ones by every test run, large ones by `make model`."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.scenarios import Budget, Scenario
from exactlyonce import Outbox

RECORD: Final = "duplicate found its record"
GONE: Final = "staged outputs were gone"
OWN: Final = "own success seen as a conflict"
OTHER: Final = "somebody else's commit won"
LATE: Final = "a delayed write took effect"
STALE: Final = "stale load"
BEHIND: Final = "a replica was behind"

SMALL: Final = (
    Scenario(
        "duplicates, crash, lost and repeated writes",
        (2, 1),
        Outbox(window=1),
        budget=Budget(crashes=1, unknown=1, repeated=1),
        witnesses=frozenset({RECORD, OWN, OTHER, LATE}),
    ),
    Scenario(
        "stale reads",
        (2, 1),
        Outbox(window=1),
        budget=Budget(crashes=1, stale=1),
        witnesses=frozenset({RECORD, OTHER, STALE, BEHIND}),
    ),
    Scenario(
        "a window of two",
        (2, 1, 1),
        Outbox(window=2),
        budget=Budget(crashes=1),
        witnesses=frozenset({RECORD, OTHER}),
    ),
    Scenario(
        "several messages in a commit",
        (2, 1, 1),
        Outbox(window=2),
        group=2,
        witnesses=frozenset({RECORD, OTHER}),
    ),
    Scenario(
        "staged outputs, crash",
        (2, 1),
        Outbox.transaction_id(),
        budget=Budget(crashes=1),
        witnesses=frozenset({RECORD, GONE, OTHER}),
    ),
    Scenario(
        "staged outputs, lost writes",
        (1, 1),
        Outbox.transaction_id(),
        budget=Budget(unknown=1),
        witnesses=frozenset({OTHER, LATE}),
    ),
    Scenario(
        "marking by idle workers",
        (2, 1),
        Outbox(window=1),
        budget=Budget(crashes=1),
        marking=True,
        witnesses=frozenset({RECORD, OTHER}),
    ),
    Scenario(
        "processes that remember tokens",
        (2, 1),
        Outbox(window=1),
        budget=Budget(crashes=1),
        tokens=True,
        witnesses=frozenset({RECORD, OTHER}),
    ),
    Scenario(
        "an entity is deleted and comes back",
        (1, 2),
        Outbox(window=1),
        budget=Budget(crashes=1, unknown=1),
        deletes=True,
        witnesses=frozenset({RECORD, OTHER, LATE}),
    ),
    Scenario(
        "everything embedded",
        (2, 1),
        Outbox.embedded(),
        budget=Budget(crashes=1, unknown=1, repeated=1, stale=1),
        witnesses=frozenset({OWN, OTHER, LATE, STALE}),
    ),
)

LARGE: Final = (
    Scenario("two of two, inline", (2, 2), Outbox(window=1), budget=Budget(crashes=1, unknown=1, repeated=1)),
    Scenario("three workers, inline", (2, 1), Outbox(window=1), workers=3, budget=Budget(crashes=1, unknown=1)),
    Scenario("all faults, inline", (2, 1), Outbox(window=1), budget=Budget(1, 1, 1, 1)),
    Scenario("two crashes, staged", (2, 1), Outbox.transaction_id(), budget=Budget(crashes=2)),
    Scenario("lost writes, staged", (1, 1), Outbox.transaction_id(), budget=Budget(crashes=1, unknown=1)),
    Scenario("all faults, staged", (1, 1), Outbox.transaction_id(), budget=Budget(1, 1, 1, 1)),
    Scenario("a window of two, lost writes", (2, 1, 1), Outbox(window=2), budget=Budget(crashes=1, unknown=1)),
    Scenario("a window of three", (2, 1, 1, 1), Outbox(window=3), budget=Budget(crashes=1)),
    Scenario("groups in a window of two, staged", (2, 1, 1), Outbox(window=2, inline_limit=0), group=2),
    Scenario("groups in a window of two", (2, 1, 1), Outbox(window=2), group=2, budget=Budget(crashes=1)),
    Scenario("marking under lost writes", (2, 1), Outbox(window=1), budget=Budget(crashes=1, unknown=1), marking=True),
)
