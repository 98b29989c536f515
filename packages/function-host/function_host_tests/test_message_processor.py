"""A message ends as the real host ends it, odd corners included."""

import asyncio
from dataclasses import replace

import azure.functions as func
import pytest

from function_host import Point, QueueOptions
from function_host.kill_switch import KillSwitch
from function_host.message_processor import MessageProcessor
from function_host.storage_queue import Delivery, StorageError
from function_host.waiting import Wait
from function_host_tests.fakes import FakeQueue, FakeWait, delivery, encoded, gone, wait_for_the_end


class Scene:
    """A processor with a function that can be told to fail, between two fake queues."""

    def __init__(
        self, *, wait: Wait = wait_for_the_end, has_poison: bool = True, options: QueueOptions | None = None
    ) -> None:
        self.queue, self.poison = FakeQueue(), FakeQueue()
        self.calls: list[func.QueueMessage] = []
        self.called = asyncio.Event()
        self.error: BaseException | None = None
        self.work = 0
        self.points: list[Point] = []
        self.processor = MessageProcessor(
            name="serve",
            call=self._call,
            queue=self.queue,
            poison=self.poison if has_poison else None,
            options=options or QueueOptions(),
            invisible=600.0,
            wait=wait,
            checkpoint=self.points.append,
        )

    async def process(self, message: Delivery) -> None:
        await self.processor.process(message)

    async def _call(self, message: func.QueueMessage) -> None:
        self.calls.append(message)
        self.called.set()
        for _ in range(self.work):
            await asyncio.sleep(0)
        if self.error:
            raise self.error


DELETED = [("delete", "receipt-0")]
SET_ASIDE = [("put", encoded("hello"))]
UNREADABLE = "{not base64}"


@pytest.mark.parametrize(
    ("message", "fails", "queue", "poison", "points"),
    [
        (delivery(dequeue_count=5), False, DELETED, [], [Point.RECEIVED, Point.HANDLED]),
        (delivery(dequeue_count=4), True, [("renew", "receipt-0", 30.0)], [], [Point.RECEIVED]),
        (delivery(dequeue_count=5), True, DELETED, SET_ASIDE, [Point.RECEIVED, Point.COPIED]),
        (delivery(dequeue_count=6), False, DELETED, SET_ASIDE, [Point.RECEIVED, Point.COPIED]),
        (delivery(raw=UNREADABLE), False, DELETED, [("put", UNREADABLE)], [Point.RECEIVED, Point.COPIED]),
    ],
    ids=[
        "success deletes with the pop receipt",
        "a failure releases after the visibility timeout of host.json",
        "the last failure copies to poison and then deletes",
        "a message that came too often is moved",
        "a body that is not base64 is moved as it is",
    ],
)
async def test_a_message_ends(
    message: Delivery, *, fails: bool, queue: list[object], poison: list[object], points: list[Point]
) -> None:
    scene = Scene(options=QueueOptions.model_validate({"visibilityTimeout": "00:00:30"}))
    scene.error = ValueError() if fails else None
    await scene.process(message)

    assert (scene.queue.log, scene.poison.log, scene.points) == (queue, poison, points)
    assert bool(scene.calls) == (message.dequeue_count <= 5 and message.text != UNREADABLE)


@pytest.mark.parametrize("dequeue_count", [1, 5, 6])
async def test_without_a_poison_queue_a_failed_message_is_left_alone(dequeue_count: int) -> None:
    scene = Scene(has_poison=False)
    scene.error = ValueError()
    await scene.process(delivery(dequeue_count=dequeue_count))

    assert scene.queue.log == []


async def test_when_the_poison_copy_fails_the_message_stays() -> None:
    scene = Scene()
    scene.poison.fail("put", StorageError("503"))
    await scene.process(delivery(dequeue_count=6))

    assert scene.queue.log == []


async def test_renewals_go_on_until_the_function_ends_and_the_last_receipt_counts() -> None:
    wait = FakeWait()
    scene = Scene(wait=wait)
    scene.work = 5
    await scene.process(delivery())

    *renewals, end = scene.queue.log
    assert len(renewals) >= 2
    assert renewals[:2] == [("renew", "receipt-0", 600.0), ("renew", "receipt-1", 600.0)]
    assert end == ("delete", f"receipt-{len(renewals)}")
    assert set(wait.pauses) == {300.0}


async def test_failing_renewals_are_repeated_sooner() -> None:
    wait = FakeWait()
    scene = Scene(wait=wait)
    scene.work = 6
    scene.queue.fail("renew", StorageError("503"), StorageError("503"), None)
    await scene.process(delivery())

    assert wait.pauses[:4] == [300.0, 150.0, 75.0, 300.0]
    assert scene.queue.log[-1][0] == "delete"


async def test_a_lost_pop_receipt_ends_renewals_and_is_swallowed_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    wait = FakeWait()
    scene = Scene(wait=wait)
    scene.work = 5
    scene.queue.fail("renew", gone())
    scene.queue.fail("delete", gone())
    with caplog.at_level("DEBUG"):
        await scene.process(delivery())

    assert len(wait.pauses) == 1
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 3
    assert caplog.messages[-1] == "serve: message id-hello is in other hands; it may be processed again"


async def test_a_lost_pop_receipt_at_release_is_swallowed() -> None:
    scene = Scene()
    scene.error = ValueError()
    scene.queue.fail("renew", gone())

    await scene.process(delivery())


async def test_trouble_at_the_deletion_is_logged_and_the_message_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.queue.fail("delete", StorageError("503"))
    await scene.process(delivery())

    assert caplog.messages == ["serve: message id-hello was not settled (DELETE): 503"]


async def test_the_log_never_shows_a_body(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.error = ValueError("no detail")
    with caplog.at_level("DEBUG"):
        for dequeue_count in (1, 5, 6):
            await scene.process(replace(delivery("secret", dequeue_count=dequeue_count), id="4711"))

    assert "4711" in caplog.text
    assert "secret" not in caplog.text
    assert encoded("secret") not in caplog.text


async def test_cancelling_drops_the_message_as_a_crash_would() -> None:
    scene = Scene(wait=FakeWait())
    scene.work = 1_000_000
    task = asyncio.create_task(scene.process(delivery()))
    await scene.called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    renewals = len(scene.queue.log)
    await asyncio.sleep(0)

    assert len(scene.queue.log) == renewals
    assert all(operation == "renew" for operation, *_ in scene.queue.log)


def test_a_kill_switch_kills_once_at_the_chosen_passing() -> None:
    kills: list[str] = []
    switch = KillSwitch(Point.HANDLED, 2, lambda: kills.append("killed"))
    for point in (Point.HANDLED, Point.RECEIVED, Point.HANDLED, Point.HANDLED):
        switch(point)

    assert kills == ["killed"]


@pytest.mark.parametrize("text", ["nowhere", "handled:0", "handled:x", ""])
def test_a_kill_switch_for_no_point_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        KillSwitch.parse(text)
