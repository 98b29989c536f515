"""What the answer to a request costs by its size: `python -m benchmarks.answers`.

Requests for one busy entity, one by one, on the local Cosmos DB, without trouble. Everything is counted and nothing is timed.
Writes the result, and a table of docs/http.md.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from benchmarks.accounting import RoundTrips, Till
from benchmarks.application import running
from benchmarks.contenders import Contender
from benchmarks.cost import Scene
from benchmarks.report import ROOT, exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.tables import source, table
from demo.stack import create_containers
from exactlyonce import Colocated, Context, Entity, Envelope, Outbox, VersionStream, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import running_emulator

KIB: Final = 1024
SIZES: Final = (0, 1, 16)
"""Of an answer, in KiB."""
REQUESTS: Final = 64
"""That are counted; as many come before."""
STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Outbox()": Outbox(),
    "Colocated()": Colocated(),
    "VersionStream()": VersionStream(),
}
MOST_BYTES: Final = 36 * KIB
"""That a request with an answer of 16 KiB may write: the document, and the page for which the answer leaves."""

Measured = dict[str, Any]


@message("bench.ask")
class Ask(BaseModel):
    """A request for an answer of a size."""

    game_id: str
    bytes: int


class Text(BaseModel):
    """An answer."""

    text: str


class Game(BaseModel):
    """How often it was asked."""

    asked: int = 0


def games(strategy: Strategy) -> Entity[Game]:
    """An entity type whose handler replies."""
    entity = Entity("game", state=Game, container="games", partition_key="/gameId", strategy=strategy)

    @entity.handles(Ask, key=lambda ask: ask.game_id)
    def answer(state: Game, ask: Ask, context: Context) -> Game:
        if ask.bytes:
            context.reply(Text(text="x" * (ask.bytes - len('{"text":""}'))))
        return Game(asked=state.asked + 1)

    return entity


def request(game: str, number: int, size: int) -> Envelope:
    """The message of a request."""
    data = Json.of({"game_id": game, "bytes": size * KIB})
    return Envelope("http", f"{game}-{number}", "bench.ask", data, asked="f")


async def answer_costs(strategy: Strategy, requests: int = REQUESTS) -> dict[str, Measured]:
    """Means per request, by the size of its answer; and what a retry costs, of the newest and of the oldest request."""
    found = {}
    with running_emulator() as emulator:
        create_containers(emulator, "bench")
        trips = RoundTrips()
        contender = Contender("answers", games(strategy))
        async with running(contender, emulator, "bench", trips) as application:
            scene = Scene(contender, application, Till(emulator, "bench"), trips)
            for size in SIZES:
                game = f"game-{size}"
                asked = [request(game, number, size) for number in range(2 * requests)]
                await scene.one_by_one(asked[:requests])
                found[f"{size} KiB"] = {
                    "first": await scene.one_by_one(asked[requests:]),
                    "retry of the newest": await scene.one_by_one(asked[-1:]),
                    "retry of the oldest": await scene.one_by_one(asked[:1]),
                }
    return found


def missed(strategies: Mapping[str, Mapping[str, Measured]]) -> Iterator[str]:
    """A sentence for each strategy that writes a large answer more often than it may."""
    for name, measured in strategies.items():
        written = measured["16 KiB"]["first"]["bytes written"]
        if written > MOST_BYTES:
            yield f"{name} writes {written} bytes for an answer of 16 KiB; at most {MOST_BYTES} are wanted."


def answers_table(result: Mapping[str, Any]) -> str:
    """One row for each strategy and size."""
    rows: list[Iterable[str]] = []
    for name, measured in result["strategies"].items():
        for size, costs in measured.items():
            first = costs["first"]
            retries = (f"{cost['requests']:.0f}, {cost['request units']:.1f}" for cost in list(costs.values())[1:])
            figures = f"{first['requests']:.2f}", f"{first['request units']:.1f}", f"{first['bytes written']:,}"
            rows.append((f"`{name}`", size, *figures, *retries))
    head = ("", "answer", "requests", "RU", "bytes written", "a retry of the newest: requests, RU", "of the oldest")
    return table(head, rows) + source(result, "answers")


def main() -> int:
    """Count, print and write everything; the exit code is 1 if a large answer is written too often."""
    options = parsed(parser("answers", __doc__, ROOT / "docs" / "http.md"), "answers")
    found = {name: asyncio.run(answer_costs(strategy)) for name, strategy in STRATEGIES.items()}
    result = {"machine": machine(), "unit": "means per request", "strategies": found}
    write_result(options.output, result)
    write_section(options.page, "answers", answers_table(result))
    return exit_code(missed(found))


if __name__ == "__main__":
    sys.exit(main())
