"""Processing one message at a time on the local Cosmos DB, and counting what that asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks.accounting import Bill, Till
from benchmarks.application import Application, running
from benchmarks.contenders import Contender
from benchmarks.seeding import History
from benchmarks.subjects import Subject
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.envelope import key_of
from local_cosmos.inprocess import RunningEmulator

Cost = dict[str, float]


class Meter:
    """An application of its own, fed by hand, so that nothing else adds to the count. Made by `metering`."""

    def __init__(self, subject: Subject, application: Application, till: Till, transport: MemoryTransport) -> None:
        self._subject = subject
        self._application = application
        self._till = till
        self._transport = transport

    async def process(self, number: int) -> Bill:
        """Process the message of this number; return what that asked of the store. Raises what processing raises."""
        self._till.bill()
        await self._application.process(self._subject.shot(number))
        return self._till.bill()

    async def verify(self, history: History) -> None:
        """Let the library process duplicates of messages that it never saw; raise unless it knows them, and what they sent."""
        for number in (1, (history.messages + 1) // 2, history.messages):
            self._transport.queues.clear()
            bill = await self.process(number)
            sent = [output.id for queue in self._transport.queues.values() for output in queue]
            if bill.applied or sent != history.sent_again(key_of(self._subject.shot(number))):
                raise RuntimeError(f"{self._subject.name}: message {number} of {history.messages} was not a duplicate.")

    async def measure(self, messages: int) -> dict[str, Cost]:
        """What a message costs after so many: means over a round, after a round to warm up."""
        bills: dict[str, list[Bill]] = {"first": [], "duplicate of the newest": [], "duplicate of the oldest": []}
        newest = messages + self._subject.round
        for number in range(messages + 1, newest + 1):
            await self.process(number)
        for number in range(newest + 1, newest + self._subject.round + 1):
            for kind, given in zip(bills, (number, number, 1), strict=True):
                bills[kind].append(await self.process(given))
        return {kind: _mean(measured) for kind, measured in bills.items()}


@asynccontextmanager
async def metering(subject: Subject, emulator: RunningEmulator, database: str) -> AsyncIterator[Meter]:
    """A meter on the containers of a database."""
    contender, transport = Contender(subject.name, subject.entity), MemoryTransport()
    async with running(contender, emulator, database, transport=transport) as application:
        yield Meter(subject, application, Till(emulator, database), transport)


def _mean(bills: Sequence[Bill]) -> Cost:
    requests = sum(bill.requests for bill in bills) / len(bills)
    units = sum(bill.units for bill in bills) / len(bills)
    return {"requests": round(requests, 3), "request units": round(units, 2)}
