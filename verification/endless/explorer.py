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
from exactlyonce.effects.library import DeleteChannels, FindChannels, FoundChannels, WriteRecords, Written
from exactlyonce.protocols.steps.save import with_ledger
from exactlyonce.records.library import ChannelDocument, ProcessedRecord
from exactlyonce.records.outputs import Output
from exactlyonce.values.frozen_json import Json
from verification.endless.channels import CHANNELS, channel_of, named_document, telling
from verification.endless.names import Naming
from verification.endless.renaming import names_of
from verification.endless.scopes import LIVE
from verification.explorers.explorer import Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.world.answers import STALE, World, judge_of
from verification.world.judge import Commit, Judge
from verification.world.mentions import Write, described
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
        room = self.scenario.flight is None or sum(copies >= 0 for copies in queue) < self.scenario.flight
        for number, copies in enumerate(queue):
            key = key_of_number(number)
            held = sum(worker.held.count(number) for worker in workers)
            if copies == FREE:
                if room and number == self._first_free(queue, number):
                    yield self._happening(state, number, 1, f"{key} arrives")
                continue
            if copies + held < self.scenario.copies[number]:
                yield self._happening(state, number, copies + 1, f"A copy of {key} arrives")
            if not copies and not held and not any(("key", key) in names_of(write) for write in delayed):
                retired = (store, (*queue[:number], FREE, *queue[number + 1 :]), workers, delayed, left)
                yield Move(retired, False, None, -1, None, f"No copy of {key} will arrive any more")

    def _first_free(self, queue: tuple[int, ...], place: int) -> int:
        """The first free place for messages of the channel that this one is for."""
        channel = channel_of(self.scenario, place)
        return next(
            one for one in range(len(queue)) if queue[one] == FREE and channel_of(self.scenario, one) == channel
        )

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

    def _find_channels(self, effect: FindChannels, store: Store) -> Iterator[Answer]:
        yield from self._unanswered(store, may_be_behind=True)
        library = store.libraries[0]
        views = [
            tuple(filter(effect.asks_for, library.view(position).get(CHANNELS, ())))
            for position in self._views_of(library, effect.token)
        ]
        for documents in dict.fromkeys(reversed(views)):
            said = f"finds {len(documents)} documents of channel {', '.join(effect.channels or ('any',))}"
            seen = "a channel that left was found" if documents else None
            yield Answer(FoundChannels(documents), store, said=said, witnessed=seen, aged=documents != views[-1])

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
        self._numbered = bool(scenario.places)
        self._versions = 1 if scenario.places else (scenario.strategy.window or 0) + 1

    def applied(self, write: Write, store: Store) -> Answer:
        """The answer if the write takes effect now. Nobody will ask for the records of retired messages."""
        if isinstance(write, DeleteChannels) or (isinstance(write, WriteRecords) and self._numbered):
            return self._changed_channels(write, store)
        if isinstance(write, WriteRecords):
            records = (one for one in write.records if isinstance(one, ProcessedRecord) and LIVE in one.message)
            write = replace(write, records=tuple(records))
        return super().applied(write, store)

    def _changed_channels(self, write: WriteRecords | DeleteChannels, store: Store) -> Answer:
        """The answer to a write of documents. The log holds all that there are, so that each of its positions is a view."""
        library = store.libraries[0]
        before: tuple[ChannelDocument, ...] = library.now.get(CHANNELS, ())
        found = {one.name: one for one in before}
        if isinstance(write, DeleteChannels):
            found = {name: one for name, one in found.items() if name not in write.documents}
        else:
            written = (named_document(one) for one in write.records if isinstance(one, ChannelDocument))
            found.update({one.name: one for one in written})
        after = telling(found.values())
        if after != before:
            library = self._stores.library((*library.writes, (CHANNELS, after)))
            store = self._stores.with_library(store, 0, library)
        reply = None if isinstance(write, DeleteChannels) else Written(self._token(library))
        return Answer(reply, store, said=described(write))

    def entity_token(self, _entity: Entity) -> str | None:
        """None: processes of a stream remember no tokens, so every view is allowed to each of them."""
        return None

    def entity_after(self, entity: Entity, write: Commit, _tick: int) -> Entity:
        """The entity with one more version, whose ETag differs from those before until it gets its canonical name."""
        document = _counted(write.document, self._versions)
        kept = entity.versions if self._keeps_versions else ()
        return self._stores.entity(0, (*kept, Version(document, f"{entity.truth.etag}+")))


@cache
def _counted(document: Json, limit: int) -> Json:
    """A document whose version counts no further than this: beyond its window all versions say that entries may have left."""
    ledger = ledger_of(document)
    if ledger.version <= limit:
        return document
    return with_ledger(document, replace(ledger, version=limit))
