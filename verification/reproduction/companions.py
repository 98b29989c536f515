"""Protocols whose records are companions, and their chores, as they are played in reality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from exactlyonce.attempt import Again, Finished
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded
from exactlyonce.protocols.stream.replay import Replayed
from verification.explorers.trace import Event
from verification.reproduction.companion_holdings import companion_differences
from verification.reproduction.companions_judge import fallen_companions
from verification.reproduction.correspondence import Correspondence, TornViewError
from verification.reproduction.families import Deeds, Versioned
from verification.reproduction.reality import ENTITIES, Documents, Reality, partition_text
from verification.world.answers import World
from verification.world.companions_handler import ENTITY, HAS_WAITED, keys_of
from verification.world.scenario import AT, Scenario
from verification.world.store import Entity, Store, Stores, position_of
from verification.world.tasks import ANSWER, NUDGE, Start
from verification.world.workers import COMES_BACK, Workers


class CompanionRecords:
    """Plays scenarios of one partition.

    Args:
        scenario: what is played.

    Attributes:
        names: what stands for what.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.names = Correspondence(outputs_name_tx=True, recurring=not scenario.apart)
        self._keys = keys_of(scenario.messages)
        self._world = World(scenario)
        self._workers = Workers(scenario)
        self._stores = Stores()

    def start(self, event: Event, documents: Documents) -> Start:
        """What a process begins with a step, with the names of reality."""
        start = event.start
        assert start is not None  # noqa: S101
        if start.task == "clean":
            etags = {id: document["_etag"] for (_, id), document in documents[ENTITIES.container].items()}
            ids = start.candidates[::2]
            return replace(start, candidates=tuple(part for id in ids for part in (id, etags[id])))
        return start

    def step(self, start: Start) -> Step[Any]:
        """The production generator that does a task."""
        return self._workers.step(start)

    def following(self, start: Start, result: Any) -> Start | None:
        """The same again; what is still to be sent again; or those deliveries that failed and come back."""
        match result:
            case Again():
                return start
            case Replayed(following=int(version)):
                return Start("replay", 0, candidates=(str(version), start.candidates[-1]))
            case (first, last) if start.task == ANSWER:
                return Start("replay", 0, candidates=(str(first), str(last)))
            case Finished():
                again = {key for key, error in result.failed if isinstance(error, COMES_BACK)}
                messages = tuple(number for number in start.messages if self._keys[number] in again)
                return Start("attempt", 0, messages) if messages else None
            case _:
                return None

    def time(self, start: Start, event: Event, store: Store) -> datetime | None:
        """It stands for the version the attempt loaded, so that a later attempt is given another."""
        del store
        if not isinstance(event.reply, Loaded):
            return None
        waited = self.scenario.ordered and start.task == NUDGE
        return (HAS_WAITED if waited else AT) + timedelta(seconds=position_of(event.reply.token))

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        """The position in the model's log that a read saw: the newest that shows this to a reader without an older view."""
        del entity
        if isinstance(event.reply, Loaded):
            return position_of(event.reply.token)
        partition = before.partition
        oldest = max(partition.first, position_of(getattr(event.effect, "token", None)))
        for position in range(partition.newest, oldest - 1, -1):
            alone = self._alone(partition, position, before)
            if next(self._world.answers(event.effect, alone)).reply == event.reply:  # type: ignore[arg-type]
                return position
        raise TornViewError(f"no view of the model's log has what {event} found")

    def versions(self, store: Store) -> Iterator[Versioned]:
        """The entity and its companions."""
        partition = store.partition
        etags = {id: etag for id, (_, etag) in partition.now.items()}
        if partition.truth.etag is not None:
            etags[ENTITY.id] = partition.truth.etag
        place = partition_text(ENTITY.id)
        yield from (Versioned(id, ENTITIES.container, (place, id), etag) for id, etag in etags.items())

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        """Where reality holds something else than the model."""
        return companion_differences(reality, documents, store, self.names)

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        """The names of the properties that do not hold in reality."""
        return fallen_companions(reality, self.scenario, deeds)

    def _alone(self, partition: Entity, position: int, store: Store) -> Store:
        """The store as if one version of the partition were the only one that can be read."""
        version = partition.versions[position - partition.first]
        return self._stores.with_entity(store, 0, self._stores.entity(position, (version,)))
