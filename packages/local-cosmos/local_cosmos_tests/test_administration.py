"""Administration, in the same process and over HTTP; the command line."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import RemoteDisconnected
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from local_cosmos.admin_client import AdminClient
from local_cosmos.administration import Administration
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.semantics.errors import RefusedError
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.request_log import RequestLog
from local_cosmos.semantics.requests import Request
from local_cosmos_tests.commands import Process, run
from local_cosmos_tests.raw import KEY, UPSERT, RawClient


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    with Process("--admin") as running:
        yield running


@pytest.fixture(params=["in process", "over http", "another process"])
def admin(request: pytest.FixtureRequest, emulator: RunningEmulator, process: Process) -> Administration:
    """Every way to administer an emulator."""
    if request.param == "in process":
        return emulator
    return AdminClient(emulator.endpoint if request.param == "over http" else process.endpoint)


@pytest.fixture
def database(request: pytest.FixtureRequest, admin: Administration) -> Iterator[str]:
    """A database with a container `c`, made by plain HTTP."""
    name = f"db-{abs(hash(request.node.name))}"
    raw = RawClient(admin.endpoint, admin.key)
    assert raw.send("POST", "dbs", {"id": name}).status == 201
    definition = {"id": "c", "partitionKey": KEY, "defaultTtl": -1}
    assert raw.send("POST", f"dbs/{name}/colls", definition).status == 201
    yield name
    admin.clear_faults()


def create(admin: Administration, database: str, item_id: str, **properties: Any) -> int:
    document = {"id": item_id, "pk": "p", **properties}
    return RawClient(admin.endpoint, admin.key).send("POST", f"dbs/{database}/colls/c/docs", document, key="p").status


def read(admin: Administration, database: str, item_id: str) -> int:
    return RawClient(admin.endpoint, admin.key).send("GET", f"dbs/{database}/colls/c/docs/{item_id}", key="p").status


def test_faults_are_armed_counted_and_disarmed(admin: Administration, database: str) -> None:
    rule = FaultRule(database, operations=("create",), when="before", action="status", status=429, retry_after_ms=1)
    rule_id = admin.add_fault(rule)
    assert create(admin, database, "a") == 429
    (counters,) = admin.faults()
    assert (counters.rule_id, counters.rule, counters.matched, counters.hit) == (rule_id, rule, 1, 1)
    admin.remove_fault(rule_id)
    assert create(admin, database, "a") == 201
    admin.add_fault(rule)
    admin.clear_faults()
    assert admin.faults() == []


def test_delayed_writes_wait_until_they_are_released(admin: Administration, database: str) -> None:
    admin.add_fault(FaultRule(database, when="later", action="status", status=408, times=1))
    assert create(admin, database, "a") == 408
    assert (admin.delayed_writes(), read(admin, database, "a")) == (1, 404)
    assert admin.release_delayed_writes(database) == 1
    assert (admin.delayed_writes(), read(admin, database, "a")) == (0, 200)


def test_a_delayed_write_is_released_by_the_rule_that_caught_it(admin: Administration, database: str) -> None:
    rules = {}
    for name in ("a", "b"):
        rule = FaultRule(database, id=name, when="later", action="status", status=408)
        rules[name] = admin.add_fault(rule)
        assert create(admin, database, name) == 408
    admin.clear_faults()
    assert admin.release_delayed_writes(database, rules["b"]) == 1
    assert (read(admin, database, "a"), read(admin, database, "b")) == (404, 200)
    assert admin.release_delayed_writes(database, rules["b"]) == 0
    assert admin.release_delayed_writes(database, rules["a"]) == 1
    assert read(admin, database, "a") == 200


def test_the_clock_moves_on_request(admin: Administration, database: str) -> None:
    create(admin, database, "a", ttl=60)
    before = admin.now()
    assert admin.advance_clock(60) == pytest.approx(before + 60, abs=5)
    assert read(admin, database, "a") == 404
    with pytest.raises(ValueError, match="forward"):
        admin.advance_clock(-1)


def test_lag_is_set_and_taken_back(admin: Administration, database: str) -> None:
    admin.set_lag(database, "c", Lag(writes=1))
    create(admin, database, "a")
    assert read(admin, database, "a") == 404
    admin.set_lag(database, "c")
    assert read(admin, database, "a") == 200


def test_a_partition_is_split_once(admin: Administration, database: str) -> None:
    first, second = admin.split(database, "c", "0")
    assert len({first, second, "0"}) == 3
    with pytest.raises((ValueError, RefusedError), match="gone"):
        admin.split(database, "c", "0")


def test_latency_shows_in_the_request_log(admin: Administration, database: str) -> None:
    admin.set_latency(20)
    create(admin, database, "a")
    admin.set_latency(0)
    entry = admin.requests()[-1]
    assert entry.finished - entry.started >= 0.02


def test_the_request_log_has_what_came_and_what_it_cost(admin: Administration, database: str) -> None:
    after = admin.last_request()
    create(admin, database, "a")
    create(admin, database, "a")
    read(admin, database, "a")
    entries = admin.requests(after)
    assert [(e.operation, e.id, e.partition_key, e.status, e.applied) for e in entries] == [
        ("create", "a", '["p"]', 201, True),
        ("create", "a", '["p"]', 409, False),
        ("read", "a", '["p"]', 200, False),
    ]
    assert [entry.n for entry in entries] == [after + 1, after + 2, after + 3]
    (creates, reads) = [total for total in admin.totals() if total.database == database]
    assert (creates.requests, creates.applied, creates.refused, creates.charge) == (2, 1, 1, 6.5)
    assert (reads.operation, reads.container, reads.requests) == ("read", "c", 1)


def test_logs_of_many_entries_are_read_in_parts(
    admin: Administration, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("admin_client", "protocol.admin"):
        monkeypatch.setattr(f"local_cosmos.{module}.LARGEST_ANSWER", 2)
    after = admin.last_request()
    for name in "abcde":
        create(admin, database, name)
    assert [(entry.n, entry.id) for entry in admin.requests(after)] == list(enumerate("abcde", after + 1))
    assert [write.id for write in admin.history(database)] == list("abcde")


def test_the_request_log_forgets_the_oldest_and_keeps_their_numbers() -> None:
    log = RequestLog(deque(maxlen=3))
    for _ in range(5):
        log.add(Request("read", "d", "c"), "a", None, executed=None, times=(0, 0))
    kept = [[entry.n for entry in log.read(*asked)] for asked in [(0,), (3,), (0, 2), (5,), (9,), (-1,)]]
    assert kept == [[3, 4, 5], [4, 5], [3, 4], [], [], [3, 4, 5]]
    assert log.last_number == 5
    with pytest.raises(ValueError, match="islice"):
        log.read(0, -1)


def test_the_history_holds_every_accepted_write_and_nothing_else(admin: Administration, database: str) -> None:
    create(admin, database, "a", n=1)
    create(admin, database, "a", n=2)
    raw = RawClient(admin.endpoint, admin.key)
    path = f"dbs/{database}/colls/c/docs/a"
    replaced = raw.send("PUT", path, {"id": "a", "pk": "p", "n": 3}, key="p").body
    raw.send("PATCH", path, {"operations": [{"op": "set", "path": "/n", "value": 4}]}, key="p")
    raw.send("DELETE", path, key="p")
    raw.send("POST", f"dbs/{database}/colls/c/docs", {"id": "b", "pk": "p"}, key="p", headers=UPSERT)
    writes = admin.history(database, "c")
    assert [(w.operation, w.id, w.partition_key, w.batch) for w in writes] == [
        ("create", "a", '["p"]', None),
        ("replace", "a", '["p"]', None),
        ("patch", "a", '["p"]', None),
        ("delete", "a", '["p"]', None),
        ("upsert", "b", '["p"]', None),
    ]
    assert (writes[1].document, writes[3].document) == (replaced, None)
    assert admin.history(database, after=writes[1].sequence) == writes[2:]
    assert admin.history("another") == []


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("POST", "faults", {"database": "d", "misspelt": 1}),
        ("POST", "faults", {"database": ""}),
        ("POST", "lag", {"writes": 1}),
        ("GET", "nothing", None),
        ("DELETE", "faults/x", None),
        ("POST", "clock", b"nonsense"),
    ],
)
def test_an_admin_request_that_makes_no_sense_is_refused(raw: RawClient, verb: str, path: str, body: Any) -> None:
    reply = raw.send(verb, f"_admin/{path}", body)
    assert reply.status == 400
    assert reply.body["message"]


def test_the_process_announces_itself_serves_and_ends_cleanly() -> None:
    with Process("--partitions", "2", "--consistency", "Eventual", "--multiple-write-locations") as process:
        endpoint = process.endpoint
        assert process.announcement == {"endpoint": endpoint, "admin": False}
        assert endpoint.startswith("http://127.0.0.1:")
        account = RawClient(endpoint, WELL_KNOWN_KEY).send("GET", "").body
        assert account["userConsistencyPolicy"] == {"defaultConsistencyLevel": "Eventual"}
        assert account["enableMultipleWriteLocations"] is True
        with CosmosClient(endpoint, WELL_KNOWN_KEY) as client:
            container = client.create_database("d").create_container("c", PartitionKey("/pk"))
            assert len(list(container.read_feed_ranges())) == 2
        assert RawClient(endpoint, WELL_KNOWN_KEY).send("GET", "_admin/faults").status == 404
        code, out, err = process.stop(signal.SIGINT)
    assert (code, out) == (0, "")
    assert "development and tests" in err


def test_a_hanging_request_does_not_keep_the_process_from_ending() -> None:
    with Process("--admin") as process, ThreadPoolExecutor(1) as pool:
        admin = AdminClient(process.endpoint)
        raw = RawClient(admin.endpoint, admin.key)
        admin.add_fault(FaultRule("d", when="before", action="hang"))
        hanging = pool.submit(raw.send, "GET", "dbs/d/colls/c/docs/a", key="p")
        while not admin.faults()[0].hit:
            pass
        assert process.stop()[0] == 0
        assert isinstance(hanging.exception(), RemoteDisconnected)


def test_help_explains_the_emulator() -> None:
    answer = run("--help")
    for word in ("--admin", "--port", "--partitions", "127.0.0.1", "development and tests"):
        assert word in answer.stdout
