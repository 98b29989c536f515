"""The audit: whether the guarantee holds on what is stored. `python -m spark_jobs.audit --config job.json --out reports/audit`.

It reads entities, then the library's documents; lets every rule judge; reads what is suspect once more; and reports what is
still so. With a checkpoint it judges, between full audits, the entities that changed and those that were left open, each
with all its documents: as a full audit would, but for what only a look at everything shows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.checkpoints import Checkpoint, Checkpoints, Subject, still_open, versions_seen
from spark_jobs.auditor.figures import instant, pictures
from spark_jobs.auditor.judgement import Judging, chosen, thresholds_of, to_look_at_again
from spark_jobs.auditor.look import Chosen, Looks
from spark_jobs.auditor.results import PAGE, destination, write
from spark_jobs.job.configuration import Account, Job, load
from spark_jobs.job.exits import Exit, ending
from spark_jobs.report.contents import Contents, Finding
from spark_jobs.report.page import MOST_SHOWN
from spark_jobs.report.progress import Telling, told
from spark_jobs.source.account import ready
from spark_jobs.source.application import Beginning
from spark_jobs.source.factory import source_of
from spark_jobs.source.port import Source
from spark_jobs.spark.failures import translated
from spark_jobs.spark.folder import Folder
from spark_jobs.spark.frames import kept, suited
from spark_jobs.spark.session import session
from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.head import capped

FIRST, SECOND = "first look", "second look"


@dataclass(frozen=True, slots=True)
class Options:
    """What an audit is told.

    Attributes:
        out: folder for the results; what an earlier audit left there is replaced.
        checkpoint: folder of checkpoints; None to keep none.
        full: whether to read everything although there is a checkpoint to go on from.
    """

    out: str
    checkpoint: str | None = None
    full: bool = False


@dataclass
class Audit:
    """One audit.

    Attributes:
        spark: the session.
        job: what is audited.
        account: where it is.
        source: reads it.
        beginning: the service's time then, and the application's retention.
        telling: told of what goes on.
        clock: seconds from any beginning.
    """

    spark: SparkSession
    job: Job
    account: Account
    source: Source
    beginning: Beginning
    telling: Telling
    clock: Callable[[], float] = time.monotonic

    @property
    def now(self) -> int:
        """The service's time at the beginning, in seconds since 1970."""
        return self.beginning.now

    def run(self, options: Options) -> Contents:
        """Audit, and write the results and the next checkpoint.

        Raises:
            AccountError: the account cannot be reached, or refuses.
            ConfigurationError: a folder is not what it has to be, or a container is not there. Nothing was written.
        """
        begun = self.clock()
        out = destination(self.spark, options.out)
        checkpoints = Checkpoints(self.spark, Folder(self.spark, options.checkpoint)) if options.checkpoint else None
        subject = Subject.of(self.job, self.account)
        last = checkpoints.newest(subject) if checkpoints else None
        looks = Looks(self.spark, self.source, self.job, self.telling, self.clock)
        judging = Judging(self.spark, thresholds_of(self.job, self.beginning), self.now, self.telling)
        with translated():
            changed = self._changed(looks, checkpoints, last) if checkpoints and last and not options.full else None
            judging.mode = "full" if changed is None else "incremental"
            looked = looks.everything(FIRST) if changed is None else looks.chosen(FIRST, changed)
            with suited(self.spark, looked.rows):
                facts = judging.facts(looked, checkpoints.seen(last) if checkpoints else None)
                findings = self._found(facts, looks, judging)
                left_open = kept(still_open(facts, findings))
                contents = replace(
                    self._contents(facts, findings, judging),
                    since=None if changed is None or last is None else instant(last.since(self.job)),
                    warnings=() if changed is None or last is None else (_last_full(last),),
                    open=left_open.count(),
                    reads=tuple(looks.reads),
                    seconds=self.clock() - begun,
                )
                self.telling.begin("results")
                write(out, contents, findings)
                if checkpoints:
                    seen = versions_seen(facts, self.now) if judging.mode == "full" else None
                    checkpoints.write(Checkpoint.after(last, subject, self.beginning), left_open, seen)
                self.telling.done(f"in {out}")
            return contents

    def _changed(self, looks: Looks, checkpoints: Checkpoints, last: Checkpoint) -> Chosen | None:
        """What has to be judged since the last audit; None if it is so much that everything had better be read."""
        documents = looks.changed("changes", last.since(self.job)).documents
        touched = documents.select("entity").unionByName(checkpoints.open(last)).where(F.col("entity").isNotNull())
        return chosen(touched, documents.where(F.col("entity").isNull()))

    def _found(self, facts: Facts, looks: Looks, judging: Judging) -> DataFrame:
        """What two looks find."""
        first = judging.first(facts)
        if not any(judging.suspects.values()):
            return first
        again = to_look_at_again(facts, first)
        looked = looks.everything(SECOND) if again is None else looks.chosen(SECOND, again)
        return judging.second(judging.facts(looked, facts.seen), first)

    def _contents(self, facts: Facts, findings: DataFrame, judging: Judging) -> Contents:
        """What there is to tell of the judgement."""
        self.telling.begin("charts")
        rules = judging.told(findings)
        first, _ = capped(findings.orderBy("rule", "entity", "message", "subject"), MOST_SHOWN)
        shown = pictures(facts, findings, self.now)
        self.telling.done("counted")
        return Contents(
            account=urlsplit(self.account.endpoint).netloc,
            database=self.job.database,
            mode=judging.mode,
            since=None,
            at=instant(self.now),
            seconds=0.0,
            entities=facts.entities.count(),
            transactions=sum(number for _, number in shown.commits),
            open=0,
            garbage=judging.garbage(facts),
            rules=rules,
            reads=(),
            pictures=shown,
            total=sum(rule.findings for rule in rules),
            findings=tuple(Finding.of(row.asDict()) for row in first),
        )


def run(arguments: Sequence[str] | None = None, clock: Callable[[], float] = time.time) -> Exit:
    """Audit what the command line names.

    Args:
        arguments: of the command line.
        clock: this machine's, in seconds since 1970.

    Raises:
        AccountError, ConfigurationError, UnsafeError: as their sentence says; nothing was written.
    """
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.audit", description="Audit what is stored.")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="job file; see spark_jobs.describe")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder for the results, on any file system of Spark"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="folder that one audit leaves to the next what it needs to judge changes only",
    )
    parser.add_argument("--full", action="store_true", help="read everything, although there is a checkpoint")
    given = parser.parse_args(arguments)
    job, account = load(given.config)
    beginning = ready(job, account, clock)
    spark = session("exactlyonce audit")
    with told() as telling:
        audit = Audit(spark, job, account, source_of(spark, job, account), beginning, telling)
        contents = audit.run(Options(given.out, given.checkpoint, given.full))
    print(f"{_verdict(contents)} See {given.out}/{PAGE}.")
    return Exit.FINDINGS if contents.total else Exit.DONE


def _last_full(last: Checkpoint) -> str:
    """What the reader of an incremental report has to know."""
    when = max(last.seen.values(), default=None)
    told = "longer ago than the retention" if when is None else f"on {instant(when):%Y-%m-%d at %H:%M} UTC"
    return f"This audit judged what changed, and what was left open. The last full audit began {told}."


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
    """Audit, and tell errors as their sentences. Returns the exit code."""
    return ending(run)


if __name__ == "__main__":
    sys.exit(main())
