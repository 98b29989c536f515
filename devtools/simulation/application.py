"""What is deployed in an episode: the entity types, and the protocols that run on them."""

from __future__ import annotations

from dataclasses import dataclass

from devtools.simulation.protocols import Protocols
from devtools.simulation.workload import Count, routes, tallies
from exactlyonce import Entity, Envelope
from exactlyonce.handling.attempts import Work
from exactlyonce.handling.running import Runner
from exactlyonce.identity import EntityRef


@dataclass(frozen=True)
class Application:
    """What is the same in all processes.

    Attributes:
        protocols: the generators under test.
        boards: the read models, with their strategy. The tallies are the same in each episode, but for theirs.
    """

    protocols: Protocols
    boards: Entity[Count]

    def work(self, entity: EntityRef, *messages: Envelope) -> Work:
        """Messages for an entity, with its handler."""
        runner = Runner(self.boards if self.is_board(entity) else tallies, entity, routes)
        return Work(entity, messages, runner, runner.absent)

    def is_board(self, entity: EntityRef) -> bool:
        """Whether an entity is a board."""
        return entity.type == self.boards.name
