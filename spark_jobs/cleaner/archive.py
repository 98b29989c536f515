"""The archive: documents that are about to be deleted, as a whole, in Parquet.

Only what is in the archive is deleted, with the ETag that it has there. So a document that changes in between stays, and the
archive holds every document that was deleted; it may hold others, that were not.
"""

from __future__ import annotations

from datetime import datetime, timezone
from functools import reduce
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.cleaner.scan import Looks
from spark_jobs.spark.folder import Folder

ARCHIVED: Final = ("container", "kind", "entity", "message", "tx", "partition", "id", "etag", "ts", "document")
"""Columns of an archive. `document` is the JSON text of all of it, whatever properties it has."""


def archive(spark: SparkSession, place: str, looks: Looks, going: DataFrame, containers: list[str]) -> DataFrame:
    """Write a new archive into a folder, and read it back.

    Args:
        spark: the session.
        place: the folder, which may hold archives of other runs.
        looks: reads the documents anew.
        going: what is to be deleted, as `verdicts.JUDGED`.
        containers: in which there is anything to delete.

    Returns:
        What was written, with the columns of `ARCHIVED`.

    Raises:
        ConfigurationError: the folder cannot be written. Nothing was deleted.
    """
    folder = Folder(spark, place)
    folder.make()
    at = datetime.fromtimestamp(looks.beginning.now, timezone.utc)
    name = folder.place(f"{at:%Y-%m-%dT%H%M%SZ}-{uuid4().hex[:8]}.parquet")
    found = []
    for container in containers:
        whole = looks.whole(container)
        found.append(going.where(going.container == container).join(whole, ["entity", "id", "etag"]))
    reduce(DataFrame.unionByName, found).select(*ARCHIVED).write.parquet(name)
    return spark.read.parquet(name)
