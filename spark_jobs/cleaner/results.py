"""What a clean-up leaves for people and programs, in one folder that is there as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.cleaner.summary import Summary
from spark_jobs.spark.folder import Folder

TABLE, SUMMARY, BLOBS = "documents.parquet", "summary.json", "blobs.txt"
_OURS: Final = frozenset({TABLE, SUMMARY})


def destination(spark: SparkSession, place: str) -> Folder:
    """The folder that the results go to.

    Raises:
        ConfigurationError: it holds something else than the results of an earlier clean-up, or cannot be written.
    """
    folder = Folder(spark, place)
    names = set(folder.names())
    if names and not names >= _OURS:
        raise ConfigurationError(
            f"{folder} holds something else than results of a clean-up, which would be deleted: name another folder with --out."
        )
    folder.make()
    return folder


def write(folder: Folder, summary: Summary, documents: DataFrame, blobs: Iterable[str]) -> None:
    """Put the results in the place of those that were there.

    Args:
        folder: see `destination`.
        summary: what to tell.
        documents: that go, or were to go: the columns of `verdicts.JUDGED` and `result`.
        blobs: names of those.
    """
    unfinished = folder.beside()
    try:
        documents.write.parquet(unfinished.place(TABLE))
        unfinished.write(SUMMARY, json.dumps(summary.json(), indent=2) + "\n")
        if summary.blobs is not None:
            unfinished.write(BLOBS, "".join(f"{name}\n" for name in blobs))
        folder.replace_by(unfinished)
    except BaseException:
        unfinished.discard()
        raise
