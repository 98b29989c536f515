"""Notices: what a process tells its operators once, in its log."""

from __future__ import annotations

import logging
from typing import Final

from exactlyonce.handling.messages import UNREAD

_MOST: Final = 1_000
"""Most notices of a process: senders choose the names in them."""
_log = logging.getLogger("exactlyonce")
_told: Final[set[tuple[str, str]]] = set()


def tell_unread(of: str, names: frozenset[str], fate: str, advice: str) -> None:
    """Warn of properties that are not read, once for each of what has them.

    Args:
        of: what has them, such as messages of a type.
        names: places of the properties, without values.
        fate: what becomes of them.
        advice: what to do.
    """
    new = sorted({(of, name) for name in names} - _told)[: _MOST - len(_told)]
    if new:
        _told.update(new)
        _log.warning("properties of %s %s: %s. %s", of, fate, ", ".join(name for _, name in new), advice)


UNREAD.append(tell_unread)
