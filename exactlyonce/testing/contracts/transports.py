"""The contract of a transport, as a suite to inherit from.

    class TestMyTransport(TransportContract):
        @pytest.fixture
        async def transport(self) -> AsyncIterator[AsyncTransport]: ...

        async def received(self, transport: AsyncTransport, address: str) -> list[Json]: ...
        def unanswered(self, transport: AsyncTransport) -> AbstractContextManager[None]: ...

Needs pytest and pytest-asyncio in its automatic mode.
"""

# ruff: noqa: S101  # A suite asserts.

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import pytest

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import AsyncTransport
from exactlyonce.values.frozen_json import Json


class TransportContract:
    """Suite for a transport: give it a fixture `transport` and a method that reads the arrived messages."""

    @pytest.fixture
    def transport(self) -> AsyncTransport:
        """The transport to test."""
        raise NotImplementedError("Override the fixture `transport`.")

    async def received(self, transport: AsyncTransport, address: str) -> list[Json]:
        """The envelopes for a consumer of the address at present, in any order."""
        raise NotImplementedError("Say how to receive.")

    def unanswered(self, transport: AsyncTransport) -> AbstractContextManager[None]:
        """A context in which messages arrive, but replies to sends are lost."""
        raise NotImplementedError("Say how replies get lost.")

    def address(self) -> str:
        """A fresh address; override this if addresses cannot be invented."""
        return f"contract-{uuid4().hex}"

    async def test_sending_nothing_succeeds(self, transport: AsyncTransport) -> None:
        assert await transport.send(self.address(), ()) is PUBLISHED

    async def test_an_envelope_arrives_as_it_was_sent(self, transport: AsyncTransport) -> None:
        address = self.address()
        output = _output(text="ÄÖÜ 🎯 <&> \"'", numbers=[1, 0.5, None])
        assert await transport.send(address, (output,)) is PUBLISHED
        assert await self.received(transport, address) == [output.envelope]

    async def test_all_outputs_of_one_call_arrive(self, transport: AsyncTransport) -> None:
        address = self.address()
        outputs = tuple(_output(number=number) for number in range(40))
        assert await transport.send(address, outputs) is PUBLISHED
        assert set(await self.received(transport, address)) == {output.envelope for output in outputs}

    async def test_an_output_may_be_sent_twice(self, transport: AsyncTransport) -> None:
        address = self.address()
        output = _output()
        assert await transport.send(address, (output,)) is PUBLISHED
        assert await transport.send(address, (output,)) is PUBLISHED
        assert set(await self.received(transport, address)) == {output.envelope}

    async def test_without_a_reply_the_outcome_is_unknown_and_all_copies_are_the_same(
        self, transport: AsyncTransport
    ) -> None:
        address = self.address()
        output = _output()
        with self.unanswered(transport):
            assert await transport.send(address, (output,)) is UNKNOWN
        assert await transport.send(address, (output,)) is PUBLISHED
        received = await self.received(transport, address)
        assert len(received) > 1  # Otherwise none of the unanswered messages arrived.
        assert set(received) == {output.envelope}

    async def test_addresses_are_kept_apart(self, transport: AsyncTransport) -> None:
        first, second = self.address(), self.address()
        outputs = _output(), _output()
        replies = await asyncio.gather(transport.send(first, outputs[:1]), transport.send(second, outputs[1:]))
        assert set(replies) == {PUBLISHED}
        assert await self.received(transport, first) == [outputs[0].envelope]
        assert await self.received(transport, second) == [outputs[1].envelope]

    @pytest.mark.parametrize("character", ["x", "ж"])
    async def test_the_longest_envelope_arrives(self, transport: AsyncTransport, character: str) -> None:
        address = self.address()
        room = transport.max_bytes - _output(text="").envelope.size
        size = len(character.encode())
        output = _output(text=character * (room // size) + "x" * (room % size))
        assert output.envelope.size == transport.max_bytes
        assert await transport.send(address, (output,)) is PUBLISHED
        assert await self.received(transport, address) == [output.envelope]


def _output(**data: Any) -> Output:
    id = uuid4().hex
    return Output(id, "receipts", Json.of({"id": id, "data": data}))
