"""When the event loop ends the book is written and clients are closed: the host stops its worker without notice."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from exactlyonce import Destination, TryAgainLater
from exactlyonce.effects.effect import Effect, Opened
from exactlyonce.effects.library import CloseNumbers, OpenNumbers, WriteBook, Written
from exactlyonce.hosting import ExactlyOnce, StorageConnection
from exactlyonce.records.library import Book
from exactlyonce.stores.cosmos.store import CosmosStore
from tests.samples import Deposit, accounts
from tests.unit.hosting.test_application import application


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a request as an account does that takes nothing."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


async def used() -> ExactlyOnce:
    """An application whose client is open."""
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        address = "http://{}:{}/a".format(*server.sockets[0].getsockname())
        storage = StorageConnection(f"AccountName=a;AccountKey=c2VjcmV0;QueueEndpoint={address};")
        once = application(accounts(), destinations=(Destination("board"),), storage=storage)
        with pytest.raises(TryAgainLater):
            await once.send("board", Deposit("a"), message_id="m-1")
    return once


async def closed() -> ExactlyOnce:
    once = await used()
    await once.close()
    return once


@pytest.mark.parametrize("use", [used, closed])
def test_no_client_is_left_open_when_the_event_loop_ends(
    use: Callable[[], Coroutine[Any, Any, ExactlyOnce]], caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(use())
    gc.collect()  # Clients complain when nobody holds them any more.
    assert [record.message for record in caplog.records if record.message.startswith("Unclosed")] == []


def test_the_book_has_ended_when_the_event_loop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Book] = []

    async def write_book(self: CosmosStore, effect: Effect[Any]) -> Any:
        assert isinstance(effect, WriteBook)
        written.append(effect.book)
        return Written("token")

    async def works() -> None:
        once = application(accounts())
        await once._parts.startup.begin()
        opened = await once._parts.books.open(OpenNumbers(accounts().ref("a"), 0, more=1))
        assert isinstance(opened, Opened)
        await once._parts.books.close(CloseNumbers(opened.given))

    monkeypatch.setattr(CosmosStore, "perform", write_book)
    asyncio.run(works())
    assert [(book.used, book.ended) for book in written] == [(0, False), (1, True)]
