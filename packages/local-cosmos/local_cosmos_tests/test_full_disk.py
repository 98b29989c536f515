"""`--data DIR` on a disk that is full: the reply says so, nothing is half there, and with room all goes on."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from local_cosmos.admin_client import AdminClient
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.clock import Clock
from local_cosmos.storage.keeper import NotKeptError
from local_cosmos.storage.sqlite import FILE_NAME, SqliteKeeper, transaction
from local_cosmos_tests.commands import Process, run
from local_cosmos_tests.raw import BULK, KEY, RawClient

PAGES = 1_000_000
LARGE = "x" * 20_000


class Disk:
    """The file of an emulator, with as much room as is said."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keeper = SqliteKeeper(directory)

    def fill(self) -> None:
        """No page more than there are, and none of them empty."""
        execute = self.keeper._connection.execute
        execute("VACUUM")
        (pages,) = execute("PRAGMA page_count").fetchone()
        execute(f"PRAGMA max_page_count = {pages}")

    def make_room(self) -> None:
        self.keeper._connection.execute(f"PRAGMA max_page_count = {PAGES}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path)
    yield found
    found.keeper.close()


@pytest.fixture
def emulator(disk: Disk) -> Iterator[RunningEmulator]:
    clock = Clock(lambda: 1_800_000_000.0, advanced=0.0, keep=disk.keeper.keep_clock)
    with running_emulator(clock=clock, keeper=disk.keeper) as running:
        yield running


@pytest.fixture
def client(emulator: RunningEmulator) -> Iterator[CosmosClient]:
    with CosmosClient(emulator.endpoint, emulator.key) as sdk:
        yield sdk


@pytest.fixture
def container(client: CosmosClient, disk: Disk) -> ContainerProxy:
    """A container with one item, on a disk that is full."""
    created = client.create_database("d").create_container("c", PartitionKey("/pk"), default_ttl=-1)
    created.create_item(item("kept"))
    disk.fill()
    return created


def item(item_id: str, text: str = "") -> dict[str, Any]:
    return {"id": item_id, "pk": "p", "text": text}


def contents(container: ContainerProxy) -> list[tuple[str, int]]:
    return [(entry["id"], len(entry["text"])) for entry in container.read_all_items()]


def require_reported(refused: CosmosHttpResponseError) -> None:
    assert refused.status_code == 507
    for said in ("--data", "full", "room"):
        assert said in str(refused)


WRITES: dict[str, Any] = {
    "create": lambda container: container.create_item(item("new", LARGE)),
    "upsert": lambda container: container.upsert_item(item("kept", LARGE)),
    "replace": lambda container: container.replace_item("kept", item("kept", LARGE)),
    "patch": lambda container: container.patch_item("kept", "p", [{"op": "set", "path": "/text", "value": LARGE}]),
    "batch": lambda container: container.execute_item_batch(
        [("upsert", (item("kept", "short"),)), ("delete", ("kept",)), ("create", (item("new", LARGE),))], "p"
    ),
}


@pytest.mark.simplified(service="has no such status")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_says_that_the_disk_is_full_changes_nothing_and_succeeds_when_there_is_room(
    container: ContainerProxy, disk: Disk, write: Any
) -> None:
    before = container.read_item("kept", "p")
    for _ in range(2):
        with pytest.raises(CosmosHttpResponseError) as refused:
            write(container)
        require_reported(refused.value)
        assert contents(container) == [("kept", 0)]
        assert container.read_item("kept", "p") == before
    disk.make_room()
    write(container)
    assert sum(size for _, size in contents(container)) == len(LARGE)


def test_a_bulk_request_says_of_each_operation_whether_there_was_room(
    container: ContainerProxy, emulator: RunningEmulator
) -> None:
    operations = [
        {"operationType": "Upsert", "partitionKey": '["p"]', "resourceBody": item("kept", "short")},
        {"operationType": "Create", "partitionKey": '["p"]', "resourceBody": item("new", LARGE)},
    ]
    raw = RawClient(emulator.endpoint, emulator.key)
    reply = raw.send("POST", f"{container.container_link}/docs", operations, headers=BULK)
    assert [entry["statusCode"] for entry in reply.body] == [200, 507]
    assert contents(container) == [("kept", 5)]


def test_databases_containers_and_their_settings_are_as_they_were(
    client: CosmosClient, container: ContainerProxy, disk: Disk
) -> None:
    database = client.get_database_client("d")
    policy: dict[str, Any] = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}, {"path": f"/{LARGE}/?"}],
    }
    databases = ["d"]

    def create_databases() -> None:
        for number in range(400):
            name = f"{number}-{'x' * 250}"
            client.create_database(name)
            databases.append(name)

    for change in (
        create_databases,
        lambda: database.create_container("other", PartitionKey("/pk"), indexing_policy=policy),
        lambda: database.replace_container(container, PartitionKey("/pk"), default_ttl=5, indexing_policy=policy),
    ):
        with pytest.raises(CosmosHttpResponseError) as refused:
            change()
        require_reported(refused.value)
    assert [entry["id"] for entry in client.list_databases()] == databases
    assert [entry["id"] for entry in database.list_containers()] == ["c"]
    assert container.read()["defaultTtl"] == -1
    disk.make_room()
    database.replace_container(container, PartitionKey("/pk"), default_ttl=5, indexing_policy=policy)
    assert container.read()["defaultTtl"] == 5


