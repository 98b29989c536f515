"""An entity keeps its strategy: another one is refused with the first message."""

from __future__ import annotations

from itertools import permutations

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.effects.attempt import Strategy
from function_host import Point
from local_cosmos.semantics.history import AcceptedWrite
from tests.acceptance.conftest import STRATEGIES, Bank
from tests.acceptance.test_bad_input import assert_logged, wire
from tests.samples import deposit

pytestmark = pytest.mark.acceptance


def own_of(bank: Bank) -> list[AcceptedWrite]:
    """All writes but those of books: a process begins its own before it has read anything."""
    return [item for item in bank.cosmos.history(bank.name) if item.partition_key != '["books"]']


@pytest.mark.parametrize(
    ("strategy", "other"),
    [
        pytest.param(STRATEGIES[item], STRATEGIES[other], id=f"{item} to {other}")
        for item, other in permutations(STRATEGIES, 2)
    ],
)
async def test_another_strategy_is_refused_with_the_first_message_and_nothing_is_changed(
    bank: Bank, other: Strategy, caplog: pytest.LogCaptureFixture
) -> None:
    await bank.put(wire(deposit("m-1")))
    await bank.passed.until(1)
    await bank.redeploy(other)
    written = own_of(bank)
    await bank.put(wire(deposit("m-1")), wire(deposit("m-2")))
    await bank.passed.until(2, Point.COPIED)
    assert sorted(await bank.contents("-poison")) == sorted([wire(deposit("m-1")), wire(deposit("m-2"))])
    assert own_of(bank) == written
    assert len(await bank.contents("-receipts")) == 1
    for message in ("web/m-1", "web/m-2"):
        assert_logged(caplog, ConfigurationError, f"Message {message}: Entity account/a was processed by the protocol")
    assert_logged(caplog, ConfigurationError, "Go back to the former strategy")
