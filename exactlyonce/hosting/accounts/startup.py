"""Start-up: what an application makes sure of before it asks any account for anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from exactlyonce.drivers.runtime import Runtime
from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting.accounts.port import Accounts
from exactlyonce.telemetry.discovery import observer_of_this_process


class Startup:
    """Binds an application to its event loop, finds its observer, and verifies its accounts, each on first use.

    Args:
        resources: verified before the store is asked, and closed when the event loop ends.
        runtime: holds the observer.
        end: awaited before the clients are closed.
    """

    def __init__(self, resources: Accounts, runtime: Runtime, end: Callable[[], Awaitable[None]]) -> None:
        self._resources = resources
        self._runtime = runtime
        self._lifetime = resources.lifetime(end)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def begin(self) -> None:
        """Bind the application to the running event loop, and look for an observer. No account is asked.

        Raises:
            ConfigurationError: the application was used on another event loop before, to which its clients belong.
        """
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            await anext(self._lifetime)  # The end of the loop finishes this generator, which closes the clients.
        if self._loop is not loop:
            raise ConfigurationError(
                "The application is used from a second event loop. Let an `async def` function await it."
            )
        self._runtime.observer_slot.look(lambda: observer_of_this_process(self._runtime.clock.now))

    async def ready(self) -> None:
        """Begin, and verify the accounts and whose the library's container is.

        Raises:
            As `begin` and `Accounts.ready` do.
        """
        await self.begin()
        await self._resources.ready()
