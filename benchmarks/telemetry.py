"""What telemetry costs in CPU time per message: `python -m benchmarks.telemetry`.

Shots of one game on the local Cosmos DB and Azurite, one at a time, through drivers, adapters and SDKs, in three ways that take
turns: `bare` has a driver that does not even look for an observer, `off` is the library where no OpenTelemetry SDK is
configured, and `on` has one that samples everything. Only the time of the thread that processes messages counts, so neither
the services nor waiting do. What exporters do with spans, in threads of their own, does not either.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks.machine import machine
from benchmarks.processing import LATER, ROUTES
from benchmarks.subjects import subjects
from demo.stack import create_containers
from exactlyonce import Entity, Envelope
from exactlyonce.attempt import Again, Memory
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.deadlines import Deadline
from exactlyonce.drivers.lanes import Assignment, Lanes
from exactlyonce.drivers.observer import Delivery, ObserverSlot
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.retry import Backoff, Retrying
from exactlyonce.drivers.runtime import Runtime, SystemClock
from exactlyonce.effects.effect import Effect, Step
from exactlyonce.handling.runner import Runner
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.layout import EntityContainer
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.telemetry.opentelemetry import Telemetry
from exactlyonce.transports.storage_queue import StorageQueueTransport
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from function_host.azurite import Azurite, azurite
from handlers.leader_board import leader_board
from local_cosmos.inprocess import RunningEmulator, running_emulator

RESULT: Final = Path(__file__).with_name("results") / "telemetry.json"
KINDS: Final = ("bare", "off", "on")
MOST: Final = 0.15
"""By how much more CPU time a message may take with telemetry."""

Result = TypeVar("Result")
Send = Callable[[int], Awaitable[None]]


def main() -> int:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.telemetry", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--messages", type=int, default=50, help="of each kind in a round; default: %(default)s")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    options = parser.parse_args()
    on = machine()
    result = {"machine": on, **asyncio.run(_measure(options.rounds, options.messages))}
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0 if result["on"]["more"] <= MOST else 1


async def _measure(rounds: int, messages: int) -> dict[str, Any]:
    """Milliseconds of CPU time per message by kind: medians over rounds, and of what a round has more than its `bare`."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with running_emulator() as emulator, azurite() as storage:
        create_containers(emulator, "bench")
        async with (
            _application("bare", emulator, storage) as bare,
            _application("off", emulator, storage) as off,
            _application("on", emulator, storage) as on,
        ):
            sends = dict(zip(KINDS, (bare, off, on), strict=True))
            for number in range(rounds + 1):
                # The order is turned round every time, so that what grows with a round meets all alike.
                for kind in KINDS if number % 2 else reversed(KINDS):
                    spent = await _spent(sends[kind], number * messages, messages)
                    if number:  # The first is to warm up.
                        taken[kind].append(spent)
    return {
        "rounds": rounds,
        "messages": messages,
        "unit": "milliseconds of CPU time per message, medians; more: of each round beside its bare one",
        **{
            kind: {
                "median": round(statistics.median(taken[kind]), 4),
                "more": round(statistics.median(_more(taken[kind], taken["bare"])), 4),
                "middle half": [round(one, 4) for one in _middle_half(_more(taken[kind], taken["bare"]))],
            }
            for kind in KINDS
        },
    }


def _more(taken: Sequence[float], bare: Sequence[float]) -> list[float]:
    """By which part each round took more than the bare one beside it."""
    return [one / other - 1 for one, other in zip(taken, bare, strict=True)]


def _middle_half(values: Sequence[float]) -> list[float]:
    lower, _, upper = statistics.quantiles(values, n=4)
    return [lower, upper]


async def _spent(send: Send, first: int, messages: int) -> float:
    began = time.thread_time()
    for number in range(first, first + messages):
        await send(number)
    return (time.thread_time() - began) / messages * 1000


class _Bare(AsyncDriver):
    """The driver without a thought of observers."""

    def _performed(self, effect: Effect[Any]) -> Awaitable[Any]:
        return self._others.get(type(effect), self._store.perform)(effect)

    async def process(
        self,
        retrying: Retrying,
        entity: EntityRef,
        attempt: Callable[[Memory], Step[Result | Again]],
        memory: Memory,
        deliveries: Sequence[Delivery] | None = None,  # noqa: ARG002  # They have nobody to be told to.
        *,
        deadline: Deadline | None = None,
    ) -> Result:
        return await self.run(retrying.process(entity, attempt, memory, deadline))


class _Nowhere(SpanExporter):
    """Takes everything, and keeps nothing."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


@asynccontextmanager
async def _application(kind: str, emulator: RunningEmulator, storage: Azurite) -> AsyncIterator[Send]:
    """An application of its own, with a game of its own; gives what processes the shot of a number."""
    entity: Entity[Any] = subjects()[0].entity
    tracers, meters = TracerProvider(shutdown_on_exit=False), MeterProvider([InMemoryMetricReader()])
    tracers.add_span_processor(BatchSpanProcessor(_Nowhere()))
    telemetry = Telemetry(tracers.get_tracer("bench"), meters.get_meter("bench"), SystemClock().now)
    runtime = Runtime(observer_slot=ObserverSlot(telemetry if kind == "on" else None))
    charged = None if kind == "bare" else runtime.observer_slot.charged
    connection = CosmosConnection(emulator.endpoint, "bench", key=emulator.key, charged=charged)
    store = CosmosStore(connection, [EntityContainer(entity.name, entity.container, entity.paths, companions=False)])
    transport = StorageQueueTransport(storage.connection_string)
    publisher = Publisher({leader_board.name: Address(transport, leader_board.name)})
    driver = (_Bare if kind == "bare" else AsyncDriver)(store, publisher, runtime)
    retrying = Retrying(Backoff(), runtime.random)
    lanes = Lanes(driver, retrying, runtime.clock, LATER)
    ref = entity.ref(f"game-{kind}")
    runner = Runner(entity, ref, ROUTES)

    async def send(number: int) -> None:
        data = Json.of({"game_id": ref.id, "position": number % 100})
        shot = Envelope("bench", f"shot-{number}", "shooting-range.fire-at", data, runtime.clock.now())
        await lanes.process(Assignment(ref, entity.strategy, runner, runner.absent, runner.evolve), shot)

    try:
        yield send
    finally:
        lanes.abandon()
        await connection.close()
        await transport.close()
        tracers.shutdown()
        meters.shutdown()


if __name__ == "__main__":
    sys.exit(main())
