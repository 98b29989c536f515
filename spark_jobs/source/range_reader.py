"""One task's reads of feed ranges. Plain Python, without Spark.

A feed range is an interval of hashed partition keys, so a split of physical partitions does not change it. It does confuse
the SDK: if a partition splits between two pages, azure-cosmos 4.17 returns to the beginning of the range and gives the first
rows again (measured). So a task reads each whole partition by itself, and fails when a page comes from another partition:
Spark runs the task again, and forgets the rows of the first run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from azure.core.exceptions import AzureError
from azure.cosmos import ContainerProxy

from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import AccountError
from spark_jobs.source.account import connected, container_of, refusal
from spark_jobs.source.pace import Allowance, Patience, insist, is_refused_for_now, is_without_answer
from spark_jobs.source.port import Meter, charge_of

PAGE: Final = 1000
"""Most rows of a page; the service ends one at 4 MB as well."""

_PARTITION: Final = "x-ms-documentdb-partitionkeyrangeid"

FeedRange = dict[str, Any]
"""As azure-cosmos 4.17 gives it: `{"Range": {"min": hash, "max": hash, "isMinInclusive": true, "isMaxInclusive": false}}`."""
_compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class RangeSplit(AccountError):
    """A physical partition split during the read; the task has to start over."""


@dataclass(frozen=True, slots=True)
class _Page:
    rows: list[str]
    continuation: str | None
    partitions: frozenset[str]


@dataclass(frozen=True)
class RangeReader:
    """Reads feed ranges; Spark ships it to each task.

    Attributes:
        account: address and identity.
        database, container: names.
        meter: counts rows and RU.
        rate: RU per second that this task may spend; None for no limit.
        page: most rows of a page.
        patience: with requests that are not answered.
    """

    account: Account
    database: str
    container: str
    meter: Meter = field(repr=False)
    rate: float | None = None
    page: int = PAGE
    patience: Patience = field(default_factory=Patience)

    def __call__(self, asked: Iterable[tuple[str, FeedRange]]) -> Iterator[list[tuple[str]]]:
        """The rows of queries of ranges, each as its JSON text, a page at a time.

        Raises:
            AccountError: the account does not answer for longer than patience lasts, or refuses.
            RangeSplit: a partition split; the rows yielded so far are void.
        """
        allowance = Allowance(self.rate)
        with connected(self.account) as client:
            container = container_of(client, self.database, self.container)
            for text, one in asked:
                for part in self._insist(partial(_parts, container, one)):
                    yield from self._pages(container, text, part, allowance)

    def _pages(
        self, container: ContainerProxy, text: str, part: FeedRange, allowance: Allowance
    ) -> Iterator[list[tuple[str]]]:
        continuation: str | None = None
        seen: frozenset[str] = frozenset()
        while True:
            allowance.wait()
            page = self._insist(partial(self._page, container, text, part, continuation, allowance))
            seen |= page.partitions
            if len(seen) > 1:
                raise RangeSplit(
                    f"A partition of the container {self.container!r} split during the read. Spark runs the task again; if it "
                    "gives up, run the job again."
                )
            yield [(row,) for row in page.rows]
            if not page.continuation:
                return
            continuation = page.continuation

    def _page(
        self, container: ContainerProxy, text: str, part: FeedRange, continuation: str | None, allowance: Allowance
    ) -> _Page:
        replies: list[dict[str, Any]] = []
        pages = container.query_items(
            text,
            feed_range=part,
            max_item_count=self.page,
            response_hook=lambda headers, _: replies.append(dict(headers)),
        ).by_page(continuation)
        rows = [_text(row) for row in next(pages, ())]
        units = sum(map(charge_of, replies))
        allowance.spend(units)
        self.meter.count(len(rows), units)
        partitions = frozenset(str(headers[_PARTITION]) for headers in replies if headers.get(_PARTITION))
        return _Page(rows, pages.continuation_token, partitions)  # type: ignore[attr-defined]

    def _insist(self, request: Callable[[], Any]) -> Any:
        what = f"the container {self.container!r} of database {self.database!r}"
        try:
            return insist(request, what, passes=_passes, patience=self.patience)
        except AzureError as error:
            raise refusal(error, what) from None


def _text(row: object) -> str:
    """The JSON text of a row. What no Unicode text can hold, half of a surrogate pair, is escaped in it."""
    return _compact(row).encode("utf-8", "backslashreplace").decode()


def _passes(error: BaseException) -> bool:
    return is_refused_for_now(error) or is_without_answer(error)


def ranges_of(container: ContainerProxy) -> list[FeedRange]:
    """A container's physical partitions as of now. Without `force_refresh`, the SDK remembers them for the whole process."""
    return list(container.read_feed_ranges(force_refresh=True))


def _parts(container: ContainerProxy, whole: FeedRange) -> list[FeedRange]:
    """A range cut at the bounds of the present partitions. Hashes sort as text."""
    parts = []
    for partition in ranges_of(container):
        bounds = partition["Range"]
        low, high = max(bounds["min"], whole["Range"]["min"]), min(bounds["max"], whole["Range"]["max"])
        if low < high:
            parts.append({"Range": {**bounds, "min": low, "max": high}})
    return parts
