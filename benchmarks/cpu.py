"""How much CPU time the library itself takes for a message: `python -m benchmarks.cpu`.

The engine is measured alone: a strategy's generator, with a world in memory that answers its effects. The library is measured
as a whole: shots of the sample's games, one at a time, through driver, lanes, strategy and handler, over a store and a queue
in memory, whose own time is taken out; and once more through the Cosmos SDK on the local Cosmos DB. Only the time of the
thread that does it counts, so neither other programs nor waiting do. Rounds of all kinds take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.cpu_engine import Engine, Load
from benchmarks.cpu_library import over_memory, peak, spend_in_memory, spend_with_cosmos
from benchmarks.cpu_profile import Profile
from benchmarks.machine import machine
from benchmarks.pages import require_place, write_cpu
from demo.stack import create_containers
from local_cosmos.inprocess import running_emulator

RESULT: Final = Path(__file__).with_name("results") / "cpu.json"
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
LOADS: Final = (Load(16, 1), Load(16, 0), Load(1, 1), Load(1, 0))
"""Full groups, as on an entity that many messages come for at a time, and one message at a time."""
TOGETHER: Final = 16 * 20
"""Messages of a round: whole windows, of all games."""

MOST: Final = 0.5
"""Milliseconds of CPU time that the library and a small handler may take for a message, apart from I/O."""
LEAST: Final = 20_000
"""Messages per second of the engine without I/O, in full groups with an output each."""


def main() -> int:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    parser.add_argument("--page", type=Path, default=PAGE, help="default: %(default)s")
    options = parser.parse_args()
    require_place(options.page, "cpu")
    result = {"machine": machine(), **measure(options.rounds)}
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    write_cpu(options.page, result)
    print(json.dumps(result, indent=2))
    missed = list(missed_targets(result))
    for told in missed:
        print(told, file=sys.stderr)
    return 1 if missed else 0


def measure(rounds: int) -> dict[str, Any]:
    """Medians over rounds, and how far the middle half of them is spread. It takes about a second and a half per round."""
    engines = {load.name: Engine(load) for load in LOADS}
    spent: dict[str, list[tuple[float, int]]] = {name: [] for name in engines}
    library: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        # The order is turned round every time, so that what grows with a round meets all alike.
        for name in engines if number % 2 else reversed(engines):
            gc.collect()
            spent[name].append(engines[name].spend(TOGETHER))
        gc.collect()
        library.append(asyncio.run(spend_in_memory(TOGETHER)))
    with running_emulator() as emulator:
        create_containers(emulator, "bench")
        cosmos = asyncio.run(spend_with_cosmos(emulator, TOGETHER // 4, rounds))
    return {
        "rounds": rounds,
        "messages": TOGETHER,
        "unit": "library, SDK: milliseconds of CPU time per message; engine: per second of it; peak: bytes",
        "engine": {name: _rates(measured[1:]) for name, measured in spent.items()},  # The first round is to warm up.
        "library": {
            "all": _milliseconds([everything for everything, _ in library[1:]]),
            "store and queue": _milliseconds([others for _, others in library[1:]]),
            "own": _milliseconds([everything - others for everything, others in library[1:]]),
        },
        "with the Cosmos SDK": _milliseconds(cosmos, TOGETHER // 4),
        "peak": asyncio.run(peak(TOGETHER)),
        "profile": _profiled(rounds),
    }


def missed_targets(result: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each target that the result misses."""
    own = result["library"]["own"]["median"]
    if own >= MOST:
        yield f"The library takes {own} ms of CPU time per message; it should be less than {MOST} ms."
    name = LOADS[0].name
    engine = result["engine"][name]["messages"]["median"]
    if engine <= LEAST:
        yield f"The engine processes {engine:,.0f} messages per second ({name}); it should be more than {LEAST:,}."


def _profiled(rounds: int) -> dict[str, float]:
    profile = Profile()
    with profile.watching():
        for _ in range(rounds):
            asyncio.run(over_memory(TOGETHER))
    return profile.shares()


def _rates(measured: Sequence[tuple[float, int]]) -> dict[str, Any]:
    return {
        "messages": _told([TOGETHER / seconds for seconds, _ in measured], 0),
        "effects": _told([effects / seconds for seconds, effects in measured], 0),
    }


def _milliseconds(seconds: Sequence[float], messages: int = TOGETHER) -> dict[str, Any]:
    return _told([one / messages * 1000 for one in seconds], 4)


def _told(values: Sequence[float], digits: int) -> dict[str, Any]:
    lower, median, upper = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return {"median": round(median, digits), "middle half": [round(lower, digits), round(upper, digits)]}


if __name__ == "__main__":
    sys.exit(main())
