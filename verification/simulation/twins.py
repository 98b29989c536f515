"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from itertools import count
from types import ModuleType
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.attempt import Again, Finished, Memory, Strategy
from exactlyonce.drivers import book as keeping
from exactlyonce.drivers import lanes as combining
from exactlyonce.drivers.book import Books, ProcessBook, Shelf
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, Saved, SaveEntity
from exactlyonce.effects.library import OTHER, CloseNumbers, FindPages, FoundPages, WritePage, Written
from exactlyonce.hosting.deliveries import receiver as receiving
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Settler
from exactlyonce.hosting.deliveries.triggers import Cause, delivery_of
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import draft, judge
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.protocols.steps import batch as batching
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.values.envelope import key_of
from exactlyonce.values.lifetimes import Lifetimes
from verification.simulation.broken_stores import Careless, CarelessBatches, Forgetful, Hasty, Hoarding, Torn
from verification.simulation.protocols import COLOCATED, EVENTS, FEW_MARKS, SHIPPED, SNAPSHOTS, STREAM, Protocols
from verification.twins import room
from verification.twins.alterations import answers, asks, called, deferred, first, followed, replaced, unasked
from verification.twins.host import HOST
from verification.twins.modules import BOOKS, Patch, around, constant, modules_of

_COMMIT: Final = Outbox._commit  # noqa: SLF001
_COMMIT_COLOCATED: Final = Colocated._commit  # noqa: SLF001
_COMMIT_ENTRIES: Final = version_stream._commit  # noqa: SLF001
_COMMIT_RELEASE: Final = resequencer._commit  # noqa: SLF001
_ANY: Final = '"*"'
"""The ETag of whatever is there."""

Function = Callable[..., Any]
Parts = tuple[Patch, ...]
_numbers = count()


def _twin(shipped: Any, parts: Parts, others: tuple[ModuleType, ...] = ()) -> Any:
    """What becomes of a function or class that ships in modules with these patches; that itself, if none concerns it."""
    made = modules_of(f"simulated_{next(_numbers)}", {shipped.__module__}, patches=parts, others=others)
    module = made.get(shipped.__module__)
    return shipped if module is None else getattr(module, shipped.__name__)


def _unnoticed_where_unchanged(commit: Function) -> Function:
    """What leaves the state as it was is published, and not committed."""

    def twin(entity: Any, sight: Any, batch: Any) -> Step[Any]:
        if batch.body == sight.body:
            yield from Publish(batch.outputs)
            return Finished(sight.memory, batch.processed)
        outcome = yield from commit(entity, sight, batch)
        return outcome

    return twin


def _skipping(handled_next: Function) -> Function:
    """A message whose handler raises is passed over."""

    def twin(self: Any, source: str, *known: Any) -> bool:
        stopped = len(self.stopped)
        more = handled_next(self, source, *known)
        if len(self.stopped) == stopped:
            return bool(more)
        reception = self._receptions[source]
        self._receptions[source] = replace(reception, next=reception.next + 1, failing=None)
        return True

    return twin


def _not_again(*_: Any) -> Step[Any]:
    """Duplicates are acknowledged as they are."""
    yield from ()
    return ()


def _written(view: Any) -> Written:
    """What a page is taken for. With an older token than the ledger's, every attempt would begin again, for ever."""
    return Written(view.ledger.token or "0:-1#0")


def _as_our_own(reply: Any, find: FindPages, *_: Any) -> Any:
    """Pages of later numbers than the ledger's are taken for pages of its own."""
    if not isinstance(reply, FoundPages):
        return reply
    return FoundPages(tuple(replace(page, number=min(page.number, find.newest)) for page in reply.pages))


def _too_late(commit: Function) -> Function:
    """The page is written after the commit."""

    def twin(self: Any, work: Any, view: Any, *more: Any) -> Step[Any]:
        outcome = yield from deferred(WritePage, _written(view), SaveEntity)(commit)(self, work, view, *more)
        return outcome

    return twin


def _ledger(change: Callable[..., Any]) -> Patch:
    """The ledger of a commit that cuts a page, as `change(ledger, before)` makes it."""

    def wrapper(shipped: Function) -> Function:
        def twin(work: Any, view: Any, draft: Any, page: Any, paid: Any, **token: Any) -> Any:
            made = shipped(work, view, draft, page, paid, **token)
            return made if page is None else change(made, view.ledger)

        return twin

    return around(draft.next_ledger, wrapper)


