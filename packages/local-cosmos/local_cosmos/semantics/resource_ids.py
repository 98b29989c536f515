"""Resource ids: 4 bytes for a database, 8 for a container, 16 for an item, each beginning with its owner's."""

from __future__ import annotations

import base64


def database_rid(number: int) -> str:
    """The resource id of a database."""
    return _text(number.to_bytes(4, "big"))


def container_rid(database: str, number: int) -> str:
    """The resource id of a container; the highest bit tells it from a user's."""
    return _text(_bytes(database) + (0x80000000 | number).to_bytes(4, "big"))


def item_rid(container: str, ordinal: int) -> str:
    """The resource id of an item."""
    return _text(_bytes(container) + ordinal.to_bytes(8, "little"))


def _text(rid: bytes) -> str:
    return base64.b64encode(rid, altchars=b"+-").decode("ascii")


def _bytes(rid: str) -> bytes:
    return base64.b64decode(rid, altchars=b"+-")
