"""A service whose requests raise, hang or succeed as a test has it."""

from __future__ import annotations

import asyncio


class Scripted:
    """Raises the given errors, request by request; then every request succeeds.

    Attributes:
        hanging: no request is answered.
        called: set by the first request.
    """

    def __init__(self, *errors: BaseException | None) -> None:
        self.errors = list(errors)
        self.under_way = 0
        self.most_under_way = 0
        self.hanging = False
        self.called = asyncio.Event()

    async def answer(self) -> None:
        """One request."""
        self.called.set()
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await (asyncio.Event().wait() if self.hanging else asyncio.sleep(0))
            error = self.errors.pop(0) if self.errors else None
            if error is not None:
                raise error
        finally:
            self.under_way -= 1
