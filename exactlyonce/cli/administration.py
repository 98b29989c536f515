"""Commands about the application as a whole: whose the library's container is, and for how long messages are known."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from exactlyonce.cli.exit_codes import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.cli.tables import application_lines, plain
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.values.lifetimes import SETTLING_IN, Retention

_NONE: Final = "nothing says whose the library's container is: the application has never started"
_CHANGED: Final = "somebody else changed the application just now; nothing was done. Look at it again"
_GONE: Final = """\
The library's container keeps records by the name of the type. Should a type {type} come back, in whatever container, what
these records tell of counts as processed: messages are acknowledged and not applied. Go on only if the type is gone for good,
or if its documents were moved as they are, with all that the library keeps beside them.
Nothing was changed. Say --yes to go on."""


async def application(once: ExactlyOnce, given: argparse.Namespace) -> int:
    """Show the application, or give up one of its types."""
    ownership = await once.ownership()
    found = await ownership.stored()
    if found is None:
        return _told(_NONE, NOT_DONE)
    if given.forget is None:
        return _told("\n".join(application_lines(found)), DONE)
    if not given.yes:
        return _told(_GONE.format(type=plain(given.forget)), NOT_POSSIBLE)
    return _told("forgotten", DONE) if await ownership.forget(given.forget, found) else _told(_CHANGED, NOT_DONE)


async def retention(once: ExactlyOnce, given: argparse.Namespace) -> int:
    """Change for how long messages are known."""
    ownership = await once.ownership()
    found = await ownership.stored()
    if found is None:
        return _told(_NONE, NOT_DONE)
    known = found.application.retention
    if not known.settled(found.now):
        return _told("\n".join([*application_lines(found), "A change is under way; nothing was changed."]), NOT_DONE)
    if given.new == known.current:
        return _told(f"it is {known.current} already", DONE)
    if not given.yes:
        return _told("\n".join([*_effects(known, given.new), "Nothing was changed. Say --yes to go on."]), NOT_POSSIBLE)
    if not await ownership.change_retention(given.new, found):
        return _told(_CHANGED, NOT_DONE)
    return _told("\n".join(["changed", *_effects(known, given.new)]), DONE)


def _effects(known: Retention, new: timedelta) -> Iterator[str]:
    """What takes effect when."""
    yield f"retention   {known.current}, then {new}"
    if new < known.current:
        yield "judged by   the new one, in every process within an hour; older messages are parked from then on"
        yield f"kept for    the old one for {SETTLING_IN} more, then the new one"
    else:
        filled = SETTLING_IN + new - known.current
        yield f"judged by   the old one for {SETTLING_IN} more, then by as much more as time passes: the new one after {filled}"
        yield "kept for    the new one, by clean-ups that begin from now on"
    yield "Another change has to wait until then. EXACTLYONCE__retention, where it is set, has to say the new one by then."


def _told(text: str, code: int) -> int:
    print(text)
    return code
