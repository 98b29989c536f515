"""What a protocol of one partition costs where nothing goes wrong, or hardly anything.

Every effect gets the first answer that the world has: the one without trouble. Counting is how the checker sees a mutant that
only wastes: it asks for more than what ships.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FoundCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import Begin, Begun, Effect, Step, Together
from exactlyonce.effects.entity import Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.protocols.stream.replay import Replayed
from exactlyonce.records.companions import ColocatedRecord, companion_document
from exactlyonce.records.library import Opened, transaction
from exactlyonce.values.frozen_json import Json
from verification.world.answers import STALE, World
from verification.world.companions_handler import HAS_WAITED, UNADOPTED, keys_of
from verification.world.replays import was_sent
from verification.world.retention import lists
from verification.world.scenario import AT, UNLIMITED, Scenario
from verification.world.store import Version
from verification.world.tasks import ANSWER, EVERYTHING, NUDGE, Start
from verification.world.workers import Workers

ENDLESS: Final = 100
NAMES: Final = ("effects", "rounds", "transactions", "read", "written", "bytes", "published", "left", "owing")
"""What is counted. Read, asked for or found, and written are companions."""


def costs(scenario: Scenario, *, lagging: bool) -> tuple[int, ...]:
    """What it costs to take the messages of a scenario in their order and the other way round, with a crash and without.

    Args:
        scenario: whose messages, protocol and chores these are.
        lagging: reads are as old as their tokens allow, but one version at most. It shows what tokens save.
    """
    counted: Counter[str] = Counter()
    stale = UNLIMITED if lagging else 0
    quiet = replace(scenario, budget=replace(scenario.budget, stale=stale))
    for backwards in (False, True):
        for crashes in (False, True):
            counted += _Quiet(quiet, lagging=lagging).played(backwards=backwards, crashes=crashes)
    counted += _Quiet(quiet, lagging=lagging).given_up()
    counted += _Quiet(quiet, lagging=lagging).half_done()
    return tuple(counted[name] for name in NAMES)


class _Quiet:
    """One partition and one process; nobody else is there."""

    def __init__(self, scenario: Scenario, *, lagging: bool) -> None:
        self._scenario = scenario
        self._lagging = lagging
        self._world = World(scenario)
        self._workers = Workers(scenario)
        self._store = self._world.stores.empty(1, libraries=False)
        if scenario.adopted:
            adopted = self._world.stores.entity(1, (Version(UNADOPTED, "1"),))
            self._store = self._world.stores.with_entity(self._store, 0, adopted)
        self._memory = Memory()
        self._task = ""
        self._closed: set[str] = set()
        self.counted: Counter[str] = Counter()

    def played(self, *, backwards: bool, crashes: bool) -> Counter[str]:
        """What it costs to take all messages, and to do all chores, twice."""
        messages = [number for number, item in enumerate(self._scenario.messages) for _ in range(max(item.copies, 1))]
        messages = messages[::-1] if backwards else messages
        while messages:
            group, messages = tuple(messages[: self._scenario.group]), messages[self._scenario.group :]
            if crashes:
                self._stopped_after_commit(Start("attempt", 0, group))
            self._done(Start("attempt", 0, group))
            for _ in (1, 2):
                for chore in self._chores(messages):
                    self._done(chore)
        return self._left()

    def given_up(self) -> Counter[str]:
        """What it costs to do all chores where no message was ever taken."""
        for chore in self._chores([]):
            self._done(chore)
        return self._left()

    def half_done(self) -> Counter[str]:
        """What it costs to do all chores where every attempt came as far as its commit, and no further."""
        numbers = list(range(len(self._scenario.messages)))
        for number in numbers:
            self._stopped_after_commit(Start("attempt", 0, (number,)))
            for chore in self._chores(numbers[number + 1 :]):
                self._done(chore)
        return self._left()

    def _left(self) -> Counter[str]:
        documents = [item for item, _ in self._store.partition.now.values()]
        self.counted["left"] += len(documents)
        self.counted["owing"] += sum(
            isinstance(document, ColocatedRecord) and document.owed is not None for document in documents
        )
        return self.counted

    def _chores(self, coming: list[int]) -> Iterator[Start]:
        """Every chore of the scenario, while these messages are still to come."""
        budget = self._scenario.budget
        if budget.sweeps:
            yield Start("sweep", 0)
        if budget.poisoned:  # What has come.
            gone = (number for number in range(len(self._scenario.messages)) if number not in coming)
            yield from (Start("settle", 0, (number,)) for number in gone)
        if budget.nudges:
            yield Start(NUDGE, 0)
        if budget.replays and self._scenario.missing is None:
            yield Start("replay", 0, candidates=EVERYTHING)
        elif budget.replays and was_sent(self._scenario, self._store):
            yield Start(ANSWER, 0)
        if budget.forgotten:
            past = frozenset(key for number, key in enumerate(keys_of(self._scenario.messages)) if number not in coming)
            listed = tuple(lists(self._store.partition, past, busy=False))
            yield from (Start("clean", 0, candidates=candidates) for candidates in listed)

    def _done(self, start: Start) -> None:
        """A task as often as it takes."""
        for _ in range(ENDLESS):
            result = self._run(start)
            self._memory = getattr(result, "memory", self._memory)
            if isinstance(result, Replayed) and result.following is not None:
                start = replace(start, candidates=(str(result.following), start.candidates[1]))
            elif start.task == ANSWER and isinstance(result, tuple):
                start = Start("replay", 0, candidates=tuple(map(str, result)))
            elif not isinstance(result, Again):
                return
        raise RecursionError(f"Not finished after {ENDLESS} runs")

    def _run(self, start: Start) -> Any:
        step = self._begun(start)
        try:
            effect = next(step)
            for _ in range(ENDLESS):
                effect = step.send(self._reply(effect))
        except StopIteration as end:
            return end.value
        raise RecursionError(f"A run that asks more than {ENDLESS} times; the last time for {effect}")

    def _stopped_after_commit(self, start: Start) -> None:
        """A process of its own does this and is gone right after its first batch."""
        step = self._begun(replace(start, memory=Memory()))
        try:
            effect = next(step)
            while not isinstance(effect, SaveBatch):
                effect = step.send(self._reply(effect))
            self._reply(effect)
        except StopIteration:
            return
        step.close()

    def _begun(self, start: Start) -> Step[Any]:
        self._task = start.task
        return self._workers.step(start if start.memory != Memory() else replace(start, memory=self._memory))

    def _reply(self, effect: Effect[Any]) -> Any:
        self.counted["rounds"] += 1
        if isinstance(effect, Together):
            return (self._answer(effect.first), self._answer(effect.second))
        return self._answer(effect)

    def _answer(self, effect: Effect[Any]) -> Any:
        self._count(effect)
        drawn = self.counted["transactions"]
        match effect:
            case Begin():
                return Begun(self._at(), tuple(f"t{number}" for number in range(drawn - effect.count, drawn)))
            case OpenNumbers():
                numbers = range(drawn - effect.count + 1, drawn + 1)
                return Opened(self._at(), tuple(transaction("b", number) for number in numbers))
            case FindPaid():
                return self._closed.intersection(effect.transactions)
            case CloseNumbers():
                self._closed.update(effect.transactions)
                return None
            case _:
                return self._answer_of_the_world(effect)

    def _at(self) -> datetime:
        waited = self._scenario.ordered and self._task == NUDGE
        return (HAS_WAITED if waited else AT) + timedelta(seconds=self._store.partition.newest)

    def _answer_of_the_world(self, effect: Effect[Any]) -> Any:
        answers = self._world.answers(effect, self._store)
        answer = next(answers)
        if self._lagging:
            older = next(answers, answer)
            answer = older if type(older.reply) is type(answer.reply) and older.cost == STALE else answer
        if answer.violation is not None:
            raise AssertionError(answer.violation)
        self._store = answer.store
        if isinstance(answer.reply, FoundCompanions):
            self.counted["read"] += len(answer.reply.companions)
        return answer.reply

    def _count(self, effect: Effect[Any]) -> None:
        """Add up what is asked."""
        counted = self.counted
        counted["effects"] += 1
        match effect:
            case Begin() | OpenNumbers():
                counted["transactions"] += effect.count
            case Publish():
                counted["published"] += len(effect.outputs)
            case LoadCompanions():
                counted["read"] += len(effect.ids)
            case FindEntries():
                counted["read"] += sum(last - first + 1 for first, last in effect.ranges)
            case SaveBatch():
                written = (*effect.create, *(item for item, _ in effect.replace))
                counted["bytes"] += effect.document.size
                counted["bytes"] += sum(Json.of(companion_document(effect.entity, item)).size for item in written)
                counted["written"] += len(written)
            case SaveEntity():
                counted["bytes"] += effect.document.size
            case ReplaceCompanions() | DeleteCompanions():
                counted["written"] += len(effect.companions)
            case _:
                pass
