"""Rounds: every peer in turn does the work from an empty start, and what it did has to add up."""

from __future__ import annotations

import asyncio
import statistics
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

from benchmarks.peers.port import NotInstalledError, Peer, Running
from benchmarks.peers.workload import Workload

PATIENCE_SECONDS: Final = 1_800
"""How long the sink may take to get the last outputs, after the last delivery was processed."""

_LOOK_AGAIN_SECONDS: Final = 0.01

Figures = Mapping[str, float]


class VoidError(Exception):
    """Counters and sink do not add up, so the round does not count. The text says how they differ."""


async def compare(peers: Sequence[Peer[Running]], workload: Workload, rounds: int) -> dict[str, Any]:
    """What each peer achieved, by name.

    A peer that is not installed has a sentence about it under `missing`. Others have `versions`, `figures` (median, least and
    most of each over the rounds that count), `rounds` (all that count) and `void` (sentences about those that do not).
    """
    result: dict[str, Any] = {peer.name: _entered(peer) for peer in peers}
    for number in range(rounds):
        # The order is turned round every time, so that what disturbs the machine meets all alike.
        for peer in peers if number % 2 == 0 else list(reversed(peers)):
            entry = result[peer.name]
            if "missing" in entry:
                continue
            try:
                entry["rounds"].append(await _in_an_empty_folder(peer, workload))
            except NotInstalledError as error:
                result[peer.name] = {"missing": str(error)}
            except VoidError as error:
                entry["void"].append(f"round {number + 1}: {error}")
            except Exception as error:
                # One that fails must not cost the figures of the others. What it says may be long, and name this machine.
                traceback.print_exc()
                entry["void"].append(f"round {number + 1}: It failed ({type(error).__name__}).")
            print(peer.name, result[peer.name], file=sys.stderr, flush=True)
    for entry in result.values():
        if entry.get("rounds"):
            entry["figures"] = _summary(entry["rounds"])
    return result


def _entered(peer: Peer[Running]) -> dict[str, Any]:
    try:
        return {"versions": dict(peer.versions()), "rounds": [], "void": []}
    except NotInstalledError as error:
        return {"missing": str(error)}


async def _in_an_empty_folder(peer: Peer[Running], workload: Workload) -> Figures:
    with TemporaryDirectory(prefix="peer-") as folder:
        async with peer.open(Path(folder)) as running:
            return await measure(running, workload)


async def measure(running: Running, workload: Workload) -> Figures:
    """One round of one peer: rates per second, milliseconds, bytes. Raises `VoidError`."""
    if await running.counted() or await running.sent():
        raise VoidError("It was not empty at first.")
    await workload.deliver(workload.warming(), running.deliver)
    await _sent(running, workload.warm_up)
    before = await running.stored()
    deliveries = workload.deliveries()
    began = perf_counter()
    seconds = await workload.deliver(deliveries, running.deliver)
    processed = perf_counter() - began
    total = workload.warm_up + workload.messages
    await _sent(running, total)
    finished = perf_counter() - began
    counted, sent = await running.counted(), await running.sent()
    if not counted == sent == total:
        raise VoidError(f"{total} messages were counted {counted} times, and {sent} of them were sent.")
    percentiles = statistics.quantiles(seconds, n=100, method="inclusive")
    return {
        "deliveries/s": round(len(deliveries) / processed, 1),
        "messages/s": round(workload.messages / finished, 1),
        "p50 ms": round(percentiles[49] * 1000, 2),
        "p99 ms": round(percentiles[98] * 1000, 2),
        "bytes per message": round((await running.stored() - before) / workload.messages),
    }


async def _sent(running: Running, expected: int) -> None:
    """Wait until the sink has so many."""
    deadline = perf_counter() + PATIENCE_SECONDS
    while (sent := await running.sent()) < expected:
        if perf_counter() > deadline:
            raise VoidError(f"{sent} of {expected} messages were sent after {PATIENCE_SECONDS} seconds.")
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def _summary(rounds: Sequence[Figures]) -> dict[str, dict[str, float]]:
    by_figure = {name: [item[name] for item in rounds] for name in rounds[0]}
    return {
        name: {"median": round(statistics.median(values), 2), "least": min(values), "most": max(values)}
        for name, values in by_figure.items()
    }
