"""Calls to a payment service in trouble: never charged twice, and nothing else waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from exactlyonce import Envelope
from exactlyonce.drivers.overdue import divided
from exactlyonce.effects.entity import Publish
from exactlyonce.records.ledger import CALL_TYPE
from exactlyonce.records.outbox import Output
from exactlyonce.transports.http import Received, Request
from exactlyonce.values.frozen_json import Json
from tests.calling import bill, taken
from tests.paying import MINUTE, Desk


def outcomes(desk: Desk, orders: int) -> list[str]:
    """What each order came to know of its payment."""
    found = []
    for number in range(orders):
        state = desk.order(f"o-{number}")
        assert state["paid"] + state["unknown"] == 1, state
        assert "calls" not in state["_ledger"]
        found.append("paid" if state["paid"] else "unknown")
    return found


async def test_a_thousand_calls_are_never_charged_twice_and_each_is_charged_or_unknown() -> None:
    desk = Desk(trouble=0.6, losing=0.1)
    began = desk.clock.now()
    # It is down for so long that some keys run out.
    desk.payments.down = lambda now: timedelta(seconds=3) < now - began < timedelta(seconds=50)
    for number in range(1_000):
        await desk.send(bill(f"m-{number}", order=f"o-{number}"))
    await desk.run(copies=0.1)
    found = outcomes(desk, 1_000)
    assert all(len(times) == 1 for times in desk.payments.charges.values())
    assert found.count("paid") > 500
    assert found.count("unknown") > 0
    assert len(desk.payments.charges) >= found.count("paid")
    assert len(desk.payments.requests) > 1_000


async def test_a_paid_order_was_charged_and_an_unknown_call_ran_out_of_time() -> None:
    desk = Desk(trouble=0.3)
    began = desk.clock.now()
    desk.payments.down = lambda now: now - began > timedelta(seconds=1)
    for number in range(30):
        await desk.send(bill(f"m-{number}", order=f"o-{number}"))
    await desk.run()
    found = outcomes(desk, 30)
    assert {"paid", "unknown"} == set(found)
    last = began + MINUTE - desk.api.timeout - desk.api.clock_tolerance
    assert desk.clock.now() >= last
    replies = desk.transport.queues["orders"]
    for reply in replies:
        content = reply.envelope.value
        unknown = content["data"]["outcome"] == "unknown"
        assert unknown == (datetime.fromisoformat(content["time"]) > last)
        if not unknown:
            assert desk.payments.charges[content["replyto"]]


async def test_without_trouble_a_call_is_made_once() -> None:
    desk = Desk()
    await desk.send(bill("m-1"))
    await desk.run()
    (request,) = desk.payments.requests
    assert (request.method, request.address, request.body) == (
        "POST",
        "https://pay.example/v1/charges",
        b'{"amount":1}',
    )
    state = desk.order()
    assert (state["paid"], "calls" in state["_ledger"]) == (1, False)


class Hanging:
    """A service that does not answer before it is told to."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.full = asyncio.Event()
        self.under_way = self.most = 0

    async def send(self, request: Request) -> Received | str:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way == 8:
            self.full.set()
        await self.answers.wait()
        self.under_way -= 1
        return Received(200, {}, b"")


async def test_while_a_service_hangs_other_messages_are_processed_at_full_speed() -> None:
    desk, hanging = Desk(), Hanging()
    for number in range(100):
        await desk.send(bill(f"m-{number}", order=f"o-{number}"))
    caller = desk.calling(hanging)
    calls = [taken(output.envelope) for output in desk.transport.queues["payments"]]
    tries = [asyncio.ensure_future(caller.take(call)) for call in calls]
    before = desk.clock.now()
    for number in range(100, 300):
        await desk.send(bill(f"m-{number}", order=f"o-{number}", times=0))
    assert desk.clock.now() == before
    assert hanging.most == desk.api.most_at_once == 8
    assert not any(item.done() for item in tries)
    hanging.answers.set()
    await asyncio.gather(*tries)
    assert hanging.most == 8
    assert len(desk.transport.queues["orders"]) == 100


async def test_a_call_that_waited_too_long_for_its_place_is_not_made() -> None:
    desk, hanging = Desk(), Hanging()
    await desk.send(*(bill(f"m-{number}", order=f"o-{number}") for number in range(9)))
    caller = desk.calling(hanging)
    tries = [asyncio.ensure_future(caller.take(taken(queue.envelope))) for queue in desk.transport.queues["payments"]]
    await hanging.full.wait()
    desk.clock.advance(55)  # type: ignore[attr-defined]
    hanging.answers.set()
    await asyncio.gather(*tries)
    outcomes = [queue.envelope.value["data"]["outcome"] for queue in desk.transport.queues["orders"]]
    assert outcomes == ["answered"] * 8
    again = desk.transport.queues["payments"][-1]
    desk.clock.advance(6)  # type: ignore[attr-defined]
    await caller.take(taken(again.envelope))
    assert desk.transport.queues["orders"][-1].envelope.value["data"]["outcome"] == "unknown"


def test_a_call_that_is_owed_for_long_is_published_and_not_parked() -> None:
    desk = Desk()
    commit = desk.clock.now()
    call = Envelope("order/a", "o-1", CALL_TYPE, Json("{}"), commit)
    event = replace(call, id="o-2", type="order.billed")
    outputs = tuple(Output(item.id, "payments", item.to_json()) for item in (call, event))
    owed = Publish(outputs, desk.orders.ref("a"))
    kept, parked = divided(owed, desk.lifetimes, commit + timedelta(days=60))
    assert [item.id for item in kept] == ["o-1"]
    assert [item.message.message for item in parked] == ["order%2Fa/o-2"]
