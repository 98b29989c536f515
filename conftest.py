"""Processes that tests start import the packages of this checkout, whatever is installed: as pytest does by `pythonpath`. They
end with the process that started them, however that ends.

And in which order several processes share the tests: those of a file stay together, since they share what they start, and so do
those of `tests/spark` by halves, whose Java takes longer to warm up than most of its tests. Long ones come first, so that all
processes end together. A process with a Java of its own runs nothing else.

And what Hypothesis tries: a few examples with every change, the same each time; many every night, all of them new. No property
fails because the machine is busy: neither slow examples nor slow chance are an error.

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

from devtools import processes

PACKAGES = sorted(path.parent for path in (Path(__file__).resolve().parent / "packages").glob("*/pyproject.toml"))
_inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*map(str, PACKAGES), *filter(None, _inherited)]))
processes.leash()

with suppress(ImportError):  # Most packages are tested without it.
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "change", max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile(
        "nightly", settings.get_profile("change"), max_examples=1_000, derandomize=False, print_blob=True
    )
    settings.load_profile("change")  # Unless `--hypothesis-profile` names the other.


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
    """Share the tests as `devtools.processes` says."""
    return processes.scheduler(config, log) if config.getoption("dist") == "loadfile" else None
