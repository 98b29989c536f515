"""From logical destinations to queues and topics."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from exactlyonce.effects import PUBLISHED, UNKNOWN, Publish
from exactlyonce.records import Output
from exactlyonce.transports.port import AsyncTransport, SendReply

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a destination is.

    Attributes:
        transport: what carries its messages.
        name: of the queue or topic.
    """

    transport: AsyncTransport
    name: str


class Publisher:
    """Performs `Publish`: each output goes to its destination's address; all addresses are served at the same time.

    Args:
        addresses: of all destinations.
        new_mark: for what is sent again on purpose: makes a mark that nobody else has, which its transport sees as part of
            the outputs' ids. A broker that drops copies would drop it otherwise. Envelopes stay as they are.
    """

    def __init__(self, addresses: Mapping[str, Address], new_mark: Callable[[], str] | None = None) -> None:
        self._addresses = dict(addresses)
        self._new_mark = new_mark

    @property
    def limits(self) -> dict[str, int]:
        """For each destination the longest envelope it takes, in bytes."""
        return {name: address.transport.max_bytes for name, address in self._addresses.items()}

    async def publish(self, effect: Publish) -> SendReply:
        """UNKNOWN if any output may not have arrived, or has a destination that settings no longer name."""
        by_destination: dict[str, list[Output]] = defaultdict(list)
        for output in effect.outputs:
            by_destination[output.destination].append(output)
        if lost := by_destination.keys() - self._addresses.keys():
            # Their entity waits for it: dropping what is owed would lose it.
            name = min(lost)
            told = "output %s is owed to %s, which is no destination of this application any more"
            _log.error(told, by_destination[name][0].id, name)
            return UNKNOWN
        if self._new_mark is not None:
            mark = self._new_mark()
            by_destination = {name: [_marked(one, mark) for one in outputs] for name, outputs in by_destination.items()}
        sends = [self._send(self._addresses[name], outputs) for name, outputs in by_destination.items()]
        # One alone, as nearly always, needs no task of its own.
        replies = await asyncio.gather(*sends) if len(sends) > 1 else [await one for one in sends]
        return PUBLISHED if all(reply is PUBLISHED for reply in replies) else UNKNOWN

    @staticmethod
    async def _send(address: Address, outputs: list[Output]) -> SendReply:
        return await address.transport.send(address.name, tuple(outputs))


def _marked(output: Output, mark: str) -> Output:
    return replace(output, id=f"{output.id}#{mark}")
