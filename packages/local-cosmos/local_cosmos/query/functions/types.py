"""Functions that test the type of a value. Undefined has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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

FUNCTIONS: Final[Mapping[str, Function]] = {name: function(test, anything) for name, test in _TESTS.items()}
