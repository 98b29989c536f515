"""Where the application is younger than the retention, nothing may have expired; where it is older, anything may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame

from exactlyonce.values.identity import message_key
from spark_jobs.transforms.facts import facts_in
from spark_jobs.transforms.rules import ALL
from tests.spark.transforms.conftest import Kept, all_findings, as_findings
from tests.spark.transforms.damaged_cases import NOBODY
from tests.spark.transforms.dumping import rows
from tests.spark.transforms.planting import (
    DAY,
    LIMITS,
    NOW,
    channel,
    channel_of,
    outbox,
    reader,
    receiver,
    seconds,
    told,
    with_entries,
)
from tests.spark.transforms.planting import kept as kept_of

RULES = [rule for rule in ALL if rule.name in ("ledger_hole", "dedup_expired_early", "count_mismatch")]
Findings = Callable[[timedelta], set[tuple[str, tuple[int, ...], str | None]]]


@pytest.fixture(scope="module")
def documents(kept: Kept) -> DataFrame:
    """An outbox whose first records are gone, a read model whose first numbers are, and two receivers of numbers.

    Of the one a record is gone; of the other all is known, and of one message twice.
    """
    shop, board = outbox("shop"), reader("board")
    del shop.records[:2], board.companions[:2]
    lacking, whole = (receiver(case, channel(NOBODY, (1, 3), (5, 6)), version=7) for case in ("lacking", "whole"))
    lacking = with_entries(lacking, told(lacking.entity, 7, 2 * DAY))
    whole.records.append((kept_of(whole.entity, told(whole.entity, 2, 3 * DAY)), 3 * DAY))
    pictured = told(whole.entity, 4, 3 * DAY, message=message_key(NOBODY, "m"))
    whole = with_entries(whole, pictured, told(whole.entity, 7, 2 * DAY))
    return kept(rows([one for planted in (shop, board, lacking, whole) for one in planted.stored()]))


@pytest.fixture
def found(documents: DataFrame) -> Findings:
    """What the rules find if the application went live so long ago."""

    def find(age: timedelta) -> set[tuple[str, tuple[int, ...], str | None]]:
        limits = replace(LIMITS, live_since=NOW - age)
        frame = all_findings(facts_in(documents), limits, seconds(), RULES)
        return {(one.rule, one.versions, one.subject) for one in as_findings(frame)}

    return find


def test_within_the_retention_what_is_missing_from_the_beginning_is_found(found: Findings) -> None:
    assert found(timedelta(days=20)) == {
        ("dedup_expired_early", (1, 2), None),
        ("ledger_hole", (), f"{channel_of(NOBODY)} 1-2"),
        ("count_mismatch", (7,), None),
    }


def test_before_the_retention_it_may_have_expired(found: Findings) -> None:
    assert found(timedelta(days=31)) == set()
