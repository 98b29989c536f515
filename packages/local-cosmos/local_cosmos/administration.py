"""What can be asked of a running emulator besides being Cosmos DB: faults, lag, time, and what it has seen.

`RunningEmulator` (same process) and `AdminClient` (over HTTP) both do this; demo and tests may use either.
"""

from __future__ import annotations

from typing import Protocol

from local_cosmos.semantics.faults import FaultCounters, FaultRule
from local_cosmos.semantics.history import AcceptedWrite
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.request_log import LoggedRequest, Total


class Administration(Protocol):
    """The administration of an emulator. Methods block and may be called from any thread."""

    endpoint: str
    """`http://127.0.0.1:{port}/`, for a client of Cosmos DB."""

    key: str
    """The account's master key, in base64."""

    def add_fault(self, rule: FaultRule) -> int:
        """Arm a rule; returns its id."""

    def faults(self) -> list[FaultCounters]:
        """All rules with their counters."""

    def remove_fault(self, rule_id: int) -> None:
        """Disarm a rule and let go what hangs by it; an unknown id is no error."""

    def clear_faults(self) -> None:
        """Disarm all rules and let go what hangs."""

    def delayed_writes(self) -> int:
        """How many delayed writes wait."""

    def release_delayed_writes(self, database: str | None = None, fault: int | None = None) -> int:
        """Apply delayed writes of a database, or of all, now; only those that one rule caught, if its id is given, also
        after it was disarmed. Returns how many there were."""

    def set_lag(self, database: str, container: str | None = None, lag: Lag | None = None) -> None:
        """Let the replicas of a container, or of a whole database, lag from now on; without `lag` they no longer do."""

    def split(self, database: str, container: str, range_id: str) -> list[str]:
        """Split a physical partition in two; requests that name the old range get 410/1002. Returns the new ids."""

    def set_latency(self, milliseconds: float) -> None:
        """Let every request for items take so much longer."""

    def now(self) -> float:
        """The server's time, in seconds since 1970."""

    def advance_clock(self, seconds: float) -> float:
        """Move the server's time forward; returns the new time, in seconds since 1970."""

    def requests(self, after: int = 0) -> list[LoggedRequest]:
        """The request log after number `after`."""

    def last_request(self) -> int:
        """The number of the last request; 0 before the first. `requests` after it returns those to come."""

    def totals(self) -> list[Total]:
        """Sums over all requests for items, by database, container and operation."""

    def history(self, database: str | None = None, container: str | None = None, after: int = 0) -> list[AcceptedWrite]:
        """Every accepted write after sequence number `after`, of one database or container if named."""
