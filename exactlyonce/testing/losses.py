"""Lost replies of the store, as tests ask for them."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal

from exactlyonce.stores.memory.trouble import Fate, NoTrouble

Lost = Literal["reply", "request"]
_FATES: Final[dict[Lost | None, Fate]] = {"reply": Fate.LOST_AFTER, "request": Fate.LOST_BEFORE, None: Fate.ANSWERED}


class Losses(NoTrouble):
    """Loses what is planned, and nothing else.

    Attributes:
        planned: what is lost of each of the next writes; None for nothing.
    """

    def __init__(self) -> None:
        self.planned: deque[Lost | None] = deque()

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        return _FATES[self.planned.popleft()] if self.planned else Fate.ANSWERED
