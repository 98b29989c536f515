"""Asking without a queue: one effect and one answer for a key, whatever happens to replies and processes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from exactlyonce import Colocated, ConfigurationError, Outbox, Resequencer, TryAgainLater, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import HandlerFailed, KeyReused, TooOldToJudge
from exactlyonce.hosting.requests.asker import MOST_ASKED, Answered, Asker, Request, require_answers
from exactlyonce.stores.memory.store import Fate
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import InstantClock, SeededTrouble
from exactlyonce.values.lifetimes import Lifetimes
from tests.answering import counters, request
from tests.unit.hosting.desks import Desk, no_time, not_ready

FATES = {Fate.LOST_BEFORE: 0.1, Fate.LOST_AFTER: 0.2, Fate.REPEATED: 0.1, Fate.BUSY: 0.1}
LOCATION = (("Location", "/counters/c"),)
STRATEGIES = (Outbox(), Colocated(), VersionStream())


def versions(desk: Desk) -> int:
    """How many messages were committed, each for the first time."""
    return len({(commit.message, commit.version) for commit in desk.facts().commits if commit.version is not None})


@pytest.fixture(params=STRATEGIES, ids=str)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(strategy=request.param)


async def test_a_first_request_is_answered_with_the_reply_and_a_retry_with_the_same(desk: Desk) -> None:
    first = await desk.ask("k-1", amount=3, status=201)
    assert first == Answered(201, LOCATION, '{"total":3}', replayed=False)
    await desk.ask("k-2")
    assert await desk.ask("k-1", amount=3, status=201) == replace(first, replayed=True)
    desk.restart()
    assert await desk.ask("k-1", amount=3, status=201) == replace(first, replayed=True)
    assert await desk.total == 4


async def test_another_request_under_a_known_key_is_refused_and_changes_nothing(desk: Desk) -> None:
    await desk.ask("k-1")
    with pytest.raises(KeyReused, match="test/k-1 differs"):
        await desk.ask("k-1", "g", amount=5)
    assert await desk.total == 1


async def test_a_key_whose_answer_has_left_for_a_page_is_known_with_its_answer() -> None:
    desk = Desk()
    first = await desk.ask("k-1", amount=3, status=201)
    for number in range(40):  # More than stay in the ledger.
        await desk.ask(f"n-{number}")
    assert any(id.startswith("page:") for partition in desk.store.library.values() for id in partition.places)
    for _ in range(2):
        assert await desk.ask("k-1", amount=3, status=201) == replace(first, replayed=True)
        with pytest.raises(KeyReused, match="test/k-1 differs"):
            await desk.ask("k-1", "g", amount=5)
        desk.restart()
    assert await desk.total == 43


async def test_two_bodies_under_one_key_in_one_commit_have_one_winner(desk: Desk) -> None:
    both = await asyncio.gather(
        desk.ask("k-0"), desk.ask("k-1", "f"), desk.ask("k-1", "g", amount=5), return_exceptions=True
    )
    assert [type(item) for item in both[1:]] in ([Answered, KeyReused], [KeyReused, Answered])
    assert await desk.total in (2, 6)
    assert len(desk.published) == 2


async def test_a_key_of_a_message_from_a_queue_has_no_answer(desk: Desk) -> None:
    queued = replace(request("k-1"), source="test", asked=None, time=desk.clock.now())
    await desk.receiver._process(queued, desk.counters)
    with pytest.raises(KeyReused):
        await desk.ask("k-1")


@pytest.mark.parametrize("strategy", [Outbox(), Colocated(), VersionStream()], ids=str)
async def test_requests_and_messages_for_one_entity_share_commits(strategy: Strategy) -> None:
    desk = Desk(strategy=strategy)
    queued = replace(request("m-1"), source="web", asked=None, time=desk.clock.now())
    jobs = [desk.ask("k-1"), desk.ask("k-2"), desk.receiver._process(queued, desk.counters), desk.ask("k-3")]
    await asyncio.gather(*jobs)
    assert versions(desk) == 4
    saves = [item for partition in desk.store.entities.values() for item in partition.log if not item.companion]
    assert len(saves) <= (
        2 if isinstance(strategy, Outbox) else 3
    )  # One for the first, one for the others, and one that marks.


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
async def test_a_client_that_never_comes_back_leaves_nothing_owed_after_one_sweep(strategy: Strategy) -> None:
    arrives = iter([False, True])
    desk = Desk(outcome=lambda _: ((now := next(arrives)), now), tries=1, strategy=strategy)
    with pytest.raises(TryAgainLater):
        await desk.ask("k-1")
    assert not desk.published
    desk.restart()
    await desk.sweep()
    assert len(desk.published) == 1
    assert violations(desk.facts(), drained=True) == ()
    await desk.sweep()
    assert len(desk.published) == 1


async def test_a_handler_that_raises_leaves_the_key_free(desk: Desk) -> None:
    with pytest.raises(HandlerFailed):
        await desk.ask("k-1", failing=True)
    assert (await desk.ask("k-1")).replayed is False


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
async def test_an_old_request_is_refused_unless_it_is_known(strategy: Strategy) -> None:
    clock = InstantClock()
    desk = Desk(clock=clock, strategy=strategy)
    began = clock.now()
    known = await desk.ask("k-1", time=began)
    clock.advance(timedelta(days=29).total_seconds())
    assert await desk.ask("k-1", time=began) == replace(known, replayed=True)
    with pytest.raises(TooOldToJudge):
        await desk.ask("k-2", time=began)
    limit = Lifetimes().oldest_judged(clock.now())
    assert (await desk.ask("k-3", time=clock.now() - limit)).replayed is False


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("seed", range(5))
async def test_every_retry_gets_the_one_answer_whatever_replies_are_lost(seed: int, strategy: Strategy) -> None:
    random = Random(seed)
    trouble = SeededTrouble(random, FATES, stale=0.2, lag=3)
    desk = Desk(
        trouble, lambda _: random.choice([(True, True), (True, False), (False, False)]), tries=2, strategy=strategy
    )
    answers: dict[str, set[Answered]] = {}
    for number in (*range(6), *range(6)):
        while True:
            try:
                answered = await desk.ask(f"k-{number}", amount=number + 1)
            except TryAgainLater:
                desk.restart()
                continue
            answers.setdefault(f"k-{number}", set()).add(replace(answered, replayed=False))
            break
    assert [len(answer) for answer in answers.values()] == [1] * 6
    assert violations(desk.facts(), drained=False) == ()
    assert versions(desk) == 6
    assert len({output.id for output in desk.published}) == 6


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": ""},
        {"key": "k" * 1025},
        {"source": ""},
        {"source": "s" * 3073},
        {"fingerprint": ""},
        {"fingerprint": "f" * (MOST_ASKED + 1)},
        {"time": InstantClock().now().replace(tzinfo=None)},
    ],
)
def test_a_request_that_cannot_be_is_refused(wrong: dict[str, str]) -> None:
    right: dict[str, Any] = {"key": "k" * 1024, "fingerprint": "f" * MOST_ASKED, "source": "s" * 3072, "time": None}
    assert Request(**right).time is None
    with pytest.raises(ValueError, match="of a request"):
        Request(**{**right, **wrong})


def test_only_strategies_that_keep_answers_are_asked() -> None:
    for strategy in STRATEGIES:
        require_answers(counters(strategy))
    with pytest.raises(ConfigurationError, match="cannot answer requests"):
        require_answers(counters(Resequencer()))


async def test_the_time_of_a_request_is_asked_for_once_the_application_is_ready() -> None:
    desk = Desk()
    desk.asker = Asker(desk.receiver, not_ready, no_time)
    with pytest.raises(TryAgainLater, match="is not ready"):
        await desk.ask("k-1")
