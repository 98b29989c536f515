"""How long a copy of a message may still arrive, and how long the proof that it was processed is kept: one model for all.

The receiving entity recognises a copy by what it keeps of a message, its proof: a mark in the ledger or in a page, a co-located
record or a stream entry. All proofs go, by age. A copy may come later than that: it waits in a queue, in a poison queue or
among dead letters, is parked and requeued, is owed by an entity that nobody swept, or is sent once more by a stream that
handles a late copy again. These waits add up over as many hops as an application has, so no retention is longer than all of
them. Therefore age is judged where a message arrives, by the time that all its copies carry:

    the message came about        is judged up to here            its proof may be gone
    |-----------------------------------|---------------------------|------------------> time
    time        <= a day, if the        oldest_judged               retention after its time, or after the commit
                sender's clock is ahead

A message that is not known and older than `oldest_judged` is refused, whatever brought it (fail closed). Its first copy was
committed, if at all, at most a day before its time, and the proof of that stays for the retention: a mark after the time of a
timed message, any other proof after the commit. So a message that is judged is known if it was processed, however late it
comes. Clocks of senders decide how often a good message is refused, never whether one is applied twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from exactlyonce.errors import ConfigurationError, MessageError, MessageFromTheFuture, TooOldToJudge, UndatedMessage

# Durations as people write them, in settings and files: ISO 8601, or seconds.


_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<weeks>\d{1,5})W)?(?:(?P<days>\d{1,5})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_SECONDS: Final = re.compile(r"\d{1,10}(?:\.\d{1,6})?", re.ASCII)
"""Variables of the environment are text, numbers too."""
_LONGEST: Final = timedelta(days=36_500)


def duration(value: object) -> timedelta:
    """A duration from ISO 8601 or seconds. Years and months are refused: they have no fixed length, and `P10M` is a slip.

    >>> duration("P1DT30M")
    datetime.timedelta(days=1, seconds=1800)
    >>> duration("90") == duration(90)
    True

    Raises:
        ValueError: it is neither, negative, or longer than a hundred years.
    """
    found = None
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        value = float(value)
    if isinstance(value, timedelta):
        found = value
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LONGEST.total_seconds():
        found = timedelta(seconds=value)
    elif isinstance(value, str) and (parts := _DURATION.fullmatch(value)):
        found = timedelta(**{name: float(part) for name, part in parts.groupdict().items() if part})
    if found is None or not timedelta(0) <= found <= _LONGEST:
        raise ValueError(
            'has to be an ISO 8601 duration such as "P30D" or "PT10M", or seconds; not over a hundred years'
        )
    return found


Duration = Annotated[timedelta, BeforeValidator(duration)]
Positive = Annotated[Duration, Field(gt=timedelta(0))]
"""Longer than nothing."""


RETENTION: Final = timedelta(days=30)
"""For how long an application remembers messages unless its settings say otherwise."""
DELIVERY_LIMIT: Final = timedelta(days=7)
"""For how long a queue keeps a message unless its settings say otherwise."""
AHEAD: Final = timedelta(days=1)
"""How far ahead of the store's time the `time` of a message may be."""
CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""By how much the times of two replies of the store may differ that were given at one moment."""
Expiry = Literal["job", "store"]
"""Who deletes pages: the clean-up job, which reports it; or the store by itself."""
SETTLING_IN: Final = timedelta(days=1)
"""Time after a change in which every process hears of it, and every job that began before it ends."""


@dataclass(frozen=True, slots=True)
class Retention:
    """For how long an application remembers messages, as the ownership document in its library container states it.

    It may be changed while processes judge by it. Those who judge have to assume the shorter one as soon as it may be in force,
    and those who delete the longer one for as long as somebody may judge by it.

    Attributes:
        current: in force, or coming into force.
        previous: what it was before; None if it never was another.
        changed: when it was changed, by the store's time; None if it never was.
    """

    current: timedelta = RETENTION
    previous: timedelta | None = None
    changed: datetime | None = None

    def kept(self, now: datetime) -> timedelta:
        """Age from which the proof of a message may be deleted.

        Args:
            now: the present, by the store's time.
        """
        if self.previous is not None and self.changed is not None and now < self.changed + SETTLING_IN:
            return max(self.current, self.previous)
        return self.current

    def judged(self, now: datetime) -> timedelta:
        """The retention by which messages are judged.

        After it was lengthened, a page that was written before has the time to live of the previous one, however long ago the
        change was. So that one goes on, until a message that is judged by more came about when every process had heard of the
        change, and every job that began before it had ended.

        Args:
            now: the present, by the store's time.
        """
        if self.previous is None or self.changed is None:
            return self.current
        return min(self.current, max(self.previous, now - self.changed - SETTLING_IN))

    def settled(self, now: datetime) -> bool:
        """Whether the last change is wholly in force."""
        return self.kept(now) == self.judged(now) == self.current

    def changed_to(self, new: timedelta, now: datetime) -> Retention:
        """The retention after a change that begins now.

        Raises:
            ConfigurationError: the change before is not wholly in force yet.
        """
        if not self.settled(now):
            since = "" if self.changed is None else f", made at {self.changed.isoformat()},"
            raise ConfigurationError(
                f"The change of the retention from {self.previous} to {self.current}{since} is not wholly in force yet, and "
                "another one would have to count with three. Wait: a shorter one is in force after a day, a longer one a day "
                "after it has passed as a whole."
            )
        return self if new == self.current else Retention(new, self.current, now)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long messages of an application may live.

    Attributes:
        retention: for how long it remembers them.
        delivery_limit: for how long a queue keeps one; a poison queue keeps it for as long again.
        expiry: who deletes pages.

    Raises:
        ConfigurationError: the retention leaves no time in which anything could be sent.
    """

    retention: Retention = Retention()
    delivery_limit: timedelta = DELIVERY_LIMIT
    expiry: Expiry = "job"

    def __post_init__(self) -> None:
        shortest = min(self.retention.current, self.retention.previous or self.retention.current)
        if self._sendable(shortest) <= timedelta(0):
            raise ConfigurationError(
                f"A retention of {shortest} is too short for a delivery limit of {self.delivery_limit} "
                "(EXACTLYONCE__deliveryLimit): a message may wait as long in its queue, and once more in a poison queue, and "
                f"is judged up to {AHEAD + CLOCK_TOLERANCE} before the retention ends. Make it longer than "
                f"{AHEAD + CLOCK_TOLERANCE + 2 * self.delivery_limit}."
            )

    def oldest_judged(self, now: datetime) -> timedelta:
        """Age above which a message that is not known is refused: its proof may be gone."""
        return self.retention.judged(now) - AHEAD - CLOCK_TOLERANCE

    def send_limit(self, now: datetime) -> timedelta:
        """Age above which nothing is sent under the identity it has: it could be too old when it has waited in its queues."""
        return self._sendable(self.retention.judged(now))

    def page_lifetime(self, now: datetime) -> timedelta:
        """For how long the store keeps a page after the time of its newest mark: beneath the clean-up job, or in its place."""
        kept = self.retention.kept(now)
        return 2 * kept if self.expiry == "job" else kept + AHEAD

    def refusal(self, time: datetime | None, now: datetime) -> MessageError | None:
        """Why a message that is not known cannot be taken for new; None if it can.

        Args:
            time: when it came about, as all its copies say.
            now: the present, by the store's time, later than the look that did not find it.
        """
        if time is None:
            return UndatedMessage(
                "It has no time, so it may be a copy of a message that was processed long ago. "
                "Send it with the time when it came about, the same in every copy; an adapter may take it from the "
                "body."
            )
        age = now - time
        if age < -AHEAD:
            return MessageFromTheFuture(
                f"Its time, {time.isoformat()}, is {-age} ahead of the store's, and at most {AHEAD} is taken. Set the clock of "
                "its sender."
            )
        if age > (limit := self.oldest_judged(now)):
            return TooOldToJudge(
                f"It came about {age} ago, at {time.isoformat()}. Above {limit} the proof that a message was processed may "
                "have been cleaned up, so it is not applied. If it never was, send it as a new message (requeue --as-new)."
            )
        return None

    def _sendable(self, retention: timedelta) -> timedelta:
        return retention - AHEAD - CLOCK_TOLERANCE - 2 * self.delivery_limit
