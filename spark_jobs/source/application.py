"""Whose the library's container is: what its document says, which jobs go by, and whether the job file says the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Self

from azure.cosmos import DatabaseProxy
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from exactlyonce.errors import ConfigurationError, StoredDataError
from exactlyonce.records.application import KIND, Application, OwnedType, read_application
from exactlyonce.stores.cosmos.layout import from_library
from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE, Retention
from spark_jobs.job.configuration import Job
from spark_jobs.job.problems import refusal


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the account says when a job begins.

    Attributes:
        now: the service's time, in seconds since 1970: ages are judged by it, since it also gives `_ts`.
        kept: age from which clean-up deletes what tells of a commit.
        judged: age up to which nothing can have been deleted that tells of a commit. Less than `kept` after a change.
        arrival: greatest age of a message that a consumer which goes by ages can have processed.
    """

    now: int
    kept: timedelta
    judged: timedelta
    arrival: timedelta

    @classmethod
    def of(cls, now: float, retention: Retention) -> Self:
        """As a retention has it at this time, in seconds since 1970."""
        present = datetime.fromtimestamp(now, timezone.utc)
        kept, judged = retention.kept(present), retention.judged(present)
        arrival = max(retention.current, retention.previous or retention.current) - AHEAD - CLOCK_TOLERANCE
        return cls(int(now), kept, judged, max(arrival, timedelta(0)))


def retention_of(database: DatabaseProxy, job: Job) -> Retention:
    """The retention of the application that a job works for.

    Raises:
        AzureError: the account refuses, or does not answer.
        ConfigurationError: there is no application, or the job file says something else than it does. Nothing was done.
    """
    try:
        found = database.get_container_client(job.library).read_item(KIND, KIND)
    except CosmosResourceNotFoundError:
        raise ConfigurationError(
            f"Container {job.library!r} does not say which application it belongs to, nor for how long messages are known. "
            "Correct `library` in the job file; or start the application once, which writes it down."
        ) from None
    try:
        application = read_application(from_library(dict(found)))
    except StoredDataError as error:
        raise ConfigurationError(str(error)) from None
    if problems := [*_problems(application, job)]:
        raise refusal(f"The job file says something else than application {application.name!r} does", problems)
    return application.retention


def _problems(application: Application, job: Job) -> Iterator[str]:
    types = [OwnedType(one.type, one.container, one.partition_key) for one in job.entities]
    yield from application.contradicted_by(types)
    for one in types:
        if application.place_of(one.type) is None:
            known = ", ".join(repr(known.type) for known in application.types) or "none"
            yield f"There is no entity type {one.type!r}; there are: {known}. Correct `type`, or start the application once."
