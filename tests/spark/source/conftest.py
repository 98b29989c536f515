"""A container with documents in several physical partitions, and ways to disturb those who read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.faults import FaultRule
from spark_jobs.source.pace import Allowance, Patience
from spark_jobs.source.port import Spent
from tests.spark.conftest import PARTITIONS

HASTE = Patience(sends=4, first=0.0, longest=0.0)
"""As often as it takes, and at once."""

Fault = Callable[..., int]
Split = Callable[..., None]
Sent = Callable[[], Counter[str]]
SplitDuring = Callable[[Callable[[], list[str]]], list[str]]


def hits(cosmos: RunningEmulator) -> int:
    """How many requests met a fault."""
    return sum(item.hit for item in cosmos.faults())


def answered(status: int, retry_after: str | None = None) -> CosmosHttpResponseError:
    """What the SDK raises for a status; `retry_after` in milliseconds."""
    error = CosmosHttpResponseError(status_code=status, message="")  # type: ignore[no-untyped-call]
    error.headers = {} if retry_after is None else {"x-ms-retry-after-ms": retry_after}
    return error


class Tally(Spent):
    """What the requests of one process gave and cost, and that of each."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[tuple[int, float]] = []

    def count(self, rows: int, units: float) -> None:
        super().count(rows, units)
        self.counted.append((rows, units))


class Time:
    """A clock that only moves when somebody waits, or when it is set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def container(database: DatabaseProxy) -> ContainerProxy:
    """A container with the partition key `/pk`, in several physical partitions."""
    return database.create_container("items", PartitionKey("/pk"), default_ttl=-1)


@pytest.fixture
def documents(container: ContainerProxy) -> list[dict[str, Any]]:
    """Sixty documents, three in each of twenty logical partitions, as the service has them."""
    return [
        dict(container.create_item({"id": f"d{number}", "pk": f"p{number % 20}", "n": number, "text": 'a"ö\n'}))
        for number in range(60)
    ]


@pytest.fixture
def fault(cosmos: RunningEmulator, database: DatabaseProxy) -> Fault:
    """Arms a fault rule for the test's database; they are disarmed afterwards."""
    return lambda **rule: cosmos.add_fault(FaultRule(database.id, **rule))


@pytest.fixture
def split(cosmos: RunningEmulator, database: DatabaseProxy) -> Split:
    """Splits physical partitions of the container, by their numbers."""

    def split(*partitions: int) -> None:
        for partition in partitions:
            cosmos.split(database.id, "items", str(partition))

    return split


@pytest.fixture
def split_during(cosmos: RunningEmulator, fault: Fault, split: Split) -> SplitDuring:
    """Splits all physical partitions while something reads: some pages were given, and one is waited for."""

    def split_during(read: Callable[[], list[str]]) -> list[str]:
        hanging = fault(operations=("query",), when="before", action="hang", skip=4, times=1)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            while not hits(cosmos) and not reading.done():
                pass
            split(*range(PARTITIONS))
            cosmos.remove_fault(hanging)
            return reading.result()

    return split_during


@pytest.fixture
def sent(cosmos: RunningEmulator, database: DatabaseProxy) -> Sent:
    """Counts the requests for the test's database, by operation."""
    return lambda: Counter(request.operation for request in cosmos.requests() if request.database == database.id)


@pytest.fixture
def waits(time: Time, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of tasks that keep to a rate; they take no time."""
    monkeypatch.setattr("spark_jobs.source.feed_ranges.Allowance", lambda rate: Allowance(rate, time, time.wait))
    return time.waits
