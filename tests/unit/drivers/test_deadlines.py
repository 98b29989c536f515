"""Deadlines: no request or pause begins after them, and the error says why."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from exactlyonce import TryAgainLater
from exactlyonce.attempt import Again, Memory
from exactlyonce.drivers.driver import Backoff, Pause, Retrying
from exactlyonce.effects.effect import BEHIND, Busy, Effect, Step, Together
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.effects.library import FindPages, FoundPages
from exactlyonce.testing.world import ManualClock
from tests.unit.drivers.waiting import ENTITY

LOAD = LoadEntity(ENTITY)
FIND = FindPages(ENTITY, (), (), 0, None)
AGAIN = Again(Memory(), "of this")
Attempt = Callable[[Memory], Step[Any]]


def loading(times: int, outcome: Any = AGAIN) -> Attempt:
    """An attempt that loads so many times."""

    def attempt(_memory: Memory) -> Step[Any]:
        for _ in range(times):
            yield from LOAD
        return outcome

    return attempt


class Slow:
    """A world in which every request takes so many seconds, and gets the same reply; a pause takes what it says."""

    def __init__(self, seconds: float, reply: Any = "x") -> None:
        self.clock = ManualClock()
        self.seconds = seconds
        self.reply = reply
        self.asked: list[Effect[Any]] = []

    def process(self, attempt: Attempt, limit: float | None, tries: int = 100, delay: float = 1.0) -> Any:
        """Process with pauses of one length."""
        retrying = Retrying(Backoff(delay, delay, tries, limit), Random(1))
        step = retrying.process(ENTITY, attempt, Memory(), retrying.begin(self.clock.now))
        reply: Any = None
        while True:
            try:
                effect = step.send(reply)
            except StopIteration as finished:
                return finished.value
            self.asked.append(effect)
            self.clock.advance(effect.seconds if isinstance(effect, Pause) else self.seconds)
            reply = None if isinstance(effect, Pause) else self.reply

    def fails(self, attempt: Attempt, limit: float, **more: Any) -> str:
        """Process, and return the error when there is no more time."""
        with pytest.raises(TryAgainLater) as caught:
            self.process(attempt, limit, **more)
        assert "Nothing is lost: give the message back to its queue." in str(caught.value)
        assert "EXACTLYONCE__deliveryTimeout" in str(caught.value)
        return str(caught.value)

    @property
    def kinds(self) -> list[str]:
        return [type(effect).__name__ for effect in self.asked]


class TestAttempts:
    def test_without_a_deadline_attempts_use_all_tries(self) -> None:
        world = Slow(1_000)
        with pytest.raises(TryAgainLater, match="100 attempts did not finish, the last one because of this"):
            world.process(loading(1), None)

    def test_an_attempt_that_ends_in_time_is_not_disturbed(self) -> None:
        assert Slow(3).process(loading(3, "done"), 9.1) == "done"

    def test_a_request_that_ends_late_may_still_be_the_last(self) -> None:
        assert Slow(30).process(loading(1, "done"), 9) == "done"

    def test_no_request_is_made_after_the_deadline_even_within_an_attempt(self) -> None:
        world = Slow(3)
        text = world.fails(loading(4, "done"), 9)
        assert world.kinds == ["LoadEntity"] * 3
        assert text.startswith(
            "Entity account/a: 9 of 9 s were over, and LoadEntity was not begun, in attempt 1. Nothing"
        )

    def test_no_pause_begins_that_would_outlast_the_deadline(self) -> None:
        world = Slow(3)
        text = world.fails(loading(1), 8)  # The second pause would end with it.
        assert world.kinds == ["LoadEntity", "Pause", "LoadEntity"]
        assert "7 of 8 s were over, and the pause before the next attempt would have taken 1 s, in attempt 2" in text
        assert "the attempt before it did not finish because of this" in text

    def test_an_attempt_that_progressed_is_followed_by_another_only_before_the_deadline(self) -> None:
        world = Slow(3)
        text = world.fails(loading(1, Again(Memory(), "more can be released", progressed=True)), 9, tries=1)
        assert world.kinds == ["LoadEntity"] * 3
        assert "in attempt 4; the attempt before it did not finish because more can be released" in text


class TestRefusals:
    @pytest.mark.parametrize(
        ("refusal", "text"),
        [(Busy(), "a busy store"), (BEHIND, "a replica that is behind")],
        ids=["busy", "behind"],
    )
    def test_a_request_is_not_repeated_if_its_pause_would_outlast_the_deadline(self, refusal: Any, text: str) -> None:
        world = Slow(1, refusal)
        assert f"the pause before asking {text} for LoadEntity again would have taken 1 s, in attempt 1" in world.fails(
            loading(1), 4
        )
        assert world.kinds == ["LoadEntity", "Pause", "LoadEntity"]

    def test_a_store_that_asks_for_a_wait_beyond_the_deadline_is_not_asked_again(self) -> None:
        world = Slow(1, Busy(59.5))
        assert "1 of 60 s were over, and the pause before asking a busy store" in world.fails(loading(1), 60)
        assert world.kinds == ["LoadEntity"]

    def test_one_of_two_concurrent_requests_is_not_repeated_after_the_deadline_either(self) -> None:
        def both(_: Memory) -> Step[Any]:
            replies = yield from Together(LOAD, FIND)
            return replies

        world = Slow(1, (BEHIND, FoundPages(())))
        assert "the pause before asking a replica that is behind for LoadEntity" in world.fails(both, 2)
        assert world.kinds == ["Together"]
