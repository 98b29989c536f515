"""Finds the OpenTelemetry SDK of a process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime

from exactlyonce.drivers.observer import Observer


def observer_of_this_process(now: Callable[[], datetime]) -> Observer | None:
    """An observer that reports to this process's SDK; None if it has none.

    Args:
        now: the time of day.
    """
    # Configuring an SDK imports the API, so a process that has not imported it has no SDK and need not load this adapter.
    if "opentelemetry" not in sys.modules:
        return None
    from exactlyonce.telemetry.opentelemetry import configured  # noqa: PLC0415

    return configured(now)
