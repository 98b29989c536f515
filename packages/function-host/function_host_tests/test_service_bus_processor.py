"""A Service Bus message ends as the real host ends it, odd corners included."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from function_host import Point
from function_host.service_bus.processor import ServiceBusProcessor
from function_host.service_bus.receiver import BrokerError, Delivery, LockLostError
from function_host_tests.broker import FakeReceiver, delivered


class Scene:
    """A processor with a function that runs until so many pauses were made, and can be told to fail."""

    def __init__(
        self, *, many: bool = False, sessions: bool = False, auto_complete: bool = True, pauses: int = 0
    ) -> None:
        self.receiver = FakeReceiver()
        self.calls: list[list[str]] = []
        self.error: BaseException | None = None
        self.pauses: list[float] = []
        self.points: list[Point] = []
        self._enough = asyncio.Event()
        self._left = pauses
        if not pauses:
            self._enough.set()
        self.processor = ServiceBusProcessor(
            name="serve",
            call=self._call,
            many=many,
            sessions=sessions,
            auto_complete=auto_complete,
            renewal=300.0,
            clock=lambda: self.receiver.now,
            wait=self._wait,
            checkpoint=self.points.append,
        )

    async def process(self, *deliveries: Delivery) -> bool:
        return await self.processor.process(self.receiver, deliveries or (delivered(),))

    async def _call(self, deliveries: Sequence[Delivery]) -> None:
        self.calls.append([delivery.id for delivery in deliveries])
        await self._enough.wait()
        if self.error:
            raise self.error

    async def _wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Time passes at once, until the function ends."""
        if self._enough.is_set():
            return await event.wait()
        self.pauses.append(seconds)
        self.receiver.now += timedelta(seconds=seconds)
        if len(self.pauses) >= self._left:
            self._enough.set()
        return False


@pytest.mark.parametrize(
    ("auto_complete", "error", "settled", "points"),
    [
        (True, None, [("complete", "id-hello")], [Point.RECEIVED, Point.HANDLED]),
        (True, ValueError(), [("abandon", "id-hello")], [Point.RECEIVED]),
        (False, None, [], [Point.RECEIVED, Point.HANDLED]),
        (False, ValueError(), [("abandon", "id-hello")], [Point.RECEIVED]),
    ],
)
async def test_success_completes_with_auto_complete_only_and_failure_abandons_all_the_same(
    auto_complete: bool, error: Exception | None, settled: list[tuple[str, str]], points: list[Point]
) -> None:
    scene = Scene(auto_complete=auto_complete)
    scene.error = error

    assert await scene.process()
    assert (scene.receiver.settled, scene.points) == (settled, points)


async def test_a_completion_with_a_lost_lock_is_only_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.receiver.fail("complete", LockLostError("MessageLockLostError"))

    assert not await scene.process()
    assert scene.receiver.settled == [("complete", "id-hello")]
    assert "message id-hello was processed, but not completed: MessageLockLostError" in caplog.text


async def test_what_could_not_be_completed_for_another_reason_is_given_back() -> None:
    scene = Scene()
    scene.receiver.fail("complete", BrokerError("ServiceBusConnectionError"))

    assert not await scene.process()
    assert scene.receiver.settled == [("complete", "id-hello"), ("abandon", "id-hello")]


async def test_a_message_that_cannot_be_given_back_is_only_a_line_in_the_log() -> None:
    scene = Scene()
    scene.error = ValueError()
    scene.receiver.fail("abandon", BrokerError("ServiceBusConnectionError"))

    assert not await scene.process()


async def test_a_batch_is_completed_message_by_message_and_the_others_too_where_one_is_not() -> None:
    scene = Scene(many=True)
    scene.receiver.fail("complete", BrokerError("ServiceBusConnectionError"))

    assert not await scene.process(delivered("a"), delivered("b"))
    assert scene.calls == [["id-a", "id-b"]]
    assert scene.receiver.settled == [("complete", "id-a"), ("complete", "id-b")]
    assert scene.points == [Point.RECEIVED] * 2 + [Point.HANDLED] * 2


async def test_a_batch_that_fails_is_abandoned_whole() -> None:
    scene = Scene(many=True)
    scene.error = ValueError()

    await scene.process(delivered("a"), delivered("b"))
    assert scene.receiver.settled == [("abandon", "id-a"), ("abandon", "id-b")]


@pytest.mark.parametrize(
    ("lock", "pauses"),
    [(60, [50.0, 50.0, 50.0]), (6, [3.0, 3.0])],
    ids=["ten seconds before its end", "after half of it"],
)
async def test_a_lock_is_renewed_in_time(lock: int, pauses: list[float]) -> None:
    scene = Scene(pauses=len(pauses))
    scene.receiver = FakeReceiver(lock=timedelta(seconds=lock))
    await scene.process()

    assert scene.pauses == pauses
    assert [entry[0] for entry in scene.receiver.log] == ["renew"] * len(pauses) + ["complete"]


async def test_locks_are_renewed_for_five_minutes_in_all() -> None:
    scene = Scene(pauses=100)
    working = asyncio.create_task(scene.process())
    for _ in range(50):
        await asyncio.sleep(0)

    assert scene.pauses == [50.0] * 6
    working.cancel()


async def test_a_lost_lock_is_not_renewed_again_and_the_function_goes_on() -> None:
    scene = Scene(pauses=100)
    scene.receiver.fail("renew", LockLostError("MessageLockLostError"))
    working = asyncio.create_task(scene.process())
    for _ in range(20):
        await asyncio.sleep(0)

    assert scene.receiver.log == [("renew", "id-hello")]
    assert not working.done()
    working.cancel()


async def test_a_renewal_that_failed_is_tried_again_in_what_is_left() -> None:
    scene = Scene(pauses=3)
    scene.receiver.fail("renew", BrokerError("ServiceBusConnectionError"))
    await scene.process()

    assert scene.pauses == [50.0, 5.0, 50.0]


async def test_the_lock_of_a_session_is_renewed_as_long_as_it_is_served() -> None:
    scene = Scene(sessions=True, pauses=100)
    async with scene.processor.holding(scene.receiver):
        for _ in range(40):
            await asyncio.sleep(0)

    assert scene.receiver.log[:10] == [("renew", "session")] * 10


@pytest.mark.parametrize("sessions", [False, True])
async def test_the_locks_of_a_batch_are_not_renewed(sessions: bool) -> None:
    scene = Scene(many=True, sessions=sessions, pauses=100)
    async with scene.processor.holding(scene.receiver):
        working = asyncio.create_task(scene.process())
        for _ in range(20):
            await asyncio.sleep(0)

        assert scene.receiver.log == []
        working.cancel()


async def test_cancelling_drops_the_message_as_a_crash_would() -> None:
    scene = Scene(pauses=100)
    scene.receiver.fail("renew", LockLostError("MessageLockLostError"))
    working = asyncio.create_task(scene.process())
    for _ in range(20):
        await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    assert scene.receiver.settled == []