def _closed_on(kind: type[Any]) -> Patch:
    """The numbers of an attempt are closed after a reply of this kind to its save."""

    def close(reply: Any, _save: Any, _self: Any, _work: Any, _view: Any, _draft: Any, opened: Any, *_: Any) -> Any:
        return CloseNumbers(opened.given) if isinstance(reply, kind) else None

    return around(_COMMIT, followed(SaveEntity, close))


def _all_paid(work: Any, view: Any, draft: Any, page: Any, _paid: Any) -> tuple[Any, ...]:
    return work, view, draft, page, frozenset(entry.tx for entry in view.ledger.outbox)


_OUTBOXES: Final[Mapping[str, Parts]] = {
    "publish before commit": (
        around(_COMMIT, first(lambda _self, _work, _view, made, *_: Publish(made.outputs) if made.outputs else None)),
    ),
    "save without If-Match": (around(_COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag=_ANY))),),
    "what copies owe is not published": (around(outbox.publish_owed, unasked(Publish, PUBLISHED)),),
    "unknown publish taken as done": (around(outbox.pay, answers(Publish, lambda *_: PUBLISHED)),),
    "sweeper pays without publishing": (around(Outbox.sweep, unasked(Publish, PUBLISHED)),),
}
_PAGES: Final[Mapping[str, Parts]] = {
    "pages: none are looked for": (around(judge.may_have_left, replaced(lambda *_: False)),),
    "pages: looked for in any view": (
        around(judging.look_apart, asks(FindPages, lambda find, *_: replace(find, token=None))),
    ),
    "pages: untimed messages are not looked for by their hash": (
        around(judging.look_apart, asks(FindPages, lambda find, *_: replace(find, hashes=()))),
    ),
    "pages: written after the commit": (around(_COMMIT, _too_late),),
    "pages: that of another history is taken for written": (
        around(
            _COMMIT,
            answers(
                WritePage, lambda reply, _page, _self, _work, view, *_: _written(view) if reply is OTHER else reply
            ),
        ),
    ),
    "few marks: pages of another history are evidence": (
        around(judging.look_apart, answers(FindPages, _as_our_own)),
        *room.room_for(1, 1 << 14),
    ),
    "pages: complete is not raised": (_ledger(lambda made, before: replace(made, complete=before.complete)),),
    "marks are dropped too early": (
        around(draft.next_ledger, called(lambda work, *more: (replace(work, retention=work.retention / 8), *more))),
    ),
}
_PAYMENTS: Final[Mapping[str, Parts]] = {
    "books: a number is closed before it is sent": (
        around(outbox.pay, first(lambda _entity, _outputs, _entries, numbers, _memory: CloseNumbers(numbers))),
    ),
    "books: a conflict closes a number": (_closed_on(Conflict),),
    "books: an unknown save closes a number": (_closed_on(NoAnswer),),
    "books: entries of others are dropped": (around(draft.next_ledger, called(_all_paid)),),
}
_BOOKS: Final[Mapping[str, Parts]] = {
    "books: one pays what is open": (
        around(
            ProcessBook.document,
            lambda shipped: lambda self, now, within: replace(shipped(self, now, within), open=()),
        ),
    ),
    "books: any view closes a number": (
        around(ProcessBook.compare, called(lambda self, entity, version, *more: (self, entity, version + 1, *more))),
    ),
    "books: used before the store has them": (around(Shelf.is_stored, replaced(lambda *_: True)),),
}
_CLEAN_UP: Final = around(retention.clean_staged, unasked(SaveEntity, Saved("0", None)))
_COLOCATED: Final[Mapping[str, Parts]] = {
    "co-located: publish before batch": (
        around(
            _COMMIT_COLOCATED,
            first(lambda _self, _entity, _sight, batch: Publish(batch.outputs) if batch.outputs else None),
        ),
    ),
    "co-located: save without If-Match": (
        around(_COMMIT_COLOCATED, asks(SaveBatch, lambda save, *_: replace(save, etag=_ANY))),
    ),
    "co-located: hits not published": (around(batching.publish_records, unasked(Publish, PUBLISHED)),),
}
_ON_THE_NEWEST_STATE: Final = around(
    version_stream.point_before, replaced(lambda _work, _version, _found, _ledger, now: now)
)
_STREAMS: Final[Mapping[str, Parts]] = {
    "stream: publish before batch": (
        around(
            _COMMIT_ENTRIES, first(lambda _entity, _sight, batch: Publish(batch.outputs) if batch.outputs else None)
        ),
    ),
    "stream: no entry where the state is unchanged": (around(_COMMIT_ENTRIES, _unnoticed_where_unchanged),),
    "stream: duplicates not handled again": (around(version_stream.handled_again, replaced(_not_again)),),
    "stream: duplicates handled on the newest state": (_ON_THE_NEWEST_STATE,),
}
_RESEQUENCERS: Final[Mapping[str, Parts]] = {
    "read model: hold without If-Match": (
        around(
            _COMMIT_RELEASE,
            asks(
                SaveBatch,
                lambda save, _entity, release, _view: save if release.processed else replace(save, etag=_ANY),
            ),
        ),
    ),
    "read model: publish before batch": (
        around(
            _COMMIT_RELEASE,
            first(lambda _entity, release, _view: Publish(tuple(release.outputs)) if release.outputs else None),
        ),
    ),
    "read model: early messages not held": (around(Release._hold, replaced(lambda *_: None)),),  # noqa: SLF001
    "read model: skips what its handler refuses": (around(Release._handled_next, _skipping),),  # noqa: SLF001
    "read model: late messages not reported": (around(resequencing.is_late, replaced(lambda *_: False)),),
    "read model: unknown publish taken as done": (around(_COMMIT_RELEASE, answers(Publish, lambda *_: PUBLISHED)),),
}
_MENDERS: Final[Mapping[str, Parts]] = {
    "read model: gaps skipped without a record": (
        around(gaps.skip, asks(SaveBatch, lambda save, *_: replace(save, create=()))),
    ),
    "read model: sent again as handled on the newest state": (_ON_THE_NEWEST_STATE,),
}


