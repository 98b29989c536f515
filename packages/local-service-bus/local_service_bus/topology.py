"""Which queues, topics and subscriptions the endpoint has, and with which settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

STANDARD_BYTES: Final = 256 * 1024
"""The longest message of the standard tier."""

_RESERVED: Final = ("/", "$", "\\", "?", "#", "@")


class BadTopologyError(ValueError):
    """A topology that the endpoint cannot have; the text says which part and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a queue and a subscription have in common.

    Attributes:
        name: Case does not count.
        lock_duration: Seconds for which a message, or a session, is locked.
        max_delivery_count: Failed deliveries after which a message becomes a dead letter.
        requires_session: True if every message belongs to a session.
        time_to_live: Seconds until a message expires, unless its own time is shorter; None for never.
        dead_letter_on_expiry: True if what expires becomes a dead letter; otherwise it is gone.
    """

    name: str = field(kw_only=False)
    lock_duration: float = 60.0
    max_delivery_count: int = 10
    requires_session: bool = False
    time_to_live: float | None = None
    dead_letter_on_expiry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(Holding):
    """A queue.

    Attributes:
        duplicate_window: Seconds for which message ids are remembered; None without duplicate detection.
        max_bytes: The longest message, as it is encoded.

    Raises:
        BadTopologyError: for a setting that the service would refuse.
    """

    duplicate_window: float | None = None
    max_bytes: int = STANDARD_BYTES

    def __post_init__(self) -> None:
        """Refuse what no queue can be."""
        _check_holding(f"Queue {self.name!r}", self)
        _check_entrance(f"Queue {self.name!r}", self.duplicate_window, self.max_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationFilter:
    """Lets a message pass that equals it in everything it names.

    Attributes:
        correlation_id, message_id, to, reply_to, subject, session_id, reply_to_session_id, content_type: None for any.
        properties: Application properties.
        rule: The name of the rule; None for one of the endpoint's choice.
    """

    correlation_id: str | None = None
    message_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    subject: str | None = None
    session_id: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    rule: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Holding):
    """A subscription of a topic.

    Attributes:
        filters: A message passes if one of them lets it; without any, all pass.

    Raises:
        BadTopologyError: for a setting that the service would refuse, and for a filter of another kind.
    """

    filters: tuple[CorrelationFilter, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no subscription can be."""
        _check_holding(f"Subscription {self.name!r}", self)
        for item in self.filters:
            if not isinstance(item, CorrelationFilter):
                raise BadTopologyError(
                    f"Subscription {self.name!r}: the endpoint knows correlation filters only, not {type(item).__name__}."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic.

    Attributes:
        name: Case does not count.
        subscriptions: Each gets its own copy of what passes its filters.
        duplicate_window: Seconds for which message ids are remembered; None without duplicate detection.
        time_to_live: Seconds until a message expires, unless a shorter time is given elsewhere; None for never.
        max_bytes: The longest message, as it is encoded.

    Raises:
        BadTopologyError: for a setting that the service would refuse.
    """

    name: str = field(kw_only=False)
    subscriptions: tuple[Subscription, ...] = field(default=(), kw_only=False)
    duplicate_window: float | None = None
    time_to_live: float | None = None
    max_bytes: int = STANDARD_BYTES

    def __post_init__(self) -> None:
        """Refuse what no topic can be."""
        place = f"Topic {self.name!r}"
        _check_name(place, self.name)
        _check_entrance(place, self.duplicate_window, self.max_bytes)
        _check_positive(place, "time_to_live", self.time_to_live)
        _check_names(f"{place}: subscription", (subscription.name for subscription in self.subscriptions))


@dataclass(frozen=True, slots=True)
class Topology:
    """All entities.

    Raises:
        BadTopologyError: if two have one name; queues and topics share their names.
    """

    queues: tuple[Queue, ...] = ()
    topics: tuple[Topic, ...] = ()

    def __post_init__(self) -> None:
        """Refuse names that are there twice."""
        _check_names("Entity", [queue.name for queue in self.queues] + [topic.name for topic in self.topics])


def _check_holding(place: str, settings: Holding) -> None:
    _check_name(place, settings.name)
    _check_positive(place, "lock_duration", settings.lock_duration)
    _check_positive(place, "time_to_live", settings.time_to_live)
    _check_positive(place, "max_delivery_count", settings.max_delivery_count)


def _check_entrance(place: str, duplicate_window: float | None, max_bytes: int) -> None:
    _check_positive(place, "duplicate_window", duplicate_window)
    _check_positive(place, "max_bytes", max_bytes)


def _check_positive(place: str, setting: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise BadTopologyError(f"{place}: {setting} has to be greater than 0, not {value}.")


def _check_name(place: str, name: str) -> None:
    if not name or any(item in name for item in _RESERVED):
        raise BadTopologyError(f"{place}: a name is not empty and has none of {' '.join(_RESERVED)}.")


def _check_names(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise BadTopologyError(f"{kind} {name!r} is there twice; case does not count.")
        seen.add(name.lower())
