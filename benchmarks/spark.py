"""How long the audit takes on 10,000 to 1,000,000 records, or to 10,000,000: `python -m benchmarks.spark`.

Synthetic games, each with a page of ten marks, on two cores and 4 GiB: all of it, and then what changed when one game in a
hundred went on, and at most 5,000. The start of Spark is left out. Writes the result, and a table of docs/performance.md. Fails
if the time grows faster than the data, if 1,000,000 records take longer than they may, or if an incremental audit of 10,000,000
takes a tenth of a full one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from benchmarks.report import exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.spark_data import AT, JOB, LATER, Tables, generate
from benchmarks.tables import spark_table
from exactlyonce.values.lifetimes import Retention
from spark_jobs.auditor.auditor import Auditor, Options
from spark_jobs.job.configuration import Account
from spark_jobs.report.contents import Contents
from spark_jobs.report.progress import Lines
from spark_jobs.source.account import Beginning
from spark_jobs.spark.session import local_session
from spark_jobs.work import Work

SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
USUAL: Final = 1_000_000
"""The largest, unless another is asked for: ten times as many take ten minutes more, and 10 GB of disk."""
WARMING: Final = 1_000
MEMORY: Final = "4g"
MOST: Final = {"full": 35.0, "incremental": 4.0}
"""Seconds that an audit of `USUAL` records may take on two cores."""
MOST_OF_FULL: Final = 0.1
"""Share of the time of a full audit of more that an incremental one may take, after one change in a hundred. Of fewer records
it is most of what any audit takes, to plan and to write."""


def main() -> int:
    """Measure, print and write everything."""
    made = parser("spark", __doc__)
    made.add_argument("--largest", type=int, default=USUAL, choices=SIZES, help="default: %(default)s")
    options = parsed(made, "spark")
    result: dict[str, Any] = {"machine": machine(), "memory": MEMORY, "unit": "seconds", "audits": {}}
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory {MEMORY} pyspark-shell"
    spark = local_session("benchmark", cores=2)
    with tempfile.TemporaryDirectory() as folder:
        measure(spark, Path(folder), WARMING)
        for records in (size for size in SIZES if size <= options.largest):
            result["audits"][str(records)] = measure(spark, Path(folder), records)
            print(records, json.dumps(result["audits"][str(records)]), flush=True)
    spark.stop()
    write_result(options.output, result)
    write_section(options.page, "spark", spark_table(result))
    return exit_code(too_slow(result))


def measure(spark: SparkSession, folder: Path, records: int) -> dict[str, float]:
    """Seconds of a full audit, and of the incremental one after it. Raises `RuntimeError` if one is not what it should be."""
    place = folder / str(records)
    seconds = {}
    for mode, now, changed in (("full", AT + 3600 * 12, False), ("incremental", LATER + 3600 * 12, True)):
        generate(spark, place / mode, records, changed=changed)
        begun = time.monotonic()
        contents = _audit(spark, place, mode, now)
        seconds[mode] = round(time.monotonic() - begun, 2)
        if contents.mode != mode or contents.total:
            raise RuntimeError(
                f"The {mode} audit of {records:,} records was {contents.mode}, with {contents.total} findings."
            )
    return seconds


def too_slow(result: Mapping[str, Any]) -> Iterator[str]:
    """What takes longer than it may."""
    sizes = sorted(map(int, result["audits"]))
    for smaller, larger in pairwise(sizes):
        before, after = (result["audits"][str(size)]["full"] for size in (smaller, larger))
        if after / before > larger / smaller:
            yield f"{larger:,} records take {after} s and {smaller:,} {before} s: more than in proportion."
    for mode, most in MOST.items():
        if (taken := result["audits"].get(str(USUAL), {}).get(mode, 0)) > most:
            yield f"The {mode} audit of {USUAL:,} records takes {taken} s: more than {most}."
    largest = result["audits"][str(sizes[-1])]
    if sizes[-1] > USUAL and largest["incremental"] >= MOST_OF_FULL * largest["full"]:
        yield f"After one change in a hundred, {sizes[-1]:,} records take {largest['incremental']} of {largest['full']} s."


def _audit(spark: SparkSession, place: Path, mode: str, now: int) -> Contents:
    account = Account(JOB.endpoint or "")
    audit = Auditor(
        Work(spark, JOB, account, Tables(spark, place / mode), Beginning.of(now, Retention()), Lines(sys.stderr))
    )
    return audit.run(Options(str(place / "out"), str(place / "checkpoint")))


if __name__ == "__main__":
    sys.exit(main())
