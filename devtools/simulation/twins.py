"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import ModuleType
from typing import Final

from devtools.modelcheck.twins import Change, broken_beside, broken_chores, broken_menders, broken_outbox
from devtools.simulation.protocols import COLOCATED, SNAPSHOTS, STREAM, Protocols
from exactlyonce import Rebuild
from exactlyonce.drivers import lanes as combining
from exactlyonce.hosting import receiver as receiving
from exactlyonce.hosting import settlement as giving_up
from exactlyonce.values.lifetimes import Lifetimes

_SAVE: Final = "        saved = yield from SaveEntity(entity, document, view.etag)"
_OUTBOXES: Final = {
    "publish before commit": Change(
        _SAVE, f"        if draft.outputs:\n            early = yield from Publish(draft.outputs)\n{_SAVE}"
    ),
    "save without If-Match": Change(_SAVE, _SAVE.replace("view.etag", "'\"*\"'")),
    "hits not published": Change(
        "        remembered = yield from publish_owed(work.entity, hits, view)", "        remembered = view.memory"
    ),
    "records not looked at": Change(
        "known = view.done | {entry.message for entry in hits}", "known = {entry.message for entry in hits}"
    ),
    "stale find accepted": Change("not at_or_after(found.token, ledger.token)", "False"),
    "unknown publish taken as done": Change("            if published is not PUBLISHED:", "            if not entity:"),
}
_SWEEPER: Final = Change(
    "    remembered = yield from publish_owed(entity, view.ledger.entries, view)",
    "    remembered = replace(view.memory, published=view.ledger.owing)",
)
_DELETE: Final = "    yield from DeleteStaged(entity, garbage)"
_CLEAN_UP: Final = Change(
    f"    fenced = yield from fence(entity, view, absent)\n    if isinstance(fenced, Again):\n        return fenced\n{_DELETE}",
    f"    fenced = view.memory\n{_DELETE}",
)

_TOGETHER: Final = "        saved = yield from SaveTogether(entity, document, sight.etag, batch.companions)"
_HITS: Final = """        owed = yield from publish_records(entity, sight.companions, sight.memory)
        if isinstance(owed, Again):
            return owed
"""
_COLOCATED: Final = {
    "co-located: publish before batch": Change(
        _TOGETHER, f"        if batch.outputs:\n            early = yield from Publish(batch.outputs)\n{_TOGETHER}"
    ),
    "co-located: save without If-Match": Change(_TOGETHER, _TOGETHER.replace("sight.etag", "'\"*\"'")),
    "co-located: hits not published": Change(_HITS, ""),
}

_BATCH: Final = (
    "    saved = yield from SaveTogether(entity, batch.document(sight.ledger), sight.etag, batch.companions)"
)
_COMMIT: Final = "        outcome = yield from _commit(work.entity, sight, batch)"
_STREAMS: Final = {
    "stream: publish before batch": Change(
        _BATCH, f"    if batch.outputs:\n        early = yield from Publish(batch.outputs)\n{_BATCH}"
    ),
    "stream: no entry where the state is unchanged": Change(
        _COMMIT,
        "        if batch.body == sight.body:\n"
        "            unchanged = yield from Publish(batch.outputs)\n"
        f"            return Finished(sight.memory, batch.processed)\n{_COMMIT}",
    ),
    "stream: duplicates not handled again": Change("        if entries:", "        if not messages:"),
    "stream: duplicates handled on the newest state": Change(
        "            before = point_before(work, entry.version, stream, sight.ledger, now)", "            before = now"
    ),
}

