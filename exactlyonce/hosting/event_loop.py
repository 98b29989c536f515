"""Clients belong to the event loop they were opened on; a function that starts its own would find them dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from exactlyonce.errors import ConfigurationError


class OneLoop:
    """The event loop on which an application lives.

    Args:
        lifetime: begun on the first use, so that whoever ends the loop finishes it.
    """

    def __init__(self, lifetime: AsyncGenerator[None, None]) -> None:
        self._lifetime = lifetime
        self._loop: asyncio.AbstractEventLoop | None = None

    async def require(self) -> None:
        """Raise `ConfigurationError` on any other event loop than that of the first use."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            await anext(self._lifetime)
        if self._loop is not loop:
            raise ConfigurationError(
                "The application is used from a second event loop. Let an `async def` function await it."
            )
