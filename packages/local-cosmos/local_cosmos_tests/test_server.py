"""The server as it ends."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.protocol.server import CosmosServer, PortTakenError
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = CosmosServer(Emulator(AccountSettings(), Clock(), lambda: 0.0), WELL_KNOWN_KEY)
        with pytest.raises(PortTakenError, match=f"Port {port} cannot be had"):
            await server.start(port)
        await server.stop()


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_comes_while_the_server_stops_is_closed(turns: int) -> None:
    """How much the event loop knows of it depends on how many turns it has taken."""
    server = CosmosServer(Emulator(AccountSettings(), Clock(), lambda: 0.0), WELL_KNOWN_KEY)
    address = urlsplit(await server.start())
    with socket.create_connection((str(address.hostname), address.port or 0)) as late:
        late.setblocking(False)
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.stop()
        with suppress(ConnectionResetError):
            assert await asyncio.get_running_loop().sock_recv(late, 1) == b""
