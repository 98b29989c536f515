"""Functions on items."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from local_cosmos.query.functions.signature import Function, function, is_object
from local_cosmos.values import UNDEFINED

_RID_BYTES: Final = 16
_OWNER_BYTES: Final = 8
"""Of an item's resource id: those of its database and container, which come first."""


def _document_id(item: dict[str, Any]) -> Any:
    """The number of an item within its physical partition."""
    try:
        rid = base64.b64decode(item["_rid"], altchars=b"+-", validate=True)
    except (KeyError, TypeError, ValueError):
        return UNDEFINED
    return int.from_bytes(rid[_OWNER_BYTES:], "little") if len(rid) == _RID_BYTES else UNDEFINED


FUNCTIONS: Final[Mapping[str, Function]] = {"DOCUMENTID": function(_document_id, is_object)}
