"""Processes that tests start import the packages of this checkout, whatever is installed: as pytest does by `pythonpath`.

And which tests stay together where several processes share them: those of a file, which share what they start; and all of
`tests/spark`, whose Java takes longer to warm up than most of its tests.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

PACKAGES = sorted(path.parent for path in (Path(__file__).resolve().parent / "packages").glob("*/pyproject.toml"))
TOGETHER = ("tests/spark/",)
"""Folders whose tests run in one process, one after the other."""

_inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*map(str, PACKAGES), *filter(None, _inherited)]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """The scheduler of `--dist loadfile`, with some folders taken for one file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415  # It may be absent.

    class Scheduling(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.split("::", 1)[0])

    return Scheduling(config, log)
