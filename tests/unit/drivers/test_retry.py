"""The retry policy: which requests and attempts are repeated, for how long, until which deadline, and the error in the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import TryAgainLater
from exactlyonce.drivers.driver import Backoff, Pause, Retrying
from exactlyonce.effects.attempt import Again, Finished, Memory
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Busy, Effect, Step, Together
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.effects.library import FindPages, FoundPages
from exactlyonce.testing.world import ManualClock
from tests.unit.drivers.waiting import ENTITY

LOAD = LoadEntity(ENTITY)
FIND = FindPages(ENTITY, (), (), 0, None)


def retrying(tries: int = 4, **more: float) -> Retrying:
    return Retrying(Backoff(tries=tries, **more), Random(1))


def drive(step: Step[Any], replies: list[Any]) -> tuple[list[Effect[Any]], Any]:
    """Answer requests in turn and pauses at once."""
    asked: list[Effect[Any]] = []
    reply: Any = None
    waiting = list(replies)
    while True:
        try:
            effect = step.send(reply)
        except StopIteration as finished:
            assert waiting == []
            return asked, finished.value
        asked.append(effect)
        reply = None if isinstance(effect, Pause) else waiting.pop(0)


def once(effect: Effect[Any]) -> Step[Any]:
    reply = yield from effect
    return reply


@given(st.integers(0, 2**32), st.floats(0.001, 1), st.floats(1, 10), st.integers(1, 12))
def test_delays_stay_between_base_and_cap_and_are_one_fewer_than_tries(
    seed: int, base: float, cap: float, tries: int
) -> None:
    delays = list(Backoff(base, cap, tries).delays(Random(seed)))
    assert len(delays) == tries - 1
    assert all(min(base, cap) <= delay <= cap for delay in delays)
    assert delays == list(Backoff(base, cap, tries).delays(Random(seed)))


def test_delays_grow_on_average() -> None:
    many = [list(Backoff(0.02, 100.0, 6).delays(Random(seed))) for seed in range(300)]
    means = [sum(column) / len(many) for column in zip(*many, strict=True)]
    assert means == sorted(means)
    assert means[-1] > 3 * means[0]


@pytest.mark.parametrize("refusal", [Busy(), BEHIND])
def test_a_request_is_repeated_while_it_is_refused(refusal: Any) -> None:
    asked, result = drive(retrying().insist(once(LOAD)), [refusal, refusal, "answer"])
    assert result == "answer"
    assert [type(effect) for effect in asked] == [LoadEntity, Pause, LoadEntity, Pause, LoadEntity]


@pytest.mark.parametrize("reply", [UNKNOWN, None, True, "answer"])
def test_any_other_reply_is_passed_on_unchanged(reply: Any) -> None:
    asked, result = drive(retrying().insist(once(LOAD)), [reply])
    assert (asked, result) == ([LOAD], reply)


@pytest.mark.parametrize("tries", [1, 3])
@pytest.mark.parametrize(("refusal", "handed_over"), [(Busy(), UNKNOWN), (BEHIND, BEHIND)])
def test_a_refused_request_is_repeated_as_often_as_the_policy_allows(
    refusal: Any, handed_over: Any, tries: int
) -> None:
    asked, result = drive(retrying(tries=tries).insist(once(LOAD)), [refusal] * tries)
    assert result is handed_over
    assert asked.count(LOAD) == tries


def test_the_store_may_ask_for_a_longer_wait_but_not_for_a_shorter_one() -> None:
    for wanted, least in ((7.5, 7.5), (0.0, 0.02)):
        asked, _ = drive(retrying().insist(once(LOAD)), [Busy(wanted), "answer"])
        (pause,) = (effect for effect in asked if isinstance(effect, Pause))
        assert least <= pause.seconds <= 7.5


def test_of_two_concurrent_requests_only_the_refused_one_is_repeated() -> None:
    found = FoundPages(())
    both = Together(LOAD, FIND)
    asked, result = drive(retrying().insist(once(both)), [("loaded", BEHIND), found])
    assert result == ("loaded", found)
    assert [effect for effect in asked if not isinstance(effect, Pause)] == [both, FIND]
    asked, result = drive(retrying().insist(once(both)), [(Busy(), found), "loaded"])
    assert result == ("loaded", found)
    assert [effect for effect in asked if not isinstance(effect, Pause)] == [both, LOAD]


class Attempts:
    """Attempts with given outcomes; keeps the memory each was given."""

    def __init__(self, *outcomes: Finished | Again) -> None:
        self.outcomes = list(outcomes)
        self.memories: list[Memory] = []

    def __call__(self, memory: Memory) -> Step[Finished | Again]:
        self.memories.append(memory)
        yield from LOAD
        return self.outcomes.pop(0)


def test_attempts_are_made_until_one_finishes_each_with_the_memory_of_the_one_before() -> None:
    first, second = Memory(entity_token="1"), Memory(entity_token="2")
    attempts = Attempts(Again(first, "a"), Again(second, "b"), Finished(Memory()))
    asked, result = drive(retrying().process(ENTITY, attempts, Memory()), ["x"] * 3)
    assert result == Finished(Memory())
    assert attempts.memories == [Memory(), first, second]
    assert [type(effect) for effect in asked] == [LoadEntity, Pause, LoadEntity, Pause, LoadEntity]


def test_when_no_attempt_finishes_the_error_names_entity_and_reason() -> None:
    attempts = Attempts(*(Again(Memory(), f"of reason {number}") for number in range(3)))
    with pytest.raises(TryAgainLater, match=r"account/a.*3 attempts.*because of reason 2"):
        drive(retrying(tries=3).process(ENTITY, attempts, Memory()), ["x"] * 3)


def test_an_attempt_that_progressed_is_followed_by_the_next_at_once() -> None:
    onward = Again(Memory(entity_token="1"), "more can be released", progressed=True)
    attempts = Attempts(onward, onward, Finished(Memory()))
    asked, _ = drive(retrying(tries=1).process(ENTITY, attempts, Memory()), ["x"] * 3)
    assert [type(effect) for effect in asked] == [LoadEntity] * 3
    assert attempts.memories == [Memory(), onward.memory, onward.memory]


def test_an_attempt_that_progressed_does_not_count_as_a_try() -> None:
    onward, failed = Again(Memory(), "more can be released", progressed=True), Again(Memory(), "of this")
    attempts = Attempts(*[onward] * 20, Finished(Memory()))
    assert drive(retrying(tries=3).process(ENTITY, attempts, Memory()), ["x"] * 21)[1] == Finished(Memory())
    attempts = Attempts(failed, failed, onward, failed, failed, Finished(Memory()))
    assert drive(retrying(tries=3).process(ENTITY, attempts, Memory()), ["x"] * 6)[1] == Finished(Memory())


def test_tries_are_used_up_once_attempts_no_longer_progress() -> None:
    onward, failed = Again(Memory(), "more can be released", progressed=True), Again(Memory(), "of this")
    attempts = Attempts(failed, onward, failed, failed, failed)
    with pytest.raises(TryAgainLater, match=r"3 attempts.*because of this"):
        drive(retrying(tries=3).process(ENTITY, attempts, Memory()), ["x"] * 5)
    assert attempts.outcomes == []


def test_delays_start_anew_after_progress() -> None:
    onward, failed = Again(Memory(), "more can be released", progressed=True), Again(Memory(), "of this")
    attempts = Attempts(*[failed] * 6, onward, failed, Finished(Memory()))
    asked, _ = drive(retrying(tries=8, base=0.02, cap=100.0).process(ENTITY, attempts, Memory()), ["x"] * 9)
    delays = [effect.seconds for effect in asked if isinstance(effect, Pause)]
    assert len(delays) == 7
    assert delays[-1] <= 3 * 0.02


def test_an_unfinished_attempt_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "exactlyonce")
    drive(retrying().process(ENTITY, Attempts(Again(Memory(), "of this"), Finished(Memory())), Memory()), ["x"] * 2)
    assert "account/a" in caplog.text
    assert "because of this" in caplog.text


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
