"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.attempt import Finished, key_of
from exactlyonce.drivers import lanes as combining
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import FindChannels, WriteRecords, Written
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.hosting.deliveries import receiver as receiving
from exactlyonce.hosting.deliveries.failures import Cause
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Settler
from exactlyonce.hosting.deliveries.triggers import delivery_of
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import judge, look
from exactlyonce.protocols.resequencer import order as total_order
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.protocols.stream import versions
from exactlyonce.values.lifetimes import Lifetimes
from verification.mutants.named import Mutation, Part, twin_of_parts
from verification.simulation.protocols import COLOCATED, SNAPSHOTS, STREAM, Protocols
from verification.twins.alterations import asks, called, deferred, first, replaced, unasked
from verification.twins.host import HOST
from verification.twins.modules import around, constant

_COMMIT: Final = Outbox._commit  # noqa: SLF001
_COMMIT_COLOCATED: Final = Colocated._commit  # noqa: SLF001
_COMMIT_ENTRIES: Final = version_stream._commit  # noqa: SLF001
_COMMIT_RELEASE: Final = resequencer._commit  # noqa: SLF001
_ANY: Final = '"*"'
"""The ETag of whatever is there."""

Function = Callable[..., Any]


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


_OUTBOXES: Final[Mapping[str, tuple[Part, ...]]] = {
    "publish before commit": (
        around(_COMMIT, first(lambda _self, _work, _view, draft: Publish(draft.outputs) if draft.outputs else None)),
    ),
    "save without If-Match": (around(_COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag=_ANY))),),
    "hits not published": (Mutation("outbox: hits not published"),),
    "records not looked at": (Mutation("outbox: records not looked at"),),
    "stale find accepted": (Mutation("outbox: stale find accepted"),),
    "unknown publish taken as done": (Mutation("outbox: unknown publish taken as done"),),
}
_NUMBERS: Final[Mapping[str, tuple[Part, ...]]] = {
    "channels: documents are written after the commit": (
        around(_COMMIT, deferred(WriteRecords, Written("0:-1#0"), SaveEntity)),
    ),
    "channels: those that left are not looked for": (around(judge.unknown_channels, replaced(lambda *_: ())),),
    "channels: looked for in any view": (
        around(look.look_apart, asks(FindChannels, lambda find, *_: replace(find, token=None))),
    ),
    "numbers: a fork is acknowledged": (
        around(judge.judged, lambda shipped: lambda *known: replace(shipped(*known), failed=())),
    ),
}
_SWEEPER: Final = around(Outbox.sweep, unasked(Publish, PUBLISHED))
_CLEAN_UP: Final = Mutation("clean-up without a fence")
_COLOCATED: Final[Mapping[str, tuple[Part, ...]]] = {
    "co-located: publish before batch": (
        around(
            _COMMIT_COLOCATED,
            first(lambda _self, _entity, _sight, batch: Publish(batch.outputs) if batch.outputs else None),
        ),
    ),
    "co-located: save without If-Match": (
        around(_COMMIT_COLOCATED, asks(SaveBatch, lambda save, *_: replace(save, etag=_ANY))),
    ),
    "co-located: hits not published": (Mutation("co-located: a hit is not published"),),
}
_ON_THE_NEWEST_STATE: Final = around(versions.point_before, replaced(lambda _work, _version, _found, _ledger, now: now))
_STREAMS: Final[Mapping[str, tuple[Part, ...]]] = {
    "stream: publish before batch": (
        around(
            _COMMIT_ENTRIES, first(lambda _entity, _sight, batch: Publish(batch.outputs) if batch.outputs else None)
        ),
    ),
    "stream: no entry where the state is unchanged": (around(_COMMIT_ENTRIES, _unnoticed_where_unchanged),),
    "stream: duplicates not handled again": (
        Mutation("stream: a duplicate is acknowledged without being handled again"),
    ),
    "stream: duplicates handled on the newest state": (_ON_THE_NEWEST_STATE,),
}
_RESEQUENCERS: Final[Mapping[str, tuple[Part, ...]]] = {
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
    "read model: early messages not held": (Mutation("read model: an early message acknowledged, and not held"),),
    "read model: skips what its handler refuses": (around(Release._handled_next, _skipping),),  # noqa: SLF001
    "read model: late messages not reported": (around(total_order.is_late, replaced(lambda *_: False)),),
    "read model: unknown publish taken as done": (Mutation("read model: unknown publish taken as done"),),
}
_MENDERS: Final[Mapping[str, tuple[Part, ...]]] = {
    "read model: gaps skipped without a record": (Mutation("released past the gap without a record of it"),),
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
    return tuple(getattr(lifetimes, one.name) for one in fields(lifetimes))


_RECEIVERS: Final[Mapping[str, tuple[Part, ...]]] = {
    "ages are not judged": (constant(receiving, "AgeCheck", lambda runner, *_: runner),),
    "batch processes what it has settled": (around(Receiver._take_or_settle, _lenient),),  # noqa: SLF001
}
_SETTLERS: Final[Mapping[str, tuple[Part, ...]]] = {
    "parks what its environment failed": (around(Settler._unexplained, _parking_at_once),),  # noqa: SLF001
    "poison is parked without a look at its age": (around(Settler._decided, called(_unjudged)),),  # noqa: SLF001
}


@dataclass(frozen=True, slots=True)
class _Change:
    """Some lines of a driver, and what takes their place."""

    old: str
    new: str


_HELD: Final = "if not one.done.done()"
_LANES: Final = {
    "lane goes on with what was given back": (
        _Change(f"[one for one in group {_HELD}]", "[one for one in group]"),
        _Change(f"for one in group {_HELD}}}", "for one in group}"),
    ),
}
"""These are about local variables of a method, so they are changes of its source."""


def _outbox(name: str) -> Protocols:
    return Protocols(outbox=twin_of_parts({**_OUTBOXES, **_NUMBERS}[name]).of(Outbox))


def _sweeping(_name: str) -> Protocols:
    return Protocols(outbox=twin_of_parts((_SWEEPER,)).of(Outbox))


def _cleaning(_name: str) -> Protocols:
    return Protocols(clean_staged=twin_of_parts((_CLEAN_UP,)).of(retention.clean_staged))


def _colocated(name: str) -> Protocols:
    twin = twin_of_parts(_COLOCATED[name])
    return replace(COLOCATED, companions=(twin.of(Colocated)(),))


def _stream(name: str) -> Protocols:
    return replace(STREAM, companions=tuple(map(twin_of_parts(_STREAMS[name]).of(VersionStream), SNAPSHOTS)))


def _resequencer(name: str) -> Protocols:
    return Protocols(resequencer=twin_of_parts(_RESEQUENCERS[name]).of(Resequencer))


def _mending(name: str) -> Protocols:
    twin = twin_of_parts(_MENDERS[name])
    found, sent = map(twin.of, (replaying.versions_of, replaying.replay))
    return replace(STREAM, resequencer=twin.of(Resequencer), versions_of=found, replay=sent)


def _lane(name: str) -> Protocols:
    # With a settler that parks at once what its environment failed: what ships does so after some rounds only.
    parks = _giving_up("parks what its environment failed")
    return replace(parks, lanes=_broken(name, combining, *_LANES[name]).Lanes, heals=False)


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
    return Protocols(receiver=twin_of_parts(_RECEIVERS[name]).of(Receiver, HOST))


def _giving_up(name: str) -> Protocols:
    return Protocols(giving_up=twin_of_parts(_SETTLERS[name]).of(Settler, HOST))


def _kept(lifetimes: Lifetimes, now: datetime) -> timedelta:
    return lifetimes.retention.kept(now) / 4


_MAKERS: Final[Mapping[str, Callable[[str], Protocols]]] = {
    **dict.fromkeys((*_OUTBOXES, *_NUMBERS), _outbox),
    "sweeper marks without publishing": _sweeping,
    "clean-up without a fence": _cleaning,
    **dict.fromkeys(_COLOCATED, _colocated),
    **dict.fromkeys(_STREAMS, _stream),
    **dict.fromkeys(_RESEQUENCERS, _resequencer),
    **dict.fromkeys(_MENDERS, _mending),
    **dict.fromkeys(_LANES, _lane),
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
