"""Aggregates over all rows of a query: one row comes back.

Documented behaviour: undefined values are skipped; SUM and AVG are undefined as soon as a value is not a number, MIN and MAX
as soon as one is an array or object. Of no values COUNT and SUM are 0 and the others undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from local_cosmos.query.calculating import is_number, number
from local_cosmos.query.comparing import is_primitive, sort_key
from local_cosmos.values import UNDEFINED


def _sum(values: Sequence[Any]) -> Any:
    return number(sum(map(float, values))) if all(map(is_number, values)) else UNDEFINED


def _average(values: Sequence[Any]) -> Any:
    total = _sum(values)
    return number(total / len(values)) if values and total is not UNDEFINED else UNDEFINED


def _extreme(choose: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    def of(values: Sequence[Any]) -> Any:
        if not values or not all(map(is_primitive, values)):
            return UNDEFINED
        return choose(values, key=sort_key)

    return of


AGGREGATES: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "COUNT": len,
    "SUM": _sum,
    "MIN": _extreme(min),
    "MAX": _extreme(max),
    "AVG": _average,
}
"""By name: from the defined values to the result."""
