"""What is simulated: the shipped protocols, or with one of them exchanged for a broken twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce import Colocated, Entity, Envelope, Outbox, Resequencer, VersionStream
from exactlyonce.drivers.book import Books
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.effects.attempt import Strategy, Work
from exactlyonce.effects.effect import Step
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Settler
from exactlyonce.hosting.upkeep.sweeper import Sweeper
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.stream.replay import replay, versions_of
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.lifetimes import Lifetimes
from verification.simulation.workload import RELAYED, SHOWN, Count
from verification.twins.modules import outbox


def kept(lifetimes: Lifetimes, now: datetime) -> timedelta:
    """Age from which clean-up deletes records of messages."""
    return lifetimes.retention.kept(now)


@dataclass(frozen=True, slots=True)
class Protocols:
    """The generators under test, by what they are for; each as it is in `exactlyonce.protocols`.

    Attributes:
        strategies: of the tallies; one of them for each process, as settings change.
        settling: strategy by which the settler decides, in place of a protocol's own.
        heals: whether nothing may be parked that only its environment failed.
        kept: age from which clean-up deletes records of messages.
    """

    protocol: str = "outbox"
    strategies: tuple[Strategy, ...] = (Outbox(),)
    events: bool = False
    settling: Mapping[str, type[Strategy]] = field(default_factory=dict)
    store: type[MemoryStore] = MemoryStore
    books: type[Books] = Books
    lanes: type[Lanes] = Lanes
    receiver: type[Receiver] = Receiver
    giving_up: type[Settler] = Settler
    sweeper: type[Sweeper] = Sweeper
    heals: bool = True
    kept: Callable[[Lifetimes, datetime], timedelta] = kept
    clean_staged: Callable[..., Step[Any]] = clean_staged
    resequencer: type[Resequencer] = Resequencer
    versions_of: Callable[..., Step[Any]] = versions_of
    replay: Callable[..., Step[Any]] = replay


SNAPSHOTS: Final = (1, 3, 20)
"""How far apart whole states are: another number for each process, as settings change."""
SHIPPED: Final = Protocols()
COLOCATED: Final = Protocols("colocated", (Colocated(),))
STREAM: Final = Protocols("stream", tuple(map(VersionStream, SNAPSHOTS)))
EVENTS: Final = replace(STREAM, events=True)
FEW_MARKS: Final = Protocols(strategies=tuple(outbox(marks, 1 << 14) for marks in (1, 3)))
"""The outbox whose marks leave the ledger at once: another number stays for each process."""


def shipped(seed: int) -> Protocols:
    """The protocols of an episode: every other one is of outboxes."""
    return {1: COLOCATED, 3: STREAM, 4: FEW_MARKS, 5: COLOCATED, 7: EVENTS}.get(seed % 8, SHIPPED)


@dataclass(frozen=True)
class Application:
    """What is the same in all processes.

    Attributes:
        tallies: the others, whose strategy each process exchanges for its own.
        fails: whether the handler ever raises for the message of this name, even if it stops later.
    """

    protocols: Protocols
    boards: Entity[Count]
    tallies: Entity[Count]
    routes: Routes
    fails: Callable[[str], bool]

    def work(self, entity: EntityRef, *messages: Envelope) -> Work:
        runner = Runner(self.type_of(entity), entity, self.routes)
        return Work(entity, messages, runner, runner.absent, runner.evolve, release=runner.release)

    def shipped(self, type: Entity[Any]) -> Entity[Any]:
        """An entity type with the library's own strategy in place of a twin of it: hosting asks for its class."""
        strategies = {"outbox": Outbox, "colocated": Colocated, "stream": VersionStream, "resequencer": Resequencer}
        protocol = "resequencer" if type.name == self.boards.name else self.protocols.protocol
        ours = self.protocols.settling.get(protocol, strategies[protocol])
        return type if isinstance(type.strategy, ours) else type.using(ours())

    def type_of(self, entity: EntityRef) -> Entity[Any]:
        return self.boards if self.is_board(entity) else self.tallies

    def queue_of(self, entity: EntityRef) -> str:
        return SHOWN if self.is_board(entity) else RELAYED

    def is_board(self, entity: EntityRef) -> bool:
        return entity.type == self.boards.name
