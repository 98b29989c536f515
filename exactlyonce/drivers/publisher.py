"""The publisher: sends outputs to the queues and topics of their destinations.

Many outputs go in portions. Accepted portions stay accepted when a portion fails, and the retry sends only the rest. Otherwise
a message with five thousand outputs would never be done if a queue takes a thousand in the time of a delivery.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import AsyncTransport, SendReply

PORTION: Final = 128
"""Most outputs in a call of a transport."""
LONGEST: Final = 30.0
"""Seconds after which no further portion is sent."""
MOST_REMEMBERED: Final = 100_000
"""Accepted outputs that are remembered: some 20 MB."""
REMEMBERED_FOR: Final = 600.0
"""Seconds for which an accepted output is remembered: its publish is tried again within minutes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """The queue or topic of a destination.

    Attributes:
        name: name of the queue or topic.
    """

    transport: AsyncTransport
    name: str


class _Key(NamedTuple):
    id: str
    content: int  # A hash: an output of the same id may have different content.


class Accepted:
    """Outputs of a partly failed publish that their queues already accepted, so that the retry sends only the rest.

    They are forgotten once the whole publish succeeds: publishing the same outputs later is intended. Losing an entry costs a
    copy, never the guarantee.

    Args:
        now: seconds, from any moment on.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: OrderedDict[_Key, float] = OrderedDict()

    def missing(self, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
        """The outputs that may not have been accepted."""
        if not self._seen:
            return outputs  # As nearly always.
        oldest = self._now() - REMEMBERED_FOR
        return tuple(output for output in outputs if self._seen.get(_key(output), oldest) <= oldest)

    def note(self, outputs: Iterable[Output]) -> None:
        """Remember accepted outputs of a publish that failed in part."""
        for key in map(_key, outputs):
            self._seen.pop(key, None)  # An output that is noted again becomes the newest.
            self._seen[key] = self._now()
        while len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)

    def forget(self, outputs: Iterable[Output]) -> None:
        """Forget the outputs of a publish that succeeded as a whole."""
        if self._seen:
            for output in outputs:
                self._seen.pop(_key(output), None)


def _key(output: Output) -> _Key:
    return _Key(output.id, hash(output))


class Publisher:
    """Performs `Publish`: each output goes to its destination's address; all addresses are served at the same time.

    Args:
        addresses: the addresses of all destinations.
        new_mark: makes a unique mark for each publish, which becomes part of the transport's ids; None for no mark. Without a
            mark, a broker with duplicate detection drops outputs that are sent again. Envelopes do not change.
        remembers: whether accepted outputs of a partly failed publish are left out of the retry.
        now: seconds, from any moment on.
    """

    def __init__(
        self,
        addresses: Mapping[str, Address],
        new_mark: Callable[[], str] | None = None,
        *,
        remembers: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = dict(addresses)
        self._new_mark = new_mark
        self._accepted = Accepted(now) if remembers else None
        self._now = now
        self._portions = dict.fromkeys(self._addresses, PORTION)

    @property
    def destinations(self) -> frozenset[str]:
        """The application's destinations."""
        return frozenset(self._addresses)

    @property
    def limits(self) -> dict[str, int]:
        """For each destination the longest envelope, in bytes."""
        return {name: address.transport.max_bytes for name, address in self._addresses.items()}

    async def publish(self, effect: Publish) -> SendReply:
        """Publish outputs; UNKNOWN if any may not have arrived, or has a destination that the application no longer has."""
        missing = effect.outputs if self._accepted is None else self._accepted.missing(effect.outputs)
        by_destination: dict[str, deque[Output]] = defaultdict(deque)
        for output in missing:
            by_destination[output.destination].append(output)
        # The entity goes on owing outputs without a destination: dropping them would lose them.
        lost = [by_destination.pop(name) for name in sorted(by_destination.keys() - self._addresses.keys())]
        for outputs in lost:
            text = "output %s is owed to %s, which is no longer a destination of this application"
            _log.error(text, outputs[0].id, outputs[0].destination)
        mark = None if self._new_mark is None else self._new_mark()
        sends = [self._send_all(name, outputs, mark) for name, outputs in by_destination.items()]
        # A single destination, as nearly always, needs no task of its own.
        rests = await asyncio.gather(*sends) if len(sends) > 1 else [await send for send in sends]
        return self._replied(effect, {output for rest in (*rests, *lost) for output in rest})

    def _replied(self, effect: Publish, rest: set[Output]) -> SendReply:
        """The reply to an effect; `rest` are the outputs that may not have arrived."""
        if self._accepted is None:
            return UNKNOWN if rest else PUBLISHED
        if rest:
            self._accepted.note(output for output in effect.outputs if output not in rest)
            return UNKNOWN
        self._accepted.forget(effect.outputs)
        return PUBLISHED

    async def _send_all(self, destination: str, outputs: deque[Output], mark: str | None) -> deque[Output]:
        """Send to a destination, and return the outputs that may not have arrived.

        A failed portion goes to the end of the line, since an output in it may be the cause; two failures in a row are the
        destination's fault. After a failure portions are half as large, until a portion is accepted: a slow destination that
        takes ten outputs in time would never take a large portion.
        """
        began, failed = self._now(), False
        while outputs and self._now() - began < LONGEST:
            size = self._portions[destination]
            portion = [outputs.popleft() for _ in range(min(size, len(outputs)))]
            if await self._send(destination, portion, mark) is PUBLISHED:
                failed = False
                if len(portion) == size:  # A smaller portion says nothing about larger ones.
                    self._portions[destination] = min(2 * size, PORTION)
            else:
                self._portions[destination] = max(len(portion) // 2, 1)
                others = bool(outputs)
                outputs.extend(portion)
                if failed or not others:
                    break
                failed = True
        return outputs

    async def _send(self, destination: str, outputs: Sequence[Output], mark: str | None) -> SendReply:
        address = self._addresses[destination]
        marked = outputs if mark is None else [replace(output, id=f"{output.id}#{mark}") for output in outputs]
        return await address.transport.send(address.name, tuple(marked))
