"""Random operations of the unmodified client do what the reference model does.

`LOCAL_SERVICE_BUS_RUNS=20` plays twenty times as many, each time others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError

from local_service_bus.clock import Clock
from local_service_bus.testing import endpoint
from local_service_bus.topology import Queue, Topology
from local_service_bus_tests.reference_model import LostError, MissingError, Model, Rules
from local_service_bus_tests.sdk import message

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

RUNS = int(os.environ.get("LOCAL_SERVICE_BUS_RUNS", "0"))
STEPS = 3000 * max(RUNS, 1)
RULES = Rules(lock=10, deliveries=3, lives=60, window=15, buries_expired=True)
QUEUE = Queue(
    "q", lock_duration=10, max_delivery_count=3, time_to_live=60, duplicate_window=15, dead_letter_on_expiry=True
)
EPOCH = 4_000_000_000
"""Far ahead, since the client itself gives up locks that seem to be over."""


class Play:
    """Does everything twice: by the client, and in the model."""

    def __init__(self, running: RunningEndpoint, sender: ServiceBusSender, receiver: ServiceBusReceiver) -> None:
        self.endpoint, self.sender, self.receiver = running, sender, receiver
        self.model = Model(RULES)
        self.chance = Random(None if RUNS else 7)
        self.held: dict[int, Any] = {}
        self.numbers: list[int] = [1]
        self.steps: dict[Callable[[], None], int] = {
            self.send: 20,
            self.send_list: 6,
            self.schedule: 6,
            self.cancel: 4,
            self.receive: 30,
            self.settle: 30,
            self.renew: 6,
            self.receive_deferred: 8,
            self.pass_time: 8,
        }

    def step(self) -> None:
        (step,) = self.chance.choices(list(self.steps), list(self.steps.values()))
        step()
        self.compare()

    def send(self) -> None:
        text, lives = self._text(), self.chance.choice([None, 20])
        lasting = None if lives is None else timedelta(seconds=lives)
        self.sender.send_messages(message(text, time_to_live=lasting))
        self.model.send(text, None, lives, 0)

    def send_list(self) -> None:
        texts = [self._text() for _ in range(self.chance.randint(1, 3))]
        self.sender.send_messages([message(text) for text in texts])
        for text in texts:
            self.model.send(text, None, None, 0)

    def schedule(self) -> None:
        text, delay = self._text(), self.chance.randint(1, 20)
        at = datetime.fromtimestamp(EPOCH + self.model.now + delay, timezone.utc)
        (number,) = self.sender.schedule_messages(message(text), at)
        assert number == self.model.send(text, None, None, delay)
        self.numbers.append(number)

    def cancel(self) -> None:
        number = self.chance.choice(self.numbers)
        self._alike(lambda: self.model.cancel(number), lambda: self.sender.cancel_scheduled_messages(number))

    def receive(self) -> None:
        letter = self.model.receive(None)
        if letter is None:
            return  # The client would wait.
        (found,) = self.receiver.receive_messages(1, max_wait_time=5)
        assert (found.sequence_number, str(found), found.delivery_count) == (
            letter.number,
            letter.text,
            letter.failures,
        )
        self._hold(letter.holder, found)

    def settle(self) -> None:
        if not self.held:
            return
        handle = self.chance.choice(list(self.held)[-5:])
        way = self.chance.choice(["complete", "complete", "abandon", "defer", "dead_letter"])
        found = self.held[handle]
        ways: dict[str, Callable[[], None]] = {
            "complete": lambda: self.receiver.complete_message(found),
            "abandon": lambda: self.receiver.abandon_message(found),
            "defer": lambda: self.receiver.defer_message(found),
            "dead_letter": lambda: self.receiver.dead_letter_message(found, "asked for"),
        }
        self._alike(lambda: self.model.settle(handle, way), ways[way])
        del self.held[handle]

    def renew(self) -> None:
        if self.held:
            handle = self.chance.choice(list(self.held)[-5:])
            found = self.held[handle]
            self._alike(lambda: self.model.renew(handle), lambda: self.receiver.renew_message_lock(found))

    def receive_deferred(self) -> None:
        number = self.chance.choice(self.numbers)
        letter, found = self._alike(
            lambda: self.model.receive_deferred(number, None), lambda: self.receiver.receive_deferred_messages(number)
        )
        if letter is not None:
            self._hold(letter.holder, found[0])

    def pass_time(self) -> None:
        seconds = self.chance.randint(1, 8)
        for _ in range(seconds):
            self.model.tick()
        self.endpoint.advance_clock(seconds)

    def compare(self) -> None:
        seen = self.model.seen()
        free = [place for _, _, place, _, locked in seen if not locked]
        counts = self.endpoint.counts("q")
        assert (counts.active, counts.deferred, counts.scheduled, counts.locked, counts.dead_letters) == (
            free.count("active"),
            free.count("deferred"),
            free.count("scheduled"),
            len(seen) - len(free),
            len(self.model.dead()),
        )

    def peek(self) -> list[tuple[int, str, str, int]]:
        """All that the client sees by looking."""
        found = self.receiver.peek_messages(1000, sequence_number=1)
        return [
            (item.sequence_number or 0, str(item), item.state.name.lower(), item.delivery_count or 0) for item in found
        ]

    def _text(self) -> str:
        return self.chance.choice("abcdefgh")

    def _hold(self, handle: int | None, found: Any) -> None:
        assert handle is not None
        self.held[handle] = found
        self.numbers.append(found.sequence_number)

    def _alike(self, expected: Callable[[], Any], actual: Callable[[], Any]) -> tuple[Any, Any]:
        try:
            wanted = expected()
        except LostError:
            with pytest.raises(MessageLockLostError):
                actual()
        except MissingError:
            with pytest.raises(MessageNotFoundError):
                actual()
        else:
            return wanted, actual()
        return None, None


@pytest.fixture
def play() -> Iterator[Play]:
    with endpoint(Topology((QUEUE,)), clock=Clock(lambda: float(EPOCH))) as running:
        client = ServiceBusClient.from_connection_string(running.connection_string, retry_total=0)
        with client, client.get_queue_sender("q") as sender, client.get_queue_receiver("q") as receiver:
            yield Play(running, sender, receiver)


def test_random_operations_of_the_client_do_what_the_model_does(play: Play) -> None:
    for _ in range(STEPS):
        play.step()
    assert play.peek() == [item[:4] for item in play.model.seen()]
