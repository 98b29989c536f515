"""An outage of the store under load, in real processes: it heals by itself, and no message is parked."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.outage.enduring import Outage, endure

pytestmark = pytest.mark.acceptance


async def test_messages_that_were_given_up_while_the_store_was_away_are_processed_once_without_any_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = Outage(seconds=9, shots=60, invisible=2, delivery_timeout=1, limit=1800)
    endured = await endure(short, tmp_path, print)
    assert endured.problem is None, capsys.readouterr().out
    assert endured.killed == 3
    assert endured.refused > 0
