"""Timers that the library registers on a function app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import azure.functions as func

EVERY_MINUTE = "0 * * * * *"


def register_sweeper(
    app: func.FunctionApp | func.Blueprint, sweep: Callable[[], Awaitable[object]], schedule: str
) -> None:
    """Register a timer that sweeps.

    Args:
        app: the function app, or a blueprint of it.
        sweep: to be called.
        schedule: six fields of NCRONTAB.
    """

    async def exactlyonce_sweep(timer: func.TimerRequest) -> None:  # noqa: ARG001  # The host passes it.
        await sweep()

    app.timer_trigger(arg_name="timer", schedule=schedule)(exactlyonce_sweep)
