"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from functools import partial
from types import ModuleType
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.drivers import book as keeping
from exactlyonce.drivers import lanes as combining
from exactlyonce.drivers.book import Books, ProcessBook, Shelf
from exactlyonce.effects.attempt import Again, Memory, Strategy
from exactlyonce.effects.companions import ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, Saved, SaveEntity
from exactlyonce.effects.library import OTHER, FindPages, FoundPages, WritePage, Written
from exactlyonce.hosting.deliveries import receiver as receiving
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Settler
from exactlyonce.hosting.deliveries.triggers import Cause, delivery_of
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.protocols.steps import batch as batching
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.records.companions import ColocatedRecord, id_of
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.envelope import EntityRef, key_of
from exactlyonce.values.lifetimes import Lifetimes
from verification.simulation.protocols import COLOCATED, EVENTS, FEW_MARKS, SHIPPED, SNAPSHOTS, STREAM, Protocols
from verification.twins import mistakes
from verification.twins.alterations import answers, asks, called, deferred, replaced, unasked
from verification.twins.host import HOST
from verification.twins.mistakes import COMMIT
from verification.twins.modules import BOOKS, Patch, around, constant, modules_of, room_for
from verification.twins.twin import Twin


class CarelessBatches(MemoryStore):
    """Saves a batch whatever its ETags say, and writes over companions that exist."""

    def save_batch(self, effect: SaveBatch) -> Any:
        ids = {id_of(effect.entity, item): item for item in effect.create}
        partition = self._entity(effect.entity)
        etags = {id: found.etag for id in ids if (found := partition.newest(id))}
        return super().save_batch(
            replace(
                effect,
                etag=self._etag(effect.entity),
                create=tuple(item for id, item in ids.items() if id not in etags),
                replace=(*effect.replace, *((ids[id], etag) for id, etag in etags.items())),
            )
        )

    def _etag(self, entity: EntityRef) -> str | None:
        found = self._entity(entity).newest(entity.id)
        return found.etag if found else None


class Careless(CarelessBatches):
    """Saves whatever the ETag says."""

    def save_entity(self, effect: SaveEntity) -> Any:
        return super().save_entity(replace(effect, etag=self._etag(effect.entity)))


class Forgetful(MemoryStore):
    """Finds pages without their marks."""

    def find_pages(self, effect: FindPages) -> Any:
        reply = super().find_pages(effect)
        if not isinstance(reply, FoundPages):
            return reply
        return FoundPages(tuple(replace(page, marks="") for page in reply.pages))


class Torn(MemoryStore):
    """Leaves out the companions of every seventh batch."""

    batches = 0

    def save_batch(self, effect: SaveBatch) -> Any:
        self.batches += 1
        return super().save_batch(replace(effect, create=()) if self.batches % 7 == 0 else effect)


class Hasty(MemoryStore):
    """Leaves out the owed outputs of a batch, so no later process publishes them."""

    def save_batch(self, effect: SaveBatch) -> Any:
        create = tuple(
            replace(item, owed=None) if isinstance(item, ColocatedRecord) else item for item in effect.create
        )
        return super().save_batch(replace(effect, create=create))


class Hoarding(MemoryStore):
    """Never deletes owed outputs."""

    def replace_companions(self, effect: ReplaceCompanions) -> None:
        pass


_ANY: Final = '"*"'
"""The ETag of whatever is there."""
Function = Callable[..., Any]
Parts = tuple[Patch, ...]


def _twin(shipped: Any, parts: Parts, others: tuple[ModuleType, ...] = ()) -> Any:
    """What becomes of a function or class that ships in modules with these patches; that itself, if none concerns it."""
    return Twin(patches=parts).of(shipped, others)


def _not_again(*_: Any) -> Step[Any]:
    yield from ()
    return ()


def _written(view: Any) -> Written:
    """What a page is taken for. With an older token than the ledger's, every attempt would begin again, for ever."""
    return Written(view.ledger.token or "0:-1#0")


