"""Trouble of a memory store as a test has it."""

from __future__ import annotations

from exactlyonce.stores.memory.store import Fate, NoTrouble


class Fated(NoTrouble):
    """Writes meet one fate; the others are answered.

    Args:
        fate: of these writes.
        operation: which writes, by the name of the store's method; None for all.
        times: how many of them; None for all.
    """

    def __init__(self, fate: Fate, operation: str | None = None, times: int | None = None) -> None:
        self._fate, self._operation, self._left = fate, operation, times

    def fate(self, operation: str) -> Fate:
        if self._left == 0 or self._operation not in (None, operation):
            return Fate.ANSWERED
        if self._left is not None:
            self._left -= 1
        return self._fate
