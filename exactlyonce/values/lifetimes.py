"""Lifetimes: how long copies of a message may arrive, and how long the proof of its processing is kept.

The receiving entity recognizes a copy by a proof: a mark in the ledger or in a page, a co-located record or a stream entry. All
proofs go, by age. A copy may come later: it waits in a queue, in a poison queue or among dead letters, is parked and requeued,
is owed by an entity without a sweep, or is sent again by a stream that handles a late copy. These waits add up over as many
hops as an application has, so no retention outlasts all waits. Therefore age is judged at arrival, by the time in all copies:

    the message came about        is judged up to here            its proof may be gone
    |-----------------------------------|---------------------------|------------------> time
    time        <= a day, if the        oldest_judged               retention after its time, or after the commit
                sender's clock is ahead

An unknown message older than `oldest_judged` is refused, from whatever source (fail closed). Its first copy was committed, if
at all, at most a day before its time, and the proof stays for the retention: a mark after the time of a timed message, any
other proof after the commit. So a processed message that is judged is recognized, however late it comes. Clocks of senders
decide how often a good message is refused, never whether a message is applied twice.
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
    """A duration from ISO 8601 or seconds. Years and months are refused: their length varies, and `P10M` is a slip.

    >>> duration("P1DT30M")
    datetime.timedelta(days=1, seconds=1800)
    >>> duration("90") == duration(90)
    True

    Raises:
        ValueError: the value is neither, negative, or longer than a hundred years.
    """
    length = None
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        value = float(value)
    if isinstance(value, timedelta):
        length = value
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LONGEST.total_seconds():
        length = timedelta(seconds=value)
    elif isinstance(value, str) and (parts := _DURATION.fullmatch(value)):
        length = timedelta(**{name: float(part) for name, part in parts.groupdict().items() if part})
    if length is None or not timedelta(0) <= length <= _LONGEST:
        raise ValueError(
            'has to be an ISO 8601 duration such as "P30D" or "PT10M", or seconds; not over a hundred years'
        )
    return length


Duration = Annotated[timedelta, BeforeValidator(duration)]
Positive = Annotated[Duration, Field(gt=timedelta(0))]
"""Longer than zero."""


RETENTION: Final = timedelta(days=30)
"""Default for how long an application remembers messages."""
DELIVERY_LIMIT: Final = timedelta(days=7)
"""Default for how long a queue keeps a message."""
AHEAD: Final = timedelta(days=1)
"""How far ahead of the store's time the `time` of a message may be."""
CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""Largest difference between the times of two simultaneous replies of the store."""
Expiry = Literal["job", "store"]
"""The deleter of pages: the clean-up job, which reports deletions, or the store."""
SETTLING_IN: Final = timedelta(days=1)
"""Time after a change in which every process hears of it, and every earlier job ends."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an application remembers messages, as the ownership document in its library container states.

    The retention may change while processes judge by it. Judges have to assume the shorter retention as soon as it may be in
    force, and deleters the longer retention for as long as a process may judge by it.

    Attributes:
        current: the retention in force, or coming into force.
        previous: the retention before the change; None if it never changed.
        changed: the store's time of the change; None if it never changed.
    """

    current: timedelta = RETENTION
    previous: timedelta | None = None
    changed: datetime | None = None

    def kept(self, now: datetime) -> timedelta:
        """Age from which the proof of a message may be deleted. Here and below the present is by the store's time."""
        if self.previous is not None and self.changed is not None and now < self.changed + SETTLING_IN:
            return max(self.current, self.previous)
        return self.current

    def judged(self, now: datetime) -> timedelta:
        """The retention by which messages are judged.

        After a longer retention is set, older pages keep the time to live of the previous retention, however long ago the
        change was. So the previous retention goes on, until a message judged by more came about after every process had heard
        of the change, and every earlier job had ended.
        """
        if self.previous is None or self.changed is None:
            return self.current
        return min(self.current, max(self.previous, now - self.changed - SETTLING_IN))

    def settled(self, now: datetime) -> bool:
        """Whether the last change is wholly in force."""
        return self.kept(now) == self.judged(now) == self.current

    def changed_to(self, new: timedelta, now: datetime) -> Retention:
        """The retention after a change that begins now.
        Raises `ConfigurationError`: the previous change is not wholly in force yet."""
        if not self.settled(now):
            longer = self.previous is not None and self.current > self.previous
            until = (self.changed or now) + SETTLING_IN + (self.current if longer else timedelta(0))
            raise ConfigurationError(
                f"The retention is still changing from {self.previous} to {self.current}. Wait until {until.isoformat()}, then "
                "change it again."
            )
        return self if new == self.current else Retention(new, self.current, now)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long messages of an application may live.

    Attributes:
        retention: how long the application remembers messages.
        delivery_limit: how long a queue keeps a message; a poison queue keeps it for as long again.
        expiry: the deleter of pages.

    Raises:
        ConfigurationError: the retention leaves no time to send messages.
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
        """Age above which an unknown message is refused: its proof may be gone."""
        return self.retention.judged(now) - AHEAD - CLOCK_TOLERANCE

    def send_limit(self, now: datetime) -> timedelta:
        """Age above which no message is sent under its identity: after its queues, it could be too old."""
        return self._sendable(self.retention.judged(now))

    def page_lifetime(self, now: datetime) -> timedelta:
        """How long the store keeps a page after the time of its newest mark: beneath or in place of the clean-up job."""
        kept = self.retention.kept(now)
        return 2 * kept if self.expiry == "job" else kept + AHEAD

    def refusal(self, time: datetime | None, now: datetime) -> MessageError | None:
        """Why an unknown message cannot be accepted as new; None if it can.

        Args:
            time: time at which the message came about, as in all copies.
            now: the present, by the store's time, later than the search for its proof.
        """
        if time is None:
            return UndatedMessage(
                "It has no time, so it may be a copy of a message that was processed long ago. Send every copy with the time "
                "at which the message came about; an adapter may take the time from the body."
            )
        age = now - time
        if age < -AHEAD:
            return MessageFromTheFuture(
                f"Its time, {time.isoformat()}, is {-age} ahead of the store's, and at most {AHEAD} is taken. Set the clock of "
                "its sender."
            )
        if age > (limit := self.oldest_judged(now)):
            return TooOldToJudge(
                f"It came about {age} ago, at {time.isoformat()}. Above {limit} the proof of processing may have been "
                "cleaned up, so the message is not applied. If it was never processed, send a new message (requeue --as-new)."
            )
        return None

    def _sendable(self, retention: timedelta) -> timedelta:
        return retention - AHEAD - CLOCK_TOLERANCE - 2 * self.delivery_limit
