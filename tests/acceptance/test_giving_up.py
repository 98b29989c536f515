"""From the first failure to success: the host gives a message up, it is parked, its handler is fixed, it is sent again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import ClassVar
from uuid import uuid4

import azure.functions as func
import pytest

from exactlyonce import Context, Destination, Envelope, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.stores.port import ListedMessage
from exactlyonce.values.frozen_json import Json
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.conftest import DEQUEUES, Bank, every_strategy, opened
from tests.acceptance.test_bad_input import SECRET, wire
from tests.samples import Account, Deposited

pytestmark = pytest.mark.acceptance


@message("account.shake")
@dataclass
class Shake:
    account: str
    note: str


SHAKE = Envelope("web", "m-1", "account.shake", Json.of({"account": "a", "note": SECRET}), datetime.now(timezone.utc))


class Shaking(Bank):
    """The bank, with a handler that raises until it is fixed, and a function on its poison queue."""

    destinations: ClassVar = {**Bank.destinations, Destination("accounts"): ""}

    def __init__(self, storage: Azurite, cosmos: RunningEmulator, name: str, strategy: Strategy) -> None:
        super().__init__(storage, cosmos, name, strategy)
        self.fixed = False

        @self.entity.handles(Shake, key=lambda shake: shake.account)
        def shake(state: Account, given: Shake, context: Context) -> Account:
            if not self.fixed:
                raise RuntimeError(given.note)
            context.announce(Deposited(state.total + 1, context.new_id()))
            return Account(state.total + 1)

        @self.app.queue_trigger(arg_name="message", queue_name=f"{name}-poison", connection="AzureWebJobsStorage")
        async def settle(message: func.QueueMessage) -> None:
            await self.once.settle(message, self.entity, queue="accounts")

    async def parked(self) -> list[ListedMessage]:
        operator = await self.once.operator()
        return [item async for page in operator.parked() for item in page]


@pytest.fixture
async def bank(storage: Azurite, cosmos: RunningEmulator, strategy: Strategy) -> AsyncIterator[Shaking]:
    bank = Shaking(storage, cosmos, f"bank-{uuid4().hex[:12]}", strategy)
    async with opened(bank, "", "-plain", "-receipts", "-poison"):
        yield bank


@pytest.mark.parametrize("strategy", every_strategy())
async def test_it_is_parked_with_what_its_last_delivery_met_and_takes_place_once_when_it_is_sent_again(
    bank: Shaking, caplog: pytest.LogCaptureFixture
) -> None:
    await bank.put(wire(SHAKE))
    await bank.passed.until(1)  # By the function on the poison queue.
    (parked,) = await bank.parked()
    assert parked.message == "web/m-1"
    assert parked.reason == f"its queue gave it up; delivery {DEQUEUES} failed with HandlerFailed (RuntimeError)"
    assert [record.getMessage() for record in caplog.records if "parked" in record.getMessage()] == [
        f"message web/m-1 was parked under {parked.entity}: {parked.reason}"
    ]
    assert await bank.contents("-receipts") == []

    bank.fixed = True
    requeued = await (await bank.once.operator()).requeue(parked.entity, parked.message, "accounts")
    assert requeued.outcome == "sent"
    await bank.passed.until(2)
    assert (await bank.state("a")).total == 1
    assert len(await bank.contents("-receipts")) == 1
    assert await bank.parked() == []

    await bank.put(wire(SHAKE), queue="-poison")  # The host may have copied it twice.
    await bank.passed.until(3)
    assert await bank.parked() == []
