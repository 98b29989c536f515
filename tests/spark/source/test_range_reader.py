"""What one task does to read a feed range, in this process: pages, trouble, splits, replicas that lag."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy

from exactlyonce import ConfigurationError
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.replicas import Lag
from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import AccountError
from spark_jobs.source.feed_ranges import FeedRange, RangeReader, RangeSplit
from tests.spark.conftest import PARTITIONS
from tests.spark.source.conftest import HASTE, Fault, Split, Tally

Documents = list[dict[str, Any]]
Asked = tuple[str, FeedRange]
"""A query, and the range of which it is asked."""
ALL = "SELECT c.id, c.pk, c.n, c.text FROM c"


@pytest.fixture
def reading(account: Account, database: DatabaseProxy, tally: Tally) -> RangeReader:
    return RangeReader(account, database.id, "items", tally, page=4, patience=HASTE)


@pytest.fixture
def ranges(container: ContainerProxy) -> list[Asked]:
    return [(ALL, item) for item in container.read_feed_ranges()]


def ids(pages: Iterator[list[tuple[str]]]) -> list[str]:
    return [json.loads(row)["id"] for page in pages for (row,) in page]


def all_ids(documents: Documents) -> list[str]:
    return sorted(document["id"] for document in documents)


def middle(item: FeedRange) -> str:
    """The hash in the middle of a range."""
    low, high = (item["Range"][end] for end in ("min", "max"))
    return f"{(int(low or '0', 16) + int(high.ljust(32, 'F'), 16)) // 2:032X}"


def test_rows_come_while_later_pages_have_not_been_asked_for(
    reading: RangeReader, ranges: list[Asked], documents: Documents, tally: Tally
) -> None:
    rows = reading(ranges)
    next(rows)
    assert tally.requests == 1
    rows.close()  # type: ignore[attr-defined]


def test_a_page_is_asked_for_once_the_one_before_is_paid(
    reading: RangeReader, ranges: list[Asked], documents: Documents, tally: Tally, waits: list[float]
) -> None:
    assert len(ids(replace(reading, rate=10.0)(ranges))) == 60
    assert sum(waits) == pytest.approx(sum(units for _, units in tally.counted[:-1]) / 10)


@pytest.mark.parametrize(
    "trouble",
    [
        {"action": "status", "status": 429, "retry_after_ms": 1},
        {"action": "status", "status": 449},
        {"action": "status", "status": 410},
        {"action": "status", "status": 410, "substatus": 1002},
        {"action": "status", "status": 503},
        {"action": "close"},
        {"action": "reset"},
        {"action": "truncate", "when": "after"},
    ],
    ids=lambda trouble: "-".join(str(part) for part in trouble.values()),
)
def test_trouble_that_passes_costs_no_row_and_repeats_none(
    reading: RangeReader,
    ranges: list[Asked],
    documents: Documents,
    fault: Fault,
    trouble: dict[str, Any],
) -> None:
    fault(**{"operations": ("query",), "when": "before", "skip": 3, "times": 2, **trouble})
    assert sorted(ids(reading(ranges))) == all_ids(documents)


def test_a_container_that_is_absent_is_named(reading: RangeReader, ranges: list[Asked]) -> None:
    with pytest.raises(ConfigurationError, match="no such thing as the container 'boards'"):
        list(replace(reading, container="boards")(ranges))


def test_a_query_that_the_service_does_not_understand_is_no_empty_result(
    reading: RangeReader, ranges: list[Asked]
) -> None:
    with pytest.raises(AccountError, match="400/"):
        list(reading(("SELECT c.id FROM c WHERE !", item) for _, item in ranges))


def test_a_split_between_pages_makes_the_task_start_over(
    reading: RangeReader, ranges: list[Asked], documents: Documents, split: Split
) -> None:
    rows = reading([ranges[0]])
    (first, *_) = ids(iter([next(rows)]))
    split(0)
    with pytest.raises(RangeSplit, match="container 'items' split"):
        list(rows)
    again = ids(reading([ranges[0]]))
    assert first in again
    others = [id for item in ranges[1:] for id in ids(reading([item]))]
    assert sorted(again + others) == all_ids(documents)


def test_ranges_that_are_no_partitions_any_more_miss_and_repeat_nothing(
    reading: RangeReader, ranges: list[Asked], documents: Documents
) -> None:
    wholes = [whole for _, whole in ranges]
    cuts = ["", *map(middle, wholes), "FF"]  # As if partitions had been merged and split elsewhere.
    others = [{"Range": {**wholes[0]["Range"], "min": low, "max": high}} for low, high in pairwise(cuts)]
    parts = [ids(reading([(ALL, other)])) for other in others]
    assert all(parts[:PARTITIONS])  # No hash is as high as the last of these ranges.
    assert sorted(id for part in parts for id in part) == all_ids(documents)


def test_a_job_reads_without_tokens_and_may_see_what_a_replica_has(
    reading: RangeReader,
    ranges: list[Asked],
    container: ContainerProxy,
    cosmos: RunningEmulator,
    database: DatabaseProxy,
) -> None:
    cosmos.set_lag(database.id, "items", Lag(writes=1000))
    container.create_item({"id": "young", "pk": "p"})
    assert ids(reading(ranges)) == []
    cosmos.set_lag(database.id, "items")
    assert ids(reading(ranges)) == ["young"]
