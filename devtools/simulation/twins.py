"""Protocols with one guard missing: what a simulation that finds nothing has to be compared with."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any, Final

from devtools.modelcheck.twins import Change, broken_outbox
from devtools.simulation.protocols import SHIPPED, Protocols
from exactlyonce.strategies import retention, settling

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
_CLEAN_UP: Final = Change("fenced = yield from fence(entity, view, absent)", "fenced = view.memory")

NAMES: Final = (*_OUTBOXES, "sweeper marks without publishing", "clean-up without a fence")


def protocols_of(name: str) -> Protocols:
    """The shipped protocols for an empty name; else those of a twin.

    Raises:
        KeyError: there is no such twin.
        ValueError: the change does not fit the source as it is now.
    """
    if not name:
        return SHIPPED
    if name == "sweeper marks without publishing":
        return Protocols(sweep=_broken(settling, "sweep", _SWEEPER))
    if name == "clean-up without a fence":
        return Protocols(clean_staged=_broken(retention, "clean_staged", _CLEAN_UP))
    return Protocols(outbox=broken_outbox(name, _OUTBOXES[name]))


def _broken(module: ModuleType, function: str, change: Change) -> Any:
    source = inspect.getsource(module)
    if source.count(change.old) != 1:
        raise ValueError(f"The change fits in {source.count(change.old)} places:\n{change.old}")
    twin = ModuleType(f"{module.__name__}_broken")
    sys.modules[twin.__name__] = twin  # Dataclasses look their module up.
    exec(compile(source.replace(change.old, change.new), f"<{function}>", "exec"), twin.__dict__)  # noqa: S102
    return getattr(twin, function)
