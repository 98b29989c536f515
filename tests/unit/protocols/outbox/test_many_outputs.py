"""Messages with thousands of outputs: done after as many deliveries as their queue needs, by any publisher."""

from __future__ import annotations

from functools import partial

import pytest

from exactlyonce import Colocated, Outbox, TryAgainLater, VersionStream
from exactlyonce.attempt import Strategy
from exactlyonce.drivers.retry import Backoff
from exactlyonce.records.outputs import Output
from exactlyonce.testing.world import World
from tests.asking import sweep
from tests.samples import accounts, deposit, ledger_queue

OUTPUTS = 1_000
EACH_TIME = 100
IMPATIENT = Backoff(tries=1)


class Throttled(World):
    """A world whose queue takes so many of the outputs between two calls of `let_more`."""

    def __init__(self) -> None:
        self.left = EACH_TIME
        super().__init__((ledger_queue,), outcome=self._takes)

    def let_more(self) -> None:
        self.left = EACH_TIME

    def _takes(self, _: Output) -> tuple[bool, bool]:
        self.left -= 1
        return (self.left >= 0, True)


@pytest.mark.parametrize(
    "strategy",
    [Outbox(), Outbox.transaction_id(), Outbox.embedded(), Colocated(), VersionStream()],
    ids=["outbox", "staged", "embedded", "colocated", "stream"],
)
async def test_one_with_many_outputs_is_done_after_as_many_deliveries_as_its_queue_needs(strategy: Strategy) -> None:
    world, kind, message = Throttled(), accounts(strategy), deposit("m-1", answers=OUTPUTS)
    process = world.process(backoff=IMPATIENT)
    for _ in range(2 * OUTPUTS // EACH_TIME + 7):
        world.let_more()
        try:
            await process.deliver(kind, message)
        except TryAgainLater:
            assert len({output.id for output in world.published}) < OUTPUTS
        else:
            break
    await process.close()
    assert len({output.id for output in world.published}) == OUTPUTS
    assert world.acknowledged == {(kind.ref("a").key, "web/m-1")}
    assert not world.facts().owing


async def test_a_sweeper_goes_on_where_it_was_and_marks_nothing_before_all_is_accepted() -> None:
    world, kind = Throttled(), accounts()
    ref = kind.ref("a")
    crashed, sweeper = (world.process(backoff=IMPATIENT) for _ in range(2))
    with pytest.raises(TryAgainLater):
        await crashed.deliver(kind, deposit("m-1", answers=OUTPUTS))
    await crashed.crash()
    for _ in range(2 * OUTPUTS // EACH_TIME + 7):
        assert world.facts().owing
        world.let_more()
        try:
            await sweeper.run(ref, partial(sweep, ref))
        except TryAgainLater:
            assert len({output.id for output in world.published}) < OUTPUTS
        else:
            break
    assert len({output.id for output in world.published}) == OUTPUTS
    assert not world.facts().owing
