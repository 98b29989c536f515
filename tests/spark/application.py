"""Who owns the databases of tests, and by which retention."""

from __future__ import annotations

from datetime import timedelta

from azure.cosmos import CosmosClient

from exactlyonce.records.application import DEFAULT_NAME, KIND, OwnedType, application_document, application_of
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH
from exactlyonce.values.lifetimes import RETENTION, Retention
from local_cosmos.administration import Administration
from spark_jobs.job.configuration import Job
from spark_jobs.source.application import Beginning


def beginning(now: float, retention: timedelta = RETENTION) -> Beginning:
    """A job that begins now, where the retention never changed. It may be as short as a test likes."""
    return Beginning.of(now, Retention(retention))


def own(cosmos: Administration, job: Job, retention: Retention | None = None) -> None:
    """Write down whose a job's library container is, as the first start of the application does."""
    types = [OwnedType(entity.type, entity.container, entity.partition_key) for entity in job.entities]
    document = application_document(application_of(DEFAULT_NAME, types, retention or Retention()))
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        library = client.get_database_client(job.database).get_container_client(job.library)
        library.upsert_item({"id": KIND, LIBRARY_PATH[1:]: KIND, **document})
