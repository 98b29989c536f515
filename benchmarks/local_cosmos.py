"""The speed of the local Cosmos DB against the one from npm: `python -m benchmarks.local_cosmos`.

The servers run at the same time with the same documents; each workload goes from one to the next, and the order is turned
round every time. The result holds the median of the rounds and all of them. The queries take the other server minutes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import gettempdir
from typing import Any, Final

from benchmarks.report import exit_code, machine, parser, write_result
from benchmarks.servers import Server, ours, vercel
from benchmarks.workloads import CLIENTS, DOCUMENTS, QUERIES, Load

POINT_OPERATIONS: Final = {"point read": 1_600, "conditional write": 1_200}
MOST_CPU: Final = {"point read": 350, "conditional write": 500}
"""Microseconds of the server's CPU time that an operation may take, with connections kept."""

QUERY_OPERATIONS: Final = dict.fromkeys(QUERIES, CLIENTS)
"""Per round and server, by workload."""


def main() -> int:
    """Measure, print and write the result."""
    made = parser("local_cosmos", __doc__, page=None)
    made.add_argument(
        "--rounds", type=int, default=7, help="per workload and server; queries have one; default: %(default)s"
    )
    npm = Path(gettempdir()) / "cosmosdb-server"
    made.add_argument("--npm", type=Path, default=npm, help="where npm installs; default: %(default)s")
    options = made.parse_args()
    result: dict[str, Any] = {
        "machine": machine(),
        "unit": "operations per second",
        "clients": CLIENTS,
        "documents": DOCUMENTS,
    }
    with ExitStack() as stack:
        kept = stack.enter_context(vercel(options.npm, kept_alive=True))
        servers = [
            stack.enter_context(ours(tls=True)),
            stack.enter_context(vercel(options.npm, kept_alive=False)),
            kept,
        ]
        result["over https"] = asyncio.run(_compare(servers, POINT_OPERATIONS, CLIENTS, options.rounds))
    with ours(tls=True) as own, vercel(options.npm, kept_alive=True) as other:
        result["over https, with all documents"] = asyncio.run(_compare([own, other], QUERY_OPERATIONS, DOCUMENTS, 1))
    with ours(tls=False) as server:
        result["over plain http"] = asyncio.run(_compare([server], POINT_OPERATIONS, CLIENTS, options.rounds))
    write_result(options.output, result)
    print(json.dumps(result, indent=2))
    return exit_code(
        f"A {workload} takes {taken} us of the server's CPU time; at most {most} are wanted."
        for workload, most in MOST_CPU.items()
        if (taken := result["over https"][workload]["ours"]["us of CPU"]) > most
    )


async def _compare(
    servers: list[Server], workloads: Mapping[str, int], documents: int, rounds: int
) -> dict[str, dict[str, Any]]:
    """Operations per second of each workload on each server, and the server's CPU time for an operation."""
    loads = [Load(server) for server in servers]
    for load in loads:
        await load.prepare(documents)
    result = {}
    for workload, operations in workloads.items():
        speeds: dict[str, list[float]] = {server.name: [] for server in servers}
        spent: dict[str, list[float]] = {server.name: [] for server in servers}
        for number in range(rounds):
            for load in loads if number % 2 else reversed(loads):
                before = load.server.cpu_seconds()
                speeds[load.server.name].append(await load.measure(workload, operations))
                spent[load.server.name].append((load.server.cpu_seconds() - before) / operations * 1e6)
        result[workload] = {
            name: {**_summary(measured), "us of CPU": round(median(spent[name]), 1)}
            for name, measured in speeds.items()
        }
        print(workload, result[workload], file=sys.stderr, flush=True)
    for load in loads:
        load.close()
    return result


def _summary(speeds: list[float]) -> dict[str, Any]:
    return {"median": round(median(speeds), 2), "rounds": [round(speed, 2) for speed in speeds]}


if __name__ == "__main__":
    sys.exit(main())
