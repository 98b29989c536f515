"""What a process keeps in memory after very many entities: its resident set after 20,000 to 100,000 with a message each.

The store and the queue keep nothing, so all that could grow is the library's.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.application import Application
from benchmarks.contenders import Contender
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import PUBLISHED, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import HasPages, WriteBook, Written
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import SendReply

ENTITIES: Final = (20_000, 40_000, 60_000, 80_000, 100_000)
MEMORY: Final = 4 * 1024 * 1024
"""Bytes of documents that the process may remember: fewer than those of the fewest entities."""

_TOGETHER: Final = 500
_IN_FLIGHT: Final = 16
_TOKEN: Final = "0:-1#1"  # noqa: S105  # Of a session.


class Sieve:
    """A store without entities, which takes every document and keeps none."""

    async def perform(self, effect: Effect[Any]) -> Any:
        match effect:
            case LoadEntity():
                return Loaded(None, None, 0, _TOKEN)
            case HasPages():
                return False
            case WriteBook():
                return Written(_TOKEN)
            case SaveEntity():
                return Saved("etag", _TOKEN)
            case _:
                raise RuntimeError(f"{type(effect).__name__} has no answer here.")


class Drain:
    """A queue that takes every output and keeps none."""

    max_bytes: Final = 64 * 1024

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        del address, outputs
        return PUBLISHED


async def memory_after(contender: Contender, entities: Sequence[int] = ENTITIES) -> dict[str, int]:
    """KiB of the process after each number of entities, in ascending order."""
    application = Application(contender, Sieve(), Drain(), memory=MEMORY)
    taken: dict[str, int] = {}
    done = 0
    for number in entities:
        while done < number:
            many = range(done, min(done + _TOGETHER, number))
            await application.feed((contender.message(f"game-{game}", 1) for game in many), _IN_FLIGHT)
            await application.settle()
            done = many.stop
        gc.collect()
        taken[str(number)] = _resident()
        print("memory after", number, "entities:", taken[str(number)], "KiB", flush=True)
    application.crash()
    return taken


def _resident() -> int:
    """KiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
