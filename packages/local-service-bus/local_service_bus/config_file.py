"""A topology as a file: the JSON that Microsoft's own emulator of the service reads (`Config.json`).

What the file may say and the endpoint cannot do is refused by name: SQL filters, actions, forwarding.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_pascal

from local_service_bus.topology import (
    STANDARD_BYTES,
    BadTopologyError,
    CorrelationFilter,
    Queue,
    Subscription,
    Topic,
    Topology,
)


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_pascal, extra="forbid", frozen=True)


class _Entrance(_Part):
    default_message_time_to_live: timedelta | None = None
    requires_duplicate_detection: bool = False
    duplicate_detection_history_time_window: timedelta = timedelta(minutes=10)
    max_message_size_in_kilobytes: int | None = None

    def duplicate_window(self) -> float | None:
        """Seconds; None without duplicate detection."""
        return (
            self.duplicate_detection_history_time_window.total_seconds() if self.requires_duplicate_detection else None
        )

    def max_bytes(self) -> int:
        """The longest message."""
        return (
            STANDARD_BYTES if self.max_message_size_in_kilobytes is None else self.max_message_size_in_kilobytes * 1024
        )


class _Holding(_Part):
    dead_lettering_on_message_expiration: bool = False
    default_message_time_to_live: timedelta | None = None
    lock_duration: timedelta = timedelta(minutes=1)
    max_delivery_count: int = 10
    requires_session: bool = False
    forward_to: Literal[""] = ""
    forward_dead_lettered_messages_to: Literal[""] = ""

    def settings(self) -> dict[str, Any]:
        """As queues and subscriptions take them."""
        return {
            "lock_duration": self.lock_duration.total_seconds(),
            "max_delivery_count": self.max_delivery_count,
            "requires_session": self.requires_session,
            "time_to_live": _seconds(self.default_message_time_to_live),
            "dead_letter_on_expiry": self.dead_lettering_on_message_expiration,
        }


class _QueueProperties(_Entrance, _Holding):
    pass


class _Queue(_Part):
    name: str
    properties: _QueueProperties = _QueueProperties()

    def read(self) -> Queue:
        """As the endpoint takes it."""
        given = self.properties
        return Queue(
            self.name, duplicate_window=given.duplicate_window(), max_bytes=given.max_bytes(), **given.settings()
        )


class _CorrelationFilter(_Part):
    content_type: str | None = None
    correlation_id: str | None = None
    label: str | None = None
    message_id: str | None = None
    reply_to: str | None = None
    reply_to_session_id: str | None = None
    session_id: str | None = None
    to: str | None = None
    properties: dict[str, str | int | float | bool] = Field(default_factory=dict)

    def read(self, rule: str) -> CorrelationFilter:
        """As the endpoint takes it; `rule` is its name."""
        return CorrelationFilter(subject=self.label, rule=rule, **self.model_dump(exclude={"label"}))


class _RuleProperties(_Part):
    filter_type: Literal["Correlation"] = "Correlation"
    correlation_filter: _CorrelationFilter

    @model_validator(mode="before")
    @classmethod
    def refuse_sql(cls, given: Any) -> Any:
        """Say what is wrong with a SQL filter, and not only that some word is not known."""
        if isinstance(given, dict) and (given.get("FilterType") == "Sql" or "SqlFilter" in given or "Action" in given):
            raise ValueError("the endpoint has no SQL filters and no actions; use a correlation filter")
        return given


class _Rule(_Part):
    name: str
    properties: _RuleProperties


class _Subscription(_Part):
    name: str
    properties: _Holding = _Holding()
    rules: tuple[_Rule, ...] = ()

    def read(self) -> Subscription:
        """As the endpoint takes it."""
        filters = tuple(rule.properties.correlation_filter.read(rule.name) for rule in self.rules)
        return Subscription(self.name, filters=filters, **self.properties.settings())


class _Topic(_Part):
    name: str
    properties: _Entrance = _Entrance()
    subscriptions: tuple[_Subscription, ...] = ()

    def read(self) -> Topic:
        """As the endpoint takes it."""
        given = self.properties
        return Topic(
            self.name,
            tuple(subscription.read() for subscription in self.subscriptions),
            duplicate_window=given.duplicate_window(),
            time_to_live=_seconds(given.default_message_time_to_live),
            max_bytes=given.max_bytes(),
        )


class _Namespace(_Part):
    name: str = ""
    queues: tuple[_Queue, ...] = ()
    topics: tuple[_Topic, ...] = ()


class _UserConfig(_Part):
    namespaces: tuple[_Namespace, ...]
    logging: dict[str, Any] = Field(default_factory=dict)


class _File(_Part):
    user_config: _UserConfig


def read_topology(path: Path) -> Topology:
    """Read a topology.

    Raises:
        BadTopologyError: for a file that is not there or not right; the text names each place.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadTopologyError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        namespaces = _File.model_validate_json(text).user_config.namespaces
    except ValidationError as error:
        raise BadTopologyError(f"{path} is no topology:\n{_places(error.errors())}") from error
    if len(namespaces) != 1:
        raise BadTopologyError(f"{path} has {len(namespaces)} namespaces; the endpoint is exactly one.")
    namespace = namespaces[0]
    return Topology(
        tuple(queue.read() for queue in namespace.queues), tuple(topic.read() for topic in namespace.topics)
    )


def _places(errors: Sequence[Any]) -> str:
    return "\n".join(f"  {'.'.join(str(step) for step in error['loc']) or 'file'}: {error['msg']}" for error in errors)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