def _taken_for_written(reply: Any, _page: Any, _self: Any, _work: Any, view: Any, *_: Any) -> Any:
    return _written(view) if reply is OTHER else reply


def _as_our_own(reply: Any, find: FindPages, *_: Any) -> Any:
    if not isinstance(reply, FoundPages):
        return reply
    return FoundPages(tuple(replace(page, number=min(page.number, find.newest)) for page in reply.pages))


def _too_late(commit: Function) -> Function:
    def twin(self: Any, work: Any, view: Any, *more: Any) -> Step[Any]:
        outcome = yield from deferred(WritePage, _written(view), SaveEntity)(commit)(self, work, view, *more)
        return outcome

    return twin


def _paying_all(document: Function) -> Function:
    return lambda self, now, within: replace(document(self, now, within), open=())


_OUTBOXES: Final[Mapping[str, Parts]] = {
    "publish before commit": (mistakes.PUBLISHED_FIRST,),
    "save without If-Match": (mistakes.saved_without_condition(_ANY),),
    "what copies owe is not published": (mistakes.OWED_NOT_PUBLISHED,),
    "unknown publish taken as done": (around(outbox.pay, answers(Publish, lambda *_: PUBLISHED)),),
    "sweeper pays without publishing": (around(Outbox.sweep, unasked(Publish, PUBLISHED)),),
    "pages: none are looked for": (mistakes.NO_PAGES_SOUGHT,),
    "pages: looked for in any view": (mistakes.PAGES_IN_ANY_VIEW,),
    "pages: untimed messages are not looked for by their hash": (
        around(judging.look_apart, asks(FindPages, lambda find, *_: replace(find, hashes=()))),
    ),
    "pages: written after the commit": (around(COMMIT, _too_late),),
    "pages: that of another history is taken for written": (around(COMMIT, answers(WritePage, _taken_for_written)),),
    "few marks: pages of another history are evidence": (
        around(judging.look_apart, answers(FindPages, _as_our_own)),
        *room_for(1, 1 << 14),
    ),
    "pages: complete is not raised": (mistakes.COMPLETE_NOT_RAISED,),
    "marks are dropped too early": (
        around(draft.next_ledger, called(lambda work, *more: (replace(work, retention=work.retention / 8), *more))),
    ),
    "books: a number is closed before it is sent": (mistakes.CLOSED_BEFORE_SENT,),
    "books: a conflict closes a number": (mistakes.closed_on(Conflict),),
    "books: an unknown save closes a number": (mistakes.closed_on(NoAnswer),),
    "books: entries of others are dropped": (mistakes.ENTRIES_DROPPED,),
}
_BOOKS: Final[Mapping[str, Parts]] = {
    "books: one pays what is open": (around(ProcessBook.document, _paying_all),),
    "books: any view closes a number": (mistakes.CLOSED_BY_ANY_VIEW,),
    "books: used before the store has them": (around(Shelf.is_stored, replaced(lambda *_: True)),),
}
_CLEAN_UP: Final = around(retention.clean_staged, unasked(SaveEntity, Saved("0", None)))
_COLOCATED: Final[Mapping[str, Parts]] = {
    "co-located: publish before batch": (mistakes.PUBLISHED_FIRST_COLOCATED,),
    "co-located: save without If-Match": (
        around(mistakes.COMMIT_COLOCATED, asks(SaveBatch, lambda save, *_: replace(save, etag=_ANY))),
    ),
    "co-located: hits not published": (around(batching.publish_records, unasked(Publish, PUBLISHED)),),
}
_STREAMS: Final[Mapping[str, Parts]] = {
    "stream: publish before batch": (mistakes.PUBLISHED_FIRST_ENTRIES,),
    "stream: no entry where the state is unchanged": (mistakes.UNNOTICED_WHERE_UNCHANGED,),
    "stream: duplicates not handled again": (around(version_stream.handled_again, replaced(_not_again)),),
    "stream: duplicates handled on the newest state": (mistakes.ON_THE_NEWEST_STATE,),
}
_RESEQUENCERS: Final[Mapping[str, Parts]] = {
    "read model: hold without If-Match": (mistakes.held_without_condition(_ANY),),
    "read model: publish before batch": (mistakes.PUBLISHED_FIRST_RELEASE,),
    "read model: early messages not held": (around(Release._hold, replaced(lambda *_: None)),),  # noqa: SLF001
    "read model: skips what its handler refuses": (mistakes.SKIPPED_WHERE_HANDLERS_RAISE,),
    "read model: late messages not reported": (around(resequencing.is_late, replaced(lambda *_: False)),),
    "read model: unknown publish taken as done": (
        around(mistakes.COMMIT_RELEASE, answers(Publish, lambda *_: PUBLISHED)),
    ),
}
_MENDERS: Final[Mapping[str, Parts]] = {
    "read model: gaps skipped without a record": (
        around(gaps.skip, asks(SaveBatch, lambda save, *_: replace(save, create=()))),
    ),
    "read model: sent again as handled on the newest state": (mistakes.ON_THE_NEWEST_STATE,),
}


