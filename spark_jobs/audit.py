"""The audit: checks the guarantee on what is stored. `python -m spark_jobs.audit --config job.json --out reports/audit`.

`auditor` does the work; this module is its command line.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spark_jobs.auditor.auditor import Auditor, Options
from spark_jobs.auditor.results import PAGE
from spark_jobs.job.exits import Exit, ending
from spark_jobs.report.contents import Contents, urgency
from spark_jobs.work import begun


def run(arguments: Sequence[str] | None = None, clock: Callable[[], float] = time.time) -> Exit:
    """Audit the database that the command line names.

    Args:
        arguments: of the command line.
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
    given = parser.parse_args(arguments)
    with begun("exactlyonce audit", given.config, clock) as work:
        contents = Auditor(work).run(Options(given.out, given.checkpoint, given.full))
    print(f"{_verdict(contents)} See {given.out}/{PAGE}.")
    for rule in sorted((one for one in contents.rules if one.findings), key=urgency):
        print(f"{rule.findings:7,}  {rule.severity}: {rule.title} ({rule.name})")
    return Exit.FINDINGS if contents.total else Exit.DONE


def _verdict(contents: Contents) -> str:
    what = "a full audit" if contents.mode == "full" else "an incremental audit"
    what += f" of {contents.entities:,} entities in {contents.database}"
    documents = "staged document" if contents.garbage == 1 else "staged documents"
    rest = f" Clean-up has {contents.garbage:,} {documents} of lost attempts to take." if contents.garbage else ""
    if not contents.total:
        return f"Nothing was found in {what}.{rest}"
    found = ", ".join(f"{rule.name} {rule.findings:,}" for rule in contents.rules if rule.findings)
    return f"{contents.total:,} {'finding' if contents.total == 1 else 'findings'} in {what}: {found}.{rest}"


def main() -> int:
    """Audit, and print errors of ours as sentences. Returns the exit code."""
    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
