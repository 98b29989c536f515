"""A part of the local stack: a process whose output becomes lines, however long they are."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from exactlyonce_dev.dev import main
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


async def test_what_a_part_tells_is_heard_however_long_and_no_part_of_it_is_in_the_log(tmp_path: Path) -> None:
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
