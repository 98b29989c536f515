"""Protocols whose records are companions, and their chores, as they are played in reality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from exactlyonce.attempt import Again, Finished, Memory
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded
from exactlyonce.protocols.stream.replay import Replayed
from verification.explorers.trace import Event
from verification.reproduction.companion_holdings import companion_differences
from verification.reproduction.companions_judge import fallen_companions
from verification.reproduction.correspondence import Correspondence
from verification.reproduction.families import Deeds, Task
from verification.reproduction.reality import ENTITIES, Documents, Reality
from verification.world.answers import World
from verification.world.companions_handler import ENTITY, HAS_WAITED, keys_of
from verification.world.scenario import AT, Scenario
from verification.world.store import Entity, Store, Stores, position_of
from verification.world.tasks import ANSWER, EVERYTHING, NUDGE, Start
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

    def task(self, event: Event, before: Store, documents: Documents) -> Task:
        """What a process begins with a step."""
        del before
        assert event.task is not None  # noqa: S101
        messages = tuple(map(self._keys.index, event.messages))
        candidates: tuple[str, ...] = ()
        match event.task, event.effect:
            case ("stumble", _):
                raising = (number for number in messages if self.scenario.messages[number].raises)
                candidates = tuple(dict.fromkeys(self._keys[number] for number in raising))
            case ("replay", _):
                candidates = EVERYTHING
            case ("clean", LoadCompanions(ids=ids)):
                etags = {id: document["_etag"] for (_, id), document in documents[ENTITIES.container].items()}
                candidates = tuple(part for id in ids for part in (id, etags[id]))
        return Task(event.task, 0, messages, candidates)

    def step(self, task: Task, memory: Memory) -> Step[Any]:
        """The production generator that does a task."""
        return self._workers.step(Start(task.name, task.entity, task.messages, memory, task.candidates))

    def following(self, task: Task, result: Any) -> Task | None:
        """The same again; what is still to be sent again; or those deliveries that failed and come back."""
        match result:
            case Again():
                return task
            case Replayed(following=int(version)):
                return Task("replay", 0, candidates=(str(version), task.candidates[-1]))
            case (first, last) if task.name == ANSWER:
                return Task("replay", 0, candidates=(str(first), str(last)))
            case Finished():
                again = {key for key, error in result.failed if isinstance(error, COMES_BACK)}
                messages = tuple(number for number in task.messages if self._keys[number] in again)
                return Task("attempt", 0, messages) if messages else None
            case _:
                return None

    def time(self, task: Task, loaded: Loaded) -> datetime:
        """It stands for the version the attempt loaded, so that a later attempt is given another."""
        waited = self.scenario.ordered and task.name == NUDGE
        return (HAS_WAITED if waited else AT) + timedelta(seconds=position_of(loaded.token))

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
        raise LookupError(f"no view of the model's log has what {event} found")

    def etags(self, store: Store) -> Iterator[tuple[str, str]]:
        """Id and ETag of the entity and of its companions."""
        partition = store.partition
        if partition.truth.etag is not None:
            yield ENTITY.id, partition.truth.etag
        yield from ((id, etag) for id, (_, etag) in partition.now.items())

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
