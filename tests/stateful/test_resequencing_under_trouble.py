"""Read models that an outbox and a version stream feed, with every fault of the fault model: each is the exact fold of each
source's messages 1, 2, 3, …, whatever was shuffled, repeated, lost, skipped, sent again, or refused for a while."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import takewhile

import pytest

from exactlyonce import Entity, ExactlyOnceError, Rebuild, Resequencer, TryAgainLater
from exactlyonce.drivers.retry import Backoff
from exactlyonce.protocols.stream.replay import Missing, versions_of
from exactlyonce.stores.memory.partitions import NoTrouble
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import World
from tests.stateful.boards import DESTINATIONS, OUTBOX, STREAM, Player, a_play, played
from tests.stateful.broken_stores import Careless, Torn
from tests.stateful.telling_boards import BOARDS, BoardHistory, Delivery

REBUILD = Rebuild(of=STREAM, through="requests")


def last_words(*kinds: Entity[Player]) -> list[Delivery]:
    """One more message from every source to every board, so that none can have lost the last one unnoticed."""
    return [(kind, a_play(kind, 1000 + ord(name), name, list(BOARDS), 1)) for kind in kinds for name in "ab"]


def assert_exact(history: BoardHistory) -> None:
    assert violations(history.world.facts(), drained=True) == ()
    for name in BOARDS:
        assert history.told(name) == history.expected(name)


@pytest.mark.parametrize("seed", range(6))
async def test_it_is_the_fold_of_each_source_whatever_is_shuffled_and_repeated(seed: int) -> None:
    history = BoardHistory(seed, Resequencer())
    await history.play()
    await history.finish()
    assert_exact(history)
    assert history.world.facts().skipped == frozenset()


@pytest.mark.parametrize("seed", range(6))
async def test_a_handler_that_raises_for_a_while_holds_up_its_own_channel_until_it_is_fixed(seed: int) -> None:
    history = BoardHistory(seed, Resequencer())
    history.broken = {(f"{kind}/{name}", step) for kind in ("walker", "runner") for name in "ab" for step in (2, 4)}
    await history.play()
    for name in BOARDS:
        before = {
            source: list(takewhile(lambda item, source=source: (source, item[0]) not in history.broken, fold))  # type: ignore[misc]
            for source, fold in history.expected(name).items()
        }
        assert history.told(name) == {source: told for source, told in before.items() if told}
    history.broken = set()
    await history.finish(*last_words(OUTBOX, STREAM))
    assert_exact(history)


@pytest.mark.parametrize("seed", range(5))
async def test_what_is_skipped_is_reported_and_what_comes_late_is_noted_and_never_applied(seed: int) -> None:
    history = BoardHistory(seed, Resequencer(gap_timeout=timedelta(minutes=10), on_gap="skip"), loss=0.1)
    await history.play()
    await history.finish(*last_words(OUTBOX, STREAM))
    assert_exact(history)
    told = [history.told(name) for name in BOARDS]
    facts = history.world.facts()
    await history.finish(*((history.board, envelope) for envelope in history.lost * 2))
    assert_exact(history)
    assert [history.told(name) for name in BOARDS] == told
    assert len(history.world.facts().late) == len(facts.skipped)


@pytest.mark.parametrize("seed", range(6))
async def test_what_a_queue_lost_is_sent_again_by_its_source_until_the_read_model_is_complete(seed: int) -> None:
    history = BoardHistory(seed, Resequencer(gap_timeout=timedelta(minutes=5), on_gap=REBUILD), loss=0.25)
    history.plays, history.pending = [play for play in history.plays if play[0] is STREAM], []
    await history.play()
    await history.finish(*last_words(STREAM))
    assert_exact(history)
    assert history.world.facts().skipped == frozenset()


async def test_the_histories_are_eventful() -> None:
    skipping = BoardHistory(1, Resequencer(on_gap="skip"), loss=0.15)
    await skipping.play()
    await skipping.finish(*last_words(OUTBOX, STREAM))
    await skipping.finish(*((skipping.board, envelope) for envelope in skipping.lost))
    facts = skipping.world.facts()
    assert len(facts.skipped) >= 5
    assert len(facts.late) >= 5
    asking = BoardHistory(1, Resequencer(gap_timeout=timedelta(minutes=5), on_gap=REBUILD), loss=0.25)
    asking.plays, asking.pending = [play for play in asking.plays if play[0] is STREAM], []
    await asking.play()
    await asking.finish(*last_words(STREAM))
    assert len(asking.lost) >= 3
    assert len(asking.world.transport.queues["requests"]) >= 3


@pytest.mark.parametrize("store", [Careless, Torn])
async def test_a_store_that_breaks_its_promise_is_convicted(store: type[MemoryStore]) -> None:
    convicted = 0
    for seed in range(2):
        history = BoardHistory(seed, Resequencer(), store=store)
        try:
            await history.play()
            await history.finish()
            assert_exact(history)
        except (AssertionError, ExactlyOnceError):
            convicted += 1
    assert convicted == 2


class Old(NoTrouble):
    """Every read comes from a replica that has seen so many writes only."""

    def __init__(self, position: int) -> None:
        self.position = position

    def replica(self, newest: int) -> int:
        return min(self.position, newest)


async def test_a_view_from_before_the_messages_were_sent_does_not_prove_that_there_are_none() -> None:
    world = World(DESTINATIONS)
    process = world.process(backoff=Backoff(tries=3))
    for number in range(3):
        await process.deliver(STREAM, a_play(STREAM, number, "a", ["go"], 1))
    (sent,) = played(world).values()
    (channel,) = {channel for channel, _ in sent}
    ref, missing = STREAM.ref("a"), Missing(channel, 2, 3)
    for position in (0, 2, 4):
        world.store._trouble = Old(position)
        with pytest.raises(TryAgainLater, match=r"the entity (does not exist|could not be read)"):
            await process.run(ref, partial(versions_of, ref, missing))
    world.store._trouble = NoTrouble()
    assert await process.run(ref, partial(versions_of, ref, missing)) == (2, 3)
