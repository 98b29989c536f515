"""Many parked messages, requeued by one command: on Azurite and the local Cosmos."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import replace
from types import ModuleType

import pytest

from exactlyonce.cli.__main__ import main
from exactlyonce.effects.library import Park
from exactlyonce.records.library import ParkedMessage
from exactlyonce.values.envelope import key_of
from tests.acceptance.conftest import Bank
from tests.acceptance.test_bad_input import NOW
from tests.samples import deposit

pytestmark = pytest.mark.acceptance
COUNT = int(os.environ.get("EXACTLYONCE_PARKED", "100"))
AT_ONCE = 16


async def park(bank: Bank, numbers: range) -> None:
    operator = await bank.once.operator()
    for number in numbers:
        ref = bank.entity.ref(f"a-{number % 500}")
        envelope = replace(deposit(f"m-{number}", ref.id), time=NOW)
        parked = ParkedMessage(ref.key, key_of(envelope), "HandlerFailed (KeyError)", NOW, envelope.to_json())
        await operator.maintenance.driver.run(iter(Park(ref, parked)))


async def test_many_parked_messages_are_requeued_by_one_command(
    bank: Bank, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(park(bank, range(first, COUNT, AT_ONCE)) for first in range(AT_ONCE)))
    app = ModuleType("app_with_parked_messages")
    app.once = bank._composed()  # type: ignore[attr-defined]  # The command binds it to a loop of its own.
    monkeypatch.setitem(sys.modules, app.__name__, app)
    began = time.monotonic()
    command = f"--app {app.__name__} requeue-all --to receipts --reason KeyError --rate 1000 --yes".split()
    assert await asyncio.to_thread(main, command) == 0
    took = time.monotonic() - began
    out, err = capfd.readouterr()
    print(f"{COUNT} messages in {took:.1f} s\n{err}")
    assert out == f"{COUNT} sent\n"
    async with bank.queue("-receipts") as queue:
        assert (await queue.get_queue_properties()).approximate_message_count == COUNT
    assert [page async for page in (await bank.once.operator()).parked() if page] == []
