"""Commands on the whole application: the owner of the library's container, and the retention."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.cli.tables import application_lines, plain
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.values.lifetimes import SETTLING_IN, Retention

_NONE: Final = "the library's container has no owner yet: the application has never started"
_CHANGED: Final = "the application was changed by another command just now; nothing was done. Look at it again"
_GONE: Final = """\
The library's container keeps pages and documents by the name of the type. If a type {type} is declared again, in any
container, an entity that has such pages and no document is refused. Go on only if the type is gone for good, or if its
documents were moved unchanged, with their companions.
Nothing was changed. Say --yes to go on."""


async def application(once: ExactlyOnce, options: argparse.Namespace) -> int:
    """Show the application, or forget an entity type."""
    ownership = await once.ownership()
    stored = await ownership.stored()
    if stored is None:
        return _answer(_NONE, NOT_DONE)
    if options.forget is None:
        return _answer("\n".join(application_lines(stored)), DONE)
    if not options.yes:
        return _answer(_GONE.format(type=plain(options.forget)), NOT_POSSIBLE)
    return _answer("forgotten", DONE) if await ownership.forget(options.forget, stored) else _answer(_CHANGED, NOT_DONE)


async def retention(once: ExactlyOnce, options: argparse.Namespace) -> int:
    """Change the retention."""
    ownership = await once.ownership()
    stored = await ownership.stored()
    if stored is None:
        return _answer(_NONE, NOT_DONE)
    present = stored.application.retention
    if not present.settled(stored.now):
        return _answer("\n".join([*application_lines(stored), "A change is under way; nothing was changed."]), NOT_DONE)
    if options.new == present.current:
        return _answer(f"it is {present.current} already", DONE)
    if not options.yes:
        return _answer(
            "\n".join([*_effects(present, options.new), "Nothing was changed. Say --yes to go on."]), NOT_POSSIBLE
        )
    if not await ownership.change_retention(options.new, stored):
        return _answer(_CHANGED, NOT_DONE)
    return _answer("\n".join(["changed", *_effects(present, options.new)]), DONE)


def _effects(present: Retention, new: timedelta) -> Iterator[str]:
    """The effects of a change of the retention, and their times."""
    yield f"retention   {present.current}, then {new}"
    if new < present.current:
        yield "judged by   the new retention, in every process within an hour; older messages are parked from then on"
        yield f"kept for    the old retention for {SETTLING_IN} more, then the new retention"
    else:
        filled = SETTLING_IN + new - present.current
        grows = f"then growing with the time that passes, to the new retention after {filled}"
        yield f"judged by   the old retention for {SETTLING_IN} more, {grows}"
        yield "kept for    the new retention, by clean-ups that begin from now on"
    yield "Another change has to wait until then. EXACTLYONCE__retention, if set, has to be the new retention by then."


def _answer(text: str, code: int) -> int:
    print(text)
    return code
