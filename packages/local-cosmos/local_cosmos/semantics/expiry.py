"""Time to live: when an item becomes invisible.

Documented behaviour: without the container's `defaultTtl`, nothing expires and an item's `ttl` means nothing; `-1` lets
only items with their own `ttl` expire; a positive number is the default. Seconds count from the last write; -1 in an item
means never.
"""

from __future__ import annotations

from typing import Final

from local_cosmos.semantics.errors import bad_request
from local_cosmos.storage.items import Item
from local_cosmos.values import UNDEFINED

NEVER: Final = -1


def checked(ttl: object, where: str) -> int | None:
    """A valid time to live in seconds, or None when there is none.

    Raises:
        RefusedError: 400; only a positive integer or -1 is allowed.
    """
    if ttl is UNDEFINED:
        return None
    if not isinstance(ttl, int) or isinstance(ttl, bool) or (ttl < 1 and ttl != NEVER):
        raise bad_request(f"The ttl of the {where} must be a positive integer or -1; it is {ttl!r}.")
    return ttl


def is_expired(item: Item, default_ttl: int | None, now: float) -> bool:
    """Whether an item is invisible at `now`, in seconds since 1970, given the container's `defaultTtl`."""
    if default_ttl is None:
        return False
    ttl = default_ttl if item.ttl is None else item.ttl
    return ttl != NEVER and item.modified + ttl <= now
