"""A watch reports each finding once, whenever it is killed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.auditor.auditor import Options
from spark_jobs.auditor.watch import Reports, Watch
from spark_jobs.job.exits import AccountError, Exit
from spark_jobs.spark.folder import Folder
from spark_jobs.work import Work
from tests.spark.auditor.conftest import LATER
from tests.spark.auditor.test_command_line import Command, command

__all__ = ["command"]  # A fixture.

Found = Iterable[tuple[str, str | None]]
"""Rules and entities."""


class Killed(BaseException):
    """Nobody catches it."""


class Mortal(Folder):
    """A folder whose process is killed before or after one of its changes.

    Args:
        spark: knows the file system.
        place: of the folder.
        steps: changes until then, and half changes; None for never.
    """

    def __init__(self, spark: SparkSession, place: str, steps: int | None) -> None:
        super().__init__(spark, place)
        self.steps = steps

    def rename(self, old: str, new: str) -> None:
        self._step()
        super().rename(old, new)
        self._step()

    def delete(self, name: str) -> None:
        self._step()
        super().delete(name)
        self._step()

    def _step(self) -> None:
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise Killed


def audited(folder: Path, second: int, found: Found, *, full: bool = True) -> None:
    """The results of an audit, as far as a watch reads them. An incremental one does not run `ledger_hole`."""
    skipped = {"ledger_hole": None if full else "it judges absence", "two_owners": None, "unreadable": None}
    at = datetime.fromtimestamp(second, timezone.utc)
    rules = [{"name": name, "skipped": why} for name, why in skipped.items()]
    summary = {"at": str(at), "mode": "full" if full else "incremental", "rules": rules}
    rest: dict[str, Any] = {"message": None, "versions": [], "subject": None, "detail": f"seen at {second}"}
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary))
    lines = (json.dumps({"rule": rule, "entity": entity, **rest}) for rule, entity in sorted(found, key=str))
    (folder / "findings.jsonl").write_text("".join(f"{line}\n" for line in lines))


def reported(folder: Path) -> list[tuple[str, str, str | None]]:
    """All news, the oldest first."""
    files = sorted(folder.glob("news-*.jsonl"))
    lines: Iterator[dict[str, Any]] = (json.loads(line) for path in files for line in path.read_text().splitlines())
    return [(item["event"], item["rule"], item["entity"]) for item in lines]


def test_a_finding_is_reported_when_it_comes_and_when_it_goes_and_not_between(
    spark: SparkSession, tmp_path: Path
) -> None:
    reports, results = Reports(Folder(spark, str(tmp_path / "watch"))), Folder(spark, str(tmp_path / "out"))
    assert reports.report(results) == []  # Nothing was audited yet.
    histories: list[Found] = [{("two_owners", "a")}, {("two_owners", "a")}, set(), {("two_owners", "a")}]
    for second, found in enumerate(histories):
        audited(tmp_path / "out", 1_700_000_000 + second, found)
        reports.report(results)
    assert reported(tmp_path / "watch") == [
        ("found", "two_owners", "a"),
        ("gone", "two_owners", "a"),
        ("found", "two_owners", "a"),
    ]
    assert reports.open.full == reports.open.at == 1_700_000_003


def test_an_audit_acquits_only_what_it_judged(spark: SparkSession, tmp_path: Path) -> None:
    reports, results = Reports(Folder(spark, str(tmp_path / "watch"))), Folder(spark, str(tmp_path / "out"))
    audited(tmp_path / "out", 1_700_000_000, {("ledger_hole", "a"), ("unreadable", None), ("two_owners", "b")})
    reports.report(results)
    audited(tmp_path / "out", 1_700_000_060, set(), full=False)
    assert [str(item) for item in reports.report(results)] == ["gone   two_owners: b"]
    audited(tmp_path / "out", 1_700_000_120, set())
    reports.report(results)
    assert sorted(reported(tmp_path / "watch")[3:], key=str) == [
        ("gone", "ledger_hole", "a"),
        ("gone", "two_owners", "b"),
        ("gone", "unreadable", None),
    ]


def test_a_watch_that_is_killed_at_any_step_reports_everything_once(spark: SparkSession, tmp_path: Path) -> None:
    results = Folder(spark, str(tmp_path / "out"))
    killed = steps = 0
    while killed == steps:
        folder = tmp_path / f"watch-{steps}"
        histories: list[Found] = [{("two_owners", "a")}, {("two_owners", "b")}]
        for second, found in enumerate(histories):
            audited(tmp_path / "out", 1_700_000_000 + second, found)
            try:
                Reports(Mortal(spark, str(folder), steps if second else None)).report(results)
            except Killed:
                killed += 1
        Reports(Folder(spark, str(folder))).report(results)  # It is started again.
        assert sorted(reported(folder)) == [
            ("found", "two_owners", "a"),
            ("found", "two_owners", "b"),
            ("gone", "two_owners", "a"),
        ]
        steps += 1
    assert killed > 5


def test_a_damaged_file_of_open_findings_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "open-1700000000.json").write_text('{"at": "')
    with pytest.raises(ConfigurationError, match=r"open-1700000000\.json is damaged"):
        _ = Reports(Folder(spark, str(tmp_path))).open


def test_the_command_watches_until_it_is_interrupted(command: Command, cosmos: RunningEmulator) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        cosmos.advance_clock(LATER)
        if len(waits) == 1:
            with CosmosClient(cosmos.endpoint, cosmos.key) as client:
                library = client.get_database_client(command.database).get_container_client("exactlyonce")
                library.create_item({"id": "odd", "pk": "nobody's", "kind": "newcomer"})
        if len(waits) == 2:
            raise KeyboardInterrupt

    command.skew = 0
    code, said, err = command("--checkpoint", str(command.folder / "checkpoint"), "--watch", "5", sleep=sleep)
    assert code is Exit.FINDINGS, err
    first, news, second = said.splitlines()
    assert "full: 0 entities, 0 open findings" in first
    assert news.startswith("found  unreadable: nobody's: The document odd in library is unreadable")
    assert "incremental: 0 entities, 1 open findings" in second
    assert "per hour" in second
    assert all(wait <= 300 for wait in waits)


def test_the_next_audit_begins_on_time_or_at_once_after_one_that_took_longer(
    spark: SparkSession, tmp_path: Path
) -> None:
    clock, said = [0.0], list[str]()
    durations, waits = iter([100.0, 400.0, 0.0]), list[float]()

    def work() -> Work:
        clock[0] += next(durations)
        raise AccountError("The account does not answer.")

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    reports = Reports(Folder(spark, str(tmp_path / "watch")))
    results = Folder(spark, str(tmp_path / "out"))
    watch = Watch(work, Options(str(tmp_path / "out")), results, reports, timedelta(hours=24), said.append)
    with pytest.raises(KeyboardInterrupt):
        watch.run(timedelta(minutes=5), lambda: clock[0], sleep)
    assert waits == [200.0, 0.0, 300.0]
    assert said == ["The account does not answer. The watch goes on."] * 3


def test_a_watch_without_a_checkpoint_is_refused(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("--watch", "5")
    assert "--watch needs --checkpoint" in capsys.readouterr().err
