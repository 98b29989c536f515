"""The files of an audit's results, in one folder that is replaced as a whole."""

from __future__ import annotations

import json
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.report.contents import Contents
from spark_jobs.report.page import page
from spark_jobs.spark.folder import Folder, results_folder

TABLE, LINES, SUMMARY, PAGE = "findings.parquet", "findings.jsonl", "summary.json", "report.html"
_PART: Final = "part-"


def destination(spark: SparkSession, place: str) -> Folder:
    """The folder of the audit's results. Raises as `results_folder`."""
    return results_folder(spark, place, "an audit", {SUMMARY})


def write(folder: Folder, contents: Contents, findings: DataFrame) -> None:
    """Replace the results.

    Args:
        folder: see `destination`.
        contents: of summary and page.
        findings: all findings: `schemas.FINDING`.
    """
    with folder.replaced() as unfinished:
        findings.write.parquet(unfinished.place(TABLE))
        if contents.total:
            one_file = f"{_PART}{LINES}"
            findings.coalesce(1).write.option("ignoreNullFields", "false").json(unfinished.place(one_file))
            (found,) = (name for name in unfinished.inside(one_file).names() if name.startswith(_PART))
            unfinished.rename(f"{one_file}/{found}", LINES)
            unfinished.delete(one_file)
        else:
            unfinished.write(LINES, "")
        unfinished.write(SUMMARY, json.dumps(contents.summary(), indent=2, default=str) + "\n")
        unfinished.write(PAGE, page(contents))
