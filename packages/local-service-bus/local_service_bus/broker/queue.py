"""One queue, subscription or dead-letter queue: which messages there are, and who holds them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Final
from uuid import UUID

from local_service_bus.broker.agenda import Agenda
from local_service_bus.broker.history import World
from local_service_bus.broker.messages import Content, DeathCertificate, SessionLock, Stored
from local_service_bus.broker.refusals import MESSAGE_NOT_FOUND, RefusedError, lock_lost
from local_service_bus.topology import Holding


class Ready:
    """Messages that wait for a receiver: one line for each session, or a single one, None.

    Messages that are locked, deferred or gone meanwhile are dropped when somebody looks.

    Args:
        messages: All messages of the queue by sequence number, as they are at any time.
    """

    def __init__(self, messages: dict[int, Stored]) -> None:
        self._messages = messages
        self._lines: dict[str | None, list[int]] = {}

    def add(self, line: str | None, stored: Stored) -> None:
        """A message waits; it takes its place by its number."""
        heapq.heappush(self._lines.setdefault(line, []), stored.sequence_number)

    def first(self, line: str | None) -> Stored | None:
        """The first one of a line; None if nobody waits there."""
        numbers = self._lines.get(line, [])
        while numbers:
            stored = self._messages.get(numbers[0])
            if stored is not None and stored.state == "active" and stored.token is None:
                return stored
            heapq.heappop(numbers)
        self._lines.pop(line, None)
        return None

    def pop(self, line: str | None) -> Stored | None:
        """Take the first one out of a line."""
        stored = self.first(line)
        if stored is not None:
            heapq.heappop(self._lines[line])
        return stored

    def firsts(self) -> Iterator[tuple[str, Stored]]:
        """The first one of each session."""
        for line in list(self._lines):
            if line is not None and (stored := self.first(line)) is not None:
                yield line, stored


class Sessions:
    """Who holds which session of a queue, and what state it keeps.

    Args:
        lock_duration: Seconds.
        now: Seconds since 1970.
    """

    def __init__(self, messages: MessageQueue, lock_duration: float, now: Callable[[], float]) -> None:
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


_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Counts:
    """How many messages there are of each kind. A locked message is neither active nor deferred."""

    active: int
    locked: int
    scheduled: int
    deferred: int
    dead_letters: int


class MessageQueue:
    """Messages, locks and settlement.

    Whoever calls has let time pass before (`expire`).

    Args:
        address: Under which clients know it.
        numbers: The next sequence numbers.
        dead_letters: Where messages go that fail; None for a dead-letter queue: there nothing fails or expires.
    """

    def __init__(
        self,
        address: str,
        settings: Holding,
        world: World,
        numbers: Iterator[int],
        dead_letters: MessageQueue | None = None,
    ) -> None:
        self.address = address
        self.settings = settings
        self.dead_letters = dead_letters
        self.sessions = Sessions(self, settings.lock_duration, world.now)
        self._world = world
        self._numbers = numbers
        self._messages: dict[int, Stored] = {}
        self._locked: dict[UUID, Stored] = {}
        self._ready = Ready(self._messages)
        self._agenda: Agenda[Stored] = Agenda()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def has_sessions(self) -> bool:
        """Whether every message belongs to a session; dead letters never do."""
        return self.settings.requires_session and self.dead_letters is not None

    def enqueue(self, content: Content, number: int | None = None, operation: str = "send") -> None:
        """Add a message at the end, under a number that was given already or the next."""
        now = self._world.now()
        lives = min(_seconds(content.time_to_live), _seconds(self.settings.time_to_live))
        stored = Stored(content, next(self._numbers) if number is None else number, now, now + lives)
        if self.has_sessions and content.session_id is None:
            self._bury(stored, operation, "Session ID is null", "A subscription with sessions needs a session id.")
        else:
            self._insert(stored)
            self._note(operation, stored, "active")

    def bury(self, stored: Stored, death: DeathCertificate) -> None:
        """Take a message that failed elsewhere; this is a dead-letter queue."""
        stored.death, stored.state, stored.expires_at = death, "active", inf
        self._insert(stored)

    def receive(self, session: SessionLock | None = None) -> Stored | None:
        """Lock the next message, of a session where there are sessions; None if there is none."""
        stored = self._ready.pop(session.session_id if session else None)
        if stored is not None:
            self._lock(stored, session)
            self._note("receive", stored, "locked")
        return stored

    def take(self, session: SessionLock | None = None) -> Stored | None:
        """Receive and delete in one step; None if there is none."""
        stored = self._ready.pop(session.session_id if session else None)
        if stored is not None:
            self._remove(stored, "receive")
        return stored

    def next_ready(self, session: SessionLock | None = None) -> Stored | None:
        """What `receive` would lock; None if there is nothing."""
        return self._ready.first(session.session_id if session else None)

    def complete(self, token: UUID) -> None:
        """The message is done.

        Raises:
            RefusedError: lock lost; as of everything that takes a token.
        """
        self._remove(self._unlock(token), "complete")

    def abandon(self, token: UUID, changed: Mapping[str, object] = _NOTHING) -> None:
        """The delivery failed: the message is there again, or a dead letter if it failed too often.

        Args:
            changed: Application properties that it has from now on.
        """
        self._fail(self._unlock(token, changed), "abandon")

    def release(self, token: UUID) -> None:
        """The delivery never took place: the message is there again, and nothing is counted."""
        stored = self._unlock(token)
        self._note("release", stored, stored.state)
        self._put_back(stored)

    def defer(self, token: UUID, changed: Mapping[str, object] = _NOTHING) -> None:
        """From now on the message is received by its number only; `changed` as of `abandon`."""
        stored = self._unlock(token, changed)
        stored.state = "deferred"
        self._note("defer", stored, "deferred")

    def dead_letter(
        self, token: UUID, reason: str | None, description: str | None, changed: Mapping[str, object] = _NOTHING
    ) -> None:
        """The message can not be processed. A dead letter stays where it is. `changed` as of `abandon`."""
        self._move(self._unlock(token, changed), "dead_letter", reason, description)

    def renew(self, token: UUID) -> float:
        """Begin the time of a lock anew; returns its end in seconds since 1970."""
        stored = self._held(token)
        stored.locked_until = self._world.now() + self.settings.lock_duration
        self._agenda.add(stored.locked_until, stored)
        self._note("renew_lock", stored, "locked")
        return stored.locked_until

    def find_deferred(self, numbers: Sequence[int], session: SessionLock | None = None) -> list[Stored]:
        """Lock deferred messages by their numbers, all or none. What has expired meanwhile is gone now.

        Raises:
            RefusedError: message not found.
        """
        wanted = dict.fromkeys(numbers)
        found = [stored for number in wanted if (stored := self._deferred(number, session)) is not None]
        if len(found) < len(wanted):
            raise RefusedError(
                MESSAGE_NOT_FOUND, f"{self.address}: not all of {list(numbers)} are deferred and free; look by peeking."
            )
        for stored in found:
            self._lock(stored, session)
            self._note("receive_deferred", stored, "locked")
        return found

    def peek(self, first: int, most: int, session_id: str | None = None) -> list[Stored]:
        """Look at messages from a number on, locked and deferred ones included."""
        numbers = sorted(number for number in self._messages if number >= first)
        seen = (self._messages[number] for number in numbers)
        of_session = [item for item in seen if session_id is None or item.content.session_id == session_id]
        return of_session[:most]

    def session_ids(self) -> list[str]:
        """Sessions with messages or a state."""
        with_messages = {
            message.content.session_id for message in self._messages.values() if message.content.session_id is not None
        }
        return sorted(with_messages | self.sessions.with_state())

    def waiting_sessions(self) -> Iterator[tuple[str, Stored]]:
        """Sessions with messages that may be delivered, each with its first."""
        return self._ready.firsts()

    def held_under(self, session: SessionLock) -> list[UUID]:
        """The tokens of the messages that the holder of a session has."""
        return [token for token, stored in self._locked.items() if stored.session is session]

    def lose_lock(self, token: UUID) -> None:
        """End a lock: the delivery has failed. Nothing if there is no such lock."""
        if token in self._locked:
            self._fail(self._unlock(token), "lock_expired")

    def repeat(self, stored: Stored) -> None:
        """Deliver a message once more, whatever becomes of it: it is there again as a twin of its own."""
        self.enqueue(stored.content, operation="redeliver")

    def find(self, token: UUID) -> Stored | None:
        """The message that is held by a token."""
        return self._locked.get(token)

    def counts(self, scheduled: int = 0) -> Counts:
        """What there is; whoever calls knows how many are scheduled."""
        free = [message for message in self._messages.values() if message.token is None]
        deferred = sum(item.state == "deferred" for item in free)
        dead = 0 if self.dead_letters is None else len(self.dead_letters)
        return Counts(len(free) - deferred, len(self._locked), scheduled, deferred, dead)

    def expire(self) -> None:
        """Let happen what time has brought: locks end, messages expire."""
        self.sessions.expire()
        now = self._world.now()
        for due in self._agenda.due(now):
            if due.token is None:
                self._expire_if_due(due)
            elif due.session is None and due.locked_until <= now:
                self.lose_lock(due.token)

    def next_time(self) -> float:
        """When `expire` may have something to do, in seconds since 1970."""
        return min(self._agenda.next_time(), self.sessions.next_time())

    def _insert(self, stored: Stored) -> None:
        self._messages[stored.sequence_number] = stored
        self._agenda.add(stored.expires_at, stored)
        self._make_ready(stored)

    def _make_ready(self, stored: Stored) -> None:
        self._ready.add(stored.content.session_id if self.has_sessions else None, stored)

    def _lock(self, stored: Stored, session: SessionLock | None) -> None:
        stored.token, stored.session = self._world.new_token(), session
        self._locked[stored.token] = stored
        if session is None:
            stored.locked_until = self._world.now() + self.settings.lock_duration
            self._agenda.add(stored.locked_until, stored)

    def _held(self, token: UUID) -> Stored:
        stored = self._locked.get(token)
        if stored is None:
            raise lock_lost(self.address, self.has_sessions)
        return stored

    def _unlock(self, token: UUID, changed: Mapping[str, object] = _NOTHING) -> Stored:
        stored = self._held(token)
        stored.changed |= changed
        del self._locked[token]
        stored.token = stored.session = None
        return stored

    def _put_back(self, stored: Stored) -> None:
        if stored.state == "active" and not self._expire_if_due(stored):
            self._make_ready(stored)

    def _fail(self, stored: Stored, operation: str) -> None:
        stored.delivery_count += 1
        most = self.settings.max_delivery_count
        if self.dead_letters is not None and stored.delivery_count >= most:
            text = f"Message could not be consumed after {most} delivery attempts."
            self._move(stored, operation, "MaxDeliveryCountExceeded", text)
        else:
            self._note(operation, stored, stored.state)
            self._put_back(stored)

    def _expire_if_due(self, stored: Stored) -> bool:
        """Remove an active message whose time to live is over; a deferred one stays until somebody asks for it."""
        alive = self._messages.get(stored.sequence_number) is stored
        if not alive or stored.state == "deferred" or stored.expires_at > self._world.now():
            return False
        self._let_die(stored)
        return True

    def _let_die(self, stored: Stored) -> None:
        if self.settings.dead_letter_on_expiry and self.dead_letters is not None:
            self._move(stored, "expire", "TTLExpiredException", "The message expired and was dead lettered.")
        else:
            self._remove(stored, "expire")

    def _move(self, stored: Stored, operation: str, reason: str | None, description: str | None) -> None:
        del self._messages[stored.sequence_number]
        self._bury(stored, operation, reason, description)

    def _bury(self, stored: Stored, operation: str, reason: str | None, description: str | None) -> None:
        """Give to the dead letters; from there nothing goes anywhere."""
        self._note(operation, stored, "dead_letter")
        graves = self if self.dead_letters is None else self.dead_letters
        graves.bury(stored, DeathCertificate(reason, description, self.address))

    def _remove(self, stored: Stored, operation: str) -> None:
        del self._messages[stored.sequence_number]
        self._note(operation, stored, "removed")

    def _deferred(self, number: int, session: SessionLock | None) -> Stored | None:
        stored = self._messages.get(number)
        if stored is None or stored.state != "deferred" or stored.token is not None:
            return None
        if self.has_sessions and (session is None or session.session_id != stored.content.session_id):
            return None
        if stored.expires_at <= self._world.now():
            self._let_die(stored)
            return None
        return stored

    def _note(self, operation: str, stored: Stored, outcome: str) -> None:
        self._world.history.note(self._world.now(), operation, self.address, stored, outcome)


def _seconds(time_to_live: float | None) -> float:
    return inf if time_to_live is None else time_to_live
