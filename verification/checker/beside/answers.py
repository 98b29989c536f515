"""What the world may answer to an effect where entity and companions lie in one partition.

A read with a token sees any version at or after it, and one without any version at all, each read effect its own. Of the views
that show a read the same, it is told the token of the oldest: whatever a later token allows, that one allows too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import Park
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from verification.checker.answers import LOST, OVERDUE, REPEATED, STALE, World
from verification.checker.beside.judging import judged_outputs
from verification.checker.beside.mending import asked_for, is_request, versions_with
from verification.checker.beside.partition import Partition, Partitions, partition_of
from verification.checker.beside.scenarios import BesideScenario
from verification.checker.beside.writes import BesideWrites
from verification.checker.handler import told_by
from verification.checker.mentions import Write, described
from verification.checker.store import NOW, Store, position_of, token_at
from verification.checker.writes import Answer

OLD: Final = "companions were seen in an older view"
ASKED: Final = "a source was asked to send again what was lost"


class BesideWorld(World):
    """Answers effects for one scenario."""

    def __init__(self, scenario: BesideScenario) -> None:
        super().__init__(scenario)
        self.stores = Partitions()
        self._scenario = scenario
        self._applies = BesideWrites(self.stores, scenario)

    def answers(self, effect: Effect[Any], store: Store) -> Iterator[Answer]:
        """Every answer to an effect."""
        match effect:
            case LoadEntity():
                yield from self._load(effect, store)
            case LoadCompanions():
                yield from self._read(effect, store, _by_id(effect.ids))
            case FindEntries():
                yield from self._read(effect, store, _entries(effect.ranges))
            case FindOwing():
                yield from self._read(effect, store, _owing)
            case FindNumbered():
                yield from self._look_up(effect, store)
            case HasCompanions():
                yield from self._any_companion(store)
            case Publish():
                asks = all(map(is_request, effect.outputs))
                yield from self._ask(effect, store) if asks else self._publish(effect, store)
            case ReplaceCompanions() | DeleteCompanions():
                yield from self._note(effect, store)
            case SaveBatch() | SaveEntity() | Park():
                yield from self._write(effect, store)
            case _:
                raise TypeError(effect)

    def land(self, write: Write, store: Store) -> Answer:
        """A write takes effect, if its condition holds."""
        return self._applies.applied(write, store)

    def _load(self, effect: LoadEntity, store: Store) -> Iterator[Answer]:
        partition = partition_of(store)
        oldest: dict[str | None, int] = {}
        for position in _views(partition, effect.token):
            oldest.setdefault(partition.versions[position - partition.first].etag, position)
        for etag, position in reversed(oldest.items()):
            version = partition.versions[position - partition.first]
            loaded = Loaded(version.document, etag, NOW if version.document else 0, token_at(position))
            if etag == partition.truth.etag:
                yield Answer(loaded, store, said=f"loads version {position}")
            else:
                said = f"loads version {position}, though {partition.newest} is the newest"
                yield Answer(loaded, store, STALE, said=said, witnessed="stale load")
        yield from self._unanswered(effect.token, store)

    def _any_companion(self, store: Store) -> Iterator[Answer]:
        partition = partition_of(store)
        yield Answer(bool(partition.now), store, said="looks for any companion")
        if partition.now and any(not partition.beside(position) for position in _views(partition, None)):
            yield Answer(False, store, STALE, said="looks for any companion in an older view, and finds none")
        yield self._unread(store)

    def _read(
        self,
        effect: LoadCompanions | FindEntries | FindOwing,
        store: Store,
        find: Callable[[Partition, int], FoundCompanions],
    ) -> Iterator[Answer]:
        partition = partition_of(store)
        token = None if isinstance(effect, FindOwing) else effect.token
        found = dict.fromkeys(find(partition, position) for position in reversed(_views(partition, token)))
        for number, reply in enumerate(found):
            told = ", ".join(_told(companion) for companion, _ in reply.companions) or "nothing"
            hit = any(isinstance(one, ColocatedRecord | StreamEntry) for one, _ in reply.companions)
            seen = "duplicate found its record" if hit else OLD if number else None
            said = f"reads {told} beside it"
            if number == 0:
                yield Answer(reply, store, said=said, witnessed=seen)
            else:
                yield Answer(reply, store, STALE, said=f"{said}, in an older view", witnessed=seen)
        yield from self._unanswered(token, store)

    def _look_up(self, effect: FindNumbered, store: Store) -> Iterator[Answer]:
        partition = partition_of(store)
        views = reversed(_views(partition, effect.token))
        found = dict.fromkeys(versions_with(effect, partition, position) for position in views)
        for number, versions in enumerate(found):
            said = f"looks up which versions have sent numbers {effect.numbers[0]} to {effect.numbers[1]}"
            if number == 0:
                yield Answer(FoundNumbered(versions), store, said=said)
            else:
                yield Answer(FoundNumbered(versions), store, STALE, said=f"{said}, in an older view", witnessed=OLD)
        yield from self._unanswered(effect.token, store)

    def _note(self, effect: ReplaceCompanions | DeleteCompanions, store: Store) -> Iterator[Answer]:
        """A write that is done as well as may be: all of it, one of several, nothing, or later."""
        yield self.land(effect, store)
        yield Answer(None, store, LOST, said=f"{described(effect)}, which is lost")
        if len(effect.companions) > 1:
            for one in _parts(effect):
                part = self.land(one, store)
                yield Answer(None, part.store, LOST, said=f"{part.said}; the rest is lost")
        if self._delayed:
            yield Answer(None, store, LOST, effect, said=f"{described(effect)}, which will arrive later")

    def _unanswered(self, token: str | None, store: Store) -> Iterator[Answer]:
        """A read that fails, or that asks a replica which has not reached the token."""
        if self._stale and token is not None:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind", witnessed="a replica was behind")
        yield self._unread(store)

    def _ask(self, effect: Publish, store: Store) -> Iterator[Answer]:
        """Sources are asked; what they send again arrives at once, and is taken at any later time."""
        keys = tuple(key for output in effect.outputs for key in asked_for(self._scenario, output))
        said = f"asks for {', '.join(keys) or 'nothing that there is'}"
        yield Answer(PUBLISHED, store, said=said, witnessed=ASKED, arrivals=keys)
        yield Answer(UNKNOWN, store, LOST, said=f"{said}; the reply is lost", arrivals=keys)
        yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")

    def _publish(self, effect: Publish, store: Store) -> Iterator[Answer]:
        outputs, overdue = self._divided(effect, store)
        violation = judged_outputs(self._scenario, effect.outputs, store) or self._late(effect, outputs, store)
        keys = tuple(told_by(output)[0] for output in outputs)
        committed = store.committed
        if self._scenario.untold:
            known = {key for key, _ in committed}
            told = ((key, output.envelope.text) for key, output in zip(keys, outputs, strict=True))
            committed |= {one for one in told if one[0] not in known}
        arrived = self.stores.changed(
            store,
            committed=committed,
            published=store.published | frozenset(keys),
            overdue=store.overdue | frozenset(overdue),
        )
        said = f"publishes {', '.join(output.id for output in outputs) or 'nothing'}"
        said += f" and parks what {', '.join(overdue)} owes, since it is too old" if overdue else ""
        yield Answer(PUBLISHED, arrived, violation=violation, said=said, witnessed=OVERDUE if overdue else None)
        yield Answer(UNKNOWN, arrived, LOST, None, violation, f"{said}; the reply is lost")
        yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")

    def _write(self, effect: Write, store: Store) -> Iterator[Answer]:
        applied = self.land(effect, store)
        yield applied
        if not isinstance(applied.reply, Conflict):
            said, after, violation = applied.said, applied.store, applied.violation
            yield Answer(UNKNOWN, after, LOST, None, violation, f"{said}; the reply is lost")
            if not isinstance(effect, Park):
                reply = Conflict(token_at(partition_of(after).newest))
                twice = f"{said}; sent twice, so the reply says conflict"
                yield Answer(reply, after, REPEATED, None, violation, twice, "own success seen as a conflict")
        yield Answer(UNKNOWN, store, LOST, said=f"{described(effect)}, which is lost")
        if self._delayed:
            yield Answer(UNKNOWN, store, LOST, effect, said=f"{described(effect)}, which will arrive later")


def _parts(effect: ReplaceCompanions | DeleteCompanions) -> Iterator[ReplaceCompanions | DeleteCompanions]:
    """A write of several companions, one by one."""
    if isinstance(effect, ReplaceCompanions):
        yield from (replace(effect, companions=(one,)) for one in effect.companions)
    else:
        yield from (replace(effect, companions=(one,)) for one in effect.companions)


def _views(partition: Partition, token: str | None) -> range:
    """Positions that a read may see."""
    return range(max(position_of(token), partition.first), partition.newest + 1)


def _by_id(ids: tuple[str, ...]) -> Callable[[Partition, int], FoundCompanions]:
    def find(partition: Partition, position: int) -> FoundCompanions:
        view = partition.beside(position)
        return FoundCompanions(tuple(view[id] for id in dict.fromkeys(ids) if id in view))

    return find


def _entries(ranges: tuple[tuple[int, int], ...]) -> Callable[[Partition, int], FoundCompanions]:
    def find(partition: Partition, position: int) -> FoundCompanions:
        entries = {
            one.version: (one, etag)
            for one, etag in partition.beside(position).values()
            if isinstance(one, StreamEntry) and any(first <= one.version <= last for first, last in ranges)
        }
        return FoundCompanions(tuple(entry for _, entry in sorted(entries.items())))

    return find


def _owing(partition: Partition, position: int) -> FoundCompanions:
    records = partition.beside(position).values()
    return FoundCompanions(
        tuple((one, etag) for one, etag in records if isinstance(one, ColocatedRecord) and one.owing_since)
    )


def _told(companion: ColocatedRecord | StreamEntry | NumberedMessage) -> str:
    owes = isinstance(companion, ColocatedRecord) and companion.owed is not None
    held = isinstance(companion, NumberedMessage) and companion.held is not None
    return f"{companion.message}{', which owes' if owes else ', held' if held else ''}"