def _lenient(take_or_settle: Function) -> Function:
    """What a batch has settled is processed when it comes again."""

    async def twin(self: Any, message: Any, entity: Any, *known: Any) -> None:
        _, adapter, give_up_after = known
        if (delivery_of(message) or 1) - give_up_after > 1:
            await self.take(message, entity, adapter)
        else:
            await take_or_settle(self, message, entity, *known)

    return twin


def _parking_at_once(unexplained: Function) -> Function:
    """What its environment failed is parked, like what its handler failed."""

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
    """What is given up is decided about however old it is."""
    lifetimes = self.lifetimes
    return replace(self, lifetimes=lambda: _Unbounded(*_values(lifetimes()))), *known


def _values(lifetimes: Lifetimes) -> tuple[Any, ...]:
    return tuple(getattr(lifetimes, field.name) for field in fields(lifetimes))


_RECEIVERS: Final[Mapping[str, Parts]] = {
    "ages are not judged": (constant(receiving, "AgeCheck", lambda runner, *_: runner),),
    "batch processes what it has settled": (around(Receiver._take_or_settle, _lenient),),  # noqa: SLF001
}
_SETTLERS: Final[Mapping[str, Parts]] = {
    "parks what its environment failed": (around(Settler._unexplained, _parking_at_once),),  # noqa: SLF001
    "poison is parked without a look at its age": (around(Settler._decided, called(_unjudged)),),  # noqa: SLF001
}


@dataclass(frozen=True, slots=True)
class _Change:
    """Some lines of a driver, and what takes their place."""

    old: str
    new: str


