"""Memories of entities: what processes know of them from one lane to the next, within a budget."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from exactlyonce.attempt import Memory

BUDGET: Final = 64 * 1024 * 1024
"""Bytes that a process remembers where nothing else is said."""
_FRAME_BYTES = 500
"""What a memory takes besides its document."""
_PARTS = 3
"""How often the bytes of a document count of which the parts are kept, too."""
_NOTHING = Memory()


class Memories:
    """The latest memories, by the key of the entity. The least recently used leave first; losing one costs a request.

    Args:
        budget: bytes that all documents together may take; 0 for no memories at all.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._memories: OrderedDict[str, Memory] = OrderedDict()
        self.size = 0

    def take(self, key: str, otherwise: Memory = _NOTHING) -> Memory:
        """The memory of an entity, which leaves; or what is known otherwise, if there is none."""
        memory = self._memories.pop(key, None)
        if memory is None:
            return otherwise
        self.size -= _size(memory)
        return memory

    def keep(self, key: str, memory: Memory) -> None:
        """Keep a memory, unless it says nothing or is larger than the budget."""
        self.take(key)
        if memory.saved is None or _size(memory) > self._budget:
            return
        self._memories[key] = memory
        self.size += _size(memory)
        while self.size > self._budget:
            _, left = self._memories.popitem(last=False)
            self.size -= _size(left)

    def clear(self) -> None:
        """Forget all."""
        self._memories.clear()
        self.size = 0


def _size(memory: Memory) -> int:
    saved = memory.saved
    if saved is None:
        return _FRAME_BYTES
    return _FRAME_BYTES + saved.document.size * (1 if saved.parts is None else _PARTS)
