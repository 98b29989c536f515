"""Looking after read models and streams: what a timer, an operator or another entity asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exactlyonce.attempt import Finished, Memory, Work, key_of
from exactlyonce.errors import ConfigurationError, InvalidMessage
from exactlyonce.handling.entities import Entity
from exactlyonce.hosting.maintenance import Chores
from exactlyonce.protocols.resequencer.gaps import read_request, tend
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.protocols.stream.replay import Missing, Replayed, replay, versions_of
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import EntityRef


@dataclass(frozen=True)
class Mending(Chores):
    """Runs the generators that tend and replay."""

    async def tend(self, entity: Entity[Any], ref: EntityRef) -> Finished:
        """Do what is to be done about the gaps of a read model, and release what can be.

        Raises:
            ConfigurationError: it is no resequenced read model.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError: a document cannot be trusted.
        """
        strategy = entity.strategy
        if not isinstance(strategy, Resequencer):
            raise ConfigurationError(f"{entity} is no resequenced read model, so it has no gaps to look after.")
        work = self.work(entity, ref)
        return await self.run(ref, lambda memory: tend(strategy, work, memory))

    async def answer(self, entity: Entity[Any], request: Envelope) -> int:
        """Send again what a read model lacks; return how many messages that were.

        Raises:
            ConfigurationError: the entity keeps no stream.
            InvalidMessage: the request is none that `tend` sent, for an entity of another type, or for what was never sent.
            TryAgainLater: the store or a queue did not answer.
            StoredDataError, NonDeterministicHandler: the stream does not give what it gave before.
        """
        source, missing = read_request(request)
        _require_stream(entity)
        ref = entity.ref_of_source(source)
        versions = await self.run(ref, lambda memory: versions_of(ref, missing, memory))
        if versions is None:
            raise InvalidMessage(
                f"Message {key_of(request)} asks for numbers {missing.first} to {missing.last} that entity {ref} sent to "
                f"{missing.destination!r} for {missing.key!r}, but its stream has none of them. Has clean-up taken them, or "
                "was it restored from a backup? Then rebuild the read model."
            )
        return await self.replay(entity, ref, versions, missing)

    async def replay(
        self, entity: Entity[Any], ref: EntityRef, versions: tuple[int, int], missing: Missing | None = None
    ) -> int:
        """Send again what an entity sent in a range of its versions, or what of it is missing; return how many messages.

        Raises:
            As `answer` does.
        """
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
            f"{entity} keeps no version stream, so it cannot send again what it sent. Give it strategy=VersionStream()."
        )
