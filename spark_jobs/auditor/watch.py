"""A watch: audit follows audit, and each finding is reported once, however often the watch is killed.

Its reports lie in the folder `watch` of the checkpoint:

- `news-SECOND.jsonl`: new findings of the audit that began in this second, and findings that are gone. An audit without
  news has no file.
- `open-SECOND.json`: the open findings after the last audit that was reported.

News follow from the open findings and from the results of an audit, and are written before the open findings. So a watch that
was killed in between writes the same news again. A watch that was killed earlier finds the results of the audit, which replaces
the results before the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from exactlyonce.errors import ConfigurationError
from spark_jobs.auditor.auditor import LINES, SUMMARY, Auditor, Options
from spark_jobs.job.exits import AccountError
from spark_jobs.report.contents import Contents
from spark_jobs.report.words import command_after, entity_name, message_name
from spark_jobs.source.port import shown_units
from spark_jobs.spark.folder import Folder
from spark_jobs.transforms.schemas import IDENTITY
from spark_jobs.work import Work

FOLDER: Final = "watch"
_NEWS: Final = "news-"
_OPEN: Final = "open-"


class Open(BaseModel):
    """The open findings after an audit.

    Attributes:
        at: second in which it began, by the service's clock.
        full: the same of the last full audit; None if there was none.
        findings: by their identity.
    """

    at: int = 0
    full: int | None = None
    findings: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class News:
    """A finding that an audit found first, or no longer found.

    Attributes:
        event: which of both.
        finding: a line of `findings.jsonl`.
    """

    event: Literal["found", "gone"]
    finding: dict[str, Any]

    def __str__(self) -> str:
        rule, entity, message = (self.finding[name] for name in ("rule", "entity", "message"))
        about = entity_name(entity) if entity else "no known entity"
        about += f", message {message_name(message)}" if message else ""
        if self.event == "gone":
            return f"gone   {rule}: {about}"
        command = command_after(rule, entity or "")
        return f"found  {rule}: {about}: {self.finding['detail']}" + (f" Next: {command}" if command else "")


class Reports:
    """The reports of a watch.

    Args:
        folder: holds them.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    @property
    def open(self) -> Open:
        """The open findings after the last audit that was reported.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        names = self._states()
        if not names:
            return Open()
        try:
            return Open.model_validate_json(self._folder.read(names[-1]))
        except ValidationError:
            raise ConfigurationError(
                f"The file {self._folder.place(names[-1])} is damaged. Delete it: what is open is reported again."
            ) from None

    def report(self, results: Folder) -> list[News]:
        """Report the results of an audit, unless they were.

        Args:
            results: folder of an audit of the watch.

        Raises:
            ConfigurationError: as `open`.
        """
        before = self.open
        if SUMMARY not in results.names():
            return []
        summary = json.loads(results.read(SUMMARY))
        at = int(datetime.fromisoformat(summary["at"]).timestamp())
        if at <= before.at:
            return []
        found = dict(_findings(results.read(LINES)))
        full, ran = summary["mode"] == "full", {rule["name"] for rule in summary["rules"] if rule["skipped"] is None}
        gone = [
            key
            for key, item in before.findings.items()
            # An incremental audit judges again what is open of an entity, and of no entity only what changed.
            if key not in found and item["rule"] in ran and (full or item["entity"] is not None)
        ]
        news = [News("found", item) for key, item in found.items() if key not in before.findings]
        news += [News("gone", before.findings[key]) for key in gone]
        after = {key: item for key, item in before.findings.items() if key not in gone} | found
        self._folder.make()
        if news:
            lines = (json.dumps({"event": item.event, **item.finding}) for item in news)
            self._folder.write(f"{_NEWS}{at}.jsonl", "".join(f"{line}\n" for line in lines))
        following = Open(at=at, full=at if full else before.full, findings=after)
        self._folder.write(f"{_OPEN}{at}.json", following.model_dump_json())
        for name in self._states()[:-1]:
            self._folder.delete(name)
        return news

    def _states(self) -> list[str]:
        """Names of the files of open findings, the newest last. Seconds have ten digits until the year 2286."""
        return [name for name in self._folder.names() if name.startswith(_OPEN)]


@dataclass(frozen=True, slots=True)
class Watch:
    """Audits what changed, again and again.

    Attributes:
        work: makes what the next audit works with; it reads the service's time.
        options: of the audits; they have a checkpoint.
        full_after: longest time between two full audits, which also judge absence.
        tell: takes sentences for people.
    """

    work: Callable[[], Work]
    options: Options
    results: Folder
    reports: Reports
    full_after: timedelta
    tell: Callable[[str], None]

    def run(self, every: timedelta, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        """Audit until an interrupt. Trouble with the account is told, and ends with the next audit that succeeds.

        Args:
            every: time between the beginnings of two audits; after a longer audit the next begins at once.
            clock: seconds from any beginning.

        Raises:
            ConfigurationError: a folder cannot be used, or a container is absent.
        """
        self._report()
        while True:
            begun = clock()
            try:
                self._tell_cost(self.audit(), every)
            except AccountError as error:
                self.tell(f"{error} The watch goes on.")
            sleep(max(0.0, every.total_seconds() - (clock() - begun)))

    def audit(self) -> Contents:
        """Audit once, and report. Raises as `Auditor.run`."""
        work, full = self.work(), self.reports.open.full
        due = full is None or work.beginning.now - full >= self.full_after.total_seconds()
        contents = Auditor(work).run(replace(self.options, full=self.options.full or due))
        self._report()
        return contents

    def _report(self) -> None:
        for item in self.reports.report(self.results):
            self.tell(str(item))

    def _tell_cost(self, contents: Contents, every: timedelta) -> None:
        hourly = (
            None if contents.charge is None else contents.charge * 3600 / max(every.total_seconds(), contents.seconds)
        )
        self.tell(
            f"{contents.at:%Y-%m-%d %H:%M:%S} UTC, {contents.mode}: {contents.entities:,} entities, "
            f"{len(self.reports.open.findings):,} open findings, {shown_units(contents.charge)} in {contents.seconds:.0f} s; "
            f"per hour {shown_units(hourly)}"
        )


def _findings(lines: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Findings by their identity."""
    for line in lines.splitlines():
        finding = json.loads(line)
        yield json.dumps([finding[name] for name in IDENTITY]), finding
