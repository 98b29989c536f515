"""The listener of Service Bus runs as many loops as the real one, and each goes on whatever the broker does."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from function_host import HostJson
from function_host.service_bus.listener import ServiceBusListener
from function_host.service_bus.processor import ServiceBusProcessor
from function_host.service_bus.receiver import BrokerError, Delivery, LockLostError
from function_host_tests.broker import NOON, FakeReceiver, FakeSource, delivered
from function_host_tests.fakes import FakeWait, wait_for_the_end


class Scene:
    """A listener on prepared receivers; it stops when they are used up."""

    def __init__(
        self,
        *prepared: FakeReceiver | BrokerError | None,
        sessions: bool = False,
        many: bool = False,
        hold: bool = False,
        **options: Any,
    ) -> None:
        self.stop = asyncio.Event()
        self.source = FakeSource(self.stop, *prepared)
        self.let_go = asyncio.Semaphore(0 if hold else 1000)
        self.started: list[list[str]] = []
        self.running = 0
        self.wait = FakeWait()
        bus = HostJson.model_validate({"extensions": {"serviceBus": options}}).extensions.service_bus
        processor = ServiceBusProcessor(
            name="serve",
            call=self._call,
            many=many,
            sessions=sessions,
            auto_complete=True,
            renewal=0.0,
            clock=lambda: NOON,
            wait=wait_for_the_end,
            checkpoint=lambda _: None,
        )
        self.listener = ServiceBusListener(self.source, processor, bus, self.wait)

    async def run(self) -> None:
        await self.listener.run(self.stop)

    async def _call(self, deliveries: Sequence[Delivery]) -> None:
        self.started.append([delivery.id for delivery in deliveries])
        self.running += 1
        await self.let_go.acquire()
        self.running -= 1


async def until_idle() -> None:
    for _ in range(300):
        await asyncio.sleep(0)


def endless(name: str) -> FakeReceiver:
    return FakeReceiver(*([delivered(f"{name}{number}")] for number in range(100)))


async def at_once(scene: Scene) -> int:
    """How many calls run side by side."""
    listening = asyncio.create_task(scene.run())
    await until_idle()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    return scene.running


@pytest.mark.parametrize(
    ("shape", "calls"),
    [
        ({}, 16),
        ({"maxConcurrentCalls": 3}, 3),
        ({"sessions": True}, 8),
        ({"sessions": True, "maxConcurrentSessions": 2}, 2),
        ({"many": True}, 1),
        ({"many": True, "sessions": True}, 1),
    ],
)
async def test_as_many_calls_run_side_by_side_as_host_json_says(shape: dict[str, Any], calls: int) -> None:
    scene = Scene(*(endless(f"{number}-") for number in range(20)), hold=True, **shape)

    assert await at_once(scene) == calls
    assert len(scene.started) == calls


async def test_messages_come_one_by_one_and_batches_up_to_their_size() -> None:
    single, batches = FakeReceiver([delivered("a")]), FakeReceiver([delivered("a"), delivered("b")])
    one = Scene(single, BrokerError("gone"), maxConcurrentCalls=1)
    single.batches.append(BrokerError("gone"))
    await one.run()
    batches.batches.append(BrokerError("gone"))
    many = Scene(batches, many=True)
    await many.run()

    assert single.log[0] == ("receive", 1, 5.0)
    assert batches.log[0] == ("receive", 1000, 5.0)
    assert many.started == [["id-a", "id-b"]]


async def test_a_session_that_is_idle_for_long_is_given_up_for_the_next() -> None:
    first, second = FakeReceiver([delivered("a")]), FakeReceiver([delivered("b")])
    scene = Scene(first, None, second, sessions=True, maxConcurrentSessions=1, sessionIdleTimeout="00:00:10")
    await scene.run()

    asked = ("receive", 1, 5.0)
    assert first.log == [asked, ("complete", "id-a"), asked, asked, ("close",)]
    assert scene.started == [["id-a"], ["id-b"]]


async def test_without_sessions_a_receiver_is_kept_however_long_there_is_nothing() -> None:
    receiver = FakeReceiver(*[[]] * 200, [delivered("a")], BrokerError("gone"))
    scene = Scene(receiver, maxConcurrentCalls=1)
    await scene.run()

    assert scene.started == [["id-a"]]


def silent(count: int) -> list[FakeReceiver]:
    receivers = [FakeReceiver() for _ in range(count)]
    for receiver in receivers:
        receiver.silent = True
    return receivers


async def test_no_more_receivers_are_opened_than_find_something_and_two_that_wait() -> None:
    scene = Scene(endless("a"), *silent(10), hold=True)
    listening = asyncio.create_task(scene.run())
    await until_idle()

    assert scene.source.opened == 3
    scene.stop.set()
    scene.let_go.release()
    await listening


async def test_receivers_that_find_nothing_any_more_are_closed_but_for_two() -> None:
    receivers = [FakeReceiver([delivered(f"m{number}")]) for number in range(5)]
    waiting = silent(2)
    scene = Scene(*receivers, *waiting, hold=True)
    listening = asyncio.create_task(scene.run())
    await until_idle()
    assert scene.running == 5
    for _ in receivers:
        scene.let_go.release()
    await until_idle()

    assert [receiver.log[-1] for receiver in receivers] == [("close",)] * 5
    assert [receiver.log[-1] for receiver in waiting] == [("receive", 1, 5.0)] * 2
    scene.stop.set()
    await listening


async def test_after_a_lost_lock_another_receiver_is_opened() -> None:
    first, second = FakeReceiver([delivered("a")], [delivered("never")]), FakeReceiver([delivered("b")])
    first.fail("complete", LockLostError("SessionLockLostError"))
    scene = Scene(first, second, sessions=True, maxConcurrentSessions=1, sessionIdleTimeout="00:00:01")
    await scene.run()

    assert scene.started == [["id-a"], ["id-b"]]
    assert first.log[-1] == ("close",)


async def test_trouble_with_the_broker_is_met_with_a_pause_and_another_try(caplog: pytest.LogCaptureFixture) -> None:
    receiver = FakeReceiver([delivered("a")], BrokerError("ServiceBusConnectionError"))
    scene = Scene(BrokerError("ServiceBusServerBusyError"), receiver, maxConcurrentCalls=1)
    await scene.run()

    assert scene.started == [["id-a"]]
    assert scene.wait.pauses == [1.0, 1.0]
    assert receiver.log[-1] == ("close",)
    assert "serve: receiving failed: ServiceBusServerBusyError" in caplog.text


async def test_stopping_lets_the_running_calls_end() -> None:
    receiver = endless("m")
    scene = Scene(receiver, maxConcurrentCalls=1, hold=True)
    listening = asyncio.create_task(scene.run())
    await until_idle()
    scene.stop.set()
    scene.let_go.release()
    await listening

    assert receiver.settled == [("complete", "id-m0")]
    assert receiver.log[-1] == ("close",)


async def test_stopping_takes_back_what_waits_at_the_broker() -> None:
    receiver = endless("m")
    receiver.silent = True
    scene = Scene(receiver, maxConcurrentCalls=1)
    listening = asyncio.create_task(scene.run())
    await until_idle()
    scene.stop.set()
    await listening

    assert receiver.log == [("receive", 1, 5.0), ("close",)]


async def test_a_defect_of_the_host_itself_ends_the_listener_loudly() -> None:
    receiver = endless("m")
    scene = Scene(receiver, maxConcurrentCalls=1)
    receiver.errors["complete"] = [RuntimeError("defect")]  # type: ignore[list-item]

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="defect")):
        await scene.run()
