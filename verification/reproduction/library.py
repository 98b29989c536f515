"""The outbox and its chores: records, staged outputs and parked messages lie in the library's container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from exactlyonce.attempt import Again, Finished, Memory
from exactlyonce.effects.effect import Effect, Step
from exactlyonce.effects.entity import Loaded
from exactlyonce.effects.library import FindChannels, Found, FoundChannels, FoundStaged, LoadStaged
from exactlyonce.errors import ForgottenChannel
from exactlyonce.records.library import ChannelDocument
from verification.explorers.trace import Event
from verification.reproduction.correspondence import Correspondence, library_log
from verification.reproduction.families import Deeds, Task
from verification.reproduction.library_holdings import holding_differences, library_documents
from verification.reproduction.library_judge import fallen
from verification.reproduction.reality import Documents, Reality
from verification.world.scenario import AT, Scenario
from verification.world.store import Library, Store, entity_number, entity_ref, position_of
from verification.world.tasks import Start
from verification.world.workers import Workers


def _asked_first(effect: Effect[Any] | None) -> int:
    """The number of the entity that a chore asks for first."""
    return entity_number(effect.entity)  # type: ignore[union-attr]  # Every chore begins with a request about one.


class LibraryRecords:
    """Plays scenarios of the outbox.

    Args:
        scenario: what is played.

    Attributes:
        names: what stands for what.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._workers = Workers(scenario)
        self.names = Correspondence()

    def task(self, event: Event, before: Store, documents: Documents) -> Task:
        """What a process begins with a step."""
        assert event.task is not None  # noqa: S101
        messages = tuple(int(key.rpartition("/m")[2]) for key in event.messages)
        entity = self.scenario.target(messages[0]) if event.task == "attempt" else _asked_first(event.effect)
        library = before.libraries[entity].now
        staged = sorted(id.removeprefix("staged:") for id in library if id.startswith("staged:"))
        candidates = tuple(self.names.transaction(tx) for tx in staged) if event.task == "clean" else ()
        found = library_documents(documents, entity, "processed")
        records = tuple((key, found[key]["_etag"]) for key in event.messages) if event.task == "forget" else ()
        return Task(event.task, entity, messages, candidates, records)

    def step(self, task: Task, memory: Memory) -> Step[Any]:
        """The production generator that does a task."""
        if task.name == "forget":
            step: Step[Any] = self.scenario.strategy.clean(entity_ref(task.entity), task.records, memory)
            return step
        return self._workers.step(Start(task.name, task.entity, task.messages, memory, task.candidates))

    def following(self, task: Task, result: Any) -> Task | None:
        """The same again, if it has to be; or what was refused for good is settled at once."""
        failed = result.failed if isinstance(result, Finished) else ()
        for key, error in failed:
            if isinstance(error, ForgottenChannel):
                return Task("settle", task.entity, (int(key.rpartition("/m")[2]),))
        return task if isinstance(result, Again) else None

    def time(self, task: Task, loaded: Loaded) -> datetime:
        """Time never moves."""
        del task, loaded
        return AT

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        """The position in the model's log that a read saw; None for the newest."""
        match event.reply:
            case Loaded() | Found():
                return position_of(event.reply.token)
            case FoundStaged():
                assert isinstance(event.effect, LoadStaged)  # noqa: S101
                library, wanted = before.libraries[entity], event.effect.transactions
                found = {document.tx for document in event.reply.documents}
                for position in range(library.end, position_of(event.effect.token) - 1, -1):
                    view = library.view(position)
                    if {tx for tx in wanted if f"staged:{tx}" in view} == found:
                        return position
                raise LookupError(f"no view of the model's log has what {event} found")
            case FoundChannels():
                return self._position_of_channels(event, entity, before.libraries[entity])
            case _:
                return None

    def _position_of_channels(self, event: Event, entity: int, library: Library) -> int:
        """The newest view that shows these documents. Which batch they came in does not matter, so one between two will do."""
        effect, reply = event.effect, event.reply
        assert isinstance(effect, FindChannels)  # noqa: S101
        assert isinstance(reply, FoundChannels)  # noqa: S101
        for position in range(library.end, position_of(effect.token) - 1, -1):
            view = library.view(position).values()
            documents = {one for one in view if isinstance(one, ChannelDocument) and effect.asks_for(one)}
            if documents == {*reply.documents} and not self.names.is_torn(library_log(entity), position):
                return position
        raise LookupError(f"no view of the model's log has what {event} found")

    def etags(self, store: Store) -> Iterator[tuple[str, str]]:
        """Id and ETag of the entities."""
        for number, entity in enumerate(store.entities):
            if entity.truth.etag is not None:
                yield entity_ref(number).id, entity.truth.etag

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        """Where reality holds something else than the model."""
        sweeps = not self.scenario.budget.cleanings
        return holding_differences(reality, documents, store, self.names, sweeps=sweeps)

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        """The names of the properties that do not hold in reality."""
        return fallen(reality, self.scenario, {done for one in deeds for done in one.acknowledged})
