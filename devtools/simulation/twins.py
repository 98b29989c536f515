"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from devtools.modelcheck.twins import Change, broken_beside, broken_chores, broken_menders, broken_outbox
from devtools.simulation.protocols import COLOCATED, SNAPSHOTS, STREAM, Protocols
from exactlyonce import Rebuild

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


_MAKERS: Final[Mapping[str, Callable[[str], Protocols]]] = {
    **dict.fromkeys(_OUTBOXES, _outbox),
    "sweeper marks without publishing": _sweeping,
    "clean-up without a fence": _cleaning,
    **dict.fromkeys(_COLOCATED, _colocated),
    **dict.fromkeys(_STREAMS, _stream),
    **dict.fromkeys(_RESEQUENCERS, _resequencer),
    **dict.fromkeys(_MENDERS, _mending),
}
NAMES: Final = tuple(_MAKERS)


def protocols_of(name: str) -> Protocols | None:
    """The protocols of a twin; None for an empty name.

    Raises:
        KeyError: there is no such twin.
        ValueError: the change does not fit the source as it is now.
    """
    return _MAKERS[name](name) if name else None
