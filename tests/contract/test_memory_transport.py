"""The transport in memory does what every transport has to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from exactlyonce.testing.contracts.transports import TransportContract
from exactlyonce.transports.port import AsyncTransport, MemoryTransport
from exactlyonce.values.frozen_json import Json


class TestMemoryTransport(TransportContract):
    @pytest.fixture
    def transport(self) -> AsyncTransport:
        self._answers = True
        return MemoryTransport(outcome=lambda _: (True, self._answers))

    @contextmanager
    def unanswered(self, transport: AsyncTransport) -> Iterator[None]:
        self._answers = False
        yield
        self._answers = True

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        assert isinstance(transport, MemoryTransport)
        return [output.envelope for output in transport.queues[address]]
