"""A container: its items, physical partitions and replicas. Every request is one step; nothing comes in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from local_cosmos.semantics import batches, charges, expiry
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.container_definition import ContainerDefinition
from local_cosmos.semantics.errors import RefusedError, bad_request, not_found, not_kept, too_large
from local_cosmos.semantics.history import History
from local_cosmos.semantics.item_operations import ItemCommand, ItemResult, perform
from local_cosmos.semantics.key_hashes import LARGEST, SMALLEST
from local_cosmos.semantics.partition_keys import PartitionKey
from local_cosmos.semantics.ranges import PhysicalPartition, PhysicalPartitions
from local_cosmos.semantics.replicas import Lag, Replicas
from local_cosmos.semantics.requests import CONSISTENCY_LEVELS, WRITES, ConsistencyLevel, Reply, Request, refused
from local_cosmos.semantics.sessions import SessionToken, token
from local_cosmos.semantics.transactions import ItemFactory, Transaction
from local_cosmos.storage.items import Item
from local_cosmos.storage.keeper import Keeper, KeptContainer, NotKeptError
from local_cosmos.values import JsonObject, serialise

_OF_THE_PRIMARY: Final = frozenset({"Strong", "BoundedStaleness"})
"""Levels whose reads see every commit; within one region there is no staleness to bound."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container shares with the rest of the account.

    Attributes:
        next_write: Numbers the writes of the account.
    """

    clock: Clock
    history: History
    next_write: Callable[[], int]
    consistency: ConsistencyLevel
    keeper: Keeper


class Container:
    """One container.

    Args:
        database: Name and resource id of its database.
        modified: When its settings were written, in seconds since 1970; None for now.
    """

    def __init__(
        self,
        database: tuple[str, str],
        definition: ContainerDefinition,
        rid: str,
        partitions: PhysicalPartitions,
        *,
        lag: Lag,
        surroundings: Surroundings,
        modified: int | None = None,
    ) -> None:
        self._database, self._database_rid = database
        self.definition = definition
        self.rid = rid
        self.path = f"dbs/{self._database}/colls/{definition.name}"
        self.partitions = partitions
        self.lsn = max(partition.lsn for partition in partitions.all())
        self.replicas = Replicas(lag, self.lsn)
        self.store = surroundings.keeper.items(rid)
        self.surroundings = surroundings
        self._modified = int(surroundings.clock.now()) if modified is None else modified
        ordinals = count((surroundings.keeper.generation << 32) + 1)
        self._factory = ItemFactory(
            container_rid=rid,
            self_link=f"dbs/{self._database_rid}/colls/{rid}/",
            default_ttl=definition.default_ttl,
            unique_keys=definition.unique_keys,
            next_ordinal=lambda: next(ordinals),
            next_write=surroundings.next_write,
        )

    def document(self) -> JsonObject:
        """What a client reads of the container itself."""
        return self.definition.properties | {
            "_rid": self.rid,
            "_self": self._factory.self_link,
            "_etag": f'"{self._modified:08x}-0000-0000-0000-000000000000"',
            "_ts": self._modified,
            "_docs": "docs/",
            "_sprocs": "sprocs/",
            "_triggers": "triggers/",
            "_udfs": "udfs/",
            "_conflicts": "conflicts/",
        }

    def keep(self) -> None:
        """Keep the container: it is new, or its partitions are."""
        self._keep(self.definition, self._modified)

    def count(self) -> int:
        """How many items are visible."""
        return sum(not self.is_expired(item) for _, item in self.store.scan(SMALLEST, LARGEST))

    def id_of(self, request: Request) -> str:
        """The id of the item that a request names by its resource id; the resource id itself if there is none."""
        if not request.item:
            return ""
        effective = self.definition.keys.read(request.partition_key).effective
        items = self.store.scan(effective, effective + LARGEST)
        return next((item.id for _, item in items if item.document["_rid"] == request.item), request.item)

    def redefine(self, content: object) -> None:
        """Replace the settings; a new time to live counts for items that are there already, too."""
        definition, modified = self.definition.replaced_by(content), int(self.surroundings.clock.now())
        self._keep(definition, modified)
        self.definition, self._modified = definition, modified
        self._factory = replace(self._factory, default_ttl=definition.default_ttl)

    def split(self, range_id: str) -> Sequence[PhysicalPartition]:
        """Split a physical partition; returns its two successors.

        Raises:
            RefusedError: 410/1002; there is no such partition.
            NotKeptError: It could not be kept, and has not happened.
        """
        before = self.partitions.kept()
        halves = self.partitions.split(range_id)
        try:
            self.keep()
        except NotKeptError:
            self.partitions = PhysicalPartitions.restored(before, self.definition.keys.hashing)
            raise
        return halves

    def execute(self, request: Request) -> Reply:
        """Perform an operation on an item, or a batch; a refusal changes nothing and is a reply, too."""
        key = self.definition.keys.read(request.partition_key)
        partition = self.partitions.owner(key.effective)
        lsn: int | None = None
        try:
            if request.operation == "read":
                lsn = self.snapshot(request, partition, alone=True)
                reply = self._read(request, key, lsn)
            elif request.operation == "batch":
                reply = self._batch(request, key)
            elif request.operation == "delete_partition_key":
                reply = self._delete_all(key)
            else:
                reply = self._write(request, key)
        except RefusedError as refusal:
            reply = refused(refusal)
        seen = partition.lsn if lsn is None else min(lsn, partition.lsn)
        reply.range_id, reply.lsn = partition.id, seen
        reply.session_token, reply.content_path = token([(partition, seen)]), self.path
        return reply

    def apply(self, command: ItemCommand, key: PartitionKey) -> ItemResult:
        """Perform one operation and commit what it wrote.

        Raises:
            RefusedError: It is refused and changed nothing.
        """
        transaction = self._begin(key)
        result = perform(command, transaction, self.definition.keys)
        if transaction.changes:
            self._commit(transaction, batch=False)
        return result

    def snapshot(self, request: Request, partition: PhysicalPartition, *, alone: bool) -> int:
        """The LSN at which a read sees a partition (see `Replicas.serve`)."""
        level = self._level(request)
        if level in _OF_THE_PRIMARY:
            return self.lsn
        required = SessionToken(request.session_token).required(partition, alone=alone) if level == "Session" else None
        return self.replicas.serve(self.lsn, required)

    def is_expired(self, item: Item) -> bool:
        """Whether an item's time to live is over."""
        return expiry.is_expired(item, self.definition.default_ttl, self.surroundings.clock.now())

    def _level(self, request: Request) -> ConsistencyLevel:
        """The consistency of a read: the account's, unless the request asks for less."""
        own = self.surroundings.consistency
        asked = request.consistency or own
        if CONSISTENCY_LEVELS.index(asked) < CONSISTENCY_LEVELS.index(own):
            raise bad_request(f"The consistency level {asked} is stronger than the account's, which is {own}.")
        return asked

    def _read(self, request: Request, key: PartitionKey, lsn: int) -> Reply:
        item = self.store.find((key.effective, request.item), lsn)
        if item is None or self.is_expired(item):
            raise not_found(request.item)
        if request.if_none_match in ("*", item.etag):
            return Reply(304, charge=charges.refused(), etag=item.etag)
        replicas = 2 if self._level(request) in _OF_THE_PRIMARY else 1
        return Reply(200, item.raw, charges.read(len(item.raw), replicas=replicas), etag=item.etag)

    def _write(self, request: Request, key: PartitionKey) -> Reply:
        if len(request.body) > batches.LARGEST_REQUEST:
            raise too_large()
        command = ItemCommand(
            operation=request.operation,
            item=request.item,
            content=request.content if request.operation != "delete" else None,
            if_match=request.if_match,
            if_none_match=request.if_none_match,
        )
        result = self.apply(command, key)
        if result.item is None:
            return Reply(result.status, charge=result.charge, applied=True)
        body = b"" if request.minimal else result.item.raw
        return Reply(result.status, body, result.charge, etag=result.item.etag, applied=True)

    def _delete_all(self, key: PartitionKey) -> Reply:
        """Delete all items of a partition key. The service does it in the background, but hides them at once."""
        transaction = self._begin(key)
        for _, item in self.store.scan(key.effective, key.effective + LARGEST):
            if transaction.find(item.id) is not None:
                transaction.delete(item)
        if transaction.changes:
            self._commit(transaction, batch=False)
        return Reply(200, charge=charges.refused(), applied=bool(transaction.changes))

    def _batch(self, request: Request, key: PartitionKey) -> Reply:
        transaction = self._begin(key)
        commands = batches.commands(request.content, len(request.body))
        result = batches.perform_batch(commands, transaction, self.definition.keys)
        applied = result.succeeded and bool(transaction.changes)
        if applied:
            self._commit(transaction, batch=True)
        return Reply(result.status, serialise(result.entries), result.charge, applied=applied)

    def _keep(self, definition: ContainerDefinition, modified: int) -> None:
        ranges = self.partitions.kept()
        kept = KeptContainer(self._database_rid, self.rid, modified, definition.properties, ranges)
        self.surroundings.keeper.keep_container(kept)

    def _begin(self, key: PartitionKey) -> Transaction:
        return Transaction(key, self.surroundings.clock.now(), self.store, self._factory)

    def _commit(self, transaction: Transaction, *, batch: bool) -> None:
        key, lsn = transaction.key, self.lsn + 1
        horizon = self.replicas.horizon_after(lsn)
        try:
            self.store.commit(key.effective, transaction.changes, lsn, horizon)
        except NotKeptError as error:
            raise not_kept(error) from error
        self.replicas.horizon = horizon
        self.lsn = self.partitions.owner(key.effective).lsn = lsn
        self.surroundings.history.accept(self._database, self.definition.name, key.text, transaction.log, batch=batch)


_REFUSED: Final = 400
"""The first status that says no."""


def answer_bulk(container: Container, request: Request) -> Reply:
    """Perform operations on any partition keys of one physical partition, each by itself.

    Operations after a failure are performed if the request says so (`continue-on-error`), as SDKs do unless they are told
    otherwise.

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
