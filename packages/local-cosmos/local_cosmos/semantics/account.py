"""The account: databases with their containers. `execute` answers any request in one step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from local_cosmos.semantics import feeds
from local_cosmos.semantics.change_feed import read_changes
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.container import Container, Surroundings, answer_bulk
from local_cosmos.semantics.container_definition import ContainerDefinition
from local_cosmos.semantics.coverage import CROSSES
from local_cosmos.semantics.errors import RefusedError, bad_request, conflict, not_found, not_kept
from local_cosmos.semantics.history import History
from local_cosmos.semantics.offers import Offers, Throughput
from local_cosmos.semantics.ranges import PhysicalPartitions
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.requests import (
    ITEM_OPERATIONS,
    ConsistencyLevel,
    Reply,
    Request,
    listing,
    refused,
    resource,
)
from local_cosmos.semantics.resource_ids import container_rid, database_rid
from local_cosmos.semantics.transactions import checked_name
from local_cosmos.semantics.usage import resource_usage, statistics
from local_cosmos.storage.keeper import Keeper, KeptDatabase, NotKeptError
from local_cosmos.values import JsonObject, serialise


@dataclass(slots=True)
class Database:
    """One database.

    Attributes:
        modified: When it was created, in seconds since 1970.
        containers: By name, in the order of their creation.
    """

    name: str
    rid: str
    modified: int
    containers: dict[str, Container] = field(default_factory=dict)

    def document(self) -> JsonObject:
        """What a client reads of the database itself."""
        return {
            "id": self.name,
            "_rid": self.rid,
            "_self": f"dbs/{self.rid}/",
            "_etag": f'"{self.modified:08x}-0000-0000-0000-000000000000"',
            "_colls": "colls/",
            "_users": "users/",
            "_ts": self.modified,
        }


_CONTAINER_ABSENT: Final = 1003
_HOST: Final = re.compile("(?<=://)[^:/]+")


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """The settings of an account.

    Attributes:
        consistency: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual.
        multiple_write_locations: What the account says of itself; it changes nothing else here.
        partitions: Physical partitions of a new container, unless its throughput asks for more.
        throughput_of_a_partition: RU per second for which a new container gets one physical partition. Those of the service
            serve 10,000 at most; it begins with one for each 6,000 of manual throughput.
        region: The name of the only region.
        host: Where the account says that this region is, without a port; empty for where the client found the account.
            Microsoft's emulators always say 127.0.0.1, also to a client of localhost.
    """

    consistency: ConsistencyLevel = "Session"
    multiple_write_locations: bool = False
    partitions: int = 1
    throughput_of_a_partition: int = 10_000
    region: str = "Local"
    host: str = ""


class Account:
    """A database account."""

    def __init__(self, settings: AccountSettings, clock: Clock, history: History, keeper: Keeper | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._databases: dict[str, Database] = {}
        self._lags: dict[tuple[str, str | None], Lag] = {}
        self._keeper = keeper or Keeper()
        self._offers = Offers()
        self._numbers = count((self._keeper.generation << 16) + 1)
        writes = count((self._keeper.generation << 32) + 1)
        self._surroundings = Surroundings(clock, history, lambda: next(writes), settings.consistency, self._keeper)
        self._restore()
        self._operations: Mapping[str, Callable[[Request], Reply]] = {
            "read_account": self._read_account,
            "create_database": self._create_database,
            "read_database": lambda request: resource(self._database(request).document()),
            "list_databases": self._list_databases,
            "query_databases": self._list_databases,
            "delete_database": self._delete_database,
            "create_container": self._create_container,
            "read_container": self._read_container,
            "replace_container": self._replace_container,
            "list_containers": self._list_containers,
            "query_containers": self._list_containers,
            "delete_container": self._delete_container,
            "read_ranges": self._read_ranges,
            "list_offers": self._offers.query,
            "query_offers": self._offers.query,
            "read_offer": self._offers.read,
            "replace_offer": lambda request: self._offers.replace(request, self._clock.now()),
            "query": lambda request: feeds.answer_query(self._container(request), request),
            "query_plan": lambda request: feeds.answer_plan(self._container(request), request),
            "list_conflicts": self._list_conflicts,
            "query_conflicts": self._list_conflicts,
            "name_conflict": self._refuse_conflict,
            "change_feed": lambda request: read_changes(self._container(request), request),
            "list_items": lambda request: feeds.list_items(self._container(request), request),
        }

    def execute(self, request: Request) -> Reply:
        """Answer a request; a refusal is a reply, too."""
        try:
            operation = self._operations.get(request.operation)
            if operation is not None:
                return operation(request)
            if request.operation == "batch" and not request.atomic:
                return answer_bulk(self._container(request), request)
            if request.operation in ITEM_OPERATIONS:
                return self._container(request).execute(request)
            raise bad_request(f"The operation {request.operation} is not supported by this emulator.")
        except RefusedError as refusal:
            return refused(refusal)
        except NotKeptError as error:
            return refused(not_kept(error))
        except (OverflowError, RecursionError) as error:  # Both come before anything is written.
            return refused(bad_request(f"A number is too large, or an expression too deep: {error}."))

    def named(self, request: Request) -> Request:
        """The same request by names, where it speaks of resources by their resource ids."""
        if not request.database or request.database in self._databases:
            return request
        try:
            name = self._database(request).name
            if not request.container:
                return replace(request, database=name)
            container = self._container(request)
            item = container.id_of(request)
        except RefusedError:
            return request  # It will be refused for the same reason when it is executed.
        return replace(request, database=name, container=container.definition.name, item=item)

    def containers(self) -> dict[str, list[Container]]:
        """The containers of each database, by its name."""
        return {name: list(database.containers.values()) for name, database in self._databases.items()}

    def set_lag(self, database: str, container: str | None, lag: Lag) -> None:
        """Let the replicas of a container, or of all containers of a database, lag from now on."""
        if container is None:
            self._lags = {key: value for key, value in self._lags.items() if key[0] != database}
        self._lags[database, container] = lag
        if database in self._databases:
            for present in self._databases[database].containers.values():
                if container in (None, present.definition.name):
                    present.replicas.follow(lag)

    def split(self, database: str, container: str, range_id: str) -> list[str]:
        """Split a physical partition; returns the ids of its two successors.

        Raises:
            RefusedError: 404 or 410; there is no such container or partition.
            NotKeptError: It could not be kept, and has not happened.
        """
        request = Request("read_ranges", database, container)
        return [partition.id for partition in self._container(request).split(range_id)]

    def _restore(self) -> None:
        """Open what was kept."""
        for kept in self._keeper.databases():
            database = self._databases[kept.name] = Database(kept.name, kept.rid, kept.modified)
            for inside in self._keeper.containers(kept.rid):
                definition = ContainerDefinition.parse(inside.properties)
                database.containers[definition.name] = container = Container(
                    (kept.name, kept.rid),
                    definition,
                    inside.rid,
                    PhysicalPartitions.restored(inside.ranges, definition.keys.hashing),
                    lag=Lag(),
                    surroundings=self._surroundings,
                    modified=inside.modified,
                )
                self._offers.add(container.document(), Throughput(), inside.modified)

    def _lag(self, database: str, container: str) -> Lag:
        return self._lags.get((database, container)) or self._lags.get((database, None)) or Lag()

    def _read_account(self, request: Request) -> Reply:
        endpoint = request.base_url
        if self._settings.host:
            endpoint = _HOST.sub(self._settings.host, endpoint, count=1)
        location = {"name": self._settings.region, "databaseAccountEndpoint": endpoint}
        account: JsonObject = {
            "id": "localhost",
            "_self": "",
            "_rid": "localhost",
            "_dbs": "//dbs/",
            "media": "//media/",
            "addresses": "//addresses/",
            "writableLocations": [location],
            "readableLocations": [location],
            "enableMultipleWriteLocations": self._settings.multiple_write_locations,
            "userReplicationPolicy": {"minReplicaSetSize": 4, "maxReplicasetSize": 4, "asyncReplication": False},
            "userConsistencyPolicy": {"defaultConsistencyLevel": self._settings.consistency},
            "systemReplicationPolicy": {"minReplicaSetSize": 4, "maxReplicasetSize": 4},
            "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
            "queryEngineConfiguration": "{}",
        }
        return Reply(200, serialise(account))

    def _database(self, request: Request) -> Database:
        """By name or by resource id, as requests may use either."""
        database = self._databases.get(request.database)
        if database is None:
            database = next((other for other in self._databases.values() if other.rid == request.database), None)
        if database is None:
            raise not_found(f"database {request.database}")
        return database

    def _container(self, request: Request) -> Container:
        try:
            containers = self._database(request).containers
        except RefusedError as refusal:
            raise not_found(f"container {request.container}", _CONTAINER_ABSENT) from refusal
        container = containers.get(request.container)
        if container is None:
            container = next((other for other in containers.values() if other.rid == request.container), None)
        if container is None:
            raise not_found(f"container {request.container}", _CONTAINER_ABSENT)
        if request.container_rid not in (None, container.rid):
            raise bad_request("Collection rid in the request does not match: the container was created anew.", 1024)
        return container

    def _create_database(self, request: Request) -> Reply:
        content = request.content
        if not isinstance(content, dict):
            raise bad_request("A database is a JSON object.")
        name = checked_name(content)
        if name in self._databases:
            raise conflict(f"database {name}")
        throughput = _throughput(request)
        database = Database(name, database_rid(next(self._numbers)), int(self._clock.now()))
        self._keeper.keep_database(KeptDatabase(name, database.rid, database.modified))
        self._databases[name] = database
        if throughput is not None:
            self._offers.add(database.document(), throughput, self._clock.now())
        return resource(database.document(), 201)

    def _list_databases(self, request: Request) -> Reply:
        return feeds.answer_listed(
            request, "", "Databases", [database.document() for database in self._databases.values()]
        )

    def _delete_database(self, request: Request) -> Reply:
        database = self._database(request)
        self._keeper.forget_database(database.rid)
        self._offers.forget(database.document()["_self"])
        del self._databases[database.name]
        return Reply(204)

    def _create_container(self, request: Request) -> Reply:
        database = self._database(request)
        throughput = _throughput(request)
        definition = ContainerDefinition.parse(request.content)
        if definition.name in database.containers:
            raise conflict(f"container {definition.name}")
        partitions = max(self._settings.partitions, -(-request.throughput // self._settings.throughput_of_a_partition))
        container = Container(
            (database.name, database.rid),
            definition,
            container_rid(database.rid, next(self._numbers)),
            PhysicalPartitions(partitions, definition.keys.hashing),
            lag=self._lag(database.name, definition.name),
            surroundings=self._surroundings,
        )
        container.keep()
        database.containers[definition.name] = container
        document = container.document()
        if throughput is not None or not self._offers.has(database.rid):
            self._offers.add(document, throughput or Throughput(), self._clock.now())
        return self._of_container(container, resource(document, 201))

    def _read_container(self, request: Request) -> Reply:
        container = self._container(request)
        document = container.document()
        if request.statistics:
            document["statistics"] = statistics(container)
        return self._of_container(container, resource(document), quota=request.quota)

    def _replace_container(self, request: Request) -> Reply:
        container = self._container(request)
        container.redefine(request.content)
        return self._of_container(container, resource(container.document()))

    def _list_containers(self, request: Request) -> Reply:
        database = self._database(request)
        documents = [container.document() for container in database.containers.values()]
        return feeds.answer_listed(request, database.rid, "DocumentCollections", documents)

    def _list_conflicts(self, request: Request) -> Reply:
        """With one write region there are none."""
        if request.operation == "query_conflicts" and request.partition_key is None and not request.cross_partition:
            raise bad_request(CROSSES)
        return feeds.answer_listed(request, self._container(request).rid, "Conflicts", [])

    def _refuse_conflict(self, request: Request) -> Reply:
        raise not_found(f"conflict {request.item} of {self._container(request).path}")

    def _delete_container(self, request: Request) -> Reply:
        container = self._container(request)
        self._keeper.forget_container(container.rid)
        self._offers.forget(container.document()["_self"])
        del self._database(request).containers[container.definition.name]
        return Reply(204)

    def _read_ranges(self, request: Request) -> Reply:
        container = self._container(request)
        etag = container.partitions.etag
        if request.if_none_match == etag:
            return Reply(304, etag=etag, content_path=container.path)
        ranges = [partition.document() for partition in container.partitions.all()]
        reply = listing(container.rid, "PartitionKeyRanges", ranges)
        return replace(reply, content_path=container.path, etag=etag)

    def _of_container(self, container: Container, reply: Reply, *, quota: bool = False) -> Reply:
        usage = resource_usage(container) if quota else None
        progress = 100 if quota else None
        database_path = container.path.partition("/colls/")[0]
        return replace(reply, content_path=database_path, resource_usage=usage, index_progress=progress)


def _throughput(request: Request) -> Throughput | None:
    """What a new database or container shall have; None where the client does not say."""
    if not request.throughput:
        return None
    return Throughput.checked(request.throughput, autoscale=request.autoscale, increment=request.increment)
