"""The inspection of a container for an operator: its indexing policy, its throughput, and the rights of this identity."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from exactlyonce.stores.cosmos.replies import FAILURES

_PROBE: Final = "exactlyonce.doctor"
"""Id, and values of the partition key, of a document that does not exist: reading it changes nothing."""
_FORBIDDEN: Final = (401, 403)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Request units per second that are paid for; with autoscale the maximum, of which a tenth is paid for at rest."""

    rate: int
    autoscale: bool


@dataclass(frozen=True, slots=True)
class Inspection:
    """The properties and rights that a container shows.

    Attributes:
        policy: indexing policy; empty for the service's default.
        refused: operations that the account refuses to this identity.
        throughput: throughput of the container; "none" if it has none, "unknown" if this identity may not read it.
    """

    policy: Mapping[str, Any]
    refused: tuple[str, ...]
    throughput: Throughput | str


async def inspected(database: DatabaseProxy, name: str, paths: tuple[str, ...]) -> Inspection | None:
    """Inspect a container whose partition key has these paths; None if it cannot be read. Nothing is changed."""
    container = database.get_container_client(name)
    try:
        properties = await container.read()
    except FAILURES:
        return None
    refused = [name for name, request in _requests(container, paths).items() if await _is_refused(request)]
    return Inspection(properties.get("indexingPolicy") or {}, tuple(refused), await _throughput(container))


def _requests(container: ContainerProxy, paths: tuple[str, ...]) -> Mapping[str, Awaitable[Any]]:
    """Requests for a document that does not exist. The right to create has no request without effect."""
    body: dict[str, Any] = {"id": _PROBE}
    for path in paths:
        *outer, last = path.strip("/").split("/")
        place = body
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = _PROBE
    key: Any = [_PROBE] * len(paths) if len(paths) > 1 else _PROBE
    return {
        "read": container.read_item(_PROBE, key),
        "query": _first(container, key),
        "replace": container.replace_item(_PROBE, body),
        "delete": container.delete_item(_PROBE, key),
    }


async def _first(container: ContainerProxy, key: Any) -> None:
    async for _ in container.query_items("SELECT TOP 1 c.id FROM c", partition_key=key):
        return


async def _is_refused(request: Awaitable[Any]) -> bool:
    try:
        await request
    except FAILURES as error:
        return getattr(error, "status_code", None) in _FORBIDDEN
    return False


async def _throughput(container: ContainerProxy) -> Throughput | str:
    """A container's throughput. Only keys, and roles of the management plane, may read it."""
    try:
        throughput = await container.get_throughput()
    except CosmosHttpResponseError as error:
        # A serverless account refuses the question, by that word.
        has_none = isinstance(error, CosmosResourceNotFoundError) or "serverless" in str(error.message).lower()
        return "none" if has_none else "unknown"
    if (most := throughput.auto_scale_max_throughput) is not None:
        return Throughput(most, autoscale=True)
    return Throughput(throughput.offer_throughput or 0, autoscale=False)
