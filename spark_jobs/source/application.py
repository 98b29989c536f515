"""The application that owns the library container: its retention, and the check of the job file against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Self

from azure.cosmos import DatabaseProxy
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from exactlyonce.errors import ConfigurationError, StoredDataError
from exactlyonce.records.application import KIND, Application, OwnedType, read_application
from exactlyonce.stores.cosmos.partition import from_library
from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE, Retention
from spark_jobs.job.configuration import Job
from spark_jobs.job.problems import refusal


@dataclass(frozen=True, slots=True)
class Beginning:
    """The service's time and the ages by which a job judges, as of its beginning.

    Attributes:
        now: the service's time, in seconds since 1970: ages are judged by it, since it also gives `_ts`.
        kept: age from which clean-up deletes records of a commit.
        judged: age up to which no record of a commit can have been deleted. Less than `kept` after a change.
        arrival: greatest age of a message that a consumer can have processed, if it refuses older ones.
        whole: whether the job file names all entity types of the application.
    """

    now: int
    kept: timedelta
    judged: timedelta
    arrival: timedelta
    whole: bool = True

    @classmethod
    def of(cls, now: float, retention: Retention, *, whole: bool = True) -> Self:
        """The ages that follow from a retention at this time, in seconds since 1970. `whole` as the attribute."""
        present = datetime.fromtimestamp(now, timezone.utc)
        kept, judged = retention.kept(present), retention.judged(present)
        arrival = max(retention.current, retention.previous or retention.current) - AHEAD - CLOCK_TOLERANCE
        return cls(int(now), kept, judged, max(arrival, timedelta(0)), whole)


def owner_of(database: DatabaseProxy, job: Job) -> Application:
    """The job's application.

    Raises:
        AzureError: the account refuses, or does not answer.
        ConfigurationError: there is no application, or the job file contradicts it.
    """
    try:
        found = database.get_container_client(job.library).read_item(KIND, KIND)
    except CosmosResourceNotFoundError:
        raise ConfigurationError(
            f"Container {job.library!r} names no application, and so no retention. Correct `library` in the job file; or start "
            "the application once, which writes both into it."
        ) from None
    try:
        application = read_application(from_library(dict(found)))
    except StoredDataError as error:
        raise ConfigurationError(str(error)) from None
    if problems := [*_problems(application, job)]:
        raise refusal(f"The job file contradicts application {application.name!r}", problems)
    return application


def _problems(application: Application, job: Job) -> Iterator[str]:
    types = [OwnedType(entity.type, entity.container, entity.partition_key) for entity in job.entities]
    yield from application.contradicted_by(types)
    for kind in types:
        if application.place_of(kind.type) is None:
            known = ", ".join(repr(known.type) for known in application.types) or "none"
            yield f"There is no entity type {kind.type!r}; there are: {known}. Correct `type`, or start the application once."
