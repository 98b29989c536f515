"""Trouble by seed: a climate for each episode, drawn anew, so that rare combinations of faults come up; and its weather.

Some climates lack a fault entirely and others have ten times as much of it: averages hide bugs (swarm testing).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Final

from exactlyonce.stores.memory.store import Fate

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


@dataclass(frozen=True, slots=True)
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

    lost_before: float
    lost_after: float
    repeated: float
    delayed: float
    busy: float
    unread: float
    stale: float
    lag: int
    spike: float
    longest_spike: float
    burst: float
    slow: float
    slowness: float
    outage: float
    crash: float
    storm: float
    send_lost: float
    send_unanswered: float
    send_late: float
    acknowledgement_lost: float
    copies: float
    shuffled: float

    @classmethod
    def draw(cls, random: Random, *, slow: bool = False) -> Climate:
        """A climate; each kind of trouble is missing in every fourth. A slow one is so most of the time."""

        def chance(usual: float) -> float:
            return 0.0 if random.random() < 0.25 else usual * 10 ** random.uniform(-1.0, 0.4)  # noqa: PLR2004

        return cls(
            lost_before=chance(0.02),
            lost_after=chance(0.03),
            repeated=chance(0.03),
            delayed=chance(0.02),
            busy=chance(0.03),
            unread=chance(0.01),
            stale=chance(0.1),
            lag=random.choice((1, 2, 5, 30)),
            spike=chance(0.002),
            longest_spike=random.choice((1.0, 60.0, LONGEST_DELAY)),
            burst=chance(0.0006),
            slow=0.1 if slow else chance(0.004),
            slowness=random.choice((30.0, 100.0) if slow else (100.0, 300.0)),
            outage=chance(0.0006),
            crash=chance(0.004),
            storm=random.random(),
            send_lost=chance(0.02),
            send_unanswered=chance(0.03),
            send_late=chance(0.01),
            acknowledgement_lost=chance(0.03),
            copies=chance(0.1),
            shuffled=chance(0.2),
        )


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
