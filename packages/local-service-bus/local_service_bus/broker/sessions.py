"""Sessions of one queue: who holds which, and what state they keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol
from uuid import UUID

from local_service_bus.broker.agenda import Agenda
from local_service_bus.broker.messages import SessionLock, Stored


class Messages(Protocol):
    """The messages of the queue, as far as sessions need them."""

    def waiting_sessions(self) -> Iterator[tuple[str, Stored]]:
        """Sessions with messages that may be delivered, each with its first."""

    def held_under(self, session: SessionLock) -> list[UUID]:
        """The tokens of the messages that the holder of a session has."""

    def release(self, token: UUID) -> None:
        """The delivery never took place."""

    def lose_lock(self, token: UUID) -> None:
        """The delivery has failed."""


class Sessions:
    """Locks and states by session id.

    Args:
        lock_duration: Seconds.
        now: Seconds since 1970.
    """

    def __init__(self, messages: Messages, lock_duration: float, now: Callable[[], float]) -> None:
        self._messages = messages
        self._lock_duration = lock_duration
        self._now = now
        self._held: dict[str, SessionLock] = {}
        self._states: dict[str, bytes] = {}
        self._agenda: Agenda[SessionLock] = Agenda()

    def accept(self, session_id: str) -> SessionLock | None:
        """Hold a session, whether it has messages or not; None if somebody else does."""
        return None if session_id in self._held else self._hold(session_id)

    def accept_next(self) -> SessionLock | None:
        """Hold the free session whose first message has waited longest; None if no free session has messages."""
        free = [
            (first.sequence_number, session_id)
            for session_id, first in self._messages.waiting_sessions()
            if session_id not in self._held
        ]
        return self._hold(min(free)[1]) if free else None

    def renew(self, session: SessionLock) -> None:
        """Begin its time anew."""
        session.until = self._now() + self._lock_duration
        self._agenda.add(session.until, session)

    def close(self, session: SessionLock) -> None:
        """Its receiver let it go: what it held is there again, and nothing is counted."""
        self._end(session, self._messages.release)

    def lose(self, session: SessionLock) -> None:
        """Its time is over: what it held has failed."""
        self._end(session, self._messages.lose_lock)

    def state(self, session_id: str) -> bytes | None:
        """What was kept last; None if nothing."""
        return self._states.get(session_id)

    def keep(self, session_id: str, state: bytes | None) -> None:
        """Keep a state; None for no longer."""
        if state is None:
            self._states.pop(session_id, None)
        else:
            self._states[session_id] = state

    def with_state(self) -> set[str]:
        """The sessions that keep one."""
        return set(self._states)

    def expire(self) -> None:
        """End what has not been renewed in time."""
        now = self._now()
        for session in self._agenda.due(now):
            if session.until <= now:
                self.lose(session)

    def next_time(self) -> float:
        """When `expire` may have something to do, in seconds since 1970."""
        return self._agenda.next_time()

    def _hold(self, session_id: str) -> SessionLock:
        session = SessionLock(session_id, 0.0)
        self._held[session_id] = session
        self.renew(session)
        return session

    def _end(self, session: SessionLock, give_back: Callable[[UUID], None]) -> None:
        if session.held:
            session.held = False
            del self._held[session.session_id]
            for token in self._messages.held_under(session):
                give_back(token)
