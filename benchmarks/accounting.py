"""What processing asked of the store: requests, round trips, request units, bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from exactlyonce.drivers.driver import Pause
from exactlyonce.drivers.observer import Delivery, Watch
from exactlyonce.effects.attempt import Again, Memory
from exactlyonce.effects.effect import Begin, Effect, Step, Together
from exactlyonce.effects.entity import Publish
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.stores.cosmos.partition import without_system
from exactlyonce.values.envelope import EntityRef, Envelope, Extensions
from exactlyonce.values.frozen_json import Json
from local_cosmos.administration import Administration
from local_cosmos.semantics.request_log import LoggedRequest

Reply = TypeVar("Reply")
Result = TypeVar("Result")
CONFLICTS: Final = (409, 412)
NO_REQUEST: Final = (Begin, CloseNumbers, FindPaid, OpenNumbers, Pause, Publish, Together)
"""What asks nothing of the store, or hardly ever. The two requests of a `Together` come by themselves."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What was asked of the store.

    Attributes:
        requests: store operations, whatever each carried.
        units: request units.
        conflicts: requests that were refused since somebody else was faster.
        applied: requests that changed something.
    """

    requests: int
    units: float
    conflicts: int
    applied: int

    @classmethod
    def of(cls, requests: Sequence[LoggedRequest]) -> Bill:
        """The sum of these requests."""
        conflicts = sum(request.status in CONFLICTS for request in requests)
        applied = sum(request.applied for request in requests)
        return cls(len(requests), sum(request.charge for request in requests), conflicts, applied)


class Till:
    """Bills for what was asked since the last one. Requests of others in the same account count, too.

    Args:
        cosmos: where the requests go.
        database: whose bytes are counted.
    """

    def __init__(self, cosmos: Administration, database: str) -> None:
        self._cosmos = cosmos
        self._database = database
        self._requests = 0
        self._writes = 0

    def bill(self) -> Bill:
        """The bill for everything since the last one."""
        requests = self._cosmos.requests(self._requests)
        self._requests = max((request.n for request in requests), default=self._requests)
        return Bill.of(requests)

    def means(self, messages: int) -> dict[str, Any]:
        """What each of so many messages took since the last time."""
        bill = self.bill()
        return {
            "requests": round(bill.requests / messages, 4),
            "request units": round(bill.units / messages, 2),
            "bytes written": round(self.written() / messages),
            "conflicts": bill.conflicts,
        }

    def written(self) -> int:
        """Bytes of all documents written since the last time, without what the service adds to them."""
        writes = self._cosmos.history(self._database, after=self._writes)
        self._writes = max((write.sequence for write in writes), default=self._writes)
        return sum(Json.of(without_system(write.document)).size for write in writes if write.document is not None)


class RoundTrips:
    """An observer that counts how many requests followed one another: what latency is paid for. One message at a time.

    Attributes:
        taken: round trips so far; requests that are side by side are one.
        before_publishing: how many there were when the first output went out; None if none did.
    """

    def __init__(self) -> None:
        self.taken: int = 0
        self.before_publishing: int | None = None

    def begin(self) -> None:
        """Begin to count anew, for the next message."""
        self.taken, self.before_publishing = 0, None

    def processing(self, entity: EntityRef, envelope: Envelope) -> AbstractContextManager[Delivery]:  # noqa: ARG002
        return nullcontext()

    def watching(self, entity: EntityRef, deliveries: Sequence[Delivery] | None) -> AbstractContextManager[Watch]:  # noqa: ARG002
        return nullcontext(self)

    def attempts(self, attempt: Callable[[Memory], Step[Result | Again]]) -> Callable[[Memory], Step[Result | Again]]:
        return attempt

    async def perform(self, effect: Effect[Reply], perform: Callable[[Any], Awaitable[Any]]) -> Any:
        if isinstance(effect, Publish) and self.before_publishing is None:
            self.before_publishing = self.taken
        if isinstance(effect, NO_REQUEST):
            return await perform(effect)
        began = self.taken
        reply = await perform(effect)
        self.taken = max(self.taken, began + 1)
        return reply

    def sending(self, destination: str, message_id: str) -> AbstractContextManager[Extensions]:  # noqa: ARG002
        return nullcontext(())

    def charged(self, units: float) -> None:
        """Units are on the bill."""

    def called(self, call: Envelope, received: object) -> None:
        """No call is made."""
