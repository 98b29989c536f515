"""Every answer that the world may give to an effect, found by performing it on copies of the store in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from exactlyonce.effects.blobs import KEPT, DeleteBlobs, WriteOnce
from exactlyonce.effects.effect import UNKNOWN, Effect, Together
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.records.outputs import Output
from exactlyonce.stores.memory.partitions import Partition, Version
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.memory.trouble import Fate
from exactlyonce.testing.exploring.words import words_of
from exactlyonce.values.frozen_json import Json

Place = tuple[str, Any]
"""A logical partition: "entities" or "library", and its key there."""
Documents = tuple[tuple[Place, tuple[Version, ...], frozenset[int]], ...]
"""All partitions: each with its log, and the positions inside batches."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to an effect.

    Attributes:
        reply: to the strategy.
        documents: afterwards.
        said: what the instance does, and what becomes of it.
        fault: whether it takes a fault.
        arrived: the outputs that reach their queues.
        stale: whether it is from a replica that is behind.
    """

    reply: Any
    documents: Documents
    said: str
    fault: bool = False
    arrived: tuple[Output, ...] = ()
    stale: bool = False


class Answers:
    """The answers of stores that do not change.

    Args:
        now: the store's time.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known: dict[tuple[Documents, Effect[Any]], tuple[Answer, ...]] = {}

    def to(self, effect: Effect[Any], documents: Documents) -> tuple[Answer, ...]:
        """Every answer to an effect; the first is the one without a fault."""
        known = self._known.get((documents, effect))
        if known is None:
            known = self._known[documents, effect] = tuple(dict.fromkeys(self._found(effect, documents)))
        return known

    def _found(self, effect: Effect[Any], documents: Documents) -> Iterator[Answer]:
        words = words_of(effect)
        match effect:
            case Together(first, second):
                for one in self.to(first, documents):
                    for other in self.to(second, one.documents):
                        if not (one.fault and other.fault):
                            yield replace(
                                other,
                                reply=(one.reply, other.reply),
                                said=f"{one.said}, {other.said}",
                                fault=one.fault or other.fault,
                                stale=one.stale or other.stale,
                            )
            case Publish(outputs):
                yield Answer(PUBLISHED, documents, words, arrived=outputs)
                yield Answer(UNKNOWN, documents, f"{words} (sent, but the reply is lost)", True, outputs)
                yield Answer(UNKNOWN, documents, f"{words} (not sent: the request is lost)", True)
            case WriteOnce():
                yield Answer(KEPT, documents, words)
            case DeleteBlobs():
                yield Answer(None, documents, words)
            case _:
                yield from self._of_the_store(effect, documents, words)

    def _of_the_store(self, effect: Effect[Any], documents: Documents, words: str) -> Iterator[Answer]:
        world = _Scripted()
        yield self._performed(effect, documents, world, words)
        if world.writes:
            lost, unanswered = _Scripted(Fate.LOST_BEFORE), _Scripted(Fate.LOST_AFTER)
            yield self._performed(effect, documents, lost, f"{words} (not applied: the request is lost)", fault=True)
            yield self._performed(
                effect, documents, unanswered, f"{words} (applied, but the reply is lost)", fault=True
            )
        for behind in range(1, world.newest + 1):
            said = f"{words} (as a replica has it that is {behind} behind)"
            stale = self._performed(effect, documents, _Scripted(behind=behind), said, fault=True)
            yield replace(stale, stale=True)

    def _performed(
        self, effect: Effect[Any], documents: Documents, world: _Scripted, said: str, *, fault: bool = False
    ) -> Answer:
        store = _Store(documents, self._now, world)
        reply = store.perform(effect)
        return Answer(reply, frozen(store) if world.writes else documents, said, fault)


class _Scripted:
    """One fate for every write, and one age for every view; it notes what was asked for."""

    def __init__(self, chosen: Fate = Fate.ANSWERED, behind: int = 0) -> None:
        self._chosen = chosen
        self._behind = behind
        self.writes = False
        self.newest = 0

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        self.writes = True
        return self._chosen

    def replica(self, newest: int) -> int:
        self.newest = newest
        return max(0, newest - self._behind)


class _Store(MemoryStore):
    """A copy of a store. ETags count the writes of their partition, so that stores with the same documents are equal."""

    def __init__(self, documents: Documents, now: datetime, world: _Scripted) -> None:
        super().__init__(lambda: now, world)
        for (kind, key), log, within in documents:
            partition = Partition(within=set(within))
            for version in log:
                partition.append(version)
            getattr(self, kind)[key] = partition

    def _append(self, partition: Partition, id: str, document: Json | None) -> Version:
        written = Version(id, document, f'"{len(partition.log) + 1}"', int(self._now().timestamp()))
        partition.append(written)
        return written


def frozen(store: MemoryStore) -> Documents:
    """What a store holds."""
    places = [
        ((kind, key), tuple(one.log), frozenset(one.within))
        for kind in ("entities", "library")
        for key, one in getattr(store, kind).items()
        if one.log
    ]
    return tuple(sorted(places, key=lambda place: repr(place[0])))
