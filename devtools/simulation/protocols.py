"""What is simulated: the shipped protocols, or with one of them exchanged for a broken twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from devtools.simulation.wire import SendingWire
from devtools.simulation.workload import RELAYED, TOLD, destinations, tallies
from exactlyonce import Colocated, Envelope, Outbox, VersionStream
from exactlyonce.effects import Step
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Memory, Strategy, Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.running import Runner
from exactlyonce.identity import EntityRef
from exactlyonce.records import Protocol
from exactlyonce.strategies import colocated
from exactlyonce.strategies.retention import Cleaned, clean_processed, clean_staged
from exactlyonce.strategies.settling import requeue, settle, sweep
from exactlyonce.strategies.settling_beside import settle_beside

_ROUTES: Final = Routes.to(destinations, dict.fromkeys((TOLD, RELAYED), SendingWire.max_bytes))


@dataclass(frozen=True, slots=True)
class Protocols:
    """The generators under test, by what they are for; each as it is in `exactlyonce.strategies`.

    Attributes:
        beside: strategies of processes that keep their records beside the entity; without any there are outboxes.
    """

    outbox: type[Outbox] = Outbox
    sweep: Callable[..., Step[Any]] = sweep
    settle: Callable[..., Step[Any]] = settle
    requeue: Callable[..., Step[Any]] = requeue
    clean_staged: Callable[..., Step[Any]] = clean_staged
    forget: Callable[..., Step[Any]] = clean_processed
    beside: tuple[Strategy, ...] = ()


def _settling_beside(protocol: Protocol) -> Callable[..., Step[Any]]:
    def settle(entity: EntityRef, envelope: Envelope, reason: str, absent: Json, memory: Memory) -> Step[Any]:
        work = Work(entity, (envelope,), Runner(tallies, entity, _ROUTES), absent)
        return settle_beside(protocol, work, reason, memory)

    return settle


def _nothing_owed(_entity: EntityRef, _memory: Memory) -> Step[None]:
    yield from ()


def _nothing_staged(_entity: EntityRef, _candidates: tuple[str, ...], _absent: Json, memory: Memory) -> Step[Any]:
    yield from ()
    return Cleaned((), memory)


SHIPPED: Final = Protocols()
COLOCATED: Final = Protocols(
    sweep=colocated.sweep,
    settle=_settling_beside("colocated"),
    clean_staged=_nothing_staged,
    beside=(Colocated(),),
)
STREAM: Final = Protocols(
    sweep=_nothing_owed,
    settle=_settling_beside("stream"),
    clean_staged=_nothing_staged,
    beside=tuple(VersionStream(snapshot_every) for snapshot_every in (1, 3, 20)),
)


def shipped(seed: int) -> Protocols:
    """The protocols of an episode: every other one is of outboxes."""
    return {1: COLOCATED, 3: STREAM}.get(seed % 4, SHIPPED)
