"""Processes that tests start import the packages of this checkout, whatever is installed: as pytest does by `pythonpath`.

And in which order several processes share the tests: those of a file stay together, since they share what they start, and so do
those of `tests/spark` by halves, whose Java takes longer to warm up than most of its tests. Long ones come first, so that all
processes end together.

And no property that Hypothesis tries fails because the machine is busy: neither slow examples nor slow chance are an error.

And what was imported and collected is left out of garbage collections, each of which would go through all of it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

PACKAGES = sorted(path.parent for path in (Path(__file__).resolve().parent / "packages").glob("*/pyproject.toml"))
TOGETHER = ("tests/spark/auditor/", "tests/spark/")
"""Folders whose tests run in one process, one after the other; of two that hold a test, the first."""
LONGEST = (
    "tests/spark/", "tests/acceptance/", "tests/model/", "packages/local-cosmos/", "packages/local-service-bus/",
    "packages/exactlyonce-dev/",
)  # fmt: skip
"""Folders of long tests, in the order in which processes share them. Those of all others follow."""

_inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*map(str, PACKAGES), *filter(None, _inherited)]))

with suppress(ImportError):  # Most packages are tested without it.
    from hypothesis import HealthCheck, settings

    settings.register_profile("however busy", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("however busy")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests: twelve thousand, and none of them is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """The scheduler of `--dist loadfile`, with some folders taken for one file, and others first."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415  # It may be absent.

    class Scheduling(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.split("::", 1)[0])

        def _assign_work_unit(self, node: Any) -> None:
            self.workqueue.move_to_end(min(self.workqueue, key=_rank), last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log)


def _rank(scope: str) -> int:
    """The place of a file, or a folder, in the order of folders."""
    return next((rank for rank, folder in enumerate(LONGEST) if scope.startswith(folder)), len(LONGEST))
