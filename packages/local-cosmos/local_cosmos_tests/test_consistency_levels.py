"""What a read may see, by the level of the account. Replicas are three writes behind; the primary never is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.replicas import Lag
from local_cosmos.semantics.requests import CONSISTENCY_LEVELS, ConsistencyLevel
from local_cosmos_tests.raw import QUERY, RawClient, RawReply

DOCS = "dbs/d/colls/c/docs"
NEWEST = 6
LAGGING = NEWEST - 3


@pytest.fixture(params=CONSISTENCY_LEVELS)
def level(request: pytest.FixtureRequest) -> ConsistencyLevel:
    """Of the account."""
    chosen: ConsistencyLevel = request.param
    return chosen


@pytest.fixture
def emulator(level: ConsistencyLevel) -> Iterator[RunningEmulator]:
    with running_emulator(AccountSettings(consistency=level)) as running:
        running.set_lag("d", lag=Lag(writes=NEWEST - LAGGING))
        with CosmosClient(running.endpoint, running.key) as client:
            container = client.create_database("d").create_container("c", PartitionKey("/pk"))
            for n in range(NEWEST):
                container.upsert_item({"id": "a", "pk": "p", "n": n + 1})
        yield running


def read(raw: RawClient, token: str = "", level: str = "") -> RawReply:
    headers = {"x-ms-session-token": token, "x-ms-consistency-level": level}
    return raw.send("GET", f"{DOCS}/a", key="p", headers={name: value for name, value in headers.items() if value})


def query(raw: RawClient) -> int:
    body = {"query": "SELECT VALUE c.n FROM c"}
    return int(raw.send("POST", DOCS, body, key="p", headers=QUERY).body["Documents"][0])


@pytest.mark.simplified(service="the same within one region")
def test_strong_and_bounded_reads_see_the_last_write_and_the_others_may_not(
    raw: RawClient, level: ConsistencyLevel
) -> None:
    expected = NEWEST if level in {"Strong", "BoundedStaleness"} else LAGGING
    assert read(raw).body["n"] == expected
    assert query(raw) == expected


def test_a_token_counts_in_session_only(raw: RawClient, level: ConsistencyLevel) -> None:
    reply = read(raw, token=f"0:-1#{NEWEST}")
    if level == "Session":
        assert (reply.status, reply.substatus) == (404, 1002)
        assert read(raw, token=f"0:-1#{LAGGING}").body["n"] == LAGGING
    else:
        assert reply.body["n"] == read(raw).body["n"]


def test_a_read_may_ask_for_less_than_the_account_gives_and_not_for_more(
    raw: RawClient, level: ConsistencyLevel
) -> None:
    place = CONSISTENCY_LEVELS.index(level)
    assert {read(raw, level=less).status for less in CONSISTENCY_LEVELS[place:]} == {200}
    assert {read(raw, level=more).status for more in CONSISTENCY_LEVELS[:place]} <= {400}
    assert read(raw, level="Eventual").body["n"] == LAGGING
    assert read(raw, level="Weak").status == 400


def test_reads_of_two_replicas_cost_twice_as_much(raw: RawClient, level: ConsistencyLevel) -> None:
    charge = float(read(raw).headers["x-ms-request-charge"])
    assert charge == (2.0 if level in {"Strong", "BoundedStaleness"} else 1.0)
