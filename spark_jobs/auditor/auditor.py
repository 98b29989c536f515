"""One audit: read, judge, read the suspects again, judge them again, write the results and the next checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.checkpoints import Checkpoint, Checkpoints, Subject, still_open
from spark_jobs.auditor.figures import instant, pictures
from spark_jobs.auditor.judgement import Judgement, chosen, thresholds_of, to_look_at_again
from spark_jobs.auditor.looks import Looks
from spark_jobs.auditor.modes import SECOND, FullAudit, IncrementalAudit, Mode
from spark_jobs.auditor.results import destination, write
from spark_jobs.job.configuration import Account, Job
from spark_jobs.report.contents import Contents, Finding
from spark_jobs.report.page import MOST_SHOWN
from spark_jobs.report.progress import Progress
from spark_jobs.source.application import Beginning
from spark_jobs.source.port import Source
from spark_jobs.spark.failures import translated
from spark_jobs.spark.folder import Folder
from spark_jobs.spark.frames import kept, suited
from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.head import capped


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an audit.

    Attributes:
        out: folder for the results; replaces those of an earlier audit.
        checkpoint: folder of checkpoints; None to keep none.
        full: read everything although there is a checkpoint.
    """

    out: str
    checkpoint: str | None = None
    full: bool = False


@dataclass
class Auditor:
    """Runs one audit.

    Attributes:
        spark: the session.
        job: names the containers and limits.
        account: its endpoint is part of the checkpoint and of the report.
        source: reads Cosmos DB.
        beginning: the service's time at the beginning, and the application's retention.
        progress: shows each step.
        clock: seconds from any beginning.
    """

    spark: SparkSession
    job: Job
    account: Account
    source: Source
    beginning: Beginning
    progress: Progress
    clock: Callable[[], float] = time.monotonic

    def run(self, options: Options) -> Contents:
        """Audit, and write the results and the next checkpoint.

        Raises:
            AccountError: the account cannot be reached, or refuses.
            ConfigurationError: a folder cannot be used, or a container is absent. Nothing was written.
        """
        begun = self.clock()
        out = destination(self.spark, options.out)
        checkpoints = Checkpoints(self.spark, Folder(self.spark, options.checkpoint)) if options.checkpoint else None
        subject = Subject.of(self.job, self.account)
        last = checkpoints.newest(subject) if checkpoints else None
        seen = checkpoints.seen(last) if checkpoints else None
        looks = Looks(self.spark, self.source, self.job, self.progress, self.clock)
        with translated():
            goes_on = checkpoints is not None and last is not None and not options.full
            mode = self._after(last, checkpoints, looks) if goes_on else FullAudit()  # type: ignore[arg-type]
            judgement = Judgement(
                self.spark, mode.rules, thresholds_of(self.job, self.beginning), self.beginning.now, self.progress
            )
            looked = mode.look(looks)
            with suited(self.spark, looked.rows):
                facts = judgement.facts(looked, seen)
                findings = self._findings(facts, looks, judgement)
                left_open = kept(still_open(facts, findings))
                contents = self._contents(
                    mode,
                    judgement,
                    facts,
                    findings,
                    open=left_open.count(),
                    reads=tuple(looks.reads),
                    seconds=self.clock() - begun,
                )
                self.progress.begin("results")
                write(out, contents, findings)
                if checkpoints:
                    following = Checkpoint.after(last, subject, self.beginning)
                    checkpoints.write(following, left_open, mode.remember(facts, self.beginning.now))
                self.progress.done(f"in {out}")
            return contents

    def _after(self, last: Checkpoint, checkpoints: Checkpoints, looks: Looks) -> Mode:
        """An audit of what changed since the checkpoint and of what it left open; a full one if that is too much."""
        since = last.since(self.job)
        documents = looks.changed("changes", since).documents
        touched = documents.select("entity").unionByName(checkpoints.open(last)).where(F.col("entity").isNotNull())
        found = chosen(touched, documents.where(F.col("entity").isNull()))
        if found is None:
            return FullAudit()
        return IncrementalAudit(found, instant(since), last.last_full)

    def _findings(self, facts: Facts, looks: Looks, judgement: Judgement) -> DataFrame:
        """The suspects of the first look that the second look finds again."""
        first = judgement.first(facts)
        if not any(judgement.suspects.values()):
            return first
        again = to_look_at_again(facts, first)
        looked = looks.everything(SECOND) if again is None else looks.chosen(SECOND, again)
        return judgement.second(judgement.facts(looked, facts.seen), first)

    def _contents(
        self,
        mode: Mode,
        judgement: Judgement,
        facts: Facts,
        findings: DataFrame,
        **rest: Any,
    ) -> Contents:
        """The contents of the report. `rest`: its fields that need no count."""
        self.progress.begin("charts")
        rules = judgement.results(findings)
        first, _ = capped(findings.orderBy("rule", "entity", "message", "subject"), MOST_SHOWN)
        shown = pictures(facts, findings, self.beginning.now)
        entities, garbage = facts.entities.count(), judgement.garbage(facts)
        self.progress.done("counted")
        return Contents(
            account=urlsplit(self.account.endpoint).netloc,
            database=self.job.database,
            mode=mode.name,
            since=mode.since,
            at=instant(self.beginning.now),
            entities=entities,
            transactions=sum(number for _, number in shown.commits),
            garbage=garbage,
            rules=rules,
            pictures=shown,
            total=sum(rule.findings for rule in rules),
            findings=tuple(Finding.of(row.asDict()) for row in first),
            warnings=mode.warnings,
            **rest,
        )
