"""One audit: read, judge, read and judge the suspects again, write the results and the next checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.auditor.account_reader import AccountReader, Chosen, DocumentsRead
from spark_jobs.auditor.checkpoints import Checkpoint, Checkpoints, Subject, still_open
from spark_jobs.auditor.figures import instant, pictures
from spark_jobs.auditor.judgement import Judgement, chosen, to_look_at_again
from spark_jobs.auditor.own_rules import OwnRules
from spark_jobs.report import contents as report
from spark_jobs.report.contents import Contents, Finding, RuleResult, urgency
from spark_jobs.report.page import MOST_SHOWN, page
from spark_jobs.rules import rules_of
from spark_jobs.source.tasks import translated
from spark_jobs.spark.folder import Folder, results_folder
from spark_jobs.spark.frames import capped, kept, suited
from spark_jobs.transforms.facts import Facts
from spark_jobs.transforms.rules import ALL, Rule
from spark_jobs.work import Work

FIRST, SECOND = "first look", "second look"
TABLE, LINES, SUMMARY, PAGE = "findings.parquet", "findings.jsonl", "summary.json", "report.html"
_PART: Final = "part-"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an audit.

    Attributes:
        out: folder for the results; replaces those of an earlier audit.
        full: read everything although there is a checkpoint.
    """

    out: str
    checkpoint: str | None = None
    full: bool = False


@dataclass(frozen=True, slots=True)
class Mode:
    """What an audit reads, and which rules it runs.

    A full audit reads all documents, runs all rules, and remembers the version of every entity. An incremental audit reads the
    entities that changed or were left open, each with all its documents, and runs no rule about absence.

    Attributes:
        chosen: the entities of an incremental audit; None for a full one.
        since: from when on an incremental audit looked for changes.
        last_full: second in which the last full audit began; None if that is longer ago than the retention.
    """

    chosen: Chosen | None = None
    since: datetime | None = None
    last_full: int | None = None

    @property
    def name(self) -> report.Mode:
        """As the report has it."""
        return "full" if self.chosen is None else "incremental"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that the documents of the audit can answer."""
        return tuple(rule for rule in ALL if rule.incremental or self.chosen is None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the report has to know, a sentence each."""
        if self.chosen is None:
            return ()
        full = self.last_full
        when = "longer ago than the retention" if full is None else f"on {instant(full):%Y-%m-%d at %H:%M} UTC"
        return (f"This audit judged entities that changed or were left open. The last full audit began {when}.",)

    def read(self, reader: AccountReader) -> DocumentsRead:
        """The documents of the first look."""
        return reader.everything(FIRST) if self.chosen is None else reader.chosen(FIRST, self.chosen)


@dataclass(frozen=True, slots=True)
class Auditor:
    """Runs one audit."""

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
            mode = Mode() if options.full else self._mode(checkpoints, last, reader)
            is_full = mode.name == "full"
            seen = checkpoints.seen(last) if checkpoints and is_full else None  # It is for rules about absence.
            judgement = Judgement(work, mode.rules)
            found = mode.read(reader)
            with suited(work.spark, found.rows):
                facts = judgement.facts(found, seen)
                findings = self._findings(facts, found.rows, reader, judgement)
                if is_full:
                    findings = findings.unionByName(own.findings())
                else:
                    own.skip()
                left_open = kept(still_open(facts, findings))
                work.progress.begin("charts")
                rules = (*judgement.results(findings), *own.results)
                total = sum(rule.findings for rule in rules)
                following = Checkpoint.after(last, subject, work.beginning, mode.name, total)
                shown = pictures(facts, findings, work.beginning.now)
                contents = Contents(
                    account=urlsplit(work.account.endpoint).netloc,
                    database=work.job.database,
                    mode=mode.name,
                    since=mode.since,
                    at=instant(work.beginning.now),
                    seconds=work.clock() - begun,
                    entities=facts.entities.count(),
                    messages=sum(number for _, number in shown.commits),
                    open=left_open.count(),
                    garbage=judgement.garbage(facts),
                    rules=rules,
                    reads=(*reader.reads, *own.reads),
                    pictures=shown,
                    total=total,
                    findings=tuple(Finding.of(row.asDict()) for row in (_first(findings, rules) if total else ())),
                    trend=tuple((instant(at), how, number) for at, how, number in following.trend),
                    warnings=mode.warnings,
                )
                work.progress.done("counted")
                work.progress.begin("results")
                write(out, contents, findings)
                if checkpoints:
                    checkpoints.write(following, left_open, self._versions(facts) if is_full else None)
                work.progress.done(f"in {out}")
            return contents

    def _versions(self, facts: Facts) -> DataFrame:
        """The versions of all entities, as of this audit."""
        now = F.lit(self.work.beginning.now).cast("bigint").alias("seen_at")
        return facts.entities.select("entity", "version", now)

    def _mode(self, checkpoints: Checkpoints | None, last: Checkpoint | None, reader: AccountReader) -> Mode:
        """Incremental after a checkpoint, unless so many entities changed or were left open that a full audit is cheaper."""
        if checkpoints is None or last is None:
            return Mode()
        since = last.since(self.work.job)
        changed = reader.changed("changes", since)
        touched = changed.documents.select("entity").unionByName(checkpoints.open(last))
        with suited(self.work.spark, changed.rows):
            found = chosen(touched, changed.documents)
        return Mode() if found is None else Mode(found, instant(since), last.last_full)

    def _findings(self, facts: Facts, rows: int, reader: AccountReader, judgement: Judgement) -> DataFrame:
        """The suspects of the first look that the second look finds again."""
        first = judgement.first(facts, rows)
        if not any(judgement.suspects.values()):
            return first
        again = to_look_at_again(facts, first)
        found = reader.everything(SECOND) if again is None else reader.chosen(SECOND, again)
        return judgement.second(judgement.facts(found, facts.seen), found.rows, first)


def _first(findings: DataFrame, rules: Iterable[RuleResult]) -> list[Row]:
    """The findings that the page shows: the worst."""
    worst_first = enumerate(sorted(rules, key=urgency))
    place = F.create_map(*(F.lit(item) for number, rule in worst_first for item in (rule.name, number)))[F.col("rule")]
    first, _ = capped(findings.orderBy(place, "entity", "message", "subject"), MOST_SHOWN)
    return first


def destination(spark: SparkSession, place: str) -> Folder:
    """The folder of the audit's results. Raises as `results_folder`."""
    return results_folder(spark, place, "an audit", {SUMMARY})


def write(folder: Folder, contents: Contents, findings: DataFrame) -> None:
    """Replace the results: summary, page, and all findings (`schemas.FINDING`) as a table and as lines."""
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
