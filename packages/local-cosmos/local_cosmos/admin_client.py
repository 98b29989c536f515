"""The administration of an emulator in another process, over its admin endpoints."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode

from local_cosmos.protocol.admin import LARGEST_ANSWER, as_json
from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.semantics.faults import FaultCounters, FaultRule
from local_cosmos.semantics.history import AcceptedWrite
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.request_log import LoggedRequest, Total
from local_cosmos.values import JsonObject

_TIMEOUT_SECONDS: Final = 600


class AdminClient:
    """Talks to an emulator that was started with `--admin`; methods block and may be called from any thread.

    Args:
        endpoint: As the emulator printed it at its start.
        key: The account's master key, for those who ask this object for it; the admin endpoints need none.
    """

    def __init__(self, endpoint: str, key: str = WELL_KNOWN_KEY) -> None:
        self.endpoint = endpoint
        self.key = key

    def add_fault(self, rule: FaultRule) -> int:
        """Arm a rule; returns its id."""
        return int(self._ask("POST", "faults", as_json(rule))["id"])

    def faults(self) -> list[FaultCounters]:
        """All rules with their counters."""
        return [
            FaultCounters(fault["id"], _rule(fault["rule"]), fault["matched"], fault["hit"])
            for fault in self._ask("GET", "faults")["faults"]
        ]

    def remove_fault(self, rule_id: int) -> None:
        """Disarm a rule and let go what hangs by it; an unknown id is no error."""
        self._ask("DELETE", f"faults/{rule_id}")

    def clear_faults(self) -> None:
        """Disarm all rules and let go what hangs."""
        self._ask("DELETE", "faults")

    def delayed_writes(self) -> int:
        """How many delayed writes wait."""
        return int(self._ask("GET", "delayed")["waiting"])

    def release_delayed_writes(self, database: str | None = None, fault: int | None = None) -> int:
        """Apply delayed writes of a database, or of all, now; only those that one rule caught, if its id is given, also
        after it was disarmed. Returns how many there were."""
        return int(self._ask("POST", "delayed", {"database": database, "fault": fault})["released"])

    def set_lag(self, database: str, container: str | None = None, lag: Lag | None = None) -> None:
        """Let the replicas of a container, or of a whole database, lag from now on; without `lag` they no longer do."""
        self._ask("POST", "lag", {"database": database, "container": container, **as_json(lag or Lag())})

    def split(self, database: str, container: str, range_id: str) -> list[str]:
        """Split a physical partition in two; requests that name the old range get 410/1002. Returns the new ids."""
        place = {"database": database, "container": container, "range": range_id}
        return [str(range_id) for range_id in self._ask("POST", "split", place)["ranges"]]

    def set_latency(self, milliseconds: float) -> None:
        """Let every request for items take so much longer."""
        self._ask("POST", "latency", {"milliseconds": milliseconds})

    def now(self) -> float:
        """The server's time in seconds since 1970."""
        return float(self._ask("GET", "clock")["now"])

    def advance_clock(self, seconds: float) -> float:
        """Move the server's time forward; returns the new time in seconds since 1970."""
        return float(self._ask("POST", "clock", {"advance": seconds})["now"])

    def requests(self, after: int = 0) -> list[LoggedRequest]:
        """The request log after number `after`."""
        return [LoggedRequest(**entry) for entry in self._pages("requests", "requests", "n", after)]

    def last_request(self) -> int:
        """The number of the last request; 0 before the first. `requests` after it returns those to come."""
        return int(self._ask("GET", "requests?limit=0")["last"])

    def totals(self) -> list[Total]:
        """Sums over all requests for items, by database, container and operation."""
        return [Total(**total) for total in self._ask("GET", "totals")["totals"]]

    def history(self, database: str | None = None, container: str | None = None, after: int = 0) -> list[AcceptedWrite]:
        """Every accepted write after sequence number `after`, of one database or container if named."""
        chosen = {name: value for name, value in (("database", database), ("container", container)) if value}
        return [AcceptedWrite(**write) for write in self._pages("history", "writes", "sequence", after, **chosen)]

    def _pages(self, endpoint: str, name: str, number: str, after: int, **chosen: str) -> Iterator[dict[str, Any]]:
        """All entries of a log, one answer after the other."""
        full = True
        while full:
            entries = self._ask("GET", f"{endpoint}?{urlencode({'after': after, **chosen})}")[name]
            yield from entries
            full = len(entries) == LARGEST_ANSWER
            after = entries[-1][number] if full else after

    def _ask(self, verb: str, path: str, body: JsonObject | None = None) -> JsonObject:
        request = urllib.request.Request(  # noqa: S310  # The endpoint is the emulator's.
            f"{self.endpoint}_admin/{path}", json.dumps(body).encode() if body is not None else None, method=verb
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                result: JsonObject = json.load(answer)
                return result
        except HTTPError as error:
            with error:
                raise ValueError(f"The emulator refuses {verb} {path}: {error.read().decode()}") from error


def _rule(fields: dict[str, Any]) -> FaultRule:
    return FaultRule(**fields | {"operations": tuple(fields["operations"])})
