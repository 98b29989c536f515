"""One queue as Service Bus describes it, in the plainest way: a list, and a clock that ticks second by second."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

Place = Literal["active", "deferred", "scheduled", "dead", "gone"]


class LostError(Exception):
    """There is no such lock, or no longer."""


class MissingError(Exception):
    """There is no such message."""


@dataclass
class Letter:
    """A message."""

    text: str
    number: int
    dies_at: float
    session: str | None = None
    place: Place = "active"
    failures: int = 0
    reason: str | None = None
    holder: int | None = None
    held_until: float = 0
    due_at: int = 0
    lives: int | None = None


@dataclass
class Rules:
    """How the queue is set."""

    lock: int = 10
    deliveries: int = 3
    lives: int | None = None
    window: int | None = None
    buries_expired: bool = False
    sessions: bool = False


@dataclass
class Model:
    """The queue. Handles stand for lock tokens, session names for the holds on them."""

    rules: Rules
    now: int = 0
    letters: list[Letter] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    held_sessions: dict[str, float] = field(default_factory=dict)
    numbers: int = 0
    handles: int = 0

    def send(self, text: str, session: str | None, lives: int | None, delay: int) -> int:
        """Take a message; returns its number."""
        self.numbers += 1
        number = self.numbers
        if self.rules.window is not None:
            if self.known.get(text, 0) > self.now:
                return number
            self.known[text] = self.now + self.rules.window
        letter = Letter(text, number, self._death(lives), session, lives=lives)
        if delay:
            letter.place, letter.due_at = "scheduled", self.now + delay
        self.letters.append(letter)
        return number

    def cancel(self, number: int) -> None:
        """Forget a scheduled message."""
        self._in("scheduled", number).place = "gone"

    def receive(self, session: str | None) -> Letter | None:
        """Lock the next message."""
        waiting = [letter for letter in self.letters if letter.place == "active" and letter.holder is None]
        of_session = [item for item in waiting if not self.rules.sessions or item.session == session]
        if not of_session:
            return None
        return self._hold(min(of_session, key=lambda item: item.number))

    def settle(self, handle: int, way: str) -> None:
        """Complete, abandon, defer or dead_letter."""
        letter = self.held(handle)
        letter.holder = None
        if way == "complete":
            letter.place = "gone"
        elif way == "abandon":
            self._fail(letter)
        elif way == "defer":
            letter.place = "deferred"
        else:
            letter.place, letter.reason = "dead", "asked for"

    def renew(self, handle: int) -> None:
        """Begin the time of a lock anew."""
        self.held(handle).held_until = self.now + self.rules.lock

    def receive_deferred(self, number: int, session: str | None) -> Letter:
        """Lock a deferred message."""
        letter = self._in("deferred", number)
        if letter.holder is not None or (self.rules.sessions and letter.session != session):
            raise MissingError
        if letter.dies_at <= self.now:
            self._expire(letter)
            raise MissingError
        return self._hold(letter)

    def accept(self, session: str) -> bool:
        """Hold a session."""
        if session in self.held_sessions:
            return False
        self.held_sessions[session] = self.now + self.rules.lock
        return True

    def next_session(self) -> str | None:
        """The session that a receiver without a wish would get."""
        free = [
            letter
            for letter in self.letters
            if letter.place == "active" and letter.holder is None and letter.session not in self.held_sessions
        ]
        return min(free, key=lambda item: item.number).session if free else None

    def renew_session(self, session: str) -> None:
        """Begin the time of a hold anew."""
        self.held_sessions[session] = self.now + self.rules.lock

    def close(self, session: str) -> None:
        """Let a session go."""
        del self.held_sessions[session]
        for letter in self._locked_in(session):
            letter.holder = None
            self._expire_if_due(letter)

    def held(self, handle: int) -> Letter:
        """The message that a handle holds."""
        for letter in self.letters:
            if letter.holder == handle:
                return letter
        raise LostError

    def tick(self) -> None:
        """One second later."""
        self.now += 1
        for session in [item for item, until in self.held_sessions.items() if until <= self.now]:
            del self.held_sessions[session]
            for letter in self._locked_in(session):
                letter.holder = None
                self._fail(letter)
        due = [item for item in self.letters if item.place == "scheduled" and item.due_at <= self.now]
        for letter in sorted(due, key=lambda item: (item.due_at, item.number)):
            self.numbers += 1
            letter.place = "gone"
            self.letters.append(replace(letter, place="active", number=self.numbers, dies_at=self._death(letter.lives)))
        for letter in self.letters:
            if letter.holder is not None and not self.rules.sessions and letter.held_until <= self.now:
                letter.holder = None
                self._fail(letter)
        for letter in self.letters:
            self._expire_if_due(letter)

    def seen(self) -> list[tuple[int, str, str, int, bool]]:
        """All messages that are not gone nor dead: number, text, place, failures, whether locked."""
        living = [letter for letter in self.letters if letter.place in ("active", "deferred", "scheduled")]
        told = [(item.number, item.text, item.place, item.failures, item.holder is not None) for item in living]
        return sorted(told)

    def dead(self) -> list[tuple[int, str, str | None, int]]:
        """The dead letters: number, text, reason, failures."""
        return sorted(
            (letter.number, letter.text, letter.reason, letter.failures)
            for letter in self.letters
            if letter.place == "dead"
        )

    def _death(self, lives: int | None) -> float:
        return self.now + min(item for item in (lives, self.rules.lives, float("inf")) if item is not None)

    def _hold(self, letter: Letter) -> Letter:
        self.handles += 1
        letter.holder, letter.held_until = self.handles, self.now + self.rules.lock
        return letter

    def _fail(self, letter: Letter) -> None:
        letter.failures += 1
        if letter.failures >= self.rules.deliveries:
            letter.place, letter.reason = "dead", "MaxDeliveryCountExceeded"
        self._expire_if_due(letter)

    def _expire_if_due(self, letter: Letter) -> None:
        if letter.place == "active" and letter.holder is None and letter.dies_at <= self.now:
            self._expire(letter)

    def _expire(self, letter: Letter) -> None:
        letter.place, letter.reason = ("dead", "TTLExpiredException") if self.rules.buries_expired else ("gone", None)

    def _in(self, place: Place, number: int) -> Letter:
        for letter in self.letters:
            if letter.number == number and letter.place == place:
                return letter
        raise MissingError

    def _locked_in(self, session: str) -> list[Letter]:
        return [letter for letter in self.letters if letter.holder is not None and letter.session == session]