def _lenient(take_or_settle: Function) -> Function:
    async def twin(self: Any, message: Any, entity: Any, *known: Any) -> None:
        _, adapter, give_up_after = known
        if (delivery_of(message) or 1) - give_up_after > 1:
            await self.take(message, entity, adapter)
        else:
            await take_or_settle(self, message, entity, *known)

    return twin


def _parking_at_once(unexplained: Function) -> Function:
    def twin(self: Any, given: Any) -> int | None:
        cause = self.failures.cause(given.entity.name, key_of(given.delivered))
        rounds: int | None = None if cause is Cause.ENVIRONMENT else unexplained(self, given)
        return rounds

    return twin


class _Unbounded(Lifetimes):
    """Nothing is refused for its age."""

    def refusal(self, *_: Any) -> None:
        return None


def _unjudged(self: Any, *known: Any) -> tuple[Any, ...]:
    lifetimes = self.lifetimes()
    unbounded = _Unbounded(*(getattr(lifetimes, field.name) for field in fields(lifetimes)))
    return replace(self, lifetimes=lambda: unbounded), *known


_RECEIVERS: Final[Mapping[str, Parts]] = {
    "ages are not judged": (constant(receiving, "AgeCheck", lambda runner, *_: runner),),
    "batch processes what it has settled": (around(Receiver._take_or_settle, _lenient),),  # noqa: SLF001
}
_SETTLERS: Final[Mapping[str, Parts]] = {
    "parks what its environment failed": (around(Settler._unexplained, _parking_at_once),),  # noqa: SLF001
    "poison is parked without a look at its age": (around(Settler._decided, called(_unjudged)),),  # noqa: SLF001
}


_STORES: Final[Mapping[str, tuple[Protocols, type[MemoryStore]]]] = {
    "store saves whatever the ETag says": (SHIPPED, Careless),
    "few marks: store saves whatever the ETag says": (FEW_MARKS, Careless),
    "few marks: store finds pages without marks": (FEW_MARKS, Forgetful),
    "co-located: store saves whatever the ETag says": (COLOCATED, Careless),
    "co-located: store writes a part of a batch": (COLOCATED, Torn),
    "co-located: store leaves out what is owed": (COLOCATED, Hasty),
    "co-located: store never drops what is owed": (COLOCATED, Hoarding),
    "stream: store saves whatever the ETag says": (STREAM, Careless),
    "stream: store writes a part of a batch": (STREAM, Torn),
    "events: store saves whatever the ETag says": (EVENTS, Careless),
    "read model: store saves whatever the ETag says": (SHIPPED, CarelessBatches),
    "read model: store writes a part of a batch": (SHIPPED, Torn),
}
_UNFENCED: Final[Mapping[str, tuple[Protocols, type[Strategy]]]] = {
    "settler without a fence": (SHIPPED, Outbox),
    "few marks: settler without a fence": (FEW_MARKS, Outbox),
    "co-located: settler without a fence": (COLOCATED, Colocated),
    "stream: settler without a fence": (STREAM, VersionStream),
}


