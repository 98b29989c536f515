"""One operation of a client, and what faults make of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from local_service_bus.broker.refusals import SERVER_BUSY, RefusedError
from local_service_bus.faults import FaultRule


class Client(Protocol):
    """The connection of whoever asks."""

    alive: bool

    def cut(self) -> None:
        """End it at once; nothing that was not sent yet goes out."""


class Step(ABC):
    """One operation: the broker acts, then the client is answered.

    Args:
        operation: As faults name it.
        entity: The address it is about.
        message_ids: Of the messages it is about, as far as known.
    """

    def __init__(
        self, client: Client, operation: str, entity: str, *, message_ids: tuple[str | None, ...] = ()
    ) -> None:
        self.client = client
        self.operation = operation
        self.entity = entity
        self.message_ids = message_ids

    @abstractmethod
    def act(self) -> None:
        """Let the broker do it.

        Raises:
            RefusedError: if the broker does not.
        """

    @abstractmethod
    def answer(self, refusal: RefusedError | None) -> None:
        """Tell the client that it was done, or why not."""

    def lose_lock(self) -> None:  # noqa: B027  # Most operations stand on none.
        """End the lock that the operation stands on."""

    def repeat(self) -> None:  # noqa: B027  # Most operations deliver nothing.
        """Deliver the message once more, after all."""

    def run_by(self, rule: FaultRule, delay: Callable[[float, Callable[[], None]], None]) -> None:
        """Act and answer as a rule wants it to go; `delay` does something after so many seconds."""
        if rule.action == "cut_before":
            self.client.cut()
        elif rule.action == "cut_after":
            with suppress(RefusedError):  # Whoever asked never hears of it.
                self.act()
            self.client.cut()
        elif rule.action == "lock_lost":
            self.lose_lock()
            self.run()
        elif rule.action == "redeliver":
            self.run()
            self.repeat()
        elif rule.action == "server_busy":
            self.answer(RefusedError(SERVER_BUSY, f"{self.entity}: the server is busy; wait and try again."))
        else:
            delay(rule.seconds, self.run)

    def run(self) -> None:
        """Act and answer, as if nothing were wrong. Whoever has gone meanwhile is not served."""
        if not self.client.alive:
            return
        try:
            self.act()
        except RefusedError as refusal:
            self.answer(refusal)
        else:
            self.answer(None)
