"""A clean-up whose tasks raise, and the one after it: in the end all is gone that has to go, and what is left is in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from spark_jobs.auditor.auditor import Auditor, Options
from spark_jobs.job.exits import AccountError
from spark_jobs.source.feed_ranges import Deleter
from spark_jobs.work import Work
from tests.spark.application import beginning
from tests.spark.cleaner.conftest import Shops, to_go
from tests.spark.cleaner.shop import DAY, HOUR, job

FEW = 3
WAVE = 10


class Halting(Deleter):
    """Every task that has more than a few documents raises after these."""

    def __call__(self, rows: Iterable[Any]) -> Iterator[Any]:
        rows = iter(rows)
        yield from super().__call__(islice(rows, FEW))
        if next(rows, None) is not None:
            raise AccountError("The account does not answer any more.")


def test_after_a_clean_up_whose_tasks_raise_half_way_the_next_one_ends_as_if_nothing_had_happened(
    shops: Shops, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, going = shops.documents(), to_go(shops, 30 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr("spark_jobs.source.feed_ranges.Deleter", Halting)
        with pytest.raises(AccountError, match="does not answer any more"):
            shops.clean(delete=True)
    left = going & set(shops.documents())
    assert FEW <= len(going - left) < len(left)
    assert set(before) - set(shops.documents()) == going - left

    assert shops.clean(delete=True, wave=WAVE).total("removed") == len(left) > 3 * WAVE
    assert shops.names("removed") == left
    assert set(shops.documents()) == set(before) - going
    assert sum(line.startswith("deleting from shops") for line in shops.lines.reported) == 4
    assert (shops.clean(delete=True).total("removed"), shops.listed) == (0, [])
    nothing_is_left_to_report(shops)


def nothing_is_left_to_report(shops: Shops) -> None:
    """After a clean-up of healthy data the audit finds nothing."""
    now = beginning(shops.cosmos.now() + HOUR // 2)
    audit = Auditor(Work(shops.spark, job(shops.database), shops.account, shops.source(), now, shops.lines))
    assert audit.run(Options(str(shops.folder / "audit"))).findings == ()
