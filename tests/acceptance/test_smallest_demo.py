"""The demo on storage queues, as small as shows every kind of trouble: what every change plays. The others have verdicts."""

from __future__ import annotations

import pytest

from tests.acceptance.test_demo import figure, make

pytestmark = pytest.mark.acceptance
SHOTS = 60


def test_every_shot_takes_place_once_whatever_happens() -> None:
    played = make("demo", f"SHOTS={SHOTS}", "GAMES=4", "AUDIT=off")
    assert played.returncode == 0, played.stdout + played.stderr
    assert figure("violations", played.stdout) == 0
    assert figure("distinct outcomes published", played.stdout) == SHOTS
    assert figure("duplicates", played.stdout) > 0
    assert figure("replies lost after the write was applied", played.stdout) > 0
    assert figure(r"function hosts killed \(SIGKILL\)", played.stdout) > 0
