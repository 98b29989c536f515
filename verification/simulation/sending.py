"""Between a process and the queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import SendReply
from verification.simulation.wire import Surrounding
from verification.simulation.workload import MAX_BYTES


class SendingWire:
    """An `AsyncTransport` for one process; `crash` as for `Wire`."""

    max_bytes = MAX_BYTES

    def __init__(self, world: Surrounding, crash: Callable[[], None]) -> None:
        self._world = world
        self._crash = crash

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:  # noqa: ARG002
        loop, weather = self._world.loop, self._world.weather
        climate = weather.climate
        latency = weather.latency(loop.time())
        if weather.happens(climate.crash, "sending that met a crash"):
            self._crash()
        answered = True
        for output in outputs:
            if weather.happens(climate.send_lost, "send: lost"):
                answered = False
                continue
            wait = latency
            if weather.happens(climate.send_late, "send: late, reply lost"):
                answered, wait = False, weather.delay()
            elif weather.happens(climate.send_unanswered, "send: reply lost"):
                answered = False
            loop.call_later(wait, self._world.arrived, output)
        await asyncio.sleep(latency)
        return PUBLISHED if answered else UNKNOWN
