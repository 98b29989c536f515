"""The whole broker: entities by their addresses, and time passing in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from math import inf
from typing import Final, TypeVar
from uuid import UUID

from local_service_bus.broker.entrance import Entrance
from local_service_bus.broker.history import History, World
from local_service_bus.broker.messages import Content, Stored
from local_service_bus.broker.queue import Counts, MessageQueue
from local_service_bus.broker.refusals import NOT_FOUND, RefusedError
from local_service_bus.broker.rules import Rules
from local_service_bus.topology import Holding, Queue, Topic, Topology

_Entity = TypeVar("_Entity")

DEAD_LETTERS: Final = "/$deadletterqueue"


class Broker:
    """Everything between senders and receivers. One thread only.

    Args:
        now: Seconds since 1970.
        new_token: A lock token that was never given before.
    """

    def __init__(self, topology: Topology, now: Callable[[], float], new_token: Callable[[], UUID]) -> None:
        self.history = History()
        self._clock = now
        self._time = now()
        """How far the broker has come: the clock's time, and in between that of what happens next."""
        self._world = World(lambda: self._time, new_token, self.history)
        self._entrances: dict[str, Entrance] = {}
        self._queues: dict[str, MessageQueue] = {}
        self._rules: dict[str, Rules] = {}
        for queue in topology.queues:
            self._add_queue(queue)
        for topic in topology.topics:
            self._add_topic(topic)

    def queue(self, address: str) -> MessageQueue:
        """What is received from.

        Raises:
            RefusedError: not found.
        """
        return self._find(self._queues, address, "queue or subscription to receive from")

    def entrance(self, address: str) -> Entrance:
        """What is sent to.

        Raises:
            RefusedError: not found.
        """
        return self._find(self._entrances, address, "queue or topic to send to")

    def rules(self, address: str) -> Rules:
        """Which messages a subscription gets.

        Raises:
            RefusedError: not found.
        """
        return self._find(self._rules, address, "subscription")

    def scheduled(self, address: str) -> list[Stored]:
        """Messages of a queue or topic whose time has not come; none of a subscription."""
        entrance = self._entrances.get(address.lower())
        return entrance.scheduled() if entrance else []

    def counts(self, address: str) -> Counts:
        """What there is in a queue, subscription or dead-letter queue; of a topic what is scheduled.

        Raises:
            RefusedError: not found.
        """
        self.expire()
        scheduled = len(self.scheduled(address))
        if address.lower() in self._entrances and address.lower() not in self._queues:
            return Counts(0, 0, scheduled, 0, 0)
        return self.queue(address).counts(scheduled)

    def expire(self) -> None:
        """Let happen everything that time has brought, each thing at its time and in order."""
        now = max(self._clock(), self._time)
        while (earlier := self.next_time()) < now:
            self._expire_at(max(earlier, self._time))
        self._expire_at(now)

    def next_time(self) -> float:
        """When `expire` may have something to do, in seconds since 1970."""
        times = [entrance.next_time() for entrance in self._entrances.values()]
        times += [queue.next_time() for queue in self._queues.values()]
        return min(times, default=inf)

    def _expire_at(self, time: float) -> None:
        self._time = time
        for entrance in self._entrances.values():
            entrance.expire()
        for queue in self._queues.values():
            queue.expire()

    def _add_queue(self, settings: Queue) -> None:
        numbers = count(1)
        queue = self._add_holding(settings.name, settings, numbers)
        self._entrances[settings.name.lower()] = Entrance(settings, queue.enqueue, self._world, numbers)

    def _add_topic(self, settings: Topic) -> None:
        targets = []
        for subscription in settings.subscriptions:
            queue = self._add_holding(f"{settings.name}/Subscriptions/{subscription.name}", subscription, count(1))
            rules = self._rules[queue.address.lower()] = Rules(queue.address, subscription.filters)
            targets.append((rules, queue))

        def admit(content: Content, number: int, operation: str) -> None:
            """Give each subscription a copy of a message that came in now, if its rules let it pass."""
            concerned = [queue for rules, queue in targets if rules.pass_on(content)]
            stored, outcome = Stored(content, number, self._time), "active" if concerned else "unmatched"
            self.history.note(stored.enqueued_at, operation, settings.name, stored, outcome)
            for queue in concerned:
                queue.enqueue(_shortened(content, settings.time_to_live), operation=operation)

        self._entrances[settings.name.lower()] = Entrance(settings, admit, self._world, count(1))

    def _add_holding(self, address: str, settings: Holding, numbers: Iterator[int]) -> MessageQueue:
        dead_letters = MessageQueue(f"{address}/$DeadLetterQueue", settings, self._world, numbers)
        queue = MessageQueue(address, settings, self._world, numbers, dead_letters)
        self._queues[address.lower()] = queue
        self._queues[address.lower() + DEAD_LETTERS] = dead_letters
        return queue

    def _find(self, known: dict[str, _Entity], address: str, kind: str) -> _Entity:
        try:
            return known[address.lower()]
        except KeyError:
            told = (
                f"The messaging entity {address!r} could not be found."  # @azure/service-bus knows it by these words.
            )
            raise RefusedError(NOT_FOUND, f"{told} There is no such {kind}; there are {sorted(known)}.") from None


def _shortened(content: Content, time_to_live: float | None) -> Content:
    if time_to_live is None:
        return content
    return replace(content, time_to_live=min(time_to_live, content.time_to_live or time_to_live))
