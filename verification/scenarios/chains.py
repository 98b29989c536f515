"""Chains: an entity whose outputs are numbered messages for another entity, which publishes in its turn.

The first two messages are for the first entity. What it sends for each of them is, by the number that its commit gave out, one
of two messages for the second entity.
"""

from __future__ import annotations

from typing import Final

from exactlyonce import Outbox
from verification.scenarios.outbox import LATE, OTHER, STALE
from verification.world.outbox_handler import CHAIN
from verification.world.scenario import Budget, Scenario

FOREIGN: Final = (None, None)
NUMBERED: Final = (("a", 1), ("a", 2))
_FED: Final = ((CHAIN, 1), (CHAIN, 2)) * 2


def chain(
    name: str, copies: tuple[int, int], *seen: str, places: tuple[object, object] = NUMBERED, **more: object
) -> Scenario:
    """A chain of two entities.

    Args:
        name: for reports.
        copies: of each message for the first entity.
        seen: what has to be seen somewhere.
        places: of these messages.
        more: other attributes of the scenario.
    """
    given: dict[str, object] = {"strategy": Outbox(window=1), **more}
    return Scenario(
        name,
        (*copies, 0, 0, 0, 0),
        targets=(0, 0, 1, 1, 1, 1),
        places=(*places, *_FED),  # type: ignore[arg-type]
        feeds=(2, 4, None, None, None, None),
        chained=True,
        witnesses=frozenset(seen),
        **given,  # type: ignore[arg-type]
    )


SMALL: Final = (
    chain("chain: crashes and stale reads", (2, 1), STALE, workers=1, budget=Budget(crashes=1, stale=1)),
    chain("chain: unknown replies", (1, 1), LATE, workers=1, budget=Budget(crashes=1, unknown=1)),
    chain("chain: two workers", (1, 1), OTHER, budget=Budget(crashes=1)),
    chain("chain: foreign messages first", (1, 1), LATE, workers=1, places=FOREIGN, budget=Budget(unknown=1)),
)

LARGE: Final = (
    chain("chain: two workers, every fault", (2, 1), OTHER, LATE, STALE, budget=Budget(1, 1, 1, 1)),
    chain("chain: staged outputs", (1, 1), OTHER, LATE, strategy=Outbox(window=1, inline_limit=0), budget=Budget(1, 1)),
)
