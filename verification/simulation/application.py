"""What is deployed in an episode: the entity types, and the protocols that run on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exactlyonce import Colocated, Entity, Envelope, Outbox, Resequencer, VersionStream
from exactlyonce.attempt import Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.values.envelope import EntityRef
from verification.simulation.protocols import Protocols
from verification.simulation.workload import RELAYED, SHOWN, Count


@dataclass(frozen=True)
class Application:
    """What is the same in all processes.

    Attributes:
        protocols: the generators under test.
        boards: the read models, with their strategy.
        tallies: the others, whose strategy each process exchanges for its own.
        routes: where messages go.
        fails: whether the handler ever raises for the message of this name, even if it stops later.
    """

    protocols: Protocols
    boards: Entity[Count]
    tallies: Entity[Count]
    routes: Routes
    fails: Callable[[str], bool]

    def work(self, entity: EntityRef, *messages: Envelope) -> Work:
        """Messages for an entity, with its handler."""
        runner = Runner(self.type_of(entity), entity, self.routes)
        return Work(entity, messages, runner, runner.absent, runner.evolve, release=runner.release)

    def shipped(self, type: Entity[Any]) -> Entity[Any]:
        """An entity type with the library's own strategy in place of a twin of it: hosting asks for its class."""
        strategies = {"outbox": Outbox, "colocated": Colocated, "stream": VersionStream, "resequencer": Resequencer}
        protocol = "resequencer" if type.name == self.boards.name else self.protocols.protocol
        ours = self.protocols.settling.get(protocol, strategies[protocol])
        return type if isinstance(type.strategy, ours) else type.using(ours())

    def type_of(self, entity: EntityRef) -> Entity[Any]:
        """The entity type of an entity."""
        return self.boards if self.is_board(entity) else self.tallies

    def queue_of(self, entity: EntityRef) -> str:
        """Where messages for an entity come from."""
        return SHOWN if self.is_board(entity) else RELAYED

    def is_board(self, entity: EntityRef) -> bool:
        """Whether an entity is a board."""
        return entity.type == self.boards.name
