"""Changes of an app's files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

_POLL_SECONDS: Final = 0.5
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "tests", "venv"})
_SUFFIXES: Final = (".py", ".json")


def snapshot(app: Path) -> dict[str, int]:
    """The files of an app by which it may behave differently, with the times of their last changes."""
    found = {}
    for folder, folders, files in os.walk(app):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            if name.endswith(_SUFFIXES):
                path = os.path.join(folder, name)  # noqa: PTH118  # Twice as fast, and run all the time.
                try:
                    found[path] = os.stat(path).st_mtime_ns  # noqa: PTH116
                except FileNotFoundError:
                    continue
    return found


async def change(app: Path, known: dict[str, int], every: float = _POLL_SECONDS) -> Path:
    """Wait until a file differs from a snapshot, and return its path."""
    while True:
        now = snapshot(app)
        if changed := {name for name, _ in now.items() ^ known.items()}:
            return Path(min(changed))
        await asyncio.sleep(every)
