"""Waiting as a parameter: the loops get it handed in, so that tests never wait."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

Wait = Callable[[asyncio.Event, float], Awaitable[bool]]
"""Wait for an event, at most so many seconds; tells whether it has happened."""


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """The real `Wait`."""
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
