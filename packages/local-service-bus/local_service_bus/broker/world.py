"""What the broker is given: time, ids, and somebody to tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from local_service_bus.broker.history import History


@dataclass(frozen=True, slots=True)
class World:
    """The broker's surroundings.

    Attributes:
        now: Seconds since 1970.
        new_token: A lock token that was never given before.
    """

    now: Callable[[], float]
    new_token: Callable[[], UUID]
    history: History
