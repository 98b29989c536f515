"""What messages cost that are spread: those of an entity over several processes, and those of one receiver over very many
sources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Final

from benchmarks.accounting import Till
from benchmarks.application import running
from benchmarks.contenders import Contender
from demo.stack import create_containers
from exactlyonce.values.frozen_json import Json
from local_cosmos.administration import Administration
from local_cosmos.inprocess import running_emulator

INSTANCES: Final = 4
DEALT: Final = 256
"""Messages that are dealt to the instances; as many come before. An instance gets as many as it writes its book after."""

SOURCES: Final = 10_000
COUNTED: Final = 340
"""Messages of sources: as many as fill a page some twenty times."""

_TOGETHER: Final = 100
_DATABASE: Final = "bench"


async def spread_costs(
    contender: Contender, *, dealt: int = DEALT, sources: int = SOURCES, counted: int = COUNTED
) -> dict[str, Any]:
    """Means per message, by situation.

    Args:
        contender: takes timed messages.
        dealt: messages that are counted of those dealt to instances.
        sources: whose first messages the receiver has.
        counted: messages that are counted of sources.
    """
    found = {f"dealt to {INSTANCES} instances": await _dealt(contender, dealt)}
    async for contact, costs in _from_many_sources(contender, sources, counted):
        found[f"{sources:,} sources, {contact}"] = costs
    print("spread", json.dumps(found), flush=True)
    return found


async def _dealt(contender: Contender, messages: int) -> dict[str, Any]:
    """What messages of one busy entity cost that come one by one, each to an instance by chance."""
    chance = Random(1)
    async with AsyncExitStack() as stack:
        emulator = stack.enter_context(running_emulator())
        create_containers(emulator, _DATABASE)
        instances = [await stack.enter_async_context(running(contender, emulator, _DATABASE)) for _ in range(INSTANCES)]
        till = Till(emulator, _DATABASE)
        for number in range(1, 2 * messages + 1):
            if number == messages + 1:
                till.means(messages)
            await chance.choice(instances).process(contender.message("dealt", number))
        return till.means(messages)


async def _from_many_sources(contender: Contender, sources: int, counted: int) -> Any:
    """What messages of sources cost that come one by one: first ones of new sources, and second ones of those before."""
    with running_emulator() as emulator:
        create_containers(emulator, _DATABASE)
        async with running(contender, emulator, _DATABASE) as application:
            till = Till(emulator, _DATABASE)
            await application.feed((contender.from_source(item, "hub", 1) for item in range(sources)), _TOGETHER)
            # All are newer than those before: what sources send has the order of its times, near enough.
            first = [contender.from_source(sources + item, "hub", 2 + item) for item in range(counted)]
            again = enumerate(Random(1).sample(range(sources), counted), 2 + counted)
            later = [contender.from_source(source, "hub", number) for number, source in again]
            for contact, messages in (("first contact", first), ("later", later)):
                before = max(item.sequence for item in emulator.history(_DATABASE))
                till.means(counted)
                await application.feed(messages, 1)
                ledgers = list(_ledgers(emulator, before))
                yield contact, till.means(counted) | {"ledger bytes": round(sum(ledgers) / len(ledgers))}


def _ledgers(cosmos: Administration, after: int) -> Iterator[int]:
    """Bytes of each ledger that was written."""
    for write in cosmos.history(_DATABASE, "games", after=after):
        if write.document is not None:
            yield Json.of(write.document["_ledger"]).size
