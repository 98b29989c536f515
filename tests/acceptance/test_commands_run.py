"""The commands of README that the table of `test_readme_commands.py` has run here, to their end."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from demo.stack import create_containers
from exactlyonce import Outbox
from local_cosmos.inprocess import running_emulator
from tests.acceptance.test_demo import ROOT, WIDE, make
from tests.acceptance.test_readme_commands import HERE, JOBS

pytestmark = pytest.mark.acceptance
DATABASE: Final = "shooting-range"


@pytest.mark.parametrize("command", HERE)
def test_a_command_runs_to_its_end_as_it_stands(command: str, tmp_path: Path) -> None:
    _, *arguments = shlex.split(command)
    ran = make(*arguments, TMPDIR=str(tmp_path), AUDIT="off")  # No report stays; test_demo plays the last acts.
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the job file of some games, and the environment that leads to them."""
    from tests.spark.application import own  # Spark may be absent where other tests of this file run.
    from tests.spark.auditor.app import App, job, shot

    with running_emulator() as cosmos:
        create_containers(cosmos, DATABASE)

        async def play() -> App:
            app = App(cosmos, DATABASE, Outbox())
            await app.play(shot(number) for number in range(24))
            await app.close()
            return app

        written = job(asyncio.run(play()), DATABASE)
        own(cosmos, written)
        (tmp_path / "job.json").write_text(written.text())
        reached = {"COSMOS__accountEndpoint": cosmos.endpoint, "COSMOS__accountKey": cosmos.key}
        yield tmp_path, {**WIDE, **reached, "PYTHONPATH": str(ROOT)}


def test_jobs_run_to_their_end_as_they_stand(folder: tuple[Path, dict[str, str]]) -> None:
    place, environment = folder
    for command in JOBS:
        _, *arguments = shlex.split(command)
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (place / "reports" / "audit" / "report.html").is_file()
