"""Worlds in which time passes: messages are judged by their age, and records go with it.

No copy has an end here: each may arrive at any time, however late, as one does that waited in queues, was owed, parked and sent
again, or given up and returned. So the world needs no hops to be as late as any chain of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Final

from exactlyonce.effects.attempt import Finished
from exactlyonce.effects.companions import FoundCompanions
from exactlyonce.effects.effect import Begun, Opened
from exactlyonce.errors import DatabaseRestored, MessageError
from exactlyonce.records.companions import ColocatedRecord
from exactlyonce.values.envelope import message_hash, milliseconds
from exactlyonce.values.lifetimes import AHEAD
from verification.explorers.explorer import PASSES, Explorer
from verification.explorers.moves import Move, State
from verification.world.answers import World
from verification.world.companions import aged
from verification.world.scenario import AT, TICK, Ages, Scenario, Start
from verification.world.store import Store, StoredPage
from verification.world.workers import Worker, Workers

REFUSED: Final = "a copy was too old to be judged"
GONE: Final = "the newest page was gone, and the present was behind"
KNOWN: Final = "a duplicate was too old to be handled again"


class AgedExplorer(Explorer):
    """Explores a scenario with a clock."""

    def __init__(
        self, scenario: Scenario, *, merge: bool = True, world: World | None = None, workers: Workers | None = None
    ) -> None:
        super().__init__(scenario, merge=merge, world=world, workers=workers)
        assert scenario.ages is not None  # noqa: S101
        self._ages: Ages = scenario.ages

    def _left_undone(self, store: Store) -> str | None:
        """As elsewhere; but a message that nobody may judge any more may be unprocessed, or still be owed for."""
        ticks = range(store.now + 1) if self.scenario.companions else (store.now,)
        old = (key for number, key in enumerate(self.keys) if any(self._is_old(number, tick) for tick in ticks))
        committed = {key for key, _ in store.committed}
        given_up = frozenset(key for key in old if key not in committed or self._is_left(key, store))
        if self.scenario.companions:
            return self.judge.left_undone(store, given_up)
        return self.judge.first_lost((key for key in self.keys if key not in given_up), store)

    def _is_old(self, number: int, now: int) -> bool:
        """Whether a message is too old to be judged, at a tick."""
        age: timedelta = (now - self._ages.times[number]) * TICK
        return age > self._ages.oldest_judged(now)

    def _tasks(
        self, worker: Worker, state: State, others: tuple[Worker, ...]
    ) -> Iterator[tuple[Worker, tuple[int, ...], tuple[int, ...]]]:
        """As elsewhere, for messages that there are; with any present that a process may be given."""
        for begun, queue, left in super()._tasks(worker, state, others):
            start = begun.situation.start if begun.situation is not None else None
            if start is None or start.task != "attempt":
                yield begun, queue, left
            elif all(self._ages.times[number] * TICK - AHEAD <= state[0].now * TICK for number in start.messages):
                for behind, heard in product(range(self._ages.behind + 1), self._ages.heard(state[0].now)):
                    tick = self._tick(state[0])
                    aged = self.workers.attempt(worker, start.messages, behind, heard=heard, tick=tick)
                    yield aged, queue, left

    def _tick(self, store: Store) -> int:
        """The present, where it matters by which retention an attempt drops marks."""
        depends = self._ages.before is not None or self._ages.arriving
        return store.now if depends and not self.scenario.companions else 0

    def _retention(self, entity: int, state: State, *, busy: bool) -> Iterator[Start]:  # noqa: ARG002
        store = state[0]
        for heard in self._ages.heard(store.now):
            cleaning = self._cleaning(entity, store, heard=heard)
            if cleaning is not None:
                yield cleaning

    def _cleaning(self, entity: int, store: Store, *, heard: bool) -> Start | None:
        """The run that deletes what is old, if it has heard of the last change of the retention or not; None for nothing."""
        cleaned = self._cleaned(store, heard=heard)
        if self.scenario.companions:
            listed = aged(store.partition, cleaned, store.now)
            return Start("clean", entity, candidates=listed, heard=heard) if listed else None
        pages = (item for id, item in sorted(store.libraries[entity].now.items()) if id.startswith("page:"))
        present = milliseconds(AT + store.now * TICK - cleaned)
        old = [part for page in pages if page.page.until <= present for part in (str(page.page.number), page.etag)]
        return Start("clean pages", entity, candidates=tuple(old), heard=heard) if old else None

    def _cleaned(self, store: Store, *, heard: bool) -> timedelta:
        if self._ages.cleaned is not None:
            return self._ages.cleaned * TICK
        return self._ages.known(heard=heard).retention.kept(AT + store.now * TICK)

    def _happenings(self, state: State) -> Iterator[Move]:
        """What happens without a worker: time passes, too."""
        yield from super()._happenings(state)
        store, *rest = state
        if store.now < self._ages.last and not self._waits_for_news(state) and not self._waits_for_ends(state):
            later = self.world.stores.changed(store, now=store.now + 1)
            yield Move((later, *rest), False, None, -1, None, PASSES)  # type: ignore[arg-type]

    def _waits_for_news(self, state: State) -> bool:
        """Whether somebody is at work who has not heard of a change, and would have by the next tick."""
        store, _, workers, _, _ = state
        late = any(worker.situation is not None and not worker.situation.start.heard for worker in workers)
        return late and False not in self._ages.heard(store.now + 1)

    def _waits_for_ends(self, state: State) -> bool:
        """Whether an attempt has begun, or a write is under way, that will be over by the next tick."""
        _, _, workers, delayed, _ = state
        return self._ages.prompt and (bool(delayed) or any(map(_has_begun, workers)))

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        """As elsewhere; a delivery of a message that was refused is put aside."""
        situation = worker.situation
        result = None if situation is None else situation.result
        refused = {key for key, _ in result.failed} if isinstance(result, Finished) else set()
        if not refused:
            return super()._settled(worker, store, violation)
        assert isinstance(result, Finished)  # noqa: S101
        self.witnessed.add(REFUSED)
        for key, error in result.failed:
            violation = violation or self._wrong_refusal(worker, key, error, store)
        following = self.workers.following(worker)
        taken = [self.keys[place % len(self.keys)] for place in worker.held]
        return following, violation or self.judge.first_lost((key for key in taken if key not in refused), store), True

    def _wrong_refusal(self, worker: Worker, key: str, error: Exception, store: Store) -> str | None:
        if _knows(worker, key):
            self.witnessed.add(KNOWN)
        if isinstance(error, DatabaseRestored) and self._ages.behind and not _has_newest_page(store):
            self.witnessed.add(GONE)
            return None
        if not isinstance(error, MessageError):
            return f"raised {type(error).__name__}: {error}"
        if not self._ages.arriving and not self._is_old(self.keys.index(key), store.now):
            return f"no_failure: {key} is refused, though it can be judged"
        done = not any(key == item for item, _ in store.committed) or self._is_left(key, store)
        return None if done else self.judge.lost(key, store)

    def _is_left(self, key: str, store: Store) -> bool:
        """Whether others publish what a message sent: its settler, the sweeper, or the operator who learns of its duplicate."""
        if self.scenario.companions and self.scenario.protocol == "stream":
            return True
        companions = (item for item, _ in store.partition.now.values())
        if any(
            isinstance(companion, ColocatedRecord) and companion.message == key and companion.owed is not None
            for companion in companions
        ):
            return True
        return any(entry.cause == message_hash(key) for entry in store.entities[0].ledger.outbox)


def _has_newest_page(store: Store) -> bool:
    ledger, pages = store.entities[0].ledger, store.libraries[0].now.values()
    present = store.now * int(TICK.total_seconds())
    return any(
        isinstance(page, StoredPage) and page.page.number == ledger.cut and (page.expires or 0) > present
        for page in pages
    )


def _knows(worker: Worker, key: str) -> bool:
    replies = () if worker.situation is None else worker.situation.replies
    looks = (item for reply in replies if isinstance(reply, tuple) for item in reply)
    found = (item for look in looks if isinstance(look, FoundCompanions) for item, _ in look.companions)
    return any(item.message == key for item in found)


def _has_begun(worker: Worker) -> bool:
    return worker.situation is not None and any(isinstance(reply, Begun | Opened) for reply in worker.situation.replies)
