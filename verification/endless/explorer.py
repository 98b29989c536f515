"""The endless stream: messages keep coming, faults never run out, and yet the states are finitely many.

A finished message that will not come back is retired, and a new one takes its place. What distinguishes retired messages only
is forgotten, and the rest gets canonical names (`naming`). Why no behaviour is lost by that is argued in
docs/model-checking.md, and tested by comparing with bounded runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from exactlyonce.effects.effect import BEHIND
from exactlyonce.effects.entity import Loaded, LoadEntity
from exactlyonce.effects.library import WriteRecords
from exactlyonce.protocols.steps.save import with_ledger
from exactlyonce.records.library import ProcessedRecord
from exactlyonce.records.outputs import Output
from exactlyonce.values.frozen_json import Json
from verification.endless.names import Naming
from verification.endless.renaming import names_of
from verification.endless.scopes import LIVE
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.world.answers import STALE, World, judge_of
from verification.world.judge import Commit, Judge
from verification.world.mentions import Write
from verification.world.outbox_handler import content_of, key_of_number
from verification.world.outbox_judge import OutboxJudge
from verification.world.scenario import Scenario
from verification.world.store import NOW, Entity, Store, Stores, Version, ledger_of
from verification.world.workers import Workers
from verification.world.writes import Answer, Writes

FREE: Final = -1
"""What the queues say of a place in the stream where no message is."""


class EndlessExplorer(Explorer):
    """Explores a stream: `copies` of the scenario says how many copies of each message there may be at a time."""

    def __init__(self, scenario: Scenario) -> None:
        # A worker's name is made of its replies, so situations that differ by them stay apart.
        super().__init__(scenario, world=EndlessWorld(scenario), workers=Workers(scenario, merge=False))
        self._collects = False  # Naming does.
        self.naming = Naming(scenario, self.world.stores, self.workers)

    def start(self) -> State:
        """No message has come."""
        store, queue, *rest = super().start()
        return (store, (FREE,) * len(queue), *rest)  # type: ignore[return-value]

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state, each state by its canonical name."""
        for move in super().moves(state):
            yield move._replace(state=self.naming.canonical(move.state))

    def is_good_end(self, state: State) -> bool:
        """Every message that came is acknowledged, and nobody is at work."""
        _, queue, workers, _, _ = state
        return max(queue) <= 0 and all(worker.situation is None for worker in workers)

    def _happenings(self, state: State) -> Iterator[Move]:
        """A message comes, comes again, or will not come again."""
        store, queue, workers, delayed, left = state
        for number, copies in enumerate(queue):
            key = key_of_number(number)
            held = sum(worker.held.count(number) for worker in workers)
            if copies == FREE:
                if FREE not in queue[:number]:
                    yield self._happening(state, number, 1, f"{key} arrives")
                continue
            if copies + held < self.scenario.copies[number]:
                yield self._happening(state, number, copies + 1, f"A copy of {key} arrives")
            if not copies and not held and not any(("key", key) in names_of(write) for write in delayed):
                retired = (store, (*queue[:number], FREE, *queue[number + 1 :]), workers, delayed, left)
                yield Move(retired, False, None, -1, None, f"No copy of {key} will arrive any more")

    def _happening(self, state: State, number: int, copies: int, said: str) -> Move:
        store, queue, workers, delayed, left = state
        after = (store, (*queue[:number], copies, *queue[number + 1 :]), workers, delayed, left)
        return Move(after, True, None, -1, None, said)


class EndlessJudge(OutboxJudge):
    """A judge for whom retired messages are past: their outputs are what was committed and published."""

    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        """The violation in publishing these outputs."""
        return super().outputs(tuple(output for output in outputs if LIVE in content_of(output)[0]), store)


class EndlessWorld(World):
    """A world in which retired messages are past, and only the newest version of the entity has an ETag of its own."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario, EndlessJudge(scenario, judge_of(scenario).keys))
        self.writes = EndlessWrites(self.stores, scenario, self.judge)

    def _load(self, _effect: LoadEntity, store: Store) -> Iterator[Answer]:
        entity = store.entities[0]
        for version in reversed(entity.versions):
            loaded = Loaded(version.document, version.etag, NOW if version.document else 0, None)
            if version is entity.truth:
                yield Answer(loaded, store, said="loads the newest version")
            else:
                yield Answer(loaded, store, STALE, said="loads an older version", witnessed="stale load")
        if self._stale:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind")
        yield self._unread(store)


class EndlessWrites(Writes):
    """Writes of a stream. The arguments are those of `Writes`."""

    def __init__(self, stores: Stores, scenario: Scenario, judge: Judge) -> None:
        super().__init__(stores, scenario, judge)
        self._window = scenario.strategy.window or 0

    def applied(self, write: Write, store: Store) -> Answer:
        """The answer if the write takes effect now. Nobody will ask for the records of retired messages."""
        if isinstance(write, WriteRecords):
            records = (one for one in write.records if isinstance(one, ProcessedRecord) and LIVE in one.message)
            write = replace(write, records=tuple(records))
        return super().applied(write, store)

    def entity_token(self, _entity: Entity) -> str | None:
        """None: processes of a stream remember no tokens, so every view is allowed to each of them."""
        return None

    def entity_after(self, entity: Entity, write: Commit, _tick: int) -> Entity:
        """The entity with one more version, whose ETag differs from those before until it gets its canonical name."""
        document = _counted(write.document, self._window + 1)
        kept = entity.versions if self._keeps_versions else ()
        return self._stores.entity(0, (*kept, Version(document, f"{entity.truth.etag}+")))


@cache
def _counted(document: Json, limit: int) -> Json:
    """A document whose version counts no further than this: beyond its window all versions say that entries may have left."""
    ledger = ledger_of(document)
    if ledger.version <= limit:
        return document
    return with_ledger(document, replace(ledger, version=limit))
