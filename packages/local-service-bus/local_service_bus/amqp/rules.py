"""Rules on the wire: what a client asks a subscription for, and how they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from proton import Described, ulong

from local_service_bus.broker.refusals import NOT_IMPLEMENTED, RefusedError
from local_service_bus.broker.rules import Filter
from local_service_bus.topology import CorrelationFilter

_RULE: Final = 0x13700000004
_NO_ACTION: Final = 0x13700000005
_FILTERS: Final = {True: 0x1370000007, False: 0x1370000008}
_CORRELATION: Final = 0x1370000009

_FIELDS: Final = {
    "correlation-id": "correlation_id",
    "message-id": "message_id",
    "to": "to",
    "reply-to": "reply_to",
    "label": "subject",
    "session-id": "session_id",
    "reply-to-session-id": "reply_to_session_id",
    "content-type": "content_type",
}
"""Of a correlation filter: as clients name them, in the order in which they are told, and as the topology does."""

_CONSTANTS: Final = {"1=1": True, "1=0": False}
"""The expressions of SQL by which clients ask for everything and nothing."""


def read_filter(description: Mapping[Any, Any]) -> Filter:
    """The filter of a rule that a client adds.

    Raises:
        RefusedError: it has an action, or is an expression of SQL.
    """
    said = {str(name): value for name, value in description.items() if value is not None}
    if "sql-rule-action" in said:
        raise RefusedError(NOT_IMPLEMENTED, "The local endpoint has no actions of rules.")
    if "sql-filter" in said:
        expression = str(said["sql-filter"]["expression"])
        if expression.replace(" ", "") not in _CONSTANTS:
            told = f"The local endpoint has no SQL filters such as {expression!r}, but for 1=1 and 1=0."
            raise RefusedError(NOT_IMPLEMENTED, f"{told} Use a correlation filter.")
        return _CONSTANTS[expression.replace(" ", "")]
    wanted = {str(name): value for name, value in said["correlation-filter"].items()}
    properties = {str(name): value for name, value in (wanted.get("properties") or {}).items()}
    return CorrelationFilter(**{ours: wanted.get(name) for name, ours in _FIELDS.items()}, properties=properties)


def write_rule(name: str, item: Filter) -> Described:
    """A rule as a client reads it: filter, action, name."""
    if isinstance(item, bool):
        told = Described(ulong(_FILTERS[item]), [])
    else:
        properties: dict[Any, Any] = dict(item.properties)
        fields: list[Any] = [getattr(item, ours) for ours in _FIELDS.values()]
        told = Described(ulong(_CORRELATION), [*fields, properties])
    return Described(ulong(_RULE), [told, Described(ulong(_NO_ACTION), []), name])
