"""Where messages come in: size, duplicates, and those whose time has not come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from local_service_bus.broker.agenda import Agenda
from local_service_bus.broker.history import World
from local_service_bus.broker.messages import Content, Stored
from local_service_bus.broker.refusals import (
    ARGUMENT_ERROR,
    MESSAGE_NOT_FOUND,
    NOT_ALLOWED,
    TOO_LARGE,
    RefusedError,
)
from local_service_bus.topology import Queue, Topic

LONGEST_ID = 128
"""Characters of a message id or session id, as UTF-16 counts them."""


class Entrance:
    """The way into a queue or topic.

    Args:
        admit: Takes a message that came in now, with its number and the operation that brought it.
        numbers: The next sequence numbers.
    """

    def __init__(
        self,
        settings: Queue | Topic,
        admit: Callable[[Content, int, str], None],
        world: World,
        numbers: Iterator[int],
    ) -> None:
        self.address = settings.name
        self.max_bytes = settings.max_bytes
        self._admit = admit
        self._world = world
        self._numbers = numbers
        self._requires_session = isinstance(settings, Queue) and settings.requires_session
        self._window = settings.duplicate_window
        self._remembered: dict[str, float] = {}
        """Message ids with the time until which they are known, which ascends."""
        self._scheduled: dict[int, Stored] = {}
        self._agenda: Agenda[int] = Agenda()

    def send(self, contents: Sequence[Content]) -> None:
        """Take messages, all or none; duplicates are dropped without a word.

        Raises:
            RefusedError: for one that is too large, has too long an id, or lacks its session.
        """
        self._check(contents)
        for content in contents:
            self._send(content, "send")

    def schedule(self, contents: Sequence[Content]) -> list[int]:
        """Take messages for later, all or none; returns the numbers by which they can be cancelled.

        Raises:
            RefusedError: as `send`.
        """
        self._check(contents)
        return [self._send(content, "schedule") for content in contents]

    def repeat(self, contents: Sequence[Content]) -> None:
        """Take messages that were taken already, as if they were others."""
        for content in contents:
            self._admit(content, next(self._numbers), "redeliver")

    def cancel(self, numbers: Sequence[int]) -> None:
        """Forget scheduled messages, all or none.

        Raises:
            RefusedError: message not found.
        """
        if missing := [number for number in numbers if number not in self._scheduled]:
            raise RefusedError(
                MESSAGE_NOT_FOUND, f"{self.address}: {missing} are not scheduled; they were cancelled or enqueued."
            )
        for number in dict.fromkeys(numbers):
            self._note("cancel", self._scheduled.pop(number), "removed")

    def scheduled(self) -> list[Stored]:
        """The messages whose time has not come."""
        return list(self._scheduled.values())

    def expire(self) -> None:
        """Let in whose time has come, and forget old message ids."""
        now = self._world.now()
        for number in self._agenda.due(now):
            stored = self._scheduled.pop(number, None)
            if stored is not None:  # Otherwise it was cancelled.
                self._admit(stored.content, next(self._numbers), "activate")
        while self._remembered and (oldest := next(iter(self._remembered))) and self._remembered[oldest] <= now:
            del self._remembered[oldest]

    def next_time(self) -> float:
        """When `expire` may have something to let in, in seconds since 1970."""
        return self._agenda.next_time()

    def _check(self, contents: Sequence[Content]) -> None:
        size = sum(len(content.payload) for content in contents)
        if size > self.max_bytes:
            raise RefusedError(
                TOO_LARGE, f"{self.address}: {size} bytes are more than the {self.max_bytes} of a message or batch."
            )
        for content in contents:
            ids = (content.message_id or "", content.session_id or "")
            if max(len(id.encode("utf-16-le")) // 2 for id in ids) > LONGEST_ID:
                raise RefusedError(
                    ARGUMENT_ERROR,
                    f"{self.address}: a message id or session id is longer than {LONGEST_ID} characters.",
                )
            if self._requires_session and content.session_id is None:
                raise RefusedError(
                    NOT_ALLOWED, f"{self.address} has sessions, and the message has no session id; set one."
                )

    def _send(self, content: Content, operation: str) -> int:
        now = self._world.now()
        if content.message_id is None:
            content = replace(content, message_id=self._world.new_token().hex)
        stored = Stored(content, next(self._numbers), now)
        if self._is_duplicate(content.message_id, now):
            self._note(operation, stored, "duplicate")
        elif content.scheduled_for is not None and content.scheduled_for > now:
            stored.state = "scheduled"
            self._scheduled[stored.sequence_number] = stored
            self._agenda.add(content.scheduled_for, stored.sequence_number)
            self._note(operation, stored, "scheduled")
        else:
            self._admit(content, stored.sequence_number, operation)
        return stored.sequence_number

    def _is_duplicate(self, message_id: str | None, now: float) -> bool:
        if self._window is None or message_id is None:
            return False
        if message_id in self._remembered:
            return True
        self._remembered[message_id] = now + self._window
        return False

    def _note(self, operation: str, stored: Stored, outcome: str) -> None:
        self._world.history.note(self._world.now(), operation, self.address, stored, outcome)
