"""Clients that fire over HTTP: each repeats its request until it is answered, and keeps what it was answered."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from demo.shots import Shot
from demo.stack import Stack

_AT_ONCE: Final = 8
_HANGING_UP: Final = 0.3
"""Share of the tries in which a client hangs up before the answer can have come."""
_BRIEF_SECONDS: Final = 0.03
_PATIENT_SECONDS: Final = 20
_PAUSE_SECONDS: Final = 0.2
_TRIES: Final = 300
_AGAIN: Final = (429, 500, 503)
"""Status codes after which a client repeats its request."""


@dataclass
class Clients:
    """Clients of one game.

    Attributes:
        stack: whose youngest host is asked.
        random: decides who hangs up; None if nobody does.
        answers: by id of the shot, what each request was answered: status code and body.
        unanswered: tries that brought no answer.
        replayed: answers that say that they were given before.
    """

    stack: Stack
    random: Random | None
    answers: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unanswered: int = 0
    replayed: int = 0
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _under_way: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self, shot: Shot) -> None:
        """Begin a request, which goes on by itself."""
        self._under_way.append(asyncio.create_task(self._fire(shot)))

    async def finish(self) -> None:
        """Wait until all requests are answered. Raises `TimeoutError` if one never is."""
        await asyncio.gather(*self._under_way)

    async def stop(self) -> None:
        """Cancel what is under way."""
        for item in self._under_way:
            item.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _fire(self, shot: Shot) -> None:
        async with self._places:
            for _ in range(_TRIES):
                if await self._is_answered(shot):
                    return
                self.unanswered += 1
                await asyncio.sleep(_PAUSE_SECONDS)
        raise TimeoutError(f"{shot.id} was never answered; the hosts' logs are in {self.stack.logs}.")

    async def _is_answered(self, shot: Shot) -> bool:
        hangs_up = self.random is not None and self.random.random() < _HANGING_UP
        timeout = ClientTimeout(total=_BRIEF_SECONDS if hangs_up else _PATIENT_SECONDS)
        request: dict[str, Any] = {"json": {"position": shot.position}, "headers": {"Idempotency-Key": shot.id}}
        try:
            async with (
                ClientSession(self.stack.http, timeout=timeout) as session,
                session.post(f"/api/games/{shot.game}/shots", **request) as reply,
            ):
                if reply.status in _AGAIN:
                    return False
                self.answers[shot.id].append(f"{reply.status} {await reply.text()}")
                self.replayed += "Idempotent-Replayed" in reply.headers
                return True
        except (ClientError, asyncio.TimeoutError, OSError):
            return False