def _unfenced(_entity: Any, view: Any, _absent: Any) -> Step[Memory | Again]:
    """In place of a fence: it proves nothing."""
    yield from Begin()
    memory: Memory = view.memory
    return memory


def _mending(parts: Parts) -> Protocols:
    again, found, sent = (_twin(item, parts) for item in (Resequencer, replaying.versions_of, replaying.replay))
    return replace(STREAM, resequencer=again, versions_of=found, replay=sent)


def _giving_up(parts: Parts) -> Protocols:
    return Protocols(giving_up=_twin(Settler, parts, HOST))


def _lane() -> Protocols:
    """A lane goes on with what was given back. This is about local variables of a method, so its source changes.

    Its settler parks at once what its environment failed: what ships does so after some rounds only.
    """
    source = inspect.getsource(combining)
    held = "for item in group if not item.done.done()"
    if source.count(held) != 2:  # noqa: PLR2004
        raise ValueError("Lanes do not leave out what was given back in two places any more.")
    made = modules_of(
        "lanes", {combining.__name__}, {combining.__name__: source.replace(held, "for item in group")}, others=HOST
    )
    parks = _giving_up(_SETTLERS["parks what its environment failed"])
    return replace(parks, lanes=made[combining.__name__].Lanes, heals=False)


def _parking(protocols: Protocols, shipped: type[Strategy]) -> Protocols:
    twin = _twin(shipped, (Patch(parking.__name__, "fence", lambda _: _unfenced),))
    # Operators ask for the class that ships.
    settling = type(shipped.__name__, (shipped,), {"settle": twin.settle})
    # The host looks no further than the fence, so this settler also parks what its environment failed.
    return replace(protocols, settling={protocols.protocol: settling}, heals=False)


def _kept(lifetimes: Lifetimes, now: datetime) -> timedelta:
    return lifetimes.retention.kept(now) / 4


_BY_PARTS: Final[tuple[tuple[Callable[[Parts], Protocols], Mapping[str, Parts]], ...]] = (
    (lambda parts: Protocols(strategies=(_twin(Outbox, parts)(),)), _OUTBOXES),
    (lambda parts: Protocols(books=_twin(Books, parts, (*BOOKS, keeping))), _BOOKS),
    (lambda parts: replace(COLOCATED, strategies=(_twin(Colocated, parts)(),)), _COLOCATED),
    (lambda parts: replace(STREAM, strategies=tuple(map(_twin(VersionStream, parts), SNAPSHOTS))), _STREAMS),
    (lambda parts: Protocols(resequencer=_twin(Resequencer, parts)), _RESEQUENCERS),
    (_mending, _MENDERS),
    (lambda parts: Protocols(receiver=_twin(Receiver, parts, HOST)), _RECEIVERS),
    (_giving_up, _SETTLERS),
)
_MAKERS: Final[Mapping[str, Callable[[], Protocols]]] = {
    **{name: partial(make, parts) for make, table in _BY_PARTS for name, parts in table.items()},
    **{name: partial(replace, protocols, store=store) for name, (protocols, store) in _STORES.items()},
    **{name: partial(_parking, *wrong) for name, wrong in _UNFENCED.items()},
    "lane goes on with what was given back": _lane,
    "clean-up without a fence": lambda: Protocols(clean_staged=_twin(retention.clean_staged, (_CLEAN_UP,))),
    "clean-up by a shorter retention than the judge's": lambda: Protocols(kept=_kept),
}
NAMES: Final = tuple(_MAKERS)


def protocols_of(name: str) -> Protocols | None:
    """The protocols of a twin; None for an empty name.

    Raises:
        KeyError: there is no such twin.
        ValueError: the change does not fit the source as it is now.
    """
    return _MAKERS[name]() if name else None
