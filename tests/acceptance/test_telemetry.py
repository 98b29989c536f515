"""Telemetry of the sample app as it is deployed: one trace from a sender to the leader board, across its functions."""

from __future__ import annotations

from types import ModuleType

import aiohttp
import pytest

from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.telemetry import metrics as names
from exactlyonce.telemetry import opentelemetry as telemetry
from handlers.messages import FireAt
from tests.acceptance.hosting import Passed
from tests.acceptance.test_sample_app import api, function_app
from tests.unit.telemetry.observed import Observed

__all__ = ["api", "function_app"]  # Fixtures: pytest finds them here.

pytestmark = pytest.mark.acceptance


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Observed:
    """An SDK that the app finds with its first message, as if the process had configured it."""
    observed = Observed(SystemClock())
    monkeypatch.setattr(telemetry, "configured", lambda _: observed.telemetry)
    return observed


async def test_one_trace_leads_from_the_sender_through_both_functions(
    observed: Observed, api: tuple[aiohttp.ClientSession, Passed], function_app: ModuleType
) -> None:
    _, passed = api
    for _ in range(2):
        await function_app.once.send("shooting-range", FireAt(game_id="g-1", position=0), message_id="k-1")
    await passed.until(3)
    await function_app.once.quiesce()
    first, again = observed.named("send shooting-range")
    board = observed.one("process board")
    shots = {(item.attributes or {})["exactlyonce.outcome"]: item for item in observed.named("process range")}
    assert shots.keys() in ({"processed", "ledger"}, {"processed", "group"})
    traces = {item.context.trace_id for item in (first, again)}
    assert len(traces) == 2  # Each send has a trace of its own, though they are the same shot.
    assert {shot.context.trace_id for shot in shots.values()} == traces
    assert board.context.trace_id == shots["processed"].context.trace_id
    assert [observed.parent(shot) for shot in (board, *shots.values())] == ["send shooting-range"] * 3
    assert observed.total(names.PROCESSED) == 2
    assert observed.total(names.DUPLICATES) == 1
    assert observed.total(names.CHARGE) > 0
    assert observed.count(names.LAG) == 2


async def test_a_request_and_its_retry_are_counted_like_deliveries(
    observed: Observed, api: tuple[aiohttp.ClientSession, Passed], function_app: ModuleType
) -> None:
    session, passed = api
    for _ in range(2):
        reply = await session.post("/api/games/g-1/shots", json={"position": 0}, headers={"Idempotency-Key": "k-1"})
        assert reply.status == 201
    await passed.until(1)
    await function_app.once.quiesce()
    outcomes = [(item.attributes or {})["exactlyonce.outcome"] for item in observed.named("process range")]
    assert sorted(map(str, outcomes)) == ["ledger", "processed"]
    assert (observed.total(names.PROCESSED), observed.total(names.DUPLICATES)) == (2, 1)
