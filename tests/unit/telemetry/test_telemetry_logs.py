"""No body, no secret and no text of a handler's error in a log or a span, whatever goes wrong."""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import Any

import pytest

from exactlyonce import Colocated, Context, Entity, Envelope, ExactlyOnceError, Outbox, Resequencer, VersionStream
from exactlyonce.drivers.driver import Backoff
from exactlyonce.effects.attempt import Strategy
from exactlyonce.records.outbox import Place
from exactlyonce.stores.memory.store import Fate
from exactlyonce.testing.world import SeededTrouble, World
from exactlyonce.values.frozen_json import Json
from tests.samples import SENT, Account, Deposit, Deposited, ledger_queue
from tests.unit.telemetry.observed import Observed

SECRET = "hunter2-AccountKey=c2VjcmV0"
STRATEGIES: list[Strategy] = [Outbox(), Colocated(), VersionStream(snapshot_every=2), Resequencer()]
FATES = dict.fromkeys((Fate.LOST_BEFORE, Fate.LOST_AFTER, Fate.REPEATED, Fate.DELAYED, Fate.BUSY), 0.12)


def accounts(strategy: Strategy) -> Entity[Account]:
    """Accounts whose state, outputs and errors all hold the secret."""
    entity = Entity("account", state=Account, container="accounts", partition_key="/owner", strategy=strategy)

    @entity.handles(Deposit, key=lambda deposit: deposit.account)
    def handle(state: Account, given: Deposit, context: Context) -> Account:
        if given.amount == 0:
            raise RuntimeError(f"cannot take {given.padding}")
        if given.amount < 0:
            return Account(total=given.padding)  # type: ignore[arg-type]  # A mistake: it does not fit the state.
        context.send("receipts", Deposited(given.amount, "r", given.padding))
        return Account(state.total + given.amount, note=given.padding)

    return entity


def message(number: int, amount: int, data: dict[str, Any] | None = None) -> Envelope:
    body = data or {"account": "a", "amount": amount, "padding": SECRET}
    place = Place("fromweb", "account/a", number)
    return Envelope("web", f"m-{number}", "account.deposit", Json.of(body), SENT, extensions=place.extensions)


async def everything(strategy: Strategy, seed: int) -> Observed:
    """Good and bad messages, copies and gaps, on two processes, under every trouble, until nothing is left to try."""
    random = Random(seed)
    reaches = lambda _: (random.random() < 0.8, random.random() < 0.8)  # noqa: E731
    world = World([ledger_queue], trouble=SeededTrouble(random, FATES, stale=0.3, lag=3), outcome=reaches)
    observed = Observed(world.clock)
    processes = [world.process(observer=observed.telemetry, backoff=Backoff(tries=tries)) for tries in (1, 3)]
    entity = accounts(strategy)
    broken = {"account": "a", "amount": SECRET, "padding": SECRET}
    given = [message(number, random.choice((0, -1, 1, 1, 1, 1))) for number in range(1, 30)]
    given += [message(50, 1, broken), *random.sample(given, 20)]
    for _ in range(2):
        deliveries = (random.choice(processes).deliver(entity, item) for item in given)
        for result in await asyncio.gather(*deliveries, return_exceptions=True):
            assert result is None or isinstance(result, ExactlyOnceError)
    for process in processes:
        await process.close()
    return observed


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: repr(strategy)[:40])
async def test_under_all_trouble_neither_logs_nor_spans_quote_a_body(
    strategy: Strategy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for seed in range(3):
        observed = await everything(strategy, seed)
        logged = "".join(span.to_json() for span in observed.spans)
        assert SECRET not in logged
        assert "process account" in logged
    assert SECRET not in caplog.text
    assert [record.getMessage() for record in caplog.records if SECRET in str(vars(record))] == []
    mine = [record for record in caplog.records if record.name.startswith("exactlyonce.")]
    assert mine
    about = ("account/a", "the book of this process")
    assert [item.getMessage() for item in mine if all(name not in item.getMessage() for name in about)] == []


@pytest.mark.parametrize("strategy", STRATEGIES[:5], ids=lambda strategy: repr(strategy)[:40])
async def test_an_attempt_that_starts_over_is_logged_with_entity_number_and_reason(
    strategy: Strategy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lost = iter([False, False])
    world = World([ledger_queue], outcome=lambda _: (next(lost, True), True))
    await world.process().deliver(accounts(strategy), message(1, 1))
    logged = [record.getMessage() for record in caplog.records if "the next one starts" in record.getMessage()]
    assert [item.split(", because")[0] for item in logged] == [
        "entity account/a: attempt 1 did not finish",
        "entity account/a: attempt 2 did not finish",
    ]
