"""The audit: checks the guarantee on what is stored. `python -m spark_jobs.audit --config job.json --out reports/audit`.

`auditor` does the work; this module is its command line.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

from spark_jobs.auditor.auditor import PAGE, Auditor, Options, destination
from spark_jobs.auditor.watch import FOLDER, Reports, Watch
from spark_jobs.job.exits import Exit, ending
from spark_jobs.report.contents import Contents, urgency
from spark_jobs.report.words import trend_sentence
from spark_jobs.spark.folder import Folder
from spark_jobs.work import begun


def run(
    arguments: Sequence[str] | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Exit:
    """Audit the database that the command line names.

    Args:
        clock: this machine's, in seconds since 1970.

    Raises:
        AccountError, ConfigurationError, UnsafeError: the audit wrote nothing.
    """
    parser = argparse.ArgumentParser(
        prog="python -m spark_jobs.audit", description="Check the exactly-once guarantee on stored documents."
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="job file; see spark_jobs.describe")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder for the results, on any file system of Spark"
    )
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="folder of the checkpoint, with which the next audit reads only changes"
    )
    parser.add_argument("--full", action="store_true", help="read everything, although there is a checkpoint")
    parser.add_argument(
        "--watch",
        type=_minutes,
        metavar="MINUTES",
        help="audit again and again, so many minutes apart, and report each finding once; needs --checkpoint",
    )
    parser.add_argument(
        "--full-after", type=_hours, default=timedelta(hours=24), metavar="HOURS", help="of a watch (default 24)"
    )
    given = parser.parse_args(arguments)
    if given.watch and not given.checkpoint:
        parser.error("--watch needs --checkpoint: a folder that keeps what was seen and reported")
    options = Options(given.out, given.checkpoint, given.full)
    with begun("exactlyonce audit", given.config, clock) as work:
        if given.watch:
            watch = Watch(
                lambda: work.again(clock),
                options,
                destination(work.spark, given.out),
                Reports(Folder(work.spark, given.checkpoint).inside(FOLDER)),
                given.full_after,
                partial(print, flush=True),
            )
            with suppress(KeyboardInterrupt):
                watch.run(given.watch, work.clock, sleep)
            return Exit.FINDINGS if watch.reports.open.findings else Exit.DONE
        contents = Auditor(work).run(options)
    print(f"{_verdict(contents)} See {given.out}/{PAGE}.")
    if len(contents.trend) > 1:
        print(trend_sentence(contents.trend))
    for rule in sorted((item for item in contents.rules if item.findings), key=urgency):
        print(f"{rule.findings:7,}  {rule.severity}: {rule.title} ({rule.name})")
    return Exit.FINDINGS if contents.total else Exit.DONE


def _minutes(text: str) -> timedelta:
    return _positive(timedelta(minutes=float(text)))


def _hours(text: str) -> timedelta:
    return _positive(timedelta(hours=float(text)))


def _positive(span: timedelta) -> timedelta:
    if span <= timedelta(0):
        raise ValueError
    return span


def _verdict(contents: Contents) -> str:
    what = "a full audit" if contents.mode == "full" else "an incremental audit"
    what += f" of {contents.entities:,} entities in {contents.database}"
    documents = "document" if contents.garbage == 1 else "documents"
    rest = (
        f" Clean-up has {contents.garbage:,} {documents} to take of messages that nobody keeps."
        if contents.garbage
        else ""
    )
    if not contents.total:
        return f"Nothing was found in {what}.{rest}"
    found = ", ".join(f"{rule.name} {rule.findings:,}" for rule in contents.rules if rule.findings)
    return f"{contents.total:,} {'finding' if contents.total == 1 else 'findings'} in {what}: {found}.{rest}"


def main() -> int:
    """Audit, and print errors of ours as sentences. Returns the exit code."""
    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
