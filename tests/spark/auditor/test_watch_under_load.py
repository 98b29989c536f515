"""A watch over a system at work misses no damage and reports none twice, though it is killed three times.

`make audit-under-load` runs it; it takes some minutes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import takewhile
from pathlib import Path

import pytest

from demo.copies import read
from demo.damage import History, twice
from exactlyonce import Outbox
from local_cosmos.inprocess import RunningEmulator
from tests.spark.application import own
from tests.spark.auditor.app import App, job, shot
from tests.spark.auditor.conftest import Games
from tests.spark.auditor.test_incremental import write
from tests.spark.auditor.test_under_load import GAMES, MINUTES, SHORT, Work, alongside, players
from tests.spark.auditor.test_watch import reported

KILLS = 3
STILL = "still-"
"""Begins the names of games that nobody plays any more: their documents can be damaged without a conflict."""


@contextmanager
def watching(folder: Path, cosmos: RunningEmulator) -> Iterator[subprocess.Popen[str]]:
    """A watch in a process of its own, which is killed at the end of the block."""
    command = (
        *(sys.executable, "-m", "spark_jobs.audit", "--config", str(folder / "job.json"), "--out", str(folder / "out")),
        *("--checkpoint", str(folder / "checkpoint"), "--watch", "0.02"),
    )
    environment = {
        **os.environ,
        "COSMOS__accountEndpoint": cosmos.endpoint,
        "COSMOS__accountKey": cosmos.key,
    }
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # Java and the workers are in its session.


@pytest.mark.skipif(not MINUTES, reason="it starts Spark four times: make audit-under-load")
def test_a_watch_that_is_killed_three_times_reports_each_damage_once(games: Games) -> None:
    database = games.played(shot(number, KILLS + 1, STILL) for number in range(4 * (KILLS + 1)))
    games.play(database, (shot(number, GAMES) for number in range(4 * GAMES)))
    began = datetime.fromtimestamp(games.cosmos.now() - 60, timezone.utc)
    file = job(App(games.cosmos, database, Outbox()), database, live_since=began, **SHORT)
    (games.folder / "job.json").write_text(file.text())
    own(games.cosmos, file)
    news, work = games.folder / "checkpoint" / "watch", Work()
    damaged: list[str] = []
    with alongside(work, players(games, database, work)):
        for number in range(KILLS + 1):
            with watching(games.folder, games.cosmos) as process:
                wait_for(lambda: any(news.glob("open-*")), process)
                history = History(read(games.cosmos, database), f"{STILL}game-{number}")
                twice(history)
                write(games, database, history)
                damaged.append(history.key)
                if number == KILLS:
                    wait_for(lambda: {entity for _, _, entity in reported(news)} >= set(damaged), process)
    assert Counter(reported(news)) == Counter(("found", "at_most_one_state_change", item) for item in damaged)
    assert json.loads((games.folder / "out" / "summary.json").read_text())["mode"] == "incremental"


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Read what a watch says, line by line, until something is so."""
    assert process.stdout is not None
    said = list(takewhile(lambda _: not condition(), process.stdout))
    assert condition(), said
