"""What the broker takes no more of."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import pytest

from local_service_bus.broker.broker import Broker
from local_service_bus.broker.messages import Content
from local_service_bus.broker.refusals import RefusedError
from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Topology

SASL: Final = b"AMQP\x03\x01\x00\x00"
"""How a connection begins, on both sides."""


def of_a_message(id: str) -> Content:
    return Content(payload=b"", message_id=id)


def of_a_session(id: str) -> Content:
    return Content(payload=b"", message_id="1", session_id=id)


@pytest.mark.parametrize("character", ["x", "ж", "🎯"])
@pytest.mark.parametrize("id", [of_a_message, of_a_session])
def test_ids_have_128_characters_as_utf_16_counts_them(id: Callable[[str], Content], character: str) -> None:
    broker = Broker(Topology((Queue("q"),)), lambda: 0.0, lambda: pytest.fail("nothing is locked"))
    most = 128 * 2 // len(character.encode("utf-16-le"))
    broker.entrance("q").send([id(most * character)])
    with pytest.raises(RefusedError, match="longer than 128"):
        broker.entrance("q").send([id((most + 1) * character)])
    assert broker.counts("q").active == 1


def test_more_connections_than_ten_are_served() -> None:
    with endpoint(Topology((Queue("q"),))) as running, ExitStack() as opened:
        address = "127.0.0.1", running.port
        connections = [opened.enter_context(socket.create_connection(address)) for _ in range(100)]
        for connection in connections:
            connection.sendall(SASL)
        assert [connection.recv(len(SASL)) for connection in connections] == [SASL] * 100
