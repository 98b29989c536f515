"""Every possible answer to an effect, from copies of the store in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from exactlyonce.effects.companions import LoadCompanions, SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Effect, Together
from exactlyonce.effects.entity import PUBLISHED, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import KEPT, DeleteBlobs, FindPages, HasPages, LoadStaged, Stage, WriteOnce, WritePage
from exactlyonce.handling.messages import model_named
from exactlyonce.records.ledger import CALL_TYPE
from exactlyonce.records.library import BOOKS
from exactlyonce.records.outbox import Output
from exactlyonce.records.outbox import transaction as numbered
from exactlyonce.stores.memory.store import Fate, MemoryStore, Partition, Version
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json

# The words of a story, as on the pages of the protocols.


WORDS: Final[dict[type[Effect[Any]], str]] = {
    LoadEntity: "loads the entity",
    SaveEntity: "saves the entity if it is unchanged",
    SaveBatch: "saves the entity and its records if the entity is unchanged",
    LoadCompanions: "looks for records",
    HasPages: "asks whether the entity has pages",
    FindPages: "looks for pages",
    WritePage: "writes the page of what leaves the ledger",
    Stage: "stages the messages to keep",
    LoadStaged: "reads the kept messages",
    WriteOnce: "writes blobs",
}
"""Any other effect is called by the name of its class."""


def words_of(effect: Effect[Any]) -> str:
    """The words for an instance's effect."""
    if isinstance(effect, Publish):
        return "publishes " + ", ".join(f"{_named(output)} to {output.destination}" for output in effect.outputs)
    return WORDS.get(type(effect), f"asks for {type(effect).__name__}")


def _named(output: Output) -> str:
    envelope = Envelope.read(output.envelope.text)
    if envelope.type == CALL_TYPE:
        return "a call"
    model = model_named(envelope.type)
    return envelope.type if model is None else model.__name__


Place = tuple[str, Any]
"""A logical partition: "entities" or "library", and the partition key."""


def transaction(message: int, count: int) -> str:
    """A transaction id for an attempt of a message, after a number of earlier ids: the first number in a book of its own."""
    return numbered(f"{message:08x}{count:08x}0000", 1)


