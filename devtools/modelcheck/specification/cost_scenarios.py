"""The usual attempts of each strategy, whose costs the pages tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from devtools.modelcheck.specification.costs import Cost, Costing, Counting
from devtools.modelcheck.specification.occasions_beside import replaying, sweeping_beside
from devtools.modelcheck.specification.occasions_ordered import ordered, tending
from devtools.modelcheck.specification.playing import message
from devtools.modelcheck.specification.settings import SKIPPING, WAITING
from exactlyonce import Colocated, Outbox, Resequencer, VersionStream

MANY: Final = 10
"""Held messages that one arrival releases."""


async def of_an_outbox(counting: Counting) -> AsyncIterator[Cost]:
    """The usual attempts of a preset."""
    strategy = counting.strategy
    assert isinstance(strategy, Outbox)  # noqa: S101
    yield await counting.process(message("m0"), what="first message of an entity")
    yield await counting.mark("marking, once the entity is quiet")
    if strategy.window == 1:
        yield await counting.process(message("m1"), what="next message: the window leaves every time")
    else:
        yield await counting.process(message("m1"), what="next message")
    if strategy.window is not None and strategy.window > 1:
        for number in range(2, strategy.window):
            await counting.process(message(f"m{number}"))
        yield await counting.process(message("left"), what=f"every {strategy.window}th: the window leaves")
        await counting.process(message("last"))
    await counting.process(message("latest"))
    yield await counting.process(message("latest"), what="duplicate in the ledger, owing still", forgetful=True)
    if strategy.window is not None:
        yield await counting.process(message("m0"), what="duplicate with a record", forgetful=True)


async def of_records(counting: Counting) -> AsyncIterator[Cost]:
    """The usual attempts with records beside the entity."""
    yield await counting.process(message("m0"), what="first message of an entity")
    yield await counting.process(message("m1"), what="next message")
    yield await counting.process(message("m2", "quiet"), what="next message, without outputs")
    yield await counting.process(message("m0"), what="duplicate", forgetful=True)
    await counting.die(message("m3"))
    yield await counting.process(message("m3"), what="duplicate, owing still", forgetful=True)
    await counting.die(message("m4"))
    yield await counting.run(sweeping_beside(), "sweep of one record that owes")


async def of_a_stream(counting: Counting) -> AsyncIterator[Cost]:
    """The usual attempts with a stream."""
    strategy = counting.strategy
    assert isinstance(strategy, VersionStream)  # noqa: S101
    every = strategy.snapshot_every
    yield await counting.process(message("m1"), what="first message of an entity")
    yield await counting.process(message("m2"), what="next message")
    for number in range(3, every):
        await counting.process(message(f"m{number}"))
    yield await counting.process(message(f"m{every}"), what=f"every {every}th: its entry holds a whole state")
    await counting.process(message("last"))
    yield await counting.process(message("last"), what="duplicate of the newest", forgetful=True)
    yield await counting.process(message("m1"), what="duplicate that is farthest from a whole state", forgetful=True)
    yield await counting.run(replaying(), f"sending again what {every} versions sent")


async def of_a_resequencer(counting: Counting) -> AsyncIterator[Cost]:
    """The usual attempts of a read model."""
    yield await counting.process(ordered(1), what="first message of a read model")
    yield await counting.process(ordered(2), what="next in order")
    yield await counting.mark("marking, once the read model is quiet")
    yield await counting.process(ordered(2), what="copy, long after", forgetful=True)
    yield await counting.process(ordered(4), what="too early: held")
    yield await counting.process(ordered(3), what="the one it waits for: both are released")
    for number in range(6, 6 + MANY):
        await counting.process(ordered(number))
    yield await counting.process(ordered(5), what=f"the one that {MANY} wait for: all are released")
    await counting.mark("")
    yield await counting.run(tending(WAITING), "tending, with nothing to do")
    await counting.process(ordered(5 + MANY + 2))
    yield await counting.run(tending(SKIPPING), "tending: one number is skipped")
    yield await counting.run(tending(SKIPPING), "tending after that: one message is released")


OUTBOX: Final[tuple[Costing, ...]] = (
    ("Outbox()", Outbox(), of_an_outbox),
    ("Outbox.transaction_id()", Outbox.transaction_id(), of_an_outbox),
    ("Outbox.embedded()", Outbox.embedded(), of_an_outbox),
)
RECORDS: Final[tuple[Costing, ...]] = (("Colocated()", Colocated(), of_records),)
STREAM: Final[tuple[Costing, ...]] = (("VersionStream()", VersionStream(), of_a_stream),)
RESEQUENCER: Final[tuple[Costing, ...]] = (("Resequencer()", Resequencer(), of_a_resequencer),)
