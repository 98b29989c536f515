"""What exactly-once costs, counted at the local Cosmos: one message at a time, no trouble, the library's share only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Final, Literal

import azure.functions as func

from demo.stack import Stack, create_containers
from exactlyonce import Destination, Entity, Envelope, Outbox
from exactlyonce.hosting import ExactlyOnce, Settings
from exactlyonce.hosting.config.connections import StorageConnection
from exactlyonce.values.envelope import STABLE_TIME, milliseconds, stable_text
from exactlyonce.values.frozen_json import Json
from handlers.messages import FireAt, Hit, Missed
from handlers.shooting_range import Range, fire_at
from local_cosmos.semantics.request_log import LoggedRequest

_MEASURED: Final = 51
_DUPLICATES: Final = 16
"""Messages of each kind. The first third warms up; what remains of the new ones is a multiple of what leaves for one page."""
_LATENCY_MILLISECONDS: Final = 2
"""Long enough that requests sent side by side overlap at the server."""

Kind = Literal["new", "copy of the latest", "copy whose mark has left"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Means over the measured messages.

    Attributes:
        messages: which.
        kind: of message.
        operations: requests to the store per message.
        limit: operations that the design allows.
        rounds: most requests one after the other before the outputs are published, where nothing is written apart.
        rounds_apart: the same where a page is written; 0 if that never happened.
        charge: request units per message.
    """

    messages: str
    kind: Kind
    operations: float
    limit: float
    rounds: int
    rounds_apart: int
    charge: float


MESSAGES: Final[Mapping[str, Mapping[Kind, float]]] = {
    "with a stable time": {"new": 1.2, "copy of the latest": 1, "copy whose mark has left": 1},
    "foreign": {"new": 2.2, "copy of the latest": 1, "copy whose mark has left": 1},
}
"""By messages the requests that each kind may cost. Without a stable time a message is looked for in pages."""


async def measure(stack: Stack) -> list[Cost]:
    """Measure messages of every kind."""
    stack.cosmos.set_latency(_LATENCY_MILLISECONDS)
    costs: list[Cost] = []
    for number, (name, limits) in enumerate(MESSAGES.items()):
        meter = _Meter(stack, f"costs-{number}", timed=not number)
        try:
            for kind, limit in limits.items():
                costs.append(await meter.measure(name, kind, limit))
        finally:
            await meter.close()
    stack.cosmos.set_latency(0)
    return costs


class _Meter:
    """An application of its own, fed by hand, so that nothing else adds to the count."""

    def __init__(self, stack: Stack, database: str, *, timed: bool) -> None:
        create_containers(stack.cosmos, database)
        self._cosmos = stack.cosmos
        self._database = database
        self._timed = timed
        self._entity = Entity("range", state=Range, container="games", partition_key="/gameId", strategy=Outbox())
        self._entity.handles(FireAt, key=lambda shot: shot.game_id)(fire_at)
        settings = Settings.model_validate(
            {
                "COSMOS__accountEndpoint": stack.cosmos.endpoint,
                "COSMOS__accountKey": stack.cosmos.key,
                "COSMOS__database": database,
            }
        )
        self._once = ExactlyOnce(
            [self._entity],
            destinations=[Destination("costs", receives=(Hit, Missed))],
            settings=settings,
            storage=StorageConnection(stack.storage.connection_string),
        )
        self._fired = 0
        self._times: dict[int, datetime] = {}
        self._seen = 0

    async def measure(self, messages: str, kind: Kind, limit: float) -> Cost:
        """Process messages one at a time and look at the log after each."""
        chains: list[list[LoggedRequest]] = []
        for number in range(_MEASURED if kind == "new" else _DUPLICATES):
            before = self._last_request()
            if kind == "copy of the latest":
                await self._process(self._fired - 1)
            elif kind == "copy whose mark has left":
                await self._process(number)
            else:
                await self._process(self._fired)
                self._fired += 1
            chains.append([request for request in self._cosmos.requests(before) if request.database == self._database])
        return _summed(messages, kind, limit, chains)

    async def close(self) -> None:
        await self._once.close()

    async def _process(self, number: int) -> None:
        data = Json.of({"game_id": "busy", "position": number % 100})
        time = self._times.setdefault(number, datetime.now(timezone.utc))
        envelope = Envelope("costs", f"shot-{number}", "shooting-range.fire-at", data, time)
        if self._timed:
            envelope = replace(envelope, extensions=((STABLE_TIME, stable_text(milliseconds(time))),))
        message = func.QueueMessage(id=envelope.id, body=envelope.to_json().text.encode())
        await self._once.process(message, self._entity)

    def _last_request(self) -> int:
        for request in self._cosmos.requests(self._seen):
            self._seen = request.n
        return self._seen


def _summed(messages: str, kind: Kind, limit: float, chains: Sequence[Sequence[LoggedRequest]]) -> Cost:
    # The first third warms up: a ledger has to fill before marks leave it.
    steady = chains[len(chains) // 3 :]
    rounds = {apart: [_rounds(chain) for chain in steady if _writes_apart(chain) is apart] for apart in (False, True)}
    return Cost(
        messages,
        kind,
        operations=sum(map(len, steady)) / len(steady),
        limit=limit,
        rounds=max(rounds[False], default=0),
        rounds_apart=max(rounds[True], default=0),
        charge=sum(item.charge for chain in steady for item in chain) / len(steady),
    )


def _writes_apart(chain: Sequence[LoggedRequest]) -> bool:
    """Whether the library's partition was written before the commit."""
    return any(item.container == "exactlyonce" and item.applied for item in _until_commit(chain))


def _rounds(chain: Sequence[LoggedRequest]) -> int:
    """How many requests follow one another until the commit is answered; side by side counts once."""
    rounds, free_at = 0, 0.0
    for item in sorted(_until_commit(chain), key=lambda item: item.started):
        if item.started >= free_at:
            rounds += 1
            free_at = item.finished
        else:
            free_at = max(free_at, item.finished)
    return rounds


def _until_commit(chain: Sequence[LoggedRequest]) -> Sequence[LoggedRequest]:
    commit = next((item for item in chain if item.container == "games" and item.applied), None)
    return chain if commit is None else [item for item in chain if item.finished <= commit.finished]
