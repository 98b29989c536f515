"""A plugin for pytest, of the process that runs the Python SDK's own tests: writes the outcome of each, one JSON object a line.

That process has the SDK and not the emulator, so nothing of `local_cosmos` is imported here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

_OUTCOMES: Final = Path(os.environ["SDK_OUTCOMES"])
_MOST_CHARACTERS: Final = 1_500


class _Outcomes:
    """The outcome of the test that runs, and how many requests it sends over HTTP."""

    def __init__(self) -> None:
        self._outcome, self._why, self._requests = "passed", "", 0

    def count(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """The function that sends, which counts."""

        def counted(*values: Any, **named: Any) -> Any:
            self._requests += 1
            return send(*values, **named)

        return counted

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._outcome, self._why, self._requests = "passed", "", 0
        ended = yield
        outcome = {"test": item.nodeid, "outcome": self._outcome, "requests": self._requests, "why": self._why}
        with _OUTCOMES.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(outcome) + "\n")
        return ended

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed and self._outcome != "failed":
            self._outcome, self._why = report.outcome, report.longreprtext[-_MOST_CHARACTERS:]


def pytest_configure(config: pytest.Config) -> None:
    outcomes = _Outcomes()
    config.pluginmanager.register(outcomes, "outcomes for local-cosmos")
    for sender, name in ((HTTPConnection, "putrequest"), (aiohttp.ClientSession, "_request")):
        setattr(sender, name, outcomes.count(getattr(sender, name)))
