"""Records which functions and files one message enters on its way from the trigger to its acknowledgement.

The message is a shot of the sample. Store, transport and clock are adapters in memory; the rest is what runs in production.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, cast

import azure.functions as func

from exactlyonce import Envelope
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.effect import Awaited
from exactlyonce.handling.routes import Routes
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.world import InstantClock
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from handlers.leader_board import leader_board
from handlers.shooting_range import ranges

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDERS: Final = ("exactlyonce", "handlers")


class Call(NamedTuple):
    """A function of the library or of the sample that was entered.

    Attributes:
        path: its file, from the root.
        name: qualified, such as `Receiver.take`.
        callers: files of the functions that were waiting for it, the nearest first.
    """

    path: str
    name: str
    callers: tuple[str, ...]

    @property
    def is_property(self) -> bool:
        """Whether it is the attribute of an object rather than a step."""
        owner, _, name = self.name.rpartition(".")
        module = import_module(self.path.removesuffix(".py").replace("/", "."))
        return isinstance(getattr(getattr(module, owner, None), name, None), property)


async def record() -> list[Call]:
    """The calls of one message, each function once, in the order in which they are first entered."""
    clock = InstantClock()
    store, transport = MemoryStore(clock.now), MemoryTransport()
    shot = Json.of({"game_id": "g-1", "position": 7})
    sent = Envelope("http", "m-1", "shooting-range.fire-at", shot, time=clock.now())
    message = func.QueueMessage(id="1", body=sent.to_json().text.encode())
    calls: dict[CodeType, Call] = {}
    await _recorded(receiver(store, transport, clock).take(message, ranges, None), calls)
    return list(calls.values())


def receiver(store: MemoryStore, transport: MemoryTransport, clock: InstantClock) -> Receiver:
    """What takes deliveries in an application whose only destination is the leader board."""

    async def ready() -> None:
        pass

    publisher = Publisher({leader_board.name: Address(transport, leader_board.name)})
    driver, retrying = AsyncDriver(Awaited(store), publisher, Runtime(clock)), Retrying(Backoff(), Random(0))
    maintenance = Maintenance(driver, retrying, Routes.to((leader_board,), publisher.limits))
    lanes, nobody = Lanes(driver, retrying, clock), cast("PoisonSettler", None)  # Nothing is given up here.
    return Receiver(lanes, maintenance, ClaimChecks(None), Failures(), nobody, ready, ready, Lifetimes, clock.now)


async def _recorded(work: Awaitable[None], calls: dict[CodeType, Call]) -> None:
    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in calls and (path := _path(code)) and not code.co_name.startswith("<"):
            calls[code] = Call(path, code.co_qualname, tuple(_callers(frame)))

    sys.setprofile(note)
    try:
        await work
    finally:
        sys.setprofile(None)


def _callers(frame: FrameType) -> list[str]:
    found, caller = [], frame.f_back
    while caller is not None:
        found.append(_path(caller.f_code))
        caller = caller.f_back
    return [path for path in found if path]


def _path(code: CodeType) -> str:
    """The file of a function, from the root; empty outside of `FOLDERS`."""
    path = Path(code.co_filename)
    inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS
    return path.relative_to(ROOT).as_posix() if inside else ""
