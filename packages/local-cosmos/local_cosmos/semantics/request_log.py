"""The log of requests for items: what came, what it cost, whether it changed anything. Bounded; the totals are not."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from itertools import islice

from local_cosmos.semantics.requests import Reply, Request

_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request, written down when its outcome was decided.

    Attributes:
        n: 1, 2, 3, ... in the order of outcomes.
        database, container, operation: What was asked for.
        id: The item; None for a batch, a query, or a body without an id.
        partition_key: The header; None when there was none.
        status, substatus: The answer; None when a fault left no answer.
        charge: Request units, as far as something was executed.
        started, finished: Seconds since the server started.
        applied: True when something was written.
        fault: Id of the rule that hit the request; None for no fault.
        delayed: True for the later execution of a write that a fault delayed; `status` is then what nobody was told.
    """

    n: int
    database: str
    container: str
    operation: str
    id: str | None
    partition_key: str | None
    status: int | None
    substatus: int
    charge: float
    started: float
    finished: float
    applied: bool
    fault: int | None = None
    delayed: bool = False


@dataclass(slots=True)
class Total:
    """Sums over all requests of one operation on one container.

    Attributes:
        applied: How many of them wrote something.
        refused: How many were answered with 400 or more.
        faults: How many a fault hit.
    """

    database: str
    container: str
    operation: str
    requests: int = 0
    applied: int = 0
    refused: int = 0
    faults: int = 0
    charge: float = 0.0


@dataclass(slots=True)
class RequestLog:
    """The last requests, and totals over all.

    Attributes:
        last_number: Of the last request; 0 before the first.
    """

    _entries: deque[LoggedRequest] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _totals: dict[tuple[str, str, str], Total] = field(default_factory=dict)
    last_number: int = 0

    def add(
        self,
        request: Request,
        item: str | None,
        reply: Reply | None,
        *,
        executed: Reply | None,
        times: tuple[float, float],
        fault: int | None = None,
        delayed: bool = False,
    ) -> None:
        """Write a request down.

        Args:
            reply: What is answered; None for nothing.
            executed: What the service did; None for nothing. Differs from `reply` when a fault interferes.
            times: Started and finished, in seconds since the server started.
        """
        self.last_number += 1
        entry = LoggedRequest(
            n=self.last_number,
            database=request.database,
            container=request.container,
            operation=request.operation,
            id=item,
            partition_key=request.partition_key,
            status=reply.status if reply else None,
            substatus=reply.substatus if reply else 0,
            charge=executed.charge if executed else 0.0,
            started=times[0],
            finished=times[1],
            applied=executed is not None and executed.applied,
            fault=fault,
            delayed=delayed,
        )
        self._entries.append(entry)
        self._add_to_total(entry)

    def read(self, after: int = 0, limit: int | None = None) -> list[LoggedRequest]:
        """At most `limit` entries after number `after`, as far as they are still kept."""
        # From the end: most readers ask for the few that are new.
        new = list(islice(reversed(self._entries), max(self.last_number - after, 0)))
        return list(islice(reversed(new), limit))

    def last(self, number: int) -> list[LoggedRequest]:
        """The last entries, the newest first."""
        return list(islice(reversed(self._entries), number))

    def totals(self) -> list[Total]:
        """The sums, by database, container and operation."""
        return [replace(self._totals[key]) for key in sorted(self._totals)]

    def _add_to_total(self, entry: LoggedRequest) -> None:
        key = (entry.database, entry.container, entry.operation)
        total = self._totals.setdefault(key, Total(*key))
        total.requests += not entry.delayed
        total.applied += entry.applied
        total.refused += entry.status is not None and entry.status >= 400  # noqa: PLR2004
        total.faults += entry.fault is not None and not entry.delayed
        total.charge = round(total.charge + entry.charge, 2)