_HELD: Final = "if not item.done.done()"
_GOES_ON: Final = (
    _Change(f"[item for item in group {_HELD}]", "[item for item in group]"),
    _Change(f"for item in group {_HELD}}}", "for item in group}"),
)
"""These are about local variables of a method, so they are changes of its source."""
_LANES: Final[Mapping[str, Protocols]] = {
    "lane goes on with what was given back": SHIPPED,
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
_UNFENCED: Final[Mapping[str, tuple[Protocols, str, type[Strategy]]]] = {
    "settler without a fence": (SHIPPED, "outbox", Outbox),
    "few marks: settler without a fence": (FEW_MARKS, "outbox", Outbox),
    "co-located: settler without a fence": (COLOCATED, "colocated", Colocated),
    "stream: settler without a fence": (STREAM, "stream", VersionStream),
}


def _unfenced(_entity: Any, view: Any, _absent: Any) -> Step[Memory | Again]:
    """In place of a fence: it proves nothing."""
    yield from Begin()
    memory: Memory = view.memory
    return memory


def _outbox(name: str) -> Protocols:
    parts = {**_OUTBOXES, **_PAGES, **_PAYMENTS}[name]
    return Protocols(strategies=(_twin(Outbox, parts)(),))


def _bookkeeping(name: str) -> Protocols:
    return Protocols(books=_twin(Books, _BOOKS[name], (*BOOKS, keeping)))


def _colocated(name: str) -> Protocols:
    return replace(COLOCATED, strategies=(_twin(Colocated, _COLOCATED[name])(),))


def _stream(name: str) -> Protocols:
    return replace(STREAM, strategies=tuple(map(_twin(VersionStream, _STREAMS[name]), SNAPSHOTS)))


def _resequencer(name: str) -> Protocols:
    return Protocols(resequencer=_twin(Resequencer, _RESEQUENCERS[name]))


def _mending(name: str) -> Protocols:
    again, found, sent = (
        _twin(item, _MENDERS[name]) for item in (Resequencer, replaying.versions_of, replaying.replay)
    )
    return replace(STREAM, resequencer=again, versions_of=found, replay=sent)


def _lane(name: str) -> Protocols:
    # With a settler that parks at once what its environment failed: what ships does so after some rounds only.
    parks = _giving_up("parks what its environment failed")
    lanes = _broken(name, combining, *_GOES_ON).Lanes
    return replace(_LANES[name], giving_up=parks.giving_up, lanes=lanes, heals=False)


def _storing(name: str) -> Protocols:
    protocols, store = _STORES[name]
    return replace(protocols, store=store)


def _parking(name: str) -> Protocols:
    protocols, settled, shipped = _UNFENCED[name]
    twin = _twin(shipped, (Patch(parking.__name__, "fence", lambda _: _unfenced),))
    # Operators ask for the class that ships.
    settling = type(shipped.__name__, (shipped,), {"settle": twin.settle})
    # The host looks no further than the fence, so this settler also parks what its environment failed.
    return replace(protocols, settling={settled: settling}, heals=False)


def _broken(name: str, module: ModuleType, *changes: _Change) -> ModuleType:
    """A module of drivers with changes applied, each to the one place that it fits."""
    source = inspect.getsource(module)
    for change in changes:
        if (times := source.count(change.old)) != 1:
            raise ValueError(f"The change of {name!r} fits in {times} places:\n{change.old}")
        source = source.replace(change.old, change.new)
    made = ModuleType(f"broken_{module.__name__}")
    sys.modules[made.__name__] = made  # Dataclasses look their module up.
    exec(compile(source, f"<{name}>", "exec"), made.__dict__)  # noqa: S102
    return made


def _receiving(name: str) -> Protocols:
    return Protocols(receiver=_twin(Receiver, _RECEIVERS[name], HOST))


def _giving_up(name: str) -> Protocols:
    return Protocols(giving_up=_twin(Settler, _SETTLERS[name], HOST))


def _kept(lifetimes: Lifetimes, now: datetime) -> timedelta:
    return lifetimes.retention.kept(now) / 4


_MAKERS: Final[Mapping[str, Callable[[str], Protocols]]] = {
    **dict.fromkeys((*_OUTBOXES, *_PAGES, *_PAYMENTS), _outbox),
    **dict.fromkeys(_BOOKS, _bookkeeping),
    "clean-up without a fence": lambda _: Protocols(clean_staged=_twin(retention.clean_staged, (_CLEAN_UP,))),
    **dict.fromkeys(_COLOCATED, _colocated),
    **dict.fromkeys(_STREAMS, _stream),
    **dict.fromkeys(_RESEQUENCERS, _resequencer),
    **dict.fromkeys(_MENDERS, _mending),
    **dict.fromkeys(_LANES, _lane),
    **dict.fromkeys(_STORES, _storing),
    **dict.fromkeys(_UNFENCED, _parking),
    **dict.fromkeys(_RECEIVERS, _receiving),
    **dict.fromkeys(_SETTLERS, _giving_up),
    "clean-up by a shorter retention than the judge's": lambda _: Protocols(kept=_kept),
}
NAMES: Final = tuple(_MAKERS)


def protocols_of(name: str) -> Protocols | None:
    """The protocols of a twin; None for an empty name.

    Raises:
        KeyError: there is no such twin.
        ValueError: the change does not fit the source as it is now.
    """
    return _MAKERS[name](name) if name else None
