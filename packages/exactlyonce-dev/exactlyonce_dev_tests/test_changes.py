"""A change of a file by which the app may behave differently is noticed, and no other."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from exactlyonce_dev.changes import change, snapshot


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
