"""One audit: read, judge, read the suspects again, judge them again, write the results and the next checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.account_reader import AccountReader
from spark_jobs.auditor.checkpoints import Checkpoint, Checkpoints, Subject, still_open
from spark_jobs.auditor.figures import instant, pictures
from spark_jobs.auditor.judgement import Judgement, chosen, to_look_at_again
from spark_jobs.auditor.modes import SECOND, FullAudit, IncrementalAudit, Mode
from spark_jobs.auditor.own_rules import OwnRules
from spark_jobs.auditor.results import destination, write
from spark_jobs.report.contents import Contents, Finding, RuleResult, urgency
from spark_jobs.report.page import MOST_SHOWN
from spark_jobs.rules import rules_of
from spark_jobs.source.failures import translated
from spark_jobs.spark.folder import Folder
from spark_jobs.spark.frames import kept, suited
from spark_jobs.spark.head import capped
from spark_jobs.transforms.facts import Facts
from spark_jobs.work import Work


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


@dataclass(frozen=True, slots=True)
class Auditor:
    """Runs one audit.

    Attributes:
        work: the session, the job, the account.
    """

    work: Work

    def run(self, options: Options) -> Contents:
        """Audit, and write the results and the next checkpoint.

        Raises:
            AccountError: the account cannot be reached, or refuses.
            ConfigurationError: a folder cannot be used, or a container is absent. Nothing was written.
        """
        work, begun = self.work, self.work.clock()
        own = OwnRules(work, rules_of(work.job.rules))
        out = destination(work.spark, options.out)
        checkpoints = Checkpoints(work.spark, Folder(work.spark, options.checkpoint)) if options.checkpoint else None
        subject = Subject.of(work.job, work.account)
        last = checkpoints.newest(subject) if checkpoints else None
        reader = AccountReader(work)
        with translated():
            mode = FullAudit() if options.full else self._mode(checkpoints, last, reader)
            seen = (
                checkpoints.seen(last) if checkpoints and mode.name == "full" else None
            )  # It is for rules about absence.
            judgement = Judgement(work, mode.rules)
            found = mode.read(reader)
            with suited(work.spark, found.rows):
                facts = judgement.facts(found, seen)
                findings = self._findings(facts, found.rows, reader, judgement)
                if mode.name == "full":
                    findings = findings.unionByName(own.findings())
                else:
                    own.skip()
                left_open = kept(still_open(facts, findings))
                contents = self._contents(
                    mode,
                    judgement,
                    facts,
                    findings,
                    own,
                    open=left_open.count(),
                    reads=(*reader.reads, *own.reads),
                    seconds=work.clock() - begun,
                )
                following = Checkpoint.after(last, subject, work.beginning, mode.name, contents.total)
                trend = tuple((instant(at), how, number) for at, how, number in following.trend)
                contents = replace(contents, trend=trend)
                work.progress.begin("results")
                write(out, contents, findings)
                if checkpoints:
                    checkpoints.write(following, left_open, mode.remember(facts, work.beginning.now))
                work.progress.done(f"in {out}")
            return contents

    def _mode(self, checkpoints: Checkpoints | None, last: Checkpoint | None, reader: AccountReader) -> Mode:
        """Incremental after a checkpoint, unless so many entities changed or were left open that a full audit is cheaper."""
        if checkpoints is None or last is None:
            return FullAudit()
        since = last.since(self.work.job)
        changed = reader.changed("changes", since)
        touched = changed.documents.select("entity").unionByName(checkpoints.open(last))
        with suited(self.work.spark, changed.rows):
            found = chosen(touched, changed.documents)
        if found is None:
            return FullAudit()
        return IncrementalAudit(found, instant(since), last.last_full)

    def _findings(self, facts: Facts, rows: int, reader: AccountReader, judgement: Judgement) -> DataFrame:
        """The suspects of the first look that the second look finds again."""
        first = judgement.first(facts, rows)
        if not any(judgement.suspects.values()):
            return first
        again = to_look_at_again(facts, first)
        found = reader.everything(SECOND) if again is None else reader.chosen(SECOND, again)
        return judgement.second(judgement.facts(found, facts.seen), found.rows, first)

    def _contents(
        self,
        mode: Mode,
        judgement: Judgement,
        facts: Facts,
        findings: DataFrame,
        own: OwnRules,
        **rest: Any,
    ) -> Contents:
        """The contents of the report. `rest`: its fields that need no count."""
        self.work.progress.begin("charts")
        rules = (*judgement.results(findings), *own.results)
        total = sum(rule.findings for rule in rules)
        first = _first(findings, rules) if total else []
        shown = pictures(facts, findings, self.work.beginning.now)
        entities, garbage = facts.entities.count(), judgement.garbage(facts)
        self.work.progress.done("counted")
        return Contents(
            account=urlsplit(self.work.account.endpoint).netloc,
            database=self.work.job.database,
            mode=mode.name,
            since=mode.since,
            at=instant(self.work.beginning.now),
            entities=entities,
            messages=sum(number for _, number in shown.commits),
            garbage=garbage,
            rules=rules,
            pictures=shown,
            total=total,
            findings=tuple(Finding.of(row.asDict()) for row in first),
            trend=(),
            warnings=mode.warnings,
            **rest,
        )


def _first(findings: DataFrame, rules: Iterable[RuleResult]) -> list[Row]:
    """The findings that the page shows: the worst."""
    worst_first = enumerate(sorted(rules, key=urgency))
    place = F.create_map(*(F.lit(item) for number, rule in worst_first for item in (rule.name, number)))[F.col("rule")]
    first, _ = capped(findings.orderBy(place, "entity", "message", "subject"), MOST_SHOWN)
    return first
