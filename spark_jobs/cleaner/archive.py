"""The archive: whole documents in Parquet, written before they are deleted.

Only archived documents are deleted, with the ETag that they have in the archive. So a document that changes in between stays,
and the archive holds every deleted document; it may hold others.
"""

from __future__ import annotations

from datetime import datetime, timezone
from functools import reduce
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame

from spark_jobs.cleaner.scan import Scan
from spark_jobs.spark.folder import Folder

ARCHIVED: Final = ("container", "kind", "entity", "message", "tx", "partition", "id", "etag", "ts", "document")
"""Columns of an archive. `document` is the JSON text of the whole document."""


def archive(place: str, scan: Scan, going: DataFrame, containers: list[str]) -> DataFrame:
    """Write a new archive into a folder, and read it again.

    Args:
        place: the folder, which may hold archives of other runs.
        scan: reads the documents again.
        going: the documents to delete: `verdicts.JUDGED`.
        containers: their containers.

    Returns:
        The archived documents: the columns of `ARCHIVED`.

    Raises:
        ConfigurationError: the folder cannot be written. Nothing was deleted.
    """
    folder = Folder(scan.work.spark, place)
    folder.make()
    at = datetime.fromtimestamp(scan.work.beginning.now, timezone.utc)
    name = folder.place(f"{at:%Y-%m-%dT%H%M%SZ}-{uuid4().hex[:8]}.parquet")
    found = []
    for container in containers:
        whole = scan.whole(container)
        found.append(going.where(going.container == container).join(whole, ["entity", "id", "etag"]))
    reduce(DataFrame.unionByName, found).select(*ARCHIVED).write.parquet(name)
    scan.release()
    return scan.work.spark.read.parquet(name)
