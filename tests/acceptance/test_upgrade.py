"""A rolling upgrade in real processes: hosts of two versions share queues and documents, and every shot takes place once.

It costs about nine seconds of processor time, most of it for starting four hosts. `EXACTLYONCE_EARLIER` names the commit or tag
of the earlier version; without it a copy of this one is played, so that the way of replacing hosts stays tested.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from demo.stack import ROOT
from demo.upgrade.rolling import CODE, Upgrade, checked_out, upgrade

pytestmark = pytest.mark.acceptance


def earlier_in(folder: Path) -> Path:
    """The code of the earlier version, which leaves a trace where it runs."""
    commit = os.environ.get("EXACTLYONCE_EARLIER")
    if commit:
        checked_out(commit, folder)
    else:
        shutil.copytree(ROOT / "exactlyonce", folder / "exactlyonce", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "handlers", folder / "handlers", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("function_app.py", "host.json"):
            shutil.copy(ROOT / name, folder / name)
    with (folder / "exactlyonce" / "__init__.py").open("a") as module:
        module.write(f"\nimport os, pathlib\npathlib.Path({str(folder)!r}, f'ran-{{os.getpid()}}').touch()\n")
    return folder


async def test_hosts_are_replaced_one_by_one_while_messages_are_under_way(tmp_path: Path) -> None:
    for name in ("earlier", "logs"):
        (tmp_path / name).mkdir()
    earlier = earlier_in(tmp_path / "earlier")
    assert set(CODE) <= {path.name for path in earlier.iterdir()}
    done = await upgrade(Upgrade(earlier, shots=40, seconds=8, back=False), tmp_path / "logs", print)
    assert done.problem is None
    assert done.replaced == 2
    assert len(list(earlier.glob("ran-*"))) == 2
