"""The listener polls as the real one does."""

import asyncio

import pytest

from function_host import QueueOptions
from function_host.queue_listener import QueueListener
from function_host.storage_queue import Delivery, QueueMissingError, StorageError
from function_host_tests.fakes import FakeQueue, FakeWait, delivery


class Scene:
    """A listener whose messages stay in flight until they are let go; it stops after so many pauses."""

    def __init__(
        self, queue: FakeQueue, *, pauses: int = 1, hold: bool = False, options: QueueOptions | None = None
    ) -> None:
        self.queue = queue
        self.stop = asyncio.Event()
        self.let_go = asyncio.Semaphore(0 if hold else 1000)
        self.started: list[str] = []
        self.ended: list[str] = []
        self.error: Exception | None = None
        self.wait = FakeWait(then=lambda number: self.stop.set() if number >= pauses else None)
        self.listener = QueueListener(
            name="serve",
            queue=queue,
            process=self._process,
            options=options or QueueOptions(),
            invisible=600.0,
            wait=self.wait,
            chance=lambda low, high: (low + high) / 2,
        )

    async def run(self) -> None:
        await self.listener.run(self.stop)

    @property
    def polls(self) -> int:
        return len(self.queue.log)

    async def _process(self, message: Delivery) -> None:
        self.started.append(message.id)
        await self.let_go.acquire()
        if self.error:
            raise self.error
        self.ended.append(message.id)


def batch(count: int, name: str = "m") -> list[Delivery]:
    return [delivery(f"{name}{number}") for number in range(count)]


async def until_idle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_poll_asks_for_a_batch_that_is_invisible_for_ten_minutes() -> None:
    scene = Scene(FakeQueue())
    await scene.run()

    assert scene.queue.log == [("receive", 16, 600.0)]


async def test_an_empty_queue_is_polled_with_growing_pauses_which_a_message_resets() -> None:
    scene = Scene(FakeQueue([[], [], [], batch(1), []]), pauses=5)
    await scene.run()

    assert scene.wait.pauses == pytest.approx([0.1, 0.2, 0.3, 0.1, 0.2])
    assert scene.ended == ["id-m0"]


async def test_each_message_of_a_batch_is_in_work_at_once() -> None:
    scene = Scene(FakeQueue([batch(16)]), hold=True)
    running = asyncio.create_task(scene.run())
    await until_idle()

    assert len(scene.started) == 16
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_the_next_batch_waits_until_the_threshold_is_reached() -> None:
    scene = Scene(FakeQueue([batch(16, "a"), batch(16, "b")]), hold=True)
    running = asyncio.create_task(scene.run())
    await until_idle()
    for _ in range(7):
        scene.let_go.release()
    await until_idle()
    assert (scene.polls, len(scene.ended)) == (1, 7)

    scene.let_go.release()
    await until_idle()

    assert (scene.polls, len(scene.ended)) == (2, 8)
    assert len(scene.started) - len(scene.ended) == 24
    for _ in range(24):
        scene.let_go.release()
    await running
    assert len(scene.ended) == 32


async def test_with_batch_size_1_and_threshold_0_messages_come_one_by_one() -> None:
    options = QueueOptions(batch_size=1, new_batch_threshold=0)
    scene = Scene(FakeQueue([batch(1, "a"), batch(1, "b")]), hold=True, options=options)
    running = asyncio.create_task(scene.run())
    await until_idle()
    assert scene.started == ["id-a0"]

    scene.let_go.release()
    await until_idle()
    assert scene.started == ["id-a0", "id-b0"]

    scene.let_go.release()
    await running


async def test_a_missing_queue_and_storage_in_trouble_are_polled_again() -> None:
    scene = Scene(FakeQueue([QueueMissingError("QueueNotFound"), StorageError("503"), batch(1)]), pauses=3)
    await scene.run()

    assert scene.ended == ["id-m0"]


async def test_stopping_lets_the_messages_in_flight_end() -> None:
    scene = Scene(FakeQueue([batch(3)]), hold=True)
    running = asyncio.create_task(scene.run())
    await until_idle()
    scene.stop.set()
    for _ in range(3):
        scene.let_go.release()
    await running

    assert len(scene.ended) == 3


async def test_cancelling_drops_the_messages_in_flight() -> None:
    scene = Scene(FakeQueue([batch(3)]), hold=True)
    running = asyncio.create_task(scene.run())
    await until_idle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert scene.ended == []


async def test_a_defect_of_the_host_itself_ends_the_listener_loudly() -> None:
    scene = Scene(FakeQueue([batch(1)]), pauses=1000)
    scene.error = RuntimeError("defect")

    with pytest.raises(RuntimeError, match="defect"):
        await scene.run()
