"""The real store, for a clean-up: one that counts what it costs, and one that sends no write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy

from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.layout import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.identity import EntityRef
from spark_jobs.job.configuration import Account, Job, Protocol
from spark_jobs.source.connector import placed
from spark_jobs.source.pacing import Allowance
from spark_jobs.source.port import Meter

_CHARGE: Final = "x-ms-request-charge"
_REQUESTS: Final = frozenset(
    {"read_item", "query_items", "create_item", "replace_item", "execute_item_batch", "delete_item"}
)


@dataclass(frozen=True)
class Place:
    """Where entities and the library's documents are: what Spark gives to each task.

    Attributes:
        account: where.
        database, library: names.
        containers: by entity type.
        meter: counts RU.
        rate: RU per second that this task may spend; None for no limit.
        writes: whether anything is written. If not, a fence counts as held and nothing is deleted, so that a strategy comes
            to the decision that it would come to.
    """

    account: Account
    database: str
    library: str
    containers: tuple[EntityContainer, ...]
    meter: Meter = field(repr=False)
    rate: float | None
    writes: bool

    @classmethod
    def of(cls, job: Job, account: Account, meter: Meter, *, rate: float | None, writes: bool) -> Place:
        """The place of a job."""
        containers = tuple(
            EntityContainer(one.type, one.container, one.partition_key, companions=one.protocol is not Protocol.OUTBOX)
            for one in job.entities
        )
        return cls(account, job.database, job.library, containers, meter, rate, writes)

    def absent(self, entity: EntityRef) -> dict[str, object]:
        """Id and partition key properties of an entity's document, for its tombstone."""
        paths = next(one.paths for one in self.containers if one.type == entity.type)
        return {**placed(paths, list(entity.partition)), "id": entity.id}

    def connect(self) -> MeteredConnection:
        """A connection, to be closed in the event loop that it was used in."""
        return MeteredConnection(self.account, self.database, self.meter, Allowance(self.rate))

    def store(self, connection: CosmosConnection) -> CosmosStore:
        """The store, through a connection."""
        kind = CosmosStore if self.writes else Unsent
        return kind(connection, self.containers, self.library)


class Unsent(CosmosStore):
    """The store, but no write that a clean-up makes is sent: it is answered as if it had been."""

    async def save_entity(self, effect: SaveEntity) -> Saved:
        return Saved(effect.etag or "", None)

    async def delete_staged(self, effect: DeleteStaged) -> None:
        pass


class MeteredConnection(CosmosConnection):
    """A connection that counts what its requests are charged, and keeps to a rate.

    Args:
        account: where.
        database: its name.
        meter: counts RU.
        allowance: RU per second.
    """

    def __init__(self, account: Account, database: str, meter: Meter, allowance: Allowance) -> None:
        super().__init__(account.endpoint, database, key=account.key, client_id=account.client_id)
        self._meter = meter
        self._allowance = allowance

    async def turn(self) -> None:
        """Wait until more may be spent. In a thread: requests under way have their time limits."""
        await asyncio.to_thread(self._allowance.wait)

    async def container(self, name: str) -> ContainerProxy:
        """A container whose requests are counted."""
        found: Any = _Metered(await super().container(name), self._count)
        return found  # type: ignore[no-any-return]

    def _count(self, headers: Any, *_: Any) -> None:
        units = float(headers.get(_CHARGE, 0))
        self._allowance.spend(units)
        self._meter.count(0, units)


class _Metered:
    """A container; each of its requests tells a hook the headers of its replies, besides the hook that it may have."""

    def __init__(self, container: ContainerProxy, hook: Callable[..., None]) -> None:
        self._container = container
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        request = getattr(self._container, name)
        if name not in _REQUESTS:
            return request

        def counted(*args: Any, response_hook: Callable[..., None] | None = None, **more: Any) -> Any:
            hooks = [self._hook, *filter(None, [response_hook])]
            return request(*args, response_hook=_all_of(hooks), **more)

        return counted


def _all_of(hooks: Iterable[Callable[..., None]]) -> Callable[..., None]:
    def all_of(*args: Any) -> None:
        for hook in hooks:
            hook(*args)

    return all_of
