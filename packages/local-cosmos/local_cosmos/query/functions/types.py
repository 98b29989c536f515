"""Functions that test the type of a value, which undefined has not; and the number of an item."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from local_cosmos.query.calculating import is_number
from local_cosmos.query.comparing import is_primitive
from local_cosmos.query.functions.signature import (
    Function,
    Kind,
    anything,
    function,
    is_array,
    is_boolean,
    is_defined,
    is_integer,
    is_object,
    is_string,
)
from local_cosmos.values import UNDEFINED

_TESTS: Final[Mapping[str, Kind]] = {
    "IS_ARRAY": is_array,
    "IS_BOOL": is_boolean,
    "IS_BOOLEAN": is_boolean,  # As azure-cosmos for Java writes it.
    "IS_DEFINED": is_defined,
    "IS_FINITE_NUMBER": is_number,  # No number here is infinite.
    "IS_INTEGER": is_integer,
    "IS_NULL": lambda value: value is None,
    "IS_NUMBER": is_number,
    "IS_OBJECT": is_object,
    "IS_PRIMITIVE": is_primitive,
    "IS_STRING": is_string,
}

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


FUNCTIONS: Final[Mapping[str, Function]] = {
    "DOCUMENTID": function(_document_id, is_object),
    **{name: function(test, anything) for name, test in _TESTS.items()},
}
