"""The clean-up: deletes what no entity needs any more. `python -m spark_jobs.cleanup --config job.json [--delete]`.

Without `--delete` it is a dry run, which lists the documents that would go. `cleaner` does the work; this module is its
command line.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from exactlyonce.environment import setting
from exactlyonce.errors import ConfigurationError
from spark_jobs.cleaner.blobs import BlobPlace
from spark_jobs.cleaner.cleaner import OUT, Cleaner, Options
from spark_jobs.cleaner.summary import TABLE
from spark_jobs.job.exits import Exit, ending
from spark_jobs.work import begun


def run(arguments: Sequence[str] | None = None, clock: Callable[[], float] = time.time) -> Exit:
    """Clean up the database that the command line names.

    Args:
        clock: this machine's, in seconds since 1970.

    Raises:
        AccountError: the account cannot be reached, or refuses. Documents may have been deleted; run it again.
        ConfigurationError, UnsafeError: the clean-up deleted nothing.
    """
    given = _parser().parse_args(arguments)
    with begun("exactlyonce clean-up", given.config, clock, given.rate) as work:
        summary = Cleaner(work, BlobPlace.of(), deletes_pages()).run(Options(given.out, given.delete, given.archive))
    print("\n".join(summary.lines()))
    print(
        f"See {given.out}/{TABLE}."
        if given.delete
        else f"Nothing was deleted: see {given.out}/{TABLE}, and add --delete."
    )
    return Exit.DONE


def deletes_pages(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether pages are the clean-up's to delete: `EXACTLYONCE__expiry`, as the application has it.

    Nothing depends on both saying the same: the store deletes every page some time after the retention, and the clean-up none
    before.

    Raises:
        ConfigurationError: the setting has another value.
    """
    expiry = setting(environment, "EXACTLYONCE__expiry")
    if expiry not in (None, "job", "store"):
        raise ConfigurationError(
            "EXACTLYONCE__expiry says who deletes pages: job, which is the default, or store. Set it as the application has it."
        )
    return expiry != "store"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m spark_jobs.cleanup",
        description="Delete documents that no entity needs any more; without --delete, list them.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="job file; see spark_jobs.describe")
    parser.add_argument("--delete", action="store_true", help="delete; without it nothing is written to Cosmos DB")
    parser.add_argument(
        "--archive", metavar="DIR", help="with --delete: first write the documents to Parquet, bodies included"
    )
    parser.add_argument("--out", default=OUT, metavar="DIR", help=f"folder for list and summary; {OUT} by default")
    parser.add_argument("--rate", type=_rate, metavar="RU/s", help="most RU per second, in place of the job file's")
    return parser


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < math.inf:
        raise ValueError(text)
    return rate


def main() -> int:
    """Clean up, and print errors of ours as sentences. Returns the exit code."""
    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