def test_what_was_refused_is_not_there_after_a_restart_and_what_was_answered_is(
    container: ContainerProxy, disk: Disk, emulator: RunningEmulator
) -> None:
    with pytest.raises(CosmosHttpResponseError):
        container.create_item(item("refused", LARGE))
    disk.make_room()
    container.create_item(item("answered", LARGE))
    disk.keeper.close()
    disk.keeper = SqliteKeeper(disk.directory)
    with running_emulator(keeper=disk.keeper) as again, CosmosClient(again.endpoint, again.key) as sdk:
        anew = sdk.get_database_client("d").get_container_client("c")
        assert contents(anew) == [("kept", 0), ("answered", len(LARGE))]


class Refusing:
    """A connection that has no room for what a statement begins with; whether SQLite then rolls back by itself varies."""

    def __init__(self, connection: sqlite3.Connection, refused: str) -> None:
        self._connection = connection
        self._refused = refused

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, statement: str, *parameters: Any) -> Any:
        if statement.startswith(self._refused):
            raise sqlite3.OperationalError("database or disk is full")
        return self._connection.execute(statement, *parameters)


@pytest.mark.parametrize("refused", ["BEGIN", "INSERT", "COMMIT"])
def test_a_transaction_that_fails_anywhere_leaves_none_open(refused: str) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (n)")
    short: Any = Refusing(connection, refused)
    with pytest.raises(NotKeptError, match="full"), transaction(short):
        short.execute("INSERT INTO t VALUES (1)")
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    connection.close()


def test_a_split_that_cannot_be_kept_has_not_happened(
    container: ContainerProxy, disk: Disk, emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(container.read_feed_ranges())
    monkeypatch.setattr(disk.keeper, "_connection", Refusing(disk.keeper._connection, "INSERT INTO containers"))
    for administration in (emulator, AdminClient(emulator.endpoint)):
        with pytest.raises(ValueError, match="room"):
            administration.split("d", "c", "0")
    monkeypatch.undo()
    assert list(container.read_feed_ranges(force_refresh=True)) == before
    assert emulator.split("d", "c", "0") == ["1", "2"]
    assert contents(container) == [("kept", 0)]


def test_a_directory_without_room_for_the_first_page_is_refused_at_the_start(tmp_path: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    refused = run("--data", str(tmp_path / "own"), preexec_fn=no_room)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{FILE_NAME} cannot be used: disk I/O error" in refused.stderr
    assert "Traceback" not in refused.stderr


async def test_a_file_that_may_not_grow_refuses_and_goes_on_when_it_may(tmp_path: Path) -> None:
    """The operating system's own refusal, which comes where a transaction is committed."""
    documents = ["dbs", "d", "colls", "c", "docs"]
    own = tmp_path / "own"  # Another emulator has the folder itself open.
    with Process("--data", str(own)) as process:
        await process.ask("POST", ["dbs"], {"id": "d"})
        await process.ask("POST", ["dbs", "d", "colls"], {"id": "c", "partitionKey": KEY})
        size = (own / f"{FILE_NAME}-wal").stat().st_size
        limits = resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        refused = await process.ask("POST", documents, item("a", LARGE), key="p")
        assert (refused.status, refused.content["code"]) == (507, "InsufficientStorage")
        assert "--data" in refused.content["message"]
        resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, limits)
        assert (await process.ask("GET", [*documents, "a"], key="p")).status == 404
        assert (await process.ask("POST", documents, item("a", LARGE), key="p")).status == 201
