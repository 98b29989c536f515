"""Bulk: operations on any partition keys of one physical partition, each by itself; one may fail and the next succeed.

The wire is that of a batch with `x-ms-cosmos-batch-atomic: false`: every operation names its partition key, and the request
its physical partition. Operations after a failure are performed if the request says so (`continue-on-error`), as SDKs do
unless they are told otherwise.
"""

from __future__ import annotations

from typing import Final

from local_cosmos.semantics import batches
from local_cosmos.semantics.container import Container
from local_cosmos.semantics.errors import RefusedError, bad_request
from local_cosmos.semantics.item_operations import ItemCommand
from local_cosmos.semantics.ranges import PhysicalPartition
from local_cosmos.semantics.requests import WRITES, Reply, Request
from local_cosmos.semantics.sessions import token
from local_cosmos.values import JsonObject, serialise

_REFUSED: Final = 400
"""The first status that says no."""


def answer_bulk(container: Container, request: Request) -> Reply:
    """Perform all operations of a bulk request.

    Raises:
        RefusedError: 400, 410 or 413; the request as a whole is not acceptable.
    """
    if request.range_id is None:
        raise bad_request("A bulk request names its partition key range.")
    partition = container.partitions.named(request.range_id)
    commands = batches.commands(request.content, len(request.body))
    keys = [operation.get("partitionKey") for operation in request.content]
    entries: list[JsonObject] = []
    for command, key in zip(commands, keys, strict=True):
        failed = bool(entries) and entries[-1]["statusCode"] >= _REFUSED
        stopped = failed and not request.continue_on_error
        entries.append(batches.not_tried() if stopped else _perform(container, partition, command, key))
    if request.minimal:
        for said in entries:
            said.pop("resourceBody", None)
    return Reply(
        207 if any(said["statusCode"] >= _REFUSED for said in entries) else 200,
        serialise(entries),
        round(sum(said["requestCharge"] for said in entries), 2),
        range_id=partition.id,
        lsn=partition.lsn,
        session_token=token([(partition, partition.lsn)]),
        content_path=container.path,
        applied=any(
            said["statusCode"] < _REFUSED and command.operation in WRITES
            for said, command in zip(entries, commands, strict=True)
        ),
    )


def _perform(container: Container, partition: PhysicalPartition, command: ItemCommand, key: str | None) -> JsonObject:
    try:
        effective = container.definition.keys.read(key)
        if container.partitions.owner(effective.effective) is not partition:
            raise RefusedError(410, "The partition key does not belong to the partition key range.", 1002)
        return batches.entry(container.apply(command, effective))
    except RefusedError as refusal:
        return batches.refused_entry(refusal)
