"""Jobs go by what the application wrote down: where its entities live, and for how long messages are known."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from exactlyonce import ConfigurationError
from exactlyonce.values.lifetimes import Retention
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.job.configuration import Account, Job
from spark_jobs.source.account import Beginning, ready
from tests.spark.application import own

DAY = timedelta(days=1)
NOW = datetime(2026, 1, 20, tzinfo=timezone.utc)


@pytest.fixture
def job(database: DatabaseProxy) -> Job:
    for container in ("games", "boards"):
        database.create_container(container, PartitionKey("/id"))
    database.create_container("exactlyonce", PartitionKey("/pk"))
    return a_job(database.id)


def a_job(database: str, **types: str) -> Job:
    places = [
        {"type": type, "container": item, "protocol": "outbox"} for type, item in (types or {"game": "games"}).items()
    ]
    return Job.read({"database": database, "entities": places})


def refusal(job: Job, account: Account) -> str:
    with pytest.raises(ConfigurationError) as caught:
        ready(job, account)
    return str(caught.value)


def test_a_container_that_does_not_say_whose_it_is_stops_a_job(job: Job, account: Account) -> None:
    assert "start the application once" in refusal(job, account)


def test_a_job_file_that_says_something_else_is_refused_with_all_that_differs(
    job: Job, account: Account, cosmos: RunningEmulator
) -> None:
    own(cosmos, job)
    text = refusal(a_job(job.database, game="boards", board="boards"), account)
    assert "Entities of type 'game' live in container 'games', not in 'boards'" in text
    assert "There is no entity type 'board'; there are: 'game'" in text


def test_a_document_that_cannot_be_trusted_stops_a_job(
    job: Job, account: Account, cosmos: RunningEmulator, database: DatabaseProxy
) -> None:
    own(cosmos, job)
    library = database.get_container_client("exactlyonce")
    document: dict[str, Any] = dict(library.read_item("application", "application"))
    library.upsert_item({**document, "schema": 2})
    assert "has schema version 2" in refusal(job, account)
    library.upsert_item({**document, "retention": "P1D"})
    assert "is damaged" in refusal(job, account)


def test_the_retention_is_the_applications(job: Job, account: Account, cosmos: RunningEmulator) -> None:
    own(cosmos, job, Retention(20 * DAY))
    begun = ready(job, account, cosmos.now)
    assert (begun.kept, begun.judged) == (20 * DAY, 20 * DAY)


def test_after_it_was_shortened_the_longer_one_is_kept_for_a_day() -> None:
    shortened = Retention(20 * DAY, 30 * DAY, NOW)
    assert beginning(shortened, DAY / 2) == (30 * DAY, 20 * DAY)
    assert beginning(shortened, 2 * DAY) == (20 * DAY, 20 * DAY)


def test_after_it_was_lengthened_what_went_before_is_still_gone() -> None:
    lengthened = Retention(40 * DAY, 30 * DAY, NOW)
    assert beginning(lengthened, 5 * DAY) == (40 * DAY, 30 * DAY)
    kept, judged = beginning(lengthened, 36 * DAY)
    assert kept == 40 * DAY
    assert 30 * DAY < judged <= 36 * DAY
    assert beginning(lengthened, 43 * DAY) == (40 * DAY, 40 * DAY)


def beginning(retention: Retention, later: timedelta) -> tuple[timedelta, timedelta]:
    begun = Beginning.of((NOW + later).timestamp(), retention)
    return begun.kept, begun.judged