class Placed(NamedTuple):
    """A logical partition and its writes.

    Attributes:
        within: positions inside batches.
        base: number of writes before the exploration, which every replica has.
        written: number of writes by the exploration, for the next ETag.
    """

    place: Place
    log: tuple[Version, ...]
    within: frozenset[int]
    base: int
    written: int


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The content of a store. Within one `Answers`, equal documents are the same object, so states compare quickly.

    Attributes:
        partitions: all partitions, in a fixed order.
        settled: whether every replica has every write, so that only the newest versions remain.
    """

    partitions: tuple[Placed, ...]
    settled: bool

    @property
    def texts(self) -> Iterator[str]:
        """The texts of all versions of all documents."""
        for partition in self.partitions:
            for version in partition.log:
                if version.document is not None:
                    yield version.document.text

    def newest(self, ref: EntityRef) -> Json | None:
        """The newest version of an entity's document; None without a document."""
        return self._newest(("entities", (ref.type, *ref.partition)), ref.id)

    def staged(self, ref: EntityRef, tx: str) -> Json | None:
        """The document that an entity has staged under a transaction id; None without such a document."""
        return self._newest(("library", ref.key), f"staged:{tx}")

    def _newest(self, place: Place, id: str) -> Json | None:
        log = next((partition.log for partition in self.partitions if partition.place == place), ())
        return next((item.document for item in reversed(log) if item.id == id), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to an effect: the reply, and the documents and words afterwards.

    Attributes:
        arrived: the outputs that reach their queues.
        stale: whether a lagging replica answered.
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
        reduced: whether replicas with the same answer count as one, and all have the writes before the exploration.
    """

    def __init__(self, now: datetime, *, reduced: bool) -> None:
        self._now = now
        self._reduced = reduced
        self._same: dict[tuple[tuple[Placed, ...], bool], Documents] = {}
        self._known: dict[tuple[Documents, Effect[Any]], tuple[Answer, ...]] = {}
        self._settled: dict[tuple[Documents, bool], Documents] = {}

    def before(self, store: MemoryStore) -> Documents:
        """The content of a store at the start of the exploration. Books are in the memory of the instances."""
        return self._documents(
            Placed((kind, key), tuple(item.log), frozenset(item.within), len(item.log) if self._reduced else 0, 0)
            for kind in ("entities", "library")
            for key, item in getattr(store, kind).items()
            if (kind, key) != ("library", BOOKS)
        )

    def settled(self, documents: Documents, *, at_rest: bool) -> Documents:
        """Documents without their past, once no replica lags any more. At rest no instance knows an ETag, so all are new."""
        settled = self._settled.get((documents, at_rest))
        if settled is None:
            partitions = (_without_past(partition, at_rest=at_rest) for partition in documents.partitions)
            settled = self._settled[documents, at_rest] = self._documents(partitions, settled=True)
        return settled

    def _documents(self, partitions: Iterable[Placed], *, settled: bool = False) -> Documents:
        written = (partition for partition in partitions if partition.log or partition.written)
        held = tuple(sorted(written, key=lambda partition: repr(partition.place)))
        documents = self._same.get((held, settled))
        if documents is None:
            documents = self._same[held, settled] = Documents(held, settled)
        return documents

    def to(self, effect: Effect[Any], documents: Documents) -> tuple[Answer, ...]:
        """Every answer to an effect; the first is the answer without a fault."""
        answers = self._known.get((documents, effect))
        if answers is None:
            answers = self._known[documents, effect] = tuple(dict.fromkeys(self._found(effect, documents)))
        return answers

    def _found(self, effect: Effect[Any], documents: Documents) -> Iterator[Answer]:
        words = words_of(effect)
        match effect:
            case Together(first, second):
                for item in self.to(first, documents):
                    for other in self.to(second, item.documents):
                        if not (item.fault and other.fault):
                            yield replace(
                                other,
                                reply=(item.reply, other.reply),
                                said=f"{item.said}, {other.said}",
                                fault=item.fault or other.fault,
                                stale=item.stale or other.stale,
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
        newest = self._performed(effect, documents, world, words)
        if documents.settled:  # No further fault can happen.
            yield newest
            return
        views = [newest]
        for behind in range(1, world.newest - world.base + 1):
            said = f"{words} (as a replica has it that is {behind} behind)"
            stale = self._performed(effect, documents, _Scripted(behind=behind), said, fault=True)
            views.append(replace(stale, stale=True))
        yield from _telling_apart(views) if self._reduced else views
        if world.writes:
            lost, unanswered = _Scripted(Fate.LOST_BEFORE), _Scripted(Fate.LOST_AFTER)
            yield self._performed(effect, documents, lost, f"{words} (not applied: the request is lost)", fault=True)
            yield self._performed(
                effect, documents, unanswered, f"{words} (applied, but the reply is lost)", fault=True
            )

    def _performed(
        self, effect: Effect[Any], documents: Documents, world: _Scripted, said: str, *, fault: bool = False
    ) -> Answer:
        store = _Store(documents, self._now, world)
        reply = store.perform(effect)
        after = self._documents(store.placed(), settled=documents.settled) if world.writes else documents
        return Answer(reply, after, said, fault)


def _telling_apart(views: list[Answer]) -> Iterator[Answer]:
    """Of the views with the same answer, the view that promises least, in the words of the newest; the newest comes first.

    The session token of a view promises that later reads are no older. So an older view with the same answer allows everything
    that a newer view allows.
    """
    apart: dict[Any, Answer] = {}
    for view in views:  # From the newest on.
        reply = view.reply
        said = replace(reply, token=None) if getattr(reply, "token", None) is not None else reply
        newer = apart.setdefault(said, view)
        apart[said] = replace(newer, reply=reply)
    yield from apart.values()


class _Scripted:
    """Gives every write one fate and every view one age, and notes the requests."""

    def __init__(self, chosen: Fate = Fate.ANSWERED, behind: int = 0) -> None:
        self._chosen = chosen
        self._behind = behind
        self.writes = False
        self.newest = 0
        self.base = 0

    def fate(self, operation: str) -> Fate:  # noqa: ARG002
        self.writes = True
        return self._chosen

    def replica(self, newest: int) -> int:
        self.newest = newest
        return max(0, newest - self._behind)


@dataclass(slots=True)
class _Partition(Partition):
    base: int = 0
    count: int = 0


class _Store(MemoryStore):
    """A copy of a store. ETags count the writes of their partition, so that stores with the same documents are equal.

    The ETags differ from all ETags of the application's own store: else an old and a new version could have the same.
    """

    def __init__(self, documents: Documents, now: datetime, world: _Scripted) -> None:
        super().__init__(lambda: now, world)
        self._world = world
        self._settled = documents.settled
        for (kind, key), log, within, base, count in documents.partitions:
            partition = getattr(self, kind)[key] = _Partition(within=set(within), base=base, count=count)
            for version in log:
                partition.append(version)

    def placed(self) -> Iterator[Placed]:
        """The partitions of the store."""
        for kind in ("entities", "library"):
            for key, log in getattr(self, kind).items():
                yield Placed((kind, key), tuple(log.log), frozenset(log.within), log.base, log.count)

    def _entity(self, entity: EntityRef) -> Partition:
        return self.entities.setdefault((entity.type, *entity.partition), _Partition())

    def _library(self, entity: EntityRef) -> Partition:
        return self.library.setdefault(entity.key, _Partition())

    def _replica(self, partition: Partition) -> int:
        assert isinstance(partition, _Partition)  # noqa: S101  # This store makes no other kind.
        self._world.base = partition.base
        return super()._replica(partition)

    def _view(self, partition: Partition, token: str | None) -> int | None:
        # Without the past, the positions in tokens mean nothing; and no replica lags.
        return super()._view(partition, None if self._settled else token)

    def _append(self, partition: Partition, id: str, document: Json | None) -> Version:
        assert isinstance(partition, _Partition)  # noqa: S101  # As above.
        partition.count += 1
        written = Version(id, document, f'"explored {partition.count}"', int(self._now().timestamp()))
        partition.append(written)
        return written


def _without_past(placed: Placed, *, at_rest: bool) -> Placed:
    newest = {version.id: version for version in placed.log}
    log = [newest[id] for id in sorted(newest) if newest[id].document is not None]
    if not at_rest:
        return Placed(placed.place, tuple(log), frozenset(), 0, placed.written)
    named = (replace(version, etag=f'"explored {number}"') for number, version in enumerate(log, start=1))
    return Placed(placed.place, tuple(named), frozenset(), 0, len(log))
