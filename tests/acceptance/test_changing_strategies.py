"""An entity keeps its strategy: another one is refused with the first message, but for the presets of the outbox."""

from __future__ import annotations

from itertools import permutations

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.attempt import Strategy
from function_host import Point
from tests.acceptance.conftest import STRATEGIES, Bank
from tests.acceptance.test_bad_input import assert_logged, wire
from tests.samples import deposit

pytestmark = pytest.mark.acceptance

OUTBOXES = ("outbox", "transaction_id", "embedded")
REFUSED = [
    pair for pair in permutations(STRATEGIES, 2) if not set(pair) <= set(OUTBOXES) and "transaction_id" not in pair
]


@pytest.mark.parametrize(
    ("strategy", "other"),
    [pytest.param(STRATEGIES[one], STRATEGIES[other], id=f"{one} to {other}") for one, other in REFUSED],
)
async def test_another_strategy_is_refused_with_the_first_message_and_nothing_is_changed(
    bank: Bank, other: Strategy, caplog: pytest.LogCaptureFixture
) -> None:
    await bank.put(wire(deposit("m-1")))
    await bank.passed.until(1)
    await bank.redeploy(other)
    written = bank.cosmos.history(bank.name)
    await bank.put(wire(deposit("m-1")), wire(deposit("m-2")))
    await bank.passed.until(2, Point.COPIED)
    assert sorted(await bank.contents("-poison")) == sorted([wire(deposit("m-1")), wire(deposit("m-2"))])
    assert bank.cosmos.history(bank.name) == written
    assert len(await bank.contents("-receipts")) == 1
    for message in ("web/m-1", "web/m-2"):
        assert_logged(caplog, ConfigurationError, f"Message {message}: Entity account/a was processed by the protocol")
    assert_logged(caplog, ConfigurationError, "Go back to the strategy it had")


@pytest.mark.parametrize("strategy", [pytest.param(STRATEGIES[one], id=one) for one in OUTBOXES])
async def test_presets_of_the_outbox_follow_one_another_as_they_like(bank: Bank) -> None:
    for number, name in enumerate((*OUTBOXES, *reversed(OUTBOXES)), 1):
        await bank.redeploy(STRATEGIES[name])
        copies = [wire(deposit(f"m-{earlier}")) for earlier in range(1, number + 1)]
        handled = bank.passed.points[Point.HANDLED]
        await bank.put(*copies)
        await bank.passed.until(handled + len(copies))
        assert (await bank.state("a")).total == number
    assert bank.passed.points[Point.COPIED] == 0
