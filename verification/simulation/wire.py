"""Between a process and the world: every request takes time, and what happens to it does not depend on who still waits.

A request whose sender died may arrive all the same, hours later too; so a write is planned on the loop, not in the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from exactlyonce.drivers.overdue import TOO_OLD
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy, Effect, Reply
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    DeletePages,
    DeleteRequests,
    DeleteStaged,
    FindBlobs,
    FindPages,
    FindPagesAbove,
    FoundPages,
    FoundStaged,
    HasPages,
    LoadParked,
    LoadRequests,
    LoadStaged,
    NoteSearch,
    Park,
    ReadBooks,
    Stage,
    Unpark,
    WriteBook,
    WritePage,
)
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.loop import VirtualClock, VirtualLoop
from exactlyonce.values.envelope import EntityRef
from verification.simulation.board_reports import note_numbers
from verification.simulation.history import History
from verification.simulation.weather import Weather

ANY: Final = '"*"'
"""The ETag that fits every document; only broken twins send it."""

_LONG: Final = 0.1  # Seconds.
_READS: Final = (
    LoadEntity,
    FindPages,
    FindPagesAbove,
    FindBlobs,
    HasPages,
    ReadBooks,
    LoadStaged,
    LoadParked,
    LoadRequests,
    LoadCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    HasCompanions,
)
_BEST_EFFORT: Final = (
    *(DeleteStaged, DeletePages, Unpark, NoteSearch),
    *(ReplaceCompanions, DeleteCompanions, DeleteRequests),
)


@dataclass
class Surrounding:
    """What all processes share.

    Attributes:
        arrived: called with each message that reaches its queue.
        unsettled: called with entities whose write may still land: where caretakers could do harm.
        kept: called with each output that was parked, since it is too old to be published.
        expire: when the store deletes a page, by its ETag.
        restores: how often documents were put back. No request from before lands after that.
    """

    loop: VirtualLoop
    weather: Weather
    history: History
    store: MemoryStore
    arrived: Callable[[Output], None]
    unsettled: Callable[[EntityRef], None]
    kept: Callable[[Park], None]
    expire: dict[str, float] = field(default_factory=dict)
    restores: int = 0


class Wire:
    """An `AsyncStore` for one process.

    Args:
        world: what the processes share.
        crash: plans the end of the process.
        dated: called with the store's time of each reply, in whole seconds.
    """

    def __init__(self, world: Surrounding, crash: Callable[[], None], dated: Callable[[datetime], None]) -> None:
        self._world = world
        self._crash = crash
        self._dated = dated
        self._clock = VirtualClock(world.loop)

    async def perform(self, effect: Effect[Reply]) -> Reply | Busy:
        reply: Any = await (self._read(effect) if isinstance(effect, _READS) else self._write(effect))
        if isinstance(effect, _BEST_EFFORT):
            reply = None
        return reply  # type: ignore[no-any-return]

    def _begin(self) -> tuple[asyncio.Future[Any], float]:
        loop, weather = self._world.loop, self._world.weather
        latency = weather.latency(loop.time())
        if weather.happens(weather.climate.crash, "request that met a crash"):
            self._crash()
        return loop.create_future(), latency

    async def _read(self, effect: Any) -> Any:
        waiting, latency = self._begin()
        self._world.loop.call_later(latency, self._serve, waiting, effect)
        return self._dated_reply(await waiting)

    def _serve(self, waiting: asyncio.Future[Any], effect: Any) -> None:
        if waiting.done():
            return  # Nobody waits any more, and reading changes nothing.
        weather, now = self._world.weather, self._world.loop.time()
        if weather.is_down(now):
            waiting.set_result(UNKNOWN)
        elif weather.throttled(now):
            waiting.set_result(Busy())
        elif weather.happens(weather.climate.unread, "read: not answered"):
            waiting.set_result(UNKNOWN)
        else:
            reply = self._applied(effect)
            _witness(weather, effect, reply)
            waiting.set_result(reply)

    async def _write(self, effect: Any) -> Any:
        loop, weather = self._world.loop, self._world.weather
        waiting, latency = self._begin()
        fate = weather.write_fate(loop.time())
        if not isinstance(effect, WriteBook | NoteSearch) and (
            fate is Fate.DELAYED or latency > _LONG or isinstance(effect, Stage)
        ):
            self._world.unsettled(effect.entity)
        self._plan(latency, self._land, waiting, effect, fate)
        return self._dated_reply(await waiting)

    def _plan(self, after: float, land: Callable[..., None], *arguments: Any) -> None:
        """Let a write land, unless documents are put back before."""
        era = self._world.restores

        def landing() -> None:
            if self._world.restores == era:
                land(*arguments)

        self._world.loop.call_later(after, landing)

    def _dated_reply(self, reply: Any) -> Any:
        if reply is not UNKNOWN:
            self._dated(self._clock.now().replace(microsecond=0))
        return reply

    def _land(self, waiting: asyncio.Future[Any], effect: Any, fate: Fate) -> None:
        loop, weather = self._world.loop, self._world.weather
        if waiting.done():  # Its sender died while it was on its way.
            if fate is Fate.BUSY or fate is Fate.LOST_BEFORE:
                return
            weather.counted["write landed after its sender's death"] += 1
        reply: Any = UNKNOWN
        if fate is Fate.ANSWERED:
            reply = self._applied(effect)
        elif fate is Fate.BUSY:
            reply = Busy()
        elif fate is Fate.LOST_AFTER:
            self._applied(_begun(effect))
        elif fate is Fate.REPEATED:
            first = self._applied(effect)
            self._plan(weather.latency(loop.time()), self._land_again, waiting, effect, first)
            return
        elif fate is Fate.DELAYED:
            self._plan(weather.delay(), self._land_late, effect)
        if isinstance(reply, Conflict):
            weather.counted["commit lost to somebody else"] += 1
        if not waiting.done():
            waiting.set_result(reply)

    def _land_again(self, waiting: asyncio.Future[Any], effect: Any, first: Any) -> None:
        reply = self._applied(effect)
        if isinstance(reply, Conflict) and not isinstance(first, Conflict):
            self._world.weather.counted["own success reported as a conflict"] += 1
        if not waiting.done():
            waiting.set_result(reply)

    def _land_late(self, effect: Any) -> None:
        refused = isinstance(self._applied(effect), Conflict)
        self._world.weather.counted["delayed write refused" if refused else "delayed write landed"] += 1

    def _applied(self, effect: Any) -> Any:
        """The reply of the store, after all that its world takes down of the effect."""
        world = self._world
        if isinstance(effect, SaveEntity | SaveBatch):
            effect = replace(effect, etag=self._etag(effect))
        reply = world.store.perform(effect)
        if isinstance(effect, SaveEntity | SaveBatch) and isinstance(reply, Saved):
            world.weather.counted.update(world.history.written(effect.entity.id, effect.document.text))
            if isinstance(effect, SaveBatch):
                world.weather.counted.update(note_numbers(effect, world.history))
        elif isinstance(effect, Park) and effect.entity.type == TOO_OLD:
            world.kept(effect)
        elif isinstance(effect, WritePage):
            page = world.store.library[effect.entity.key].newest(f"page:{effect.page.number}")
            if page is not None:
                world.expire.setdefault(page.etag, world.loop.time() + effect.seconds)
            if reply is OTHER:
                world.weather.counted["page of another history in the way"] += 1
        return reply

    def _etag(self, effect: SaveEntity | SaveBatch) -> str | None:
        """The ETag that a save is conditional on."""
        if effect.etag != ANY:
            return effect.etag
        current = self._world.store.perform(LoadEntity(effect.entity))
        return current.etag if isinstance(current, Loaded) else None


def _begun(effect: Any) -> Any:
    """What of a write took place before its connection broke: pages are deleted one by one."""
    return replace(effect, pages=effect.pages[::2]) if isinstance(effect, DeletePages) else effect


def _witness(weather: Weather, effect: Any, reply: Any) -> None:
    """Count what shows that the faults led somewhere."""
    if reply is BEHIND:
        weather.counted["replica behind the token"] += 1
    elif isinstance(reply, FoundPages):
        if reply.pages:
            weather.counted["pages were read"] += 1
    elif isinstance(effect, ReadBooks):
        weather.counted["books were read"] += 1
    elif isinstance(reply, FoundCompanions):
        if reply.companions and not isinstance(effect, FindOwing):
            again = isinstance(effect, FindEntries)
            weather.counted["duplicate handled again" if again else "duplicate found its record"] += 1
    elif isinstance(reply, FoundStaged):
        weather.counted["kept messages were read"] += bool(reply.documents)
