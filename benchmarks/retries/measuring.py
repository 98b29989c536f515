"""What a client sees of a product that is killed again and again, and what the product did."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.peers.port import NotInstalledError
from benchmarks.retries.client import Answer, Client, keys
from benchmarks.retries.port import Product, Serving

EXPIRING: Final = 100
"""Keys that are to expire: so many that the first of them have left the ledger."""
PATIENCE_SECONDS: Final = 1_800
"""How long it may take until a key has expired."""
_LOOK_AGAIN_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Work:
    """How much of it.

    Attributes:
        requests: how many different ones.
        kills: how often a process is killed meanwhile, all in turn.
        entities: how many; the requests are spread over them.
        in_flight: how many requests are sent at a time.
    """

    requests: int = 1_000
    kills: int = 10
    entities: int = 20
    in_flight: int = 8


async def measure(product: Product, work: Work) -> dict[str, Any]:
    """What a product did and answered; `missing` says why where nothing is known."""
    try:
        versions = dict(product.versions())
        with TemporaryDirectory(prefix="retries-") as folder:
            async with product.open(Path(folder)) as serving:
                return {"versions": versions, **await _measured(serving, work)}
    except NotInstalledError as error:
        return {"missing": str(error)}
    except Exception as error:
        # One that fails must not cost the figures of the others. What it says may be long, and name this machine.
        traceback.print_exc()
        return {"missing": f"It failed ({type(error).__name__})."}


async def _measured(serving: Serving, work: Work) -> dict[str, Any]:
    random = Random(work.requests)
    async with Client(lambda: serving.doors, random) as client:
        names = keys(work.requests, time.time(), random)
        paths = {key: serving.path.format(entity=f"e-{item % work.entities}") for item, key in enumerate(names)}
        began = time.perf_counter()
        await _asked_while_killed(client, serving, paths, work)
        seconds = time.perf_counter() - began
        effects = await serving.effects()
        other = await client.answered(paths[names[0]], names[0], amount=2)
        return {
            "seconds": round(seconds, 1),
            "lost answers": client.lost,
            "unanswered": client.unanswered,
            "effects of a key": _spread(effects[key] for key in names),
            "answers of a key": _spread(len(client.answers[key]) for key in names),
            "another body": _told(other, client.answers[names[0]]),
            "expired": await _expired(client, serving, random),
        }


async def _asked_while_killed(client: Client, serving: Serving, paths: Mapping[str, str], work: Work) -> None:
    """Ask everything. A process is killed each time that a further part of all keys has been answered."""
    waiting, done, more = iter(paths.items()), 0, asyncio.Event()

    async def ask() -> None:
        nonlocal done
        for key, path in waiting:
            await client.ask(path, key)
            done += 1
            more.set()

    async def kill() -> None:
        for number in range(work.kills):
            while done < (number + 1) * work.requests // (work.kills + 1):
                more.clear()
                await more.wait()
            await serving.restart(number % serving.processes)

    tasks = [asyncio.create_task(item) for item in (kill(), *(ask() for _ in range(work.in_flight)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _expired(client: Client, serving: Serving, random: Random) -> dict[str, dict[str, Any]]:
    """What a repeated request is answered when its key has expired, and how many effects it has then."""
    firsts: dict[str, tuple[str, str, Answer]] = {}
    for number, (known, template) in enumerate(serving.expiring.items()):
        path = template.format(entity=f"expiring-{number}")
        dated = template == serving.path  # A door for any key would know the time of a dated one, too.
        names = (
            keys(EXPIRING, time.time(), random) if dated else [f"{random.getrandbits(128):x}" for _ in range(EXPIRING)]
        )
        answers = [await client.answered(path, key) for key in names]
        firsts[known] = (path, names[0], answers[0])
    await serving.expire()
    again = {known: await _answered_anew(client, *first) for known, first in firsts.items()}
    effects = await serving.effects()
    return {
        known: {"answer": _told(again[known], {answer}), "effects": effects[key]}
        for known, (_, key, answer) in firsts.items()
    }


async def _answered_anew(client: Client, path: str, key: str, first: Answer) -> Answer:
    """The answer to a request that is repeated until it is another one, or for some time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    answer = await client.answered(path, key)
    while answer == first and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        answer = await client.answered(path, key)
    return answer


def _spread(numbers: Iterator[int] | Sequence[int]) -> dict[str, int]:
    """How many keys have each number."""
    return {str(number): times for number, times in sorted(Counter(numbers).items())}


def _told(answer: Answer, before: Collection[Answer]) -> str:
    """An answer in words."""
    if answer in before:
        return "the same answer"
    if answer.status < 300:  # noqa: PLR2004
        return "another answer"
    return f"{answer.status} {json.loads(answer.body).get('title', '')}".strip()
