"""Request units: the cost of every effect on the local Cosmos DB, as the service reports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint

from demo.stack import create_containers
from exactlyonce import Envelope, Outbox
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import BUDGET, Lanes
from exactlyonce.drivers.observer import ObserverSlot
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.partition import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.telemetry import metrics as names
from exactlyonce.testing.world import ManualClock
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import leader_board
from handlers.shooting_range import ranges
from local_cosmos.inprocess import RunningEmulator, running_emulator
from tests.samples import SENT
from tests.unit.telemetry.observed import Observed


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    with running_emulator() as running:
        create_containers(running, "charges")
        yield running


async def process(emulator: RunningEmulator, observed: Observed | None, ids: tuple[str, ...]) -> None:
    """Process shots on a game of their own."""
    runtime = Runtime(ManualClock(), observer_slot=ObserverSlot(observed.telemetry if observed else None))
    charged = runtime.observer_slot.charged
    connection = CosmosConnection(emulator.endpoint, "charges", key=emulator.key, charged=charged if observed else None)
    store = CosmosStore(connection, [EntityContainer("range", "games", ranges.paths, companions=False)])
    publisher = Publisher({"leader-board": Address(MemoryTransport(), "leader-board")})
    retrying = Retrying(Backoff(), runtime.random)
    lanes = Lanes(AsyncDriver(store, publisher, runtime), retrying, runtime.clock, BUDGET)
    ref = ranges.ref(ids[0])
    runner = Runner(ranges, ref, Routes.to((leader_board,), {"leader-board": 48 * 1024}))
    for id in ids:
        data = Json.of({"game_id": ids[0], "position": 1})
        shot = Envelope("http", id, "shooting-range.fire-at", data, SENT)
        await lanes.process(Outbox(), Work(ref, (), runner, runner.absent), shot)
    lanes.abandon()
    await connection.close()


async def test_charges_are_recorded_by_operation_and_add_up(emulator: RunningEmulator) -> None:
    observed = Observed(ManualClock())
    before = emulator.last_request()
    await process(emulator, observed, ("g-1", "g-2"))
    # The log has requests for documents only. The first effects also open the account and two containers, and ask for the
    # ranges of one, for 1 each.
    charged = sum(request.charge for request in emulator.requests(before)) + 4
    assert observed.total(names.CHARGE) == pytest.approx(charged)
    operations = {labels["exactlyonce.operation"] for name, labels, _ in observed.points if name == names.CHARGE}
    assert operations == {"load_entity", "has_pages", "write_book", "save_entity"}
    assert observed.total(names.CHARGE, db_system_name="azure.cosmosdb") == observed.total(names.CHARGE)
    of_spans = [(span.attributes or {}).get("azure.cosmosdb.operation.request_charge") for span in observed.spans]
    assert sum(float(str(item)) for item in of_spans if item is not None) == pytest.approx(charged)
    assert charged > 10


def test_requests_outside_of_effects_are_charged_to_other() -> None:
    """Verifying the account, and looking for entities that owe."""
    observed = Observed(ManualClock())
    observed.telemetry.charged(2.5)
    assert observed.total(names.CHARGE, exactlyonce_operation="other") == 2.5


@pytest.mark.parametrize(
    ("before", "spans", "numbers"),
    [
        (1, {"process range", "attempt range", "load_entity", "save_entity", "publish leader-board"}, 6),
        (4, {"process range", "attempt range", "save_entity", "publish leader-board"}, 5),
    ],
    ids=["its entity is loaded", "its entity is remembered"],
)
async def test_a_message_makes_as_many_spans_and_numbers_as_the_documentation_says(
    emulator: RunningEmulator, before: int, spans: set[str], numbers: int
) -> None:
    """A message whose handler sends one other, among the messages that an entity takes one after the other."""
    fewer, more = Observed(ManualClock()), Observed(ManualClock())
    for observed, count in ((fewer, before), (more, before + 1)):
        await process(emulator, observed, tuple(f"{len(spans)}-{count}-{number}" for number in range(count)))
    made = Counter(span.name for span in more.spans) - Counter(span.name for span in fewer.spans)
    assert made == Counter(spans)
    assert recorded(more) - recorded(fewer) == numbers


def recorded(observed: Observed) -> int:
    """How many numbers were recorded. What a message adds to a counter here is 1."""
    return sum(point.count if isinstance(point, HistogramDataPoint) else point.value for _, _, point in observed.points)
