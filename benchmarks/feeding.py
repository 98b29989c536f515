"""Feeding messages to an application, so many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from benchmarks.application import Application
from exactlyonce import Envelope


async def feed(application: Application, messages: Iterable[Envelope], in_flight: int) -> None:
    """Process all messages, `in_flight` of them under way at any time. Raises what processing one of them raises."""
    waiting = iter(messages)

    async def work() -> None:
        for envelope in waiting:
            await application.process(envelope)

    await asyncio.gather(*(work() for _ in range(in_flight)))
