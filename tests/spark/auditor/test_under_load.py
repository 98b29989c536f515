"""No false alarm while the system is at work: reads of several containers are not of one moment.

`make audit-under-load MINUTES=10` is the long form: for so many minutes, and for no fewer than ten audits, messages are in
flight without a pause, and one clean-up follows the other. In the short form each step of an audit begins with a volley.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import count
from typing import Any

import pytest

from exactlyonce import Outbox
from spark_jobs.cleaner.cleaner import Cleaner
from spark_jobs.cleaner.cleaner import Options as CleanupOptions
from spark_jobs.job.configuration import Account, Job
from spark_jobs.work import Work as JobWork
from spark_jobs.work import source_of
from tests.spark.application import beginning
from tests.spark.auditor.app import IN_FLIGHT, App, shot
from tests.spark.auditor.conftest import Games, Silence, found

MINUTES = float(os.environ.get("EXACTLYONCE_AUDIT_MINUTES", "0"))
AUDITS = 10 if MINUTES else 2
"""How many there are in a row, at least."""
GAMES = 20
SHORT: dict[str, Any] = {"grace": "PT1S", "owed_after": "PT2M", "lost_after": "PT2M", "gap_after": "PT2M"}
"""What a rule waits for where nothing at rest distinguishes a delay from a loss; the others judge what is a second old."""
BRIEF: dict[str, Any] = {"horizon": "PT3M", "garbage_after": "PT3M"}
RETENTION = timedelta(minutes=4)
"""So that records become old meanwhile. Audits go by the same; the horizon has to be longer than an audit takes."""


@dataclass
class Work:
    """What was done, by everybody."""

    messages: int = 0
    audits: int = 0
    findings: list[tuple[str, str]] = field(default_factory=list)
    clean_ups: int = 0
    removed: int = 0
    troubles: list[BaseException] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.messages:,} messages processed, {self.audits} audits with {len(self.findings)} findings, "
            f"{self.clean_ups} clean-ups that removed {self.removed:,} documents"
        )


@contextmanager
def alongside(work: Work, action: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do something in a thread of its own until the block ends, and then raise what it raised."""
    stop = threading.Event()

    def act() -> None:
        try:
            action(stop)
        except BaseException as error:  # It is raised where somebody sees it.
            work.troubles.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    for trouble in work.troubles:
        raise trouble


class Volleys:
    """The pace of the short form: with each step that an audit reports, every player may fire once more."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns = asyncio.Semaphore(IN_FLIGHT)

    def begin(self, what: str) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._fire)

    def done(self, result: str) -> None: ...

    async def turn(self, stop: threading.Event) -> None:
        """Wait for one's turn, or for the end."""
        self._loop = asyncio.get_running_loop()
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._turns.acquire(), 0.1)
                return

    def _fire(self) -> None:
        for _ in range(IN_FLIGHT):
            self._turns.release()


def players(
    games: Games, database: str, work: Work, volleys: Volleys | None = None
) -> Callable[[threading.Event], None]:
    """Sixteen players fire their shots without a pause, or volley by volley."""
    numbers = count()

    async def play(stop: threading.Event) -> None:
        app = App(games.cosmos, database, Outbox())

        async def player() -> None:
            while not stop.is_set():
                await app.play([shot(next(numbers), GAMES)])
                work.messages += 1
                if volleys is not None:
                    await volleys.turn(stop)

        await asyncio.gather(*(player() for _ in range(IN_FLIGHT)))
        await app.close()

    return lambda stop: asyncio.run(play(stop))


def cleaners(games: Games, job: Job, work: Work) -> Callable[[threading.Event], None]:
    """One clean-up follows the other."""
    account = Account(games.cosmos.endpoint, games.cosmos.key)

    def clean(stop: threading.Event) -> None:
        while not stop.is_set():
            source = source_of(games.spark, job, account)
            now = beginning(games.cosmos.now(), RETENTION)
            cleanup = Cleaner(JobWork(games.spark, job, account, source, now, Silence()))
            summary = cleanup.run(CleanupOptions(str(games.folder / "cleanup"), delete=True))
            work.clean_ups += 1
            work.removed += summary.total("removed")

    return clean


def test_audits_in_a_row_find_nothing_in_a_system_at_work(games: Games, capsys: pytest.CaptureFixture[str]) -> None:
    database = games.played(shot(number, GAMES) for number in range(4 * GAMES))
    began = datetime.fromtimestamp(games.cosmos.now() - 60, timezone.utc)
    audit = games.audits(database, live_since=began, **SHORT)
    work, volleys = Work(), Volleys()
    with alongside(work, players(games, database, work, None if MINUTES else volleys)):
        judge(partial(audit, telling=volleys), work)
    with capsys.disabled():
        print(f"\nat work: {work}")
    assert work.findings == []


@pytest.mark.skipif(MINUTES < 5, reason="records have to become old while it lasts: make audit-under-load MINUTES=10")
def test_nor_do_they_while_clean_ups_take_what_is_old(games: Games, capsys: pytest.CaptureFixture[str]) -> None:
    database = games.played(shot(number, GAMES) for number in range(4 * GAMES))
    audit = games.audits(database, retention=RETENTION, **SHORT, **BRIEF)
    work = Work()
    with alongside(work, players(games, database, work)), alongside(work, cleaners(games, audit.job, work)):
        judge(audit, work)
    with capsys.disabled():
        print(f"\nat work, and being cleaned up: {work}")
    assert work.findings == []
    assert work.clean_ups > 1
    assert work.removed > 0


def judge(audit: Callable[..., Any], work: Work) -> None:
    """Audit again and again while all are in flight."""
    until = time.monotonic() + 60 * MINUTES
    while work.audits < AUDITS or time.monotonic() < until:
        before = work.messages
        work.findings += sorted(found(audit(later=0)))
        work.audits += 1
        assert not work.troubles
        assert work.messages > before