_RELEASE: Final = "SaveTogether(entity, document, view.etag, tuple(release.create), tuple(release.replace))"
_RELEASED: Final = f"    saved = yield from {_RELEASE}"
_HOLD: Final = "                self._hold(place, envelope, begun)"
_STOP: Final = (
    "            self._receptions[source] = replace(reception, failing=type(error).__name__)\n            return False"
)
_RESEQUENCERS: Final = {
    "read model: hold without If-Match": Change(
        _RELEASE, _RELEASE.replace("view.etag", "view.etag if release.processed else '\"*\"'")
    ),
    "read model: publish before batch": Change(
        _RELEASED,
        f"    if release.outputs:\n        early = yield from Publish(tuple(release.outputs))\n{_RELEASED}",
    ),
    "read model: early messages not held": Change(_HOLD, "                pass"),
    "read model: skips what its handler refuses": Change(
        _STOP,
        "            self._receptions[source] = replace(reception, next=reception.next + 1)\n            return True",
    ),
    "read model: what comes too late not told": Change(
        "late = self._max_wait is not None and is_late(envelope, self._receptions.values())", "late = False"
    ),
    "read model: unknown publish taken as done": Change(
        "        if published is not PUBLISHED:", "        if not entity:"
    ),
}
_SKIPPED: Final = "SaveTogether(entity, document, view.etag, tuple(skipped))"
_MENDERS: Final = {
    "read model: gaps skipped without telling": Change(_SKIPPED, "SaveTogether(entity, document, view.etag)"),
    "read model: sent again as handled on the newest state": Change(
        "    before = point_before(work, version, entries, view.ledger, now)", "    before = now"
    ),
}


_HELD: Final = "if not one.done.done()"
_LANES: Final = {
    "lane goes on with what was given back": (
        Change(f"[one for one in group {_HELD}]", "[one for one in group]"),
        Change(f"for one in group {_HELD}}}", "for one in group}"),
    ),
}
_RECEIVERS: Final = {
    "ages are not judged": (
        Change("Judging(runner, ref, lifetimes) if entity.strategy.forgets else runner", "runner"),
    ),
    "batch processes what it has settled": (Change("        if times < 1:", "        if times != 1:"),),
}
_SETTLERS: Final = {
    "parks what its environment failed": (
        Change("        if cause is Cause.ENVIRONMENT:\n            return so_far\n", "        return None\n"),
    ),
    "poison is parked without a look at its age": (
        Change("        if given.entity.strategy.forgets:", "        if given is None:"),
    ),
}


def _outbox(name: str) -> Protocols:
    return Protocols(outbox=broken_outbox(name, _OUTBOXES[name]))


def _sweeping(name: str) -> Protocols:
    return Protocols(sweep=broken_chores(name, _SWEEPER).sweep)


def _cleaning(name: str) -> Protocols:
    return Protocols(clean_staged=broken_chores(name, _CLEAN_UP).clean_staged)


def _colocated(name: str) -> Protocols:
    made = vars(broken_beside(name, "colocated", _COLOCATED[name]))
    return replace(COLOCATED, beside=(made["Colocated"](),), sweep=made["sweep"])


def _stream(name: str) -> Protocols:
    made = vars(broken_beside(name, "stream", _STREAMS[name]))
    return replace(STREAM, beside=tuple(map(made["VersionStream"], SNAPSHOTS)))


def _resequencer(name: str) -> Protocols:
    made = vars(broken_beside(name, "resequencer", _RESEQUENCERS[name]))
    made["Rebuild"] = Rebuild  # Whoever looks after gaps asks for its class.
    return Protocols(resequencer=made["Resequencer"])


def _mending(name: str) -> Protocols:
    menders = broken_menders(name, _MENDERS[name])
    return replace(STREAM, tend=menders.tend, versions_of=menders.versions_of, replay=menders.replay)


def _lane(name: str) -> Protocols:
    # With a settler that parks at once what its environment failed: what ships does so after some rounds only.
    parks = _giving_up("parks what its environment failed")
    return replace(parks, combiner=_broken(name, combining, *_LANES[name]).Combiner, heals=False)


def _broken(name: str, module: ModuleType, *changes: Change) -> ModuleType:
    """A module of drivers or hosting with changes applied, each to the one place that it fits."""
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
    return Protocols(receiver=_broken(name, receiving, *_RECEIVERS[name]).Receiver)


def _giving_up(name: str) -> Protocols:
    return Protocols(giving_up=_broken(name, giving_up, *_SETTLERS[name]).GivingUp)


def _kept(lifetimes: Lifetimes, now: datetime) -> timedelta:
    return lifetimes.retention.kept(now) / 4


_MAKERS: Final[Mapping[str, Callable[[str], Protocols]]] = {
    **dict.fromkeys(_OUTBOXES, _outbox),
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
