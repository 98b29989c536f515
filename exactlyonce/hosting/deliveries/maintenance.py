"""Maintenance: runs the protocols' steps on single entities, apart from processing messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from exactlyonce.drivers.driver import AsyncDriver, Retrying
from exactlyonce.drivers.runtime import Deadline
from exactlyonce.effects.attempt import Again, Finished, Memory, Work
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.errors import ConfigurationError, InvalidMessage, TryAgainLater
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.resequencer.gaps import read_request
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.protocols.stream.replay import Missing, Replayed, replay, versions_of
from exactlyonce.records.ledger import read_entity
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.lifetimes import Lifetimes

Result = TypeVar("Result")
State = TypeVar("State")


@dataclass(frozen=True)
class Maintenance:
    """Runs the steps of protocols.

    Attributes:
        lifetimes: the application's present lifetimes of messages.
        senders: the application's entity types.
    """

    driver: AsyncDriver
    retrying: Retrying
    routes: Routes
    lifetimes: Callable[[], Lifetimes] = Lifetimes
    senders: frozenset[str] = frozenset()

    async def run(
        self,
        ref: EntityRef,
        attempt: Callable[[Memory], Step[Result | Again]],
        memory: Memory | None = None,
        deadline: Deadline | None = None,
    ) -> Result:
        """Make attempts until one finishes. Raises as `Retrying.process` does.

        Args:
            ref: the entity.
            attempt: begins an attempt.
            memory: the memory of the first attempt.
            deadline: the limit for all attempts; None to start the usual limit now.
        """
        return await self.driver.process(self.retrying, ref, attempt, memory or Memory(), deadline=deadline)

    async def read(self, ref: EntityRef, effect: Any) -> Any:
        """The reply to an effect that reads documents of an entity. Raises `TryAgainLater` without an answer."""
        reply = await self.driver.run(self.retrying.insist(iter(effect)))
        if isinstance(reply, NoAnswer):
            raise TryAgainLater(f"Entity {ref} could not be read.")
        return reply

    async def state(self, entity: Entity[State], ref: EntityRef) -> State | None:
        """The state of an entity in some replica. Raises as `ExactlyOnce.read` does."""
        loaded = await self.read(ref, LoadEntity(ref))
        body = read_entity(ref, loaded.document).body
        state: State | None = None if body is None else entity.shape.read(ref, body)
        return state

    def work(self, entity: Entity[Any], ref: EntityRef, *messages: Envelope) -> Work:
        """Messages for an entity, with its handler."""
        try:
            lifetimes = self.lifetimes()
        except TryAgainLater:  # Before the start messages are only settled, and no commit depends on a lifetime.
            lifetimes = Lifetimes()
        return Runner(entity, ref, self.routes).work(lifetimes, self.driver.now(), self.senders, messages)

    async def tend(self, entity: Entity[Any], ref: EntityRef) -> Finished:
        """Handle the gaps of a read model, and release messages without a gap.

        Raises:
            ConfigurationError: the entity is not a resequenced read model.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError: a document cannot be trusted.
        """
        strategy = entity.strategy
        if not isinstance(strategy, Resequencer):
            raise ConfigurationError(f"{entity} is not a resequenced read model, so it has no gaps to handle.")
        work = self.work(entity, ref)
        return await self.run(ref, lambda memory: strategy.tend(work, memory))

    async def answer(self, entity: Entity[Any], request: Envelope) -> int:
        """Answer a replay request: send the missing messages of a read model again; return the number of messages.

        Raises:
            ConfigurationError: the entity keeps no stream.
            InvalidMessage: the message is not a replay request, or names an entity of another type, or numbers that the stream
                does not have.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError, NonDeterministicHandler: the stream does not give the same outputs again.
        """
        source, missing = read_request(request)
        _require_stream(entity)
        ref = entity.ref_of_source(source)
        versions = await self.run(ref, lambda memory: versions_of(ref, missing, memory))
        if versions is None:
            raise InvalidMessage(
                f"Message {key_of(request)} asks for numbers {missing.first} to {missing.last} that entity {ref} sent in "
                f"channel {missing.channel}, but its stream has none of them. Has clean-up taken them, or "
                "was it restored from a backup? Then rebuild the read model."
            )
        return await self.replay(entity, ref, versions, missing)

    async def replay(
        self, entity: Entity[Any], ref: EntityRef, versions: tuple[int, int], missing: Missing | None = None
    ) -> int:
        """Send outputs of a range of versions again, all or the missing; return their number. Raises as `answer` does."""
        _require_stream(entity)
        work, sent = self.work(entity, ref), 0
        following: int | None = versions[0]
        memory = Memory()
        while following is not None:
            part = await self._part(work, (following, versions[1]), memory, missing)
            sent, following, memory = sent + part.sent, part.following, part.memory
        return sent

    async def _part(self, work: Work, versions: tuple[int, int], memory: Memory, missing: Missing | None) -> Replayed:
        return await self.run(work.entity, lambda memory: replay(work, versions, memory, missing), memory)


def _require_stream(entity: Entity[Any]) -> None:
    if not isinstance(entity.strategy, VersionStream):
        raise ConfigurationError(
            f"{entity} keeps no version stream, so it cannot replay its outputs. Give it strategy=VersionStream()."
        )
