"""No false alarm while the system is at work: reads of several containers are not of one moment."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import count
from typing import Any

import pytest

from exactlyonce import Envelope, Outbox
from tests.spark.audit.app import App, shot
from tests.spark.audit.conftest import Games, found

MINUTES = float(os.environ.get("EXACTLYONCE_AUDIT_MINUTES", "0"))
AUDITS = 2
"""How many there are in a row, if nobody says for how long."""
GAMES = 20
SHORT: dict[str, Any] = {"grace": "PT1S", "owed_after": "PT2M", "lost_after": "PT2M", "gap_after": "PT2M"}
"""What a rule waits for where nothing at rest tells a delay from a loss; the others judge what is a second old."""


@contextmanager
def at_work(app: App) -> Iterator[list[int]]:
    """Shots are fired without a pause, sixteen at a time. The list says how many were in the end."""
    stop, fired = threading.Event(), [0]

    def shots() -> Iterator[Envelope]:
        for number in count():
            if stop.is_set():
                return
            fired[0] = number
            yield shot(number, GAMES)

    async def play() -> None:
        await app.play(shots())
        await app.close()

    thread = threading.Thread(target=lambda: asyncio.run(play()), name="players")
    thread.start()
    try:
        yield fired
    finally:
        stop.set()
        thread.join()


@pytest.mark.timeout(max(600, 120 * MINUTES))
def test_audits_in_a_row_find_nothing_in_a_system_at_work(games: Games) -> None:
    database = games.played(shot(number, GAMES) for number in range(4 * GAMES))
    began = datetime.fromtimestamp(games.cosmos.now() - 60, timezone.utc)
    audit = games.audits(database, live_since=began, **SHORT)
    until, done = time.monotonic() + 60 * MINUTES, 0
    with at_work(App(games.cosmos, database, Outbox(window=2))) as fired:
        while done < AUDITS or time.monotonic() < until:
            before = fired[0]
            assert found(audit(later=0)) == set()
            assert fired[0] > before
            done += 1
