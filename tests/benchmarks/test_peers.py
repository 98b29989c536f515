"""`benchmarks.peers` does the work that docs/peers.md describes, and a round that does not add up is void."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchmarks.peers import measuring
from benchmarks.peers.measuring import VoidError, compare, measure
from benchmarks.peers.ours import ours
from benchmarks.peers.port import Message, NotInstalledError, Peer, Running
from benchmarks.peers.workload import Workload

SMALL = Workload(messages=40, copies=10, entities=5, in_flight=4, warm_up=4)


class Counting:
    """A peer in memory, exact unless it is told to err."""

    def __init__(self, *, twice: str = "", lost: str = "") -> None:
        self.counters = 0
        self.sink: set[str] = set()
        self.twice, self.lost = twice, lost

    async def deliver(self, message: Message) -> None:
        if message.id not in self.sink or message.id == self.twice:
            self.counters += 1
        if message.id != self.lost:
            self.sink.add(message.id)

    async def sent(self) -> int:
        return len(self.sink)

    async def counted(self) -> int:
        return self.counters

    async def stored(self) -> int:
        return 100 * len(self.sink)


class Broken(Counting):
    """A peer whose store is gone."""

    async def deliver(self, message: Message) -> None:
        raise OSError(f"{message.id} could not be written.")


def peer(name: str, make: Callable[[], Running], opened: list[str]) -> Peer[Running]:
    @asynccontextmanager
    async def open_(folder: Path) -> AsyncIterator[Running]:
        opened.append(name)
        yield make()

    return Peer(name, lambda: {"part": "1.0"}, open_)


def test_every_copy_comes_after_its_message_and_half_of_them_soon() -> None:
    work = Workload()
    delivered = work.deliveries()
    assert delivered == work.deliveries()
    assert len(delivered) == 2_200
    assert len(set(delivered)) == 2_000
    assert len({item.entity for item in delivered}) == 200
    first: dict[Message, int] = {}
    distances = [place - first[item] for place, item in enumerate(delivered) if first.setdefault(item, place) != place]
    assert len(distances) == 200
    assert 100 <= sum(distance < work.in_flight for distance in distances) <= 120


async def test_a_message_that_counts_twice_makes_a_round_void() -> None:
    copied = next(delivery for delivery in SMALL.deliveries() if SMALL.deliveries().count(delivery) == 2)
    with pytest.raises(VoidError, match="44 messages were counted 45 times, and 44"):
        await measure(Counting(twice=copied.id), SMALL)


async def test_an_output_that_is_lost_makes_a_round_void(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "PATIENCE_SECONDS", 0)
    with pytest.raises(VoidError, match="43 of 44 messages were sent"):
        await measure(Counting(lost="m-7"), SMALL)


async def test_peers_take_turns_and_who_is_missing_or_errs_costs_nobody_else() -> None:
    opened: list[str] = []

    def missing() -> dict[str, str]:
        raise NotInstalledError("It is not there; install it.")

    absent: Peer[Running] = Peer("absent", missing, peer("absent", Counting, opened).open)
    used = Counting()
    present = {"one": Counting, "broken": Broken, "used": lambda: used, "other": Counting}
    result = await compare([absent, *(peer(name, make, opened) for name, make in present.items())], SMALL, 2)
    assert opened == [*present, *reversed(present)]
    assert result["absent"] == {"missing": "It is not there; install it."}
    assert len(result["one"]["rounds"]) == len(result["other"]["rounds"]) == 2
    assert result["one"]["figures"]["bytes per message"] == {"median": 100, "least": 100, "most": 100}
    assert result["broken"]["void"] == ["round 1: It failed (OSError).", "round 2: It failed (OSError)."]
    assert len(result["used"]["rounds"]) == 1
    assert result["used"]["void"] == ["round 2: It was not empty at first."]


@pytest.mark.acceptance
async def test_this_library_adds_up() -> None:
    result = await compare([ours(0)], SMALL, 1)
    (measured,) = result.values()
    assert measured["void"] == []
    assert measured["figures"]["bytes per message"]["median"] > 100
