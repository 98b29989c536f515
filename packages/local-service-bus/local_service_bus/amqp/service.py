"""What all connections share: the broker, its faults, and who waits for what."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from local_service_bus.amqp.authorization import SharedKey
from local_service_bus.amqp.steps import Step
from local_service_bus.broker.agenda import Agenda
from local_service_bus.broker.broker import Broker
from local_service_bus.clock import Clock
from local_service_bus.faults import Faults


class Waiting(Protocol):
    """A link that wants something that may come later."""

    def serve(self) -> bool:
        """Give it one thing, if there is any; returns whether anything has happened."""

    def rest(self) -> None:
        """There is nothing more for now."""


class Service:
    """The endpoint without its sockets.

    Args:
        clock: The broker's, for what is slow.
        shared_key: What tokens have to be signed with.
    """

    def __init__(self, broker: Broker, faults: Faults, clock: Clock, shared_key: SharedKey) -> None:
        self.broker = broker
        self.faults = faults
        self.shared_key = shared_key
        self._clock = clock
        self._waiting: dict[str, deque[Waiting]] = {}
        self._agenda: Agenda[Callable[[], None]] = Agenda()

    def perform(self, step: Step) -> None:
        """Do what a client asks for, or what a fault makes of it."""
        rule = self.faults.strike(step.operation, step.entity, step.message_ids)
        if rule is None:
            step.run()
        else:
            step.run_by(rule, self.after)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, by the broker's clock."""
        self._agenda.add(self._clock.now() + seconds, action)

    def pass_time(self) -> None:
        """Let happen everything that time has brought."""
        self.broker.expire()
        for action in self._agenda.due(self._clock.now()):
            action()

    def next_time(self) -> float:
        """When `pass_time` may have something to do, in seconds since 1970."""
        return min(self._agenda.next_time(), self.broker.next_time())

    def wait(self, address: str, link: Waiting) -> None:
        """Serve a link whenever there is something at an address, in turn with all others there."""
        self._waiting.setdefault(address, deque()).append(link)

    def leave(self, address: str, link: Waiting) -> None:
        """Serve it no longer."""
        links = self._waiting.get(address, deque())
        if link in links:
            links.remove(link)

    def serve(self) -> None:
        """Give all links what there is for them, until nothing more happens: one may bring something for another."""
        while any(self._serve_in_turn(links) for links in self._waiting.values()):
            pass
        for links in self._waiting.values():
            for link in links:
                link.rest()

    @staticmethod
    def _serve_in_turn(links: deque[Waiting]) -> bool:
        served, unserved = False, 0
        while unserved < len(links):
            link = links[0]
            links.rotate(-1)
            unserved = 0 if link.serve() else unserved + 1
            served = served or unserved == 0
        return served
