"""Outputs inherit the trace of their message; all copies of an output carry the same trace."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import Colocated, Destination, Envelope, Outbox, VersionStream
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.attempt import Strategy, Work
from exactlyonce.errors import TryAgainLater
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.stream.replay import replay
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import World
from exactlyonce.values.envelope import MAX_TRACESTATE_LENGTH, Extensions
from exactlyonce.values.frozen_json import Json
from tests.asking import settle_by
from tests.samples import SENT, Deposited, accounts, deposit, ledger_queue

ONE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
STRATEGIES: list[Strategy] = [Outbox(), Colocated(), VersionStream()]
ANY_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: repr(strategy)[:40])


def traced(id: str, parent: str | None) -> Envelope:
    return deposit(id) if parent is None else deposit(id).with_trace((("traceparent", parent),))


def traces(world: World) -> list[Any]:
    return [output.envelope.value.get("traceparent") for output in world.published]


@ANY_STRATEGY
@pytest.mark.parametrize("parents", [(ONE, OTHER), (ONE, None), (None, ONE)], ids=lambda given: str(given)[:6])
async def test_copies_of_a_message_with_other_traces_change_nothing(
    strategy: Strategy, parents: tuple[str | None, str | None]
) -> None:
    """The first delivery commits and cannot publish; the message is sent anew, in another trace."""
    reached = [False]
    world = World([ledger_queue], outcome=lambda _: (True, reached[0]))
    entity = accounts(strategy)
    with pytest.raises(TryAgainLater):
        await world.process(backoff=Backoff(tries=1)).deliver(entity, traced("m-1", parents[0]))
    reached[0] = True
    process = world.process()
    for parent in (parents[1], parents[0], parents[1]):
        await process.deliver(entity, traced("m-1", parent))
    await process.deliver(entity, deposit("m-2", answers=0))  # Its commit drops what is paid.
    await process.close()
    assert len(world.published) > 1
    assert set(traces(world)) == {parents[0]}
    assert len({output.envelope.text for output in world.published}) == 1
    assert violations(world.facts(), drained=True) == ()


async def test_a_poison_message_of_a_stream_is_finished_in_the_trace_of_the_first() -> None:
    world = World([ledger_queue])
    entity = accounts(VersionStream())
    process = world.process()
    await process.deliver(entity, traced("m-1", ONE))
    ref = entity.ref("a")
    runner = Runner(entity, ref, world.routes)
    work = Work(ref, (traced("m-1", OTHER),), runner, runner.absent, runner.evolve)
    await process.run(ref, lambda memory: settle_by("stream", work, "given up", memory))
    await process.run(ref, lambda memory: replay(Work(ref, (), runner, runner.absent), (1, 1), memory))
    assert traces(world) == [ONE] * 3


async def test_a_number_and_a_trace_go_together() -> None:
    receipts = Destination("receipts", (Deposited,), to="reader", entity_by=lambda given: "b-1", ordered=True)
    world = World([receipts])
    await world.process().deliver(accounts(), traced("m-1", ONE))
    (output,) = world.published
    envelope = Envelope.read(output.envelope.text)
    assert output.place is not None
    assert envelope.extensions == (*output.place.extensions, ("traceparent", ONE))
    assert envelope.trace == (("traceparent", ONE),)


@pytest.mark.parametrize(
    ("extensions", "trace"),
    [
        ((), ()),
        ((("other", "x"), ("traceparent", ONE)), (("traceparent", ONE),)),
        ((("traceparent", ONE), ("tracestate", "vendor=1")), (("traceparent", ONE), ("tracestate", "vendor=1"))),
        ((("traceparent", ONE), ("tracestate", "x" * (MAX_TRACESTATE_LENGTH + 1))), (("traceparent", ONE),)),
        ((("traceparent", ONE), ("tracestate", 7)), (("traceparent", ONE),)),
        ((("traceparent", ONE + "-x"),), ()),
        ((("traceparent", ONE.upper()),), ()),
        ((("traceparent", 7),), ()),
        ((("tracestate", "vendor=1"),), ()),
    ],
)
def test_a_trace_is_passed_on_if_it_is_one(extensions: Extensions, trace: Extensions) -> None:
    assert Envelope("web", "m-1", "t", Json("{}"), SENT, extensions=extensions).trace == trace


def test_another_trace_replaces_all_of_the_first() -> None:
    given = Envelope(
        "web",
        "m-1",
        "t",
        Json("{}"),
        SENT,
        extensions=(("other", "x"), ("traceparent", ONE), ("tracestate", "vendor=1")),
    )
    assert given.with_trace((("traceparent", OTHER),)).extensions == (("other", "x"), ("traceparent", OTHER))
    assert given.with_trace(()).extensions == (("other", "x"),)
