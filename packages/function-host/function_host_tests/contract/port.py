"""What the suite asks of an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Attributes:
        ok: whether it succeeded. A message is deleted or completed then, and comes again otherwise.
        seen: what the function noted.
        status, headers, body: of an HTTP reply.
    """

    ok: bool
    seen: dict[str, Any] | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""


class Engine(Protocol):
    """What calls the functions of `function_app.py`."""

    async def queue(self, function: str, text: str) -> Outcome:
        """Deliver a message of a storage queue, for the third time: `MESSAGE` has its other properties."""
        ...

    async def bus(self, function: str, *messages: dict[str, Any]) -> Outcome:
        """Deliver messages of Service Bus: `body`, and metadata as the extension names it."""
        ...

    async def timer(self, *, past_due: bool) -> Outcome:
        """Let the timer fire, with what the host sends about a schedule that is not monitored."""
        ...

    async def http(self, function: str, method: str, path: str, body: str = "", **headers: str) -> Outcome:
        """Make a request. The path begins after `/api/`."""
        ...


MESSAGE = {
    "Id": "id-1",
    "DequeueCount": 3,
    "PopReceipt": "receipt-1",
    "InsertionTime": "2026-01-01T12:00:00+00:00",
    "ExpirationTime": "2026-01-08T12:00:00+00:00",
    "NextVisibleTime": "2026-01-01T12:10:00+00:00",
}
