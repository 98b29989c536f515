"""What an audit leaves for people and programs, in one folder that is there as a whole or not at all."""

from __future__ import annotations

import json
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.report.contents import Contents
from spark_jobs.report.page import page
from spark_jobs.spark.folder import Folder

TABLE, LINES, SUMMARY, PAGE = "findings.parquet", "findings.jsonl", "summary.json", "report.html"
_PART: Final = "part-"


def destination(spark: SparkSession, place: str) -> Folder:
    """The folder that the audit's results go to.

    Raises:
        ConfigurationError: it holds something else than the results of an earlier audit, or cannot be written.
    """
    folder = Folder(spark, place)
    names = folder.names()
    if names and SUMMARY not in names:
        raise ConfigurationError(
            f"{folder} holds something else than results of an audit, which would be deleted: name another folder with --out."
        )
    folder.make()
    return folder


def write(folder: Folder, contents: Contents, findings: DataFrame) -> None:
    """Put the results in the place of those that were there.

    Args:
        folder: see `destination`.
        contents: of summary and page.
        findings: all of them, `schemas.FINDING`.
    """
    unfinished = folder.beside()
    try:
        findings.write.parquet(unfinished.place(TABLE))
        one_file = f"{_PART}{LINES}"
        findings.coalesce(1).write.option("ignoreNullFields", "false").json(unfinished.place(one_file))
        parts = unfinished.inside(one_file)
        found = next((name for name in parts.names() if name.startswith(_PART)), None)
        if found is None:
            unfinished.write(LINES, "")
        else:
            unfinished.rename(f"{one_file}/{found}", LINES)
        unfinished.delete(one_file)
        unfinished.write(SUMMARY, json.dumps(contents.summary(), indent=2, default=str) + "\n")
        unfinished.write(PAGE, page(contents))
        folder.replace_by(unfinished)
    except BaseException:
        unfinished.discard()
        raise
