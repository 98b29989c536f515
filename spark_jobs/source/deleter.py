"""One task's deletes, each on condition of the document's ETag. Plain Python, without Spark.

Documents of one logical partition are deleted in batches of up to a hundred. A batch is all or nothing: where one document
has changed or is gone, the task deletes them one by one. Measured on the local Cosmos, a batch costs what its deletes cost:
it saves requests, and no request units.

A delete without an answer is not sent again: the second answer would say that the document is gone, and not why. (The SDK
does so after a 503 all the same, so `gone` may mean that an earlier send of this task was applied.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Any, Final, Protocol, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from exactlyonce.stores.cosmos.partition import MAX_BATCH_OPERATIONS
from exactlyonce.stores.cosmos.replies import headers_of
from spark_jobs.job.configuration import Account
from spark_jobs.job.exits import UnsafeError
from spark_jobs.source.account import connected, container_of, refusal
from spark_jobs.source.pace import Allowance, Patience, insist, is_refused_for_now, is_without_answer
from spark_jobs.source.port import Meter, Outcome, charge_of

_NO_CONTAINER: Final = 1003
_REFUSED: Final = {404: Outcome.GONE, 412: Outcome.CHANGED}

Item = TypeVar("Item")


class Named(Protocol):
    """A row that names a document by `partition`, `id` and `etag`."""

    def __getitem__(self, name: str, /) -> Any:
        """The value of a column."""
        ...


Row = TypeVar("Row", bound=Named)


@dataclass(frozen=True)
class Deleter:
    """Deletes documents; Spark ships it to each task.

    Attributes:
        account: address and identity.
        database, container: names.
        meter: counts documents deleted and RU.
        rate: RU per second that this task may spend; None for no limit.
        patience: with requests that are refused for now.
    """

    account: Account
    database: str
    container: str
    meter: Meter = field(repr=False)
    rate: float | None = None
    patience: Patience = field(default_factory=Patience)

    def __call__(self, rows: Iterable[Row]) -> Iterator[tuple[Row, Outcome]]:
        """Delete documents; yields each row with its outcome.

        Args:
            rows: name documents; those of one logical partition next to each other.

        Raises:
            AccountError: the account refuses, or throttles for longer than patience lasts.
            ConfigurationError: there is no such container.
            UnsafeError: a row has no id or no ETag, so that its delete would have no condition.
        """
        with connected(self.account) as client:
            container = container_of(client, self.database, self.container)
            one = _Partition(self, container, Allowance(self.rate))
            for partition, inside in groupby(rows, key=lambda row: row["partition"]):
                values = json.loads(partition)
                for batch in _chunks(inside, MAX_BATCH_OPERATIONS):
                    self._require_conditions(batch)
                    yield from zip(batch, one.outcomes(values, batch), strict=True)

    def _require_conditions(self, batch: Iterable[Named]) -> None:
        """Refuse rows without an ETag: the SDK would delete without a condition."""
        if not all(row["id"] and row["etag"] for row in batch):
            raise UnsafeError(
                f"A document of the container {self.container!r} was to be deleted without its id or the ETag it had. Jobs "
                "delete only documents that have not changed since they were read."
            )


@dataclass(frozen=True, slots=True)
class _Partition:
    task: Deleter
    container: ContainerProxy
    allowance: Allowance

    def outcomes(self, values: list[Any], batch: Sequence[Named]) -> list[Outcome]:
        """The outcomes of documents of one logical partition."""
        key = values if len(values) > 1 else values[0]
        if len(batch) > 1:
            together = self._outcome(partial(self._delete_all, key, batch), len(batch))
            if together in (Outcome.DELETED, Outcome.UNKNOWN):
                return [together] * len(batch)
        return [self._outcome(partial(self._delete, key, row), 1) for row in batch]

    def _outcome(self, request: Callable[[], float], rows: int) -> Outcome:
        what = f"the container {self.task.container!r} of database {self.task.database!r}"
        self.allowance.wait()
        try:
            units = insist(request, what, passes=is_refused_for_now, patience=self.task.patience)
        except AzureError as error:
            self._spend(0, charge_of(headers_of(error)))
            if is_without_answer(error):
                return Outcome.UNKNOWN
            return _refused(error, what)
        self._spend(rows, units)
        return Outcome.DELETED

    def _delete_all(self, key: Any, batch: Sequence[Named]) -> float:
        """Delete all or none; returns the RU charged."""
        deletes = [("delete", (row["id"],), {"if_match_etag": row["etag"]}) for row in batch]
        reply = self.container.execute_item_batch(deletes, partition_key=key)
        return charge_of(reply.get_response_headers())

    def _delete(self, key: Any, row: Named) -> float:
        """Delete one document; returns the RU charged."""
        replies: list[Mapping[str, Any]] = []
        self.container.delete_item(
            row["id"],
            key,
            etag=row["etag"],
            match_condition=MatchConditions.IfNotModified,
            response_hook=lambda headers, _: replies.append(headers),
        )
        return sum(map(charge_of, replies))

    def _spend(self, rows: int, units: float) -> None:
        self.allowance.spend(units)
        self.task.meter.count(rows, units)


def _refused(error: AzureError, what: str) -> Outcome:
    if isinstance(error, CosmosHttpResponseError | CosmosBatchOperationError) and error.sub_status != _NO_CONTAINER:
        outcome = _REFUSED.get(error.status_code or 0)
        if outcome is not None:
            return outcome
    raise refusal(error, what) from None


def _chunks(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """Items in lists of at most so many."""
    while chunk := list(islice(items, size)):
        yield chunk
