"""A step in the event loop of another thread."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_loop(loop: AbstractEventLoop, action: Callable[[], Result]) -> Result:
    """Run a step in the thread of a loop and wait for it. What it raises comes out here."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(action())
        except Exception as error:  # It belongs to the caller.
            done.set_exception(error)

    loop.call_soon_threadsafe(run)
    return done.result()
