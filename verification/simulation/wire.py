"""Between a process and the world: every request takes time, and what happens to it does not depend on who still waits.

A request whose sender died may arrive all the same, hours later too; so a write is planned on the loop, not in the task.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from typing import Any, Final

from exactlyonce.drivers.overdue import TOO_OLD
from exactlyonce.effects import companions, library
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy, Effect, Reply
from exactlyonce.effects.entity import PUBLISHED, Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.store import Fate, MemoryStore
from exactlyonce.testing.loop import VirtualClock, VirtualLoop
from exactlyonce.transports.port import SendReply
from exactlyonce.values.envelope import EntityRef
from verification.simulation.history import History
from verification.simulation.workload import MAX_BYTES

# Trouble by seed: a climate for each episode, drawn anew, so that rare combinations of faults come up; and its weather.
#
# Some climates lack a fault entirely and others have ten times as much of it: averages hide bugs (swarm testing).


HOUR: Final = 3600.0
_WRITES: Final = {
    Fate.LOST_BEFORE: "write: lost",
    Fate.LOST_AFTER: "write: applied, reply lost",
    Fate.REPEATED: "write: sent twice",
    Fate.DELAYED: "write: delayed, reply lost",
}
FAULTS: Final = (
    "crash",
    *_WRITES.values(),
    "read: not answered",
    "read: stale",
    "throttled",
    "latency spike",
    "slow spell",
    "outage",
    "send: lost",
    "send: reply lost",
    "send: late, reply lost",
    "acknowledgement lost",
    "duplicate delivery",
    "queue: out of turn",
    "queue: lost for good",
    "documents put back",
)
"""Everything that is done to the library, by the names it is counted under."""

WITNESSES: Final = (
    "replica behind the token",
    "throttling burst",
    "request that met a crash",
    "sending that met a crash",
    "write landed after its sender's death",
    "delayed write landed",
    "delayed write refused",
    "own success reported as a conflict",
    "commit lost to somebody else",
    "duplicate found its record",
    "duplicate handled again",
    "several messages in one commit",
    "entity deleted",
    "pages were read",
    "page of another history in the way",
    "books were read",
    "kept messages were read",
    "process ended in order",
    "asked in vain",
    "entity saved unchanged",
    "entity swept",
    "staged garbage deleted",
    "page cleaned up",
    "page expired",
    "companion cleaned up",
    "message given up by the host",
    "given up: processed",
    "given up: parked",
    "given up: returned",
    "put aside",
    "too old to be published",
    "made a new message",
    "discarded",
    "requeued: sent",
    "requeued: too old",
    "requeued: not parked",
    "message held",
    "held message handled",
    "handler stops a channel",
    "number given up",
    "came after it was given up",
    "came too late for the one order",
    "source asked to send again",
    "sent again by its source",
)
"""Signs that the faults led into the corners they are meant for. A run without them would prove little."""

LONGEST_DELAY: Final = 3 * HOUR
"""Longest that a write or a send may take to take effect."""


class Climate:
    """How likely what is, for each request unless it says otherwise.

    Attributes:
        lost_before, lost_after, repeated, delayed: fates of a write.
        busy: a request is refused for now.
        unread: a read is not answered.
        stale: a read comes from a replica that is behind, by up to `lag` writes or by all of them.
        spike: a request takes up to `longest_spike` seconds.
        burst, slow: throttling, or slowness, of everything begins.
        slowness: by how much longer everything takes then.
        outage: the store stops answering.
        crash: the process that asks dies soon, and each other one with it by `storm`.
        send_lost, send_unanswered, send_late: fates of a message sent.
        acknowledgement_lost: a finished delivery comes back.
        copies: an accepted message is delivered once more; more than once with the same chance again.
        shuffled: a message for a board reaches it up to an hour late.
    """

    def __init__(self, random: Random, *, slow: bool = False) -> None:
        """Each kind of trouble is missing in every fourth climate. A slow one is so most of the time."""

        def chance(usual: float) -> float:
            return 0.0 if random.random() < 0.25 else usual * 10 ** random.uniform(-1.0, 0.4)  # noqa: PLR2004

        self.lost_before, self.lost_after, self.repeated, self.delayed = map(chance, (0.02, 0.03, 0.03, 0.02))
        self.busy, self.unread, self.stale = map(chance, (0.03, 0.01, 0.1))
        self.lag = random.choice((1, 2, 5, 30))
        self.spike, self.longest_spike = chance(0.002), random.choice((1.0, 60.0, LONGEST_DELAY))
        self.burst, self.slow = chance(0.0006), 0.1 if slow else chance(0.004)
        self.slowness = random.choice((30.0, 100.0) if slow else (100.0, 300.0))
        self.outage, self.crash, self.storm = chance(0.0006), chance(0.004), random.random()
        self.send_lost, self.send_unanswered, self.send_late = map(chance, (0.02, 0.03, 0.01))
        self.acknowledgement_lost, self.copies, self.shuffled = map(chance, (0.03, 0.1, 0.2))


class Weather:
    """Draws what happens to each request, and counts it.

    Args:
        random: the source of chance.
        climate: how likely what is.
        counted: faults by kind, and witnesses of what the faults led to.
    """

    def __init__(self, random: Random, climate: Climate, counted: Counter[str]) -> None:
        self.climate = climate
        self.calm = False
        self.counted = counted
        self._random = random
        self._busy_until = self._slow_until = self._down_until = 0.0
        self._fates = _thresholds(
            (Fate.LOST_BEFORE, climate.lost_before),
            (Fate.LOST_AFTER, climate.lost_after),
            (Fate.REPEATED, climate.repeated),
            (Fate.DELAYED, climate.delayed),
        )

    def happens(self, chance: float, what: str) -> bool:
        """Whether something of this chance happens now; counted if so."""
        if self.calm or not chance or self._random.random() >= chance:
            return False
        self.counted[what] += 1
        return True

    def latency(self, now: float) -> float:
        """Seconds until a request takes effect."""
        chance = self._random.random()
        usual = 0.002 + 0.03 * chance * chance * chance
        if self.calm:
            return usual
        if self.happens(self.climate.slow, "slow spell"):
            self._slow_until = now + 10 ** self._random.uniform(0, 2.5)
        if now < self._slow_until:
            usual *= self.climate.slowness
        if self.happens(self.climate.spike, "latency spike"):
            usual += self.climate.longest_spike * self._random.random()
        return usual

    def is_down(self, now: float) -> bool:
        """Whether the store does not answer at all."""
        if self.happens(self.climate.outage, "outage"):
            self._down_until = now + 10 ** self._random.uniform(0.5, 3.5)
        return now < self._down_until and not self.calm

    def delay(self) -> float:
        """Seconds by which something delayed is late: hardly at all, or hours."""
        return float(min(LONGEST_DELAY, 10 ** self._random.uniform(-2.5, 4.1)))

    def throttled(self, now: float) -> bool:
        """Whether a request is refused, by itself or in a burst."""
        if self.calm:
            return False
        if self.happens(self.climate.burst, "throttling burst"):
            self._busy_until = now + 10 ** self._random.uniform(-1, 1.5)
        return self.happens(0.8 if now < self._busy_until else self.climate.busy, "throttled")

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        """What the store itself does: it answers. The trouble is on the way there; see `Wire`."""
        return Fate.ANSWERED

    def write_fate(self, now: float) -> Fate:
        """The fate of one write."""
        if self.is_down(now):
            return Fate.LOST_BEFORE
        if self.throttled(now):
            return Fate.BUSY
        chance = self._random.random()
        if self.calm or chance >= self._fates[-1][0]:
            return Fate.ANSWERED
        fate = next(fate for threshold, fate in self._fates if chance < threshold)
        self.counted[_WRITES[fate]] += 1
        return fate

    def replica(self, newest: int) -> int:
        """The position of the replica that answers one read."""
        if not newest or not self.happens(self.climate.stale, "read: stale"):
            return newest
        if self._random.random() < 0.1:  # noqa: PLR2004
            return self._random.randrange(newest)
        return max(0, newest - self._random.randint(1, self.climate.lag))


def _thresholds(*chances: tuple[Fate, float]) -> tuple[tuple[float, Fate], ...]:
    total = 0.0
    found = []
    for fate, chance in chances:
        total += chance
        found.append((total, fate))
    return tuple(found)


_STOPPED: Final = '"failing":"'


def note_numbers(effect: SaveBatch, history: History) -> Iterator[str]:
    """Note in the history what an accepted batch reports; yields the names under which it is counted."""
    for item in effect.create:
        if isinstance(item, NumberedMessage):
            if item.held is not None:
                yield "message held"
            elif item.message is None:
                history.gave_up(_spot(effect, item))
                yield "number given up"
            elif item.late:
                yield history.came_late(_spot(effect, item))
    for one, _ in effect.replace:
        if isinstance(one, NumberedMessage):
            if one.late or _spot(effect, one) in history.skipped:
                yield history.came_late(_spot(effect, one))
            else:
                yield "held message handled"
    if _STOPPED in effect.document.text:
        yield "handler stops a channel"


def _spot(effect: SaveBatch, message: NumberedMessage) -> tuple[str, str, int]:
    return effect.entity.id, message.source, message.number


ANY: Final = '"*"'
"""The ETag that fits every document; only broken twins send it."""

_LONG: Final = 0.1  # Seconds.
_READS: Final = (
    *(LoadEntity, library.FindPages, library.FindPagesAbove, library.FindBlobs, library.HasPages, library.ReadBooks),
    *(library.LoadStaged, library.LoadParked, library.LoadRequests, companions.LoadCompanions, companions.FindEntries),
    *(companions.FindNumbered, companions.FindOwing, companions.HasCompanions),
)
_BEST_EFFORT: Final = (
    *(library.DeleteStaged, library.DeletePages, library.Unpark, library.NoteSearch),
    *(companions.ReplaceCompanions, companions.DeleteCompanions, library.DeleteRequests),
)


@dataclass
class Surrounding:
    """What all processes share.

    Attributes:
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
    kept: Callable[[library.Park], None]
    expire: dict[str, float] = field(default_factory=dict)
    restores: int = 0


