"""The supervisor: parts whose output becomes lines, however long they are, and files whose changes start the app again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from exactlyonce_dev.dev import change, main, snapshot
from exactlyonce_dev.parts import Part

TALKER = """
import sys
print("{}", flush=True)
print("o" * 200_000, flush=True)
print("e" * 200_000, file=sys.stderr, flush=True)
print("short", end="", file=sys.stderr, flush=True)
"""

TELLER = """
import json, os, signal
print("{}")
for body in ("b" * 200_000, "short"):
    print(json.dumps({"body": body}))
print('{"body": "half', end="", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_line_of_any_length_is_copied_and_what_nobody_waits_for_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "talker.py").write_text(TALKER)
    said: list[str] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    part = await Part.start("app", ["talker"], tmp_path, environment, write=lambda _, line: said.append(line))
    assert await part.ready == {}
    assert await part.ended == 0
    await part.end()
    assert sorted(said) == ["e" * 200_000, "o" * 200_000, "short"]


async def test_events_of_a_part_are_heard_however_long_and_nothing_of_them_is_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "teller.py").write_text(TELLER)
    said: list[str] = []
    heard: list[dict[str, str]] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    part = await Part.start(
        "app", ["teller"], tmp_path, environment, write=lambda _, line: said.append(line), hear=heard.append
    )
    assert await part.ended == -signal.SIGKILL
    await part.end()
    assert heard == [{"body": "b" * 200_000}, {"body": "short"}]
    assert said == []


@pytest.mark.parametrize("port", ["99999", "-1", "x", "\u0661"])
def test_a_port_that_cannot_be_is_refused(
    port: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["exactlyonce dev", f"--http-port={port}"])
    with pytest.raises(SystemExit):
        main()
    assert "is no port; it has to be a number from 0 to 65535" in capsys.readouterr().err


def test_sources_and_settings_are_watched_and_nothing_that_is_not_the_apps(tmp_path: Path) -> None:
    for name in ("function_app.py", "host.json", "notes.txt", "code/orders.py", ".venv/a.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {Path(name).relative_to(tmp_path).as_posix() for name in snapshot(tmp_path)}
    assert found == {"function_app.py", "host.json", "code/orders.py"}


async def test_a_file_that_is_written_added_or_removed_is_a_change(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.touch()
    known = snapshot(tmp_path)
    waiting = asyncio.create_task(change(tmp_path, known, every=0))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    second.touch()
    assert await waiting == second
    known = snapshot(tmp_path)
    os.utime(first, ns=(1, 1))
    assert await change(tmp_path, known) == first
    known = snapshot(tmp_path)
    first.unlink()
    assert await change(tmp_path, known) == first
