"""Games on the local Cosmos, and audits of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from demo.stack import create_containers
from exactlyonce import Envelope, Outbox
from exactlyonce.effects.attempt import Strategy
from exactlyonce.values.lifetimes import RETENTION
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.auditor.auditor import Auditor, Options
from spark_jobs.job.configuration import Account, Job
from spark_jobs.report.contents import Contents
from spark_jobs.work import Work, source_of
from tests.spark.application import beginning
from tests.spark.auditor.app import App, job

LATER = 2 * 3600
"""Seconds after which nothing is in its grace any more."""


class Silence:
    """Reports nothing."""

    def begin(self, what: str) -> None: ...

    def done(self, result: str) -> None: ...


@dataclass
class Audits:
    """Audits of one database.

    Attributes:
        out: where their results go.
    """

    spark: SparkSession
    cosmos: RunningEmulator
    job: Job
    out: Path
    retention: timedelta = RETENTION

    def __call__(self, *, later: int = LATER, telling: Any = None, **options: Any) -> Contents:
        """Audit as if so many seconds had passed."""
        account = Account(self.cosmos.endpoint, self.cosmos.key)
        source = source_of(self.spark, self.job, account)
        now = beginning(self.cosmos.now() + later, self.retention)
        audit = Auditor(Work(self.spark, self.job, account, source, now, telling or Silence()))
        return audit.run(Options(str(self.out), **options))


def found(contents: Contents) -> set[tuple[str, str]]:
    """Rules and entities of all findings."""
    return {(finding.rule, finding.entity) for finding in contents.findings}


@dataclass
class Games:
    """Makes databases with games in them, and audits."""

    spark: SparkSession
    cosmos: RunningEmulator
    folder: Path

    def played(self, shots: Iterable[Envelope], strategy: Strategy | None = None) -> str:
        """A database in which these shots were fired. Returns its name."""
        database = f"games-{uuid4().hex[:8]}"
        create_containers(self.cosmos, database)
        self.play(database, shots, strategy)
        return database

    def play(self, database: str, shots: Iterable[Envelope], strategy: Strategy | None = None) -> None:
        """Fire shots."""

        async def play() -> None:
            app = App(self.cosmos, database, strategy or Outbox())
            await app.play(shots)
            await app.close()

        asyncio.run(play())

    def audits(
        self, database: str, strategy: Strategy | None = None, retention: timedelta = RETENTION, **more: Any
    ) -> Audits:
        """Audits of a database."""
        app = App(self.cosmos, database, strategy or Outbox())
        return Audits(self.spark, self.cosmos, job(app, database, **more), self.folder / "out", retention)


@pytest.fixture
def games(spark: SparkSession, cosmos: RunningEmulator, tmp_path: Path) -> Games:
    return Games(spark, cosmos, tmp_path)
