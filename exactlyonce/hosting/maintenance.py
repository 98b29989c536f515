"""Running the generators that look after entities beside the processing of messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from exactlyonce.attempt import Again, Memory, Work
from exactlyonce.drivers.async_driver import AsyncDriver
from exactlyonce.drivers.deadlines import Deadline
from exactlyonce.drivers.retry import Retrying
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.ledger import Protocol, read_entity
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef

Result = TypeVar("Result")
State = TypeVar("State")
_PROTOCOLS: Final[dict[type, Protocol]] = {
    Outbox: "outbox",
    Colocated: "colocated",
    VersionStream: "stream",
    Resequencer: "resequencer",
}


@dataclass(frozen=True)
class Chores:
    """What all of them need.

    Attributes:
        driver: performs what they ask for.
        retrying: what to do when one does not finish.
        routes: where handlers may send to.
    """

    driver: AsyncDriver
    retrying: Retrying
    routes: Routes

    async def run(
        self,
        ref: EntityRef,
        attempt: Callable[[Memory], Step[Result | Again]],
        memory: Memory | None = None,
        deadline: Deadline | None = None,
    ) -> Result:
        """Make attempts until one comes to something.

        Args:
            ref: the entity that they are made on.
            attempt: begins one.
            memory: for the first.
            deadline: when they have to have ended; None for that of something that begins now.

        Raises:
            As `Retrying.process` does.
        """
        return await self.driver.process(self.retrying, ref, attempt, memory or Memory(), deadline=deadline)

    async def state(self, entity: Entity[State], ref: EntityRef) -> State | None:
        """The state of an entity as some replica has it. Raises as `ExactlyOnce.read` does."""
        loaded = await self.driver.run(self.retrying.insist(iter(LoadEntity(ref))))
        if isinstance(loaded, NoAnswer):
            raise TryAgainLater(f"Entity {ref} could not be read.")
        body = read_entity(ref, loaded.document).body
        state: State | None = None if body is None else entity.shape.read(ref, body)
        return state

    def work(self, entity: Entity[Any], ref: EntityRef, *messages: Envelope) -> Work:
        """Messages for an entity, with its handler."""
        runner = Runner(entity, ref, self.routes)
        return Work(ref, messages, runner, runner.absent, runner.evolve)


def protocol_of(entity: Entity[Any]) -> Protocol:
    """The protocol of an entity type's strategy.

    Raises:
        ConfigurationError: the strategy is none of the library's.
    """
    protocol = _PROTOCOLS.get(type(entity.strategy))
    if protocol is None:
        raise ConfigurationError(
            f"{entity} has the strategy {type(entity.strategy).__name__}, which is none of the library's: how it is to be "
            "looked after is not known."
        )
    return protocol
