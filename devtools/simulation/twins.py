"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.twins import Change, broken_chores, broken_outbox
from devtools.simulation.protocols import Protocols

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

NAMES: Final = (*_OUTBOXES, "sweeper marks without publishing", "clean-up without a fence")


def protocols_of(name: str) -> Protocols | None:
    """The protocols of a twin; None for an empty name.

    Raises:
        KeyError: there is no such twin.
        ValueError: the change does not fit the source as it is now.
    """
    if not name:
        return None
    if name == "sweeper marks without publishing":
        return Protocols(sweep=broken_chores(name, _SWEEPER).sweep)
    if name == "clean-up without a fence":
        return Protocols(clean_staged=broken_chores(name, _CLEAN_UP).clean_staged)
    return Protocols(outbox=broken_outbox(name, _OUTBOXES[name]))
