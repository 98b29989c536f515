"""The demo, small: every strategy comes through, the naive handler does not, and nothing is left running."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIDE_BY_SIDE = 2
"""Demos at a time. They mostly wait: for hosts to start, and for messages to come back."""

AUDITED = ("outbox",)
"""Strategies whose demos play the last acts, too: that of `make demo`. Games of all are audited, damaged and cleaned up in
`tests/spark`: there one Java serves them all."""
AUDITS = ("shooting-range", "shooting-range-damaged", "shooting-range-old")
"""Databases that are audited, in this order."""

Played = subprocess.CompletedProcess[str]
SHOTS = {"outbox": 200}
"""Those of `make demo` are enough for every kind of damage to a copy; the games of others are not damaged."""
FEW = 100
"""Shots of the others."""

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java for minutes on few cores."""
WIDE = {**os.environ, "COLUMNS": "160", "JDK_JAVA_OPTIONS": BRIEF}
"""So that no line of the summary is broken, and a Java that starts lasts minutes only."""

pytestmark = pytest.mark.acceptance


def play(strategy: str) -> Played:
    audit = "on" if strategy in AUDITED else "off"
    return make("demo", f"STRATEGY={strategy}", f"SHOTS={SHOTS.get(strategy, FEW)}", "GAMES=8", f"AUDIT={audit}")


def make(*arguments: str, **environment: str) -> Played:
    """Run a command of the Makefile as README has it typed. What it would install is not touched: this runs on it."""
    installed = [f"--assume-old=.make/{item}" for item in ("python", "node", "amqp")]
    outside = {name: value for name, value in WIDE.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(
        [str(shutil.which("make")), *installed, *arguments],
        cwd=ROOT,
        env={**outside, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def demos(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Played]]]:
    """The demos of all strategies that tests ask for."""
    yield from played_for(request, "strategy", play)


def played_for(
    request: pytest.FixtureRequest, parameter: str, play: Callable[[Any], Played]
) -> Iterator[Mapping[Any, Future[Played]]]:
    """The demos for all values of a parameter that the tests of this module have, a few at a time."""
    here = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    wanted = dict.fromkeys(item.callspec.params[parameter] for item in here)
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    try:
        yield {entry: pool.submit(play, entry) for entry in wanted}
    finally:
        pool.shutdown(cancel_futures=True)


def figure(name: str, output: str) -> int:
    found = re.search(rf"{name}\D*?(\d+)", output)
    assert found is not None, output
    return int(found[1])


RECOVERED = {
    "outbox": "the lost messages turned up",
    "colocated": "the lost messages turned up",
    "stream": "rebuilt from the streams of their games",
}


@pytest.mark.parametrize("strategy", RECOVERED)
def test_every_shot_takes_place_once_whatever_happens(strategy: str, demos: Mapping[str, Future[Played]]) -> None:
    played = demos[strategy].result()
    shots = SHOTS.get(strategy, FEW)
    assert played.returncode == 0, played.stdout + played.stderr
    assert figure("violations", played.stdout) == 0
    assert figure("duplicates", played.stdout) >= shots / 5
    assert figure("replies lost after the write was applied", played.stdout) >= shots / 10
    assert figure("replies lost before", played.stdout) >= shots / 10
    assert figure(r"function hosts killed \(SIGKILL\)", played.stdout) >= 3
    assert figure("distinct outcomes published", played.stdout) == shots
    assert figure("shots over HTTP, each with one answer", played.stdout) == shots / 10
    assert figure("changed places on their way", played.stdout) >= shots / 4
    gaps = re.findall(r"the board of game-\d waits for number \d+, with \d+ held\W+(\w[\w ]*\w)", played.stdout)
    assert gaps == [RECOVERED[strategy]] * 2
    if strategy in AUDITED:
        assert "Audit of what the game left: 0 findings, in order" in played.stdout
        assert figure("at_most_one_state_change", played.stdout) == 1
        reports = [Path(path) for path in re.findall(r"\S+/report\.html", played.stdout)]
        for report, database in zip(reports[-3:], AUDITS, strict=True):
            assert f"Audit of {database}<" in report.read_text()
        shutil.rmtree(reports[-1].parents[1])


@pytest.mark.parametrize("strategy", ["naive"])
def test_the_naive_handler_does_not_come_through(strategy: str, demos: Mapping[str, Future[Played]]) -> None:
    played = demos[strategy].result()
    assert played.returncode == 0, played.stdout + played.stderr
    assert figure("violations", played.stdout) > 0
