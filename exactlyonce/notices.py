"""Notices: what a process tells its operators once, in its log."""

from __future__ import annotations

import logging
from typing import Final

from exactlyonce.handling.messages import UNREAD

_MOST: Final = 1_000
"""Most notices of a process: senders choose the names in them."""
_log = logging.getLogger("exactlyonce")
_told: Final[set[tuple[str, str]]] = set()


def tell_unread(type: str, names: frozenset[str]) -> None:
    """Warn of properties that were sent and are not read, once for each type and property.

    Args:
        type: name of the message type.
        names: places of the properties, without values, safe for a log.
    """
    new = sorted({(type, name) for name in names} - _told)[: _MOST - len(_told)]
    if new:
        _told.update(new)
        _log.warning(
            "messages of type %s have properties that their model here does not read, so they are lost: %s. Is this instance "
            'older than their sender? Add them to the model, or refuse such messages with extra="forbid"',
            type,
            ", ".join(name for _, name in new),
        )


UNREAD.append(tell_unread)
