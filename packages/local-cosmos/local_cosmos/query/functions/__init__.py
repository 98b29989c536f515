"""The built-in functions: one table, by the name in capitals. Each module has those of one subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from local_cosmos.query.functions import arrays, dates, numbers, strings, types
from local_cosmos.query.functions.dates import OF_THE_CLOCK
from local_cosmos.query.functions.signature import Function

__all__ = ["FUNCTIONS", "OF_THE_CLOCK", "Function"]

FUNCTIONS: Final[Mapping[str, Function]] = {
    name: function
    for subject in (arrays, dates, numbers, strings, types)
    for name, function in subject.FUNCTIONS.items()
}
"""Functions of one row, by name."""
