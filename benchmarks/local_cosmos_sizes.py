"""How the local Cosmos DB bears many items: `python -m benchmarks.local_cosmos_sizes`.

Each size has a process of its own with an emulator that nobody talks to over HTTP. It measures the memory of an item and the
CPU time of writes and of first pages, after the page that made the index; a second process measures the memory with the
history. Both are compared with what parsed items took. Writes `results/local_cosmos_sizes.json` and the table of
`packages/local-cosmos/README.md`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.report import ROOT, exit_code, machine, parsed, parser, write_result, write_section
from benchmarks.tables import source, table
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.requests import OperationKind, Reply, Request
from local_cosmos.values import serialise

SIZES: Final = (10_000, 100_000, 1_000_000)
_FILLER: Final = "x" * 800
"""Makes an item about 1 KB."""

_PAGES: Final = 5
_WRITES: Final = 2_000
MOST_MILLISECONDS: Final = 10.0
"""For a page that an index finds, however many items there are."""

PARSED_BYTES: Final = {"bytes an item": 3_701, "bytes an item, with history": 4_144}
"""What the same writes took (20,000 items) while items and their history were kept parsed."""
MOST_SHARE: Final = 0.5
"""Of that, which text may take."""

BY_INDEX: Final = {
    "one item by id": "SELECT * FROM c WHERE c.id = 'd7'",
    "20 items by a property": "SELECT * FROM c WHERE c.player = 'player-7'",
    "51 items by a range": "SELECT * FROM c WHERE c.score BETWEEN 100 AND 150",
    "the best ten": "SELECT TOP 10 * FROM c ORDER BY c.score DESC",
    "first page of all": "SELECT * FROM c",
}
NEW: Final = "what is new in the change feed"
"""The page after one write, of a feed that was read to its end."""
BY_SCAN: Final = {
    "how many there are": "SELECT VALUE COUNT(1) FROM c",
    "the sum of a property": "SELECT VALUE SUM(c.score) FROM c",
}


_BENCHMARK: Final = "local_cosmos_sizes"
_PAGE: Final = ROOT / "packages" / "local-cosmos" / "README.md"
_ROWS: Final = {
    "bytes an item": "bytes of memory for an item",
    "bytes an item, with indexes": "the same, with the indexes of these queries",
    "bytes an item, with history": "the same, with the history of writes instead",
    "us a create": "µs: a create",
    "us a replace, with indexes": "µs: a replace, with the indexes",
    **{f"ms, {name}": f"ms: {name}" for name in (*BY_INDEX, NEW, *BY_SCAN)},
    "ms, one item by id, the first time": "ms: the first query of a path, which makes its index",
}


def main() -> int:
    """Measure, print and write the result; fail for each page by an index that takes too long."""
    made = parser(_BENCHMARK, __doc__, page=_PAGE)
    made.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of items; default: %(default)s")
    options = parsed(made, _BENCHMARK)
    result: dict[str, Any] = {"machine": machine()}
    for size in options.sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            figures = process.submit(_measured, size).result()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            result[f"{size:,} items"] = figures | process.submit(_measured_with_history, size).result()
    write_result(options.output, result)
    write_section(options.page, _BENCHMARK, sizes_table(result))
    print(json.dumps(result, indent=2))
    return exit_code(
        complaint for size in options.sizes for complaint in _complaints(f"{size:,} items", result[f"{size:,} items"])
    )


def sizes_table(result: Mapping[str, Any]) -> str:
    """What items take and how long pages take, by the number of items."""
    sizes = [name for name in result if name.endswith(" items")]
    rows = ((row, *(_figure(result[size][name]) for size in sizes)) for name, row in _ROWS.items())
    load = f"The load of the machine was {result['machine']['load_before']} before.\n"
    return table(("CPU time and memory with items of 1 KB", *sizes), rows) + source(result, _BENCHMARK) + load


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"  # noqa: PLR2004  # Three digits say enough.


def _complaints(items: str, figures: dict[str, float]) -> Iterator[str]:
    for name in (*BY_INDEX, NEW):
        if (taken := figures[f"ms, {name}"]) > MOST_MILLISECONDS:
            yield f"A page of {name!r} takes {taken} ms with {items}; at most {MOST_MILLISECONDS} are wanted."
    for name, before in PARSED_BYTES.items():
        if figures[name] > MOST_SHARE * before:
            yield f"{figures[name]} {name} of {items}; at most {MOST_SHARE} of {before} are wanted."


class _Filled:
    """An emulator with so many items, in a process of its own.

    Args:
        size: Number of items.
        observed: Whether the emulator keeps its history and its log of requests.

    Attributes:
        create_us: CPU time of a create, in microseconds.
    """

    def __init__(self, size: int, *, observed: bool) -> None:
        self._size = size
        self._emulator = Emulator(AccountSettings(), Clock(), time.monotonic, observed=observed)
        self.ask("create_database", {"id": "bench"})
        self.ask(
            "create_container", {"id": "items", "partitionKey": {"paths": ["/game"], "kind": "Hash", "version": 2}}
        )
        self._before = _resident()
        self.create_us = round(_cpu_seconds(partial(self.write, size)) / size * 1e6)

    def ask(self, operation: OperationKind, content: object, key: str | None = None) -> Reply:
        request = Request(operation, "bench", "items", body=serialise(content), partition_key=key, cross_partition=True)
        reply = self._emulator.serve(request, 0.0).reply
        if reply.status not in (200, 201):
            raise RuntimeError(f"{operation} is answered {reply.status}: {reply.body[:300]!r}")
        return reply

    def changes(self, after: str | None) -> Reply:
        """A page of the change feed."""
        return self._emulator.serve(
            Request("change_feed", "bench", "items", if_none_match=after, latest_versions=True, range_id="0"), 0.0
        ).reply

    def write(self, numbers: int) -> None:
        for number in range(numbers):
            self.ask("upsert", _item(number, self._size), f'["game-{number % (self._size // 10)}"]')

    def bytes_an_item(self) -> int:
        return (_resident() - self._before) // self._size


def _measured(size: int) -> dict[str, float]:
    filled = _Filled(size, observed=False)
    figures: dict[str, float] = {"bytes an item": filled.bytes_an_item(), "us a create": filled.create_us}
    for name, query in (BY_INDEX | BY_SCAN).items():
        page = partial(filled.ask, "query", {"query": query})
        figures[f"ms, {name}, the first time"] = round(_cpu_seconds(page) * 1e3, 1)
        figures[f"ms, {name}"] = round(median(_cpu_seconds(page) for _ in range(_PAGES)) * 1e3, 2)
    figures["bytes an item, with indexes"] = filled.bytes_an_item()
    figures |= _of_the_feed(filled)
    spent = _cpu_seconds(partial(filled.write, _WRITES))
    figures["us a replace, with indexes"] = round(spent / _WRITES * 1e6)
    return figures


def _of_the_feed(filled: _Filled) -> dict[str, float]:
    """The page of a change feed after one write; the page before it found where the feed ends."""
    end = filled.changes("*").etag
    taken = []
    for _ in range(_PAGES):
        filled.write(1)
        before = time.process_time()
        end = filled.changes(end).etag
        taken.append(time.process_time() - before)
    return {f"ms, {NEW}": round(median(taken) * 1e3, 2)}


def _measured_with_history(size: int) -> dict[str, float]:
    return {"bytes an item, with history": _Filled(size, observed=True).bytes_an_item()}


def _item(number: int, size: int) -> dict[str, Any]:
    return {
        "id": f"d{number}",
        "game": f"game-{number % (size // 10)}",
        "player": f"player-{number % (size // 20)}",
        "score": number * 7919 % size,
        "filler": _FILLER,
    }


def _cpu_seconds(act: Callable[[], object]) -> float:
    before = time.process_time()
    act()
    return time.process_time() - before


def _resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
