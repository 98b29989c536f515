"""Notices: warnings that a process logs once for its operators."""

from __future__ import annotations

import logging
from typing import Final

from exactlyonce.handling.messages import UNREAD

_MOST: Final = 1_000
"""Most notices of a process: senders choose the names in them."""
_log = logging.getLogger("exactlyonce")
_told: Final[set[tuple[str, str]]] = set()


def tell_unread(of: str, names: frozenset[str], fate: str, advice: str) -> None:
    """Warn of unread properties, once for each kind of object.

    Args:
        of: the objects with the properties, such as messages of a type.
        names: places of the properties, without values.
        fate: the treatment of the properties, such as being dropped.
        advice: advice for the operator.
    """
    new = sorted({(of, name) for name in names} - _told)[: _MOST - len(_told)]
    if new:
        _told.update(new)
        _log.warning("properties of %s %s: %s. %s", of, fate, ", ".join(name for _, name in new), advice)


UNREAD.append(tell_unread)
