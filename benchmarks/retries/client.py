"""The client: it loses the first answer to each request, and repeats the request until it has been answered twice."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Final, NamedTuple
from uuid import UUID

from aiohttp import BaseConnector, ClientError, ClientSession, ClientTimeout, TCPConnector, UnixConnector

from benchmarks.retries.port import Door

_ANSWER_SECONDS: Final = 600
_PAUSE_SECONDS: Final = 0.05
"""Before a request that was not answered is repeated."""
_SERVER_ERROR: Final = 500


class Answer(NamedTuple):
    """What a request was answered with."""

    status: int
    body: bytes


def keys(number: int, now: float, random: Random) -> list[str]:
    """So many UUIDs of version 7, which carry the time.

    Args:
        number: of keys.
        now: seconds since 1970.
        random: draws the rest of them.
    """
    return [str(_uuid7(int(now * 1000) + item, random)) for item in range(number)]


def _uuid7(milliseconds: int, random: Random) -> UUID:
    high = milliseconds << 16 | 0x7000 | random.getrandbits(12)
    return UUID(int=high << 64 | 0b10 << 62 | random.getrandbits(62))


class Client:
    """A client that repeats each request until it is answered, whichever product answers.

    Args:
        doors: where requests are taken at present; each goes to one of them by chance.
        random: that chance.

    Attributes:
        answers: of each key, without those that were lost.
        lost: how many answers were lost.
        unanswered: how many requests got none, or one that says to try again.
    """

    def __init__(self, doors: Callable[[], Sequence[Door]], random: Random) -> None:
        self._doors, self._random = doors, random
        self._sessions: dict[Door, ClientSession] = {}
        self._opened = AsyncExitStack()
        self.answers: dict[str, set[Answer]] = defaultdict(set)
        self.lost = self.unanswered = 0

    async def __aenter__(self) -> Client:
        """Begin."""
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self._opened.aclose()

    async def ask(self, path: str, key: str) -> None:
        """Send a request, lose its answer, and repeat it until it has been answered twice."""
        await self.lose(path, key)
        for _ in range(2):
            self.answers[key].add(await self.answered(path, key))

    async def lose(self, path: str, key: str) -> None:
        """Send a request, and hang up as its answer comes."""
        body = _body(key, 1)
        head = f"Host: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n"
        request = f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        while True:
            try:
                reader, writer = await _connected(self._random.choice(self._doors()))
                writer.write(request)
                begun = await asyncio.wait_for(reader.read(1), _ANSWER_SECONDS)
                writer.close()
            except (OSError, asyncio.TimeoutError):
                begun = b""
            if begun:
                self.lost += 1
                return
            self.unanswered += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    async def answered(self, path: str, key: str, amount: int = 1) -> Answer:
        """Repeat a request until it is answered with more than that one should try again."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        while True:
            door = self._random.choice(self._doors())
            try:
                session = await self._session(door)
                async with session.post(door.address + path, data=_body(key, amount), headers=headers) as response:
                    answer = Answer(response.status, await response.read())
            except (ClientError, OSError, asyncio.TimeoutError):
                answer = None
            if answer is not None and answer.status < _SERVER_ERROR:
                return answer
            self.unanswered += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _session(self, door: Door) -> ClientSession:
        if door not in self._sessions:
            connector: BaseConnector = TCPConnector() if door.socket is None else UnixConnector(str(door.socket))
            session = ClientSession(connector=connector, timeout=ClientTimeout(total=_ANSWER_SECONDS))
            self._sessions[door] = session
            await self._opened.enter_async_context(session)
        return self._sessions[door]


def _body(key: str, amount: int) -> str:
    return json.dumps({"key": key, "amount": amount})


async def _connected(door: Door) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if door.socket is not None:
        return await asyncio.open_unix_connection(str(door.socket))
    host, _, port = door.address.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))