class Wire:
    """An `AsyncStore` for one process.

    Args:
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
        if not isinstance(effect, library.WriteBook | library.NoteSearch) and (
            fate is Fate.DELAYED or latency > _LONG or isinstance(effect, library.Stage)
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
        world = self._world
        if isinstance(effect, SaveEntity | SaveBatch):
            effect = replace(effect, etag=self._etag(effect))
        reply = world.store.perform(effect)
        if isinstance(effect, SaveEntity | SaveBatch) and isinstance(reply, Saved):
            world.weather.counted.update(world.history.written(effect.entity.id, effect.document.text))
            if isinstance(effect, SaveBatch):
                world.weather.counted.update(note_numbers(effect, world.history))
        elif isinstance(effect, library.Park) and effect.entity.type == TOO_OLD:
            world.kept(effect)
        elif isinstance(effect, library.WritePage):
            page = world.store.library[effect.entity.key].newest(f"page:{effect.page.number}")
            if page is not None:
                world.expire.setdefault(page.etag, world.loop.time() + effect.seconds)
            if reply is library.OTHER:
                world.weather.counted["page of another history in the way"] += 1
        return reply

    def _etag(self, effect: SaveEntity | SaveBatch) -> str | None:
        if effect.etag != ANY:
            return effect.etag
        current = self._world.store.perform(LoadEntity(effect.entity))
        return current.etag if isinstance(current, Loaded) else None


def _begun(effect: Any) -> Any:
    """What of a write took place before its connection broke: pages are deleted one by one."""
    return replace(effect, pages=effect.pages[::2]) if isinstance(effect, library.DeletePages) else effect


def _witness(weather: Weather, effect: Any, reply: Any) -> None:
    if reply is BEHIND:
        weather.counted["replica behind the token"] += 1
    elif isinstance(reply, library.FoundPages):
        if reply.pages:
            weather.counted["pages were read"] += 1
    elif isinstance(effect, library.ReadBooks):
        weather.counted["books were read"] += 1
    elif isinstance(reply, companions.FoundCompanions):
        if reply.companions and not isinstance(effect, companions.FindOwing):
            again = isinstance(effect, companions.FindEntries)
            weather.counted["duplicate handled again" if again else "duplicate found its record"] += 1
    elif isinstance(reply, library.FoundStaged):
        weather.counted["kept messages were read"] += bool(reply.documents)


class SendingWire:
    """An `AsyncTransport` for one process; `crash` as for `Wire`."""

    max_bytes = MAX_BYTES

    def __init__(self, world: Surrounding, crash: Callable[[], None]) -> None:
        self._world = world
        self._crash = crash

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:  # noqa: ARG002
        loop, weather = self._world.loop, self._world.weather
        climate = weather.climate
        latency = weather.latency(loop.time())
        if weather.happens(climate.crash, "sending that met a crash"):
            self._crash()
        answered = True
        for output in outputs:
            if weather.happens(climate.send_lost, "send: lost"):
                answered = False
                continue
            wait = latency
            if weather.happens(climate.send_late, "send: late, reply lost"):
                answered, wait = False, weather.delay()
            elif weather.happens(climate.send_unanswered, "send: reply lost"):
                answered = False
            loop.call_later(wait, self._world.arrived, output)
        await asyncio.sleep(latency)
        return PUBLISHED if answered else UNKNOWN
