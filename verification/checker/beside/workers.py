"""Workers that run the protocols of one partition."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from exactlyonce.attempt import Again, Finished, Work
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Begin, Begun, Step
from exactlyonce.effects.entity import Conflict, Loaded
from exactlyonce.errors import ExactlyOnceError, HandlerFailed, TryAgainLater
from exactlyonce.protocols.stream.replay import Replayed
from verification.checker.beside.business import ABSENT, AT, ENTITY, HAS_WAITED, envelope_of, evolve, handle, keys_of
from verification.checker.beside.cleaning import job
from verification.checker.beside.mending import ANSWER, missing_of
from verification.checker.beside.scenarios import BesideScenario
from verification.checker.handler import aged
from verification.checker.scenarios import TICK
from verification.checker.store import position_of
from verification.checker.workers import Start, Worker, Workers
from yieldcheck.situations import Situation

IN_VAIN: Final = SaveBatch(ENTITY, ABSENT, "outdated")
"""A save whose condition holds no longer, and never will again."""
STUMBLE, NUDGE = "stumble", "nudge"
EVERYTHING: Final = ("1", str(2**31))
"""First and last version of all that a stream has ever sent, and more."""
COMES_BACK = (TryAgainLater, HandlerFailed)
"""What a delivery may fail with without harm: it comes back."""


class BesideWorkers(Workers):
    """Makes workers and moves them on."""

    def __init__(self, scenario: BesideScenario, *, merge: bool = True) -> None:
        super().__init__(scenario, merge=merge)
        self._world = scenario
        self._keys = keys_of(scenario.messages)
        self._vain: dict[Worker, Worker] = {}
        self._emptied: dict[Any, Situation[Start]] = {}
        self._drafted: dict[Situation[Start] | None, Situation[Start]] = {}

    def stumbling(self, worker: Worker, held: tuple[int, ...], raising: tuple[str, ...]) -> Worker:
        """An idle worker takes deliveries, and for as long as it has them the handlers of some raise."""
        start = Start(STUMBLE, 0, held, worker.memories[0], raising)
        return self._begun(start, worker.memories, held)

    def following(self, worker: Worker) -> Worker:
        """What a worker does after the end of its run. A delivery that failed comes back to it at once, or is given back."""
        assert worker.situation is not None  # noqa: S101
        result = worker.situation.result
        if isinstance(result, Replayed):
            if result.following is None:
                return self.idle(worker.memories)
            _, *last = worker.situation.start.candidates
            return self.chore(worker, replace(worker.situation.start, candidates=(str(result.following), *last)))
        if worker.situation.start.task == ANSWER and isinstance(result, tuple):
            return self.chore(worker, Start("replay", 0, candidates=tuple(map(str, result))))
        following = super().following(worker)
        again = self.failed(worker, COMES_BACK)
        if following.situation is not None or not again:
            return following
        held = tuple(place for place in worker.held if self._keys[place] in again)
        if not held:  # What failed was given back while it was tried.
            return following
        return self._begun(Start("attempt", 0, held, following.memories[0]), following.memories, held)

    def failed(self, worker: Worker, kinds: tuple[type[ExactlyOnceError], ...]) -> tuple[str, ...]:
        """Keys of the messages that failed with errors of these kinds in a run that is over."""
        assert worker.situation is not None  # noqa: S101
        result = worker.situation.result
        failed = result.failed if isinstance(result, Finished) else ()
        return tuple(key for key, error in failed if isinstance(error, kinds))

    def in_vain(self, worker: Worker) -> Worker:
        """A worker whose save has to fail, without what it drafted: all that do the same afterwards are one."""
        found = self._vain.get(worker)
        if found is None:
            found = self._vain[worker] = self._without_draft(worker)
        return found

    def _without_draft(self, worker: Worker) -> Worker:
        situation = worker.situation
        assert situation is not None  # noqa: S101
        ends = [self._situations.after(situation, reply).result for reply in (Conflict(None), UNKNOWN)]
        if not all(isinstance(end, Again) for end in ends):
            return worker  # A broken twin, which does something else than to start over.
        afterwards = tuple(self._kept(end.memory) for end in ends)
        key = (situation.start, afterwards)
        if key not in self._emptied:
            named = frozenset().union(*(memory.published for memory in afterwards))
            self._emptied[key] = Situation(situation.start, (Begun(AT, tuple(sorted(named))),), IN_VAIN, None)
            self._drafted[self._emptied[key]] = situation
        return self._worker(self._emptied[key], None, worker.memories, worker.held)

    def told(self, worker: Worker, reply: Any) -> Worker:
        """The worker after a reply to what it asks."""
        situation = self._drafted.get(worker.situation) if worker.asks is IN_VAIN else None
        if situation is None:
            return super().told(worker, reply)
        return self._worker(self._situations.after(situation, reply), None, worker.memories, worker.held)

    def named(self, worker: Worker, used: frozenset[str], now: int = 0) -> Worker:
        """The worker with fresh transaction ids, and with a time that tells on which version the attempt goes on.

        So a message that is handled again is given another time, and attempts that differ by nothing else are one.
        """
        asked, situation = worker.asks, worker.situation
        assert isinstance(asked, Begin)  # noqa: S101
        assert situation is not None  # noqa: S101
        position = _loaded_at(situation.replies)
        waited = self._world.ordered and situation.start.task == NUDGE
        ticks = max(now - situation.start.behind, 0)
        at = (HAS_WAITED if waited else AT) + timedelta(seconds=position) + ticks * TICK
        if self._world.apart:
            free = (f"t{number}" for number in range(len(used) + asked.count) if f"t{number}" not in used)
            fresh = tuple(next(free) for _ in range(asked.count))
        else:
            messages = "+".join(map(str, situation.start.messages))
            fresh = tuple(f"t{position}:{messages}.{one}" for one in range(asked.count))
        named = self.told(worker, Begun(at, self.given(worker, asked, fresh)))
        return self.named(named, used, now) if named.begins else named

    def _key(self, number: int) -> str:
        """The key of a message."""
        return self._keys[number]

    def step(self, start: Start) -> Step[Any]:
        """The run that starts so."""
        return self._run(start)

    def _run(self, start: Start) -> Step[Any]:
        scenario = self._world
        work = self._work(start)
        step: Step[Any]
        match start.task:
            case "mark":
                step = scenario.strategy.mark(ENTITY, start.memory)
            case "sweep":
                step = scenario.strategy.sweep(work, start.memory)
            case "nudge":
                step = scenario.strategy.tend(work, start.memory)
            case "replay":
                first, last = map(int, start.candidates)
                step = scenario.menders.replay(work, (first, last), start.memory, missing_of(scenario))
            case "answer":
                step = scenario.menders.versions_of(ENTITY, missing_of(scenario), start.memory)
            case "clean":
                step = job(scenario, start.candidates, start.memory)
            case "settle":
                step = scenario.strategy.settle(work, work.messages[0], "given up", start.memory)
            case _:
                step = scenario.strategy.attempt(work, start.memory)
        return step

    def _work(self, start: Start) -> Work:
        """The messages that a run is about, with the handler of the model."""
        scenario = self._world
        envelopes = tuple(envelope_of(number, scenario.messages[number]) for number in start.messages)
        raising = frozenset(start.candidates)
        handler = partial(
            handle,
            messages=scenario.messages,
            raising=raising,
            sourced=scenario.sourced,
            dates=scenario.ages is not None,
        )
        work = Work(ENTITY, envelopes, handler, ABSENT, evolve if scenario.sourced else None)
        ages = scenario.ages
        return work if ages is None else aged(work, start.messages, ages, heard=start.heard)


def _loaded_at(replies: tuple[Any, ...]) -> int:
    """The position at which a run has loaded the entity last."""
    looks = (reply[0] if isinstance(reply, tuple) else reply for reply in reversed(replies))
    return next((position_of(loaded.token) for loaded in looks if isinstance(loaded, Loaded)), 0)
