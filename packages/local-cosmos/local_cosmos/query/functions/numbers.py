"""Mathematical functions, on doubles; those named `Int…` on integers of 64 bits.

A result that JSON cannot hold is undefined, and so is an integer that 64 bits cannot hold: whether the service wraps it around
is documented nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from operator import add, and_, mul, or_, sub, xor
from random import random
from typing import Any, Final

from local_cosmos.query.calculating import is_number, number
from local_cosmos.query.functions.signature import Function, function, is_integer
from local_cosmos.values import UNDEFINED

_BITS: Final = 64
_DIGITS: Final = 400
"""More than any double is written with."""


def _on_numbers(calculate: Callable[..., float], arguments: int = 1, optional: int = 0) -> Function:
    def result(*values: float) -> Any:
        try:
            return number(calculate(*values))
        except (ValueError, OverflowError, ZeroDivisionError):
            return UNDEFINED

    return function(result, *[is_number] * arguments, optional=optional)


def _on_integers(calculate: Callable[..., int], arguments: int = 2) -> Function:
    def result(*values: float) -> Any:
        try:
            found = calculate(*map(int, values))
        except (ValueError, ZeroDivisionError):
            return UNDEFINED
        return found if is_integer(found) else UNDEFINED

    return function(result, *[is_integer] * arguments)


def _round(value: float, digits: float = 0) -> float:
    """Halves go away from zero, by the decimal digits that a number is written with: 1.005 and two digits make 1.01."""
    written = Decimal(repr(float(value)))
    exponent = int(written.as_tuple().exponent)
    if -digits <= exponent:
        return value
    if -digits > exponent + _DIGITS:  # Python would write all the zeros of a number that is rounded away.
        return 0
    return float(written.quantize(Decimal((0, (1,), -int(digits))), ROUND_HALF_UP))


def _bin(value: float, size: float = 1) -> float:
    """The multiple of a size that a number is rounded down to."""
    bins = math.floor(value / size)
    return round(bins * size, 15 - len(str(abs(int(value)))))  # 377 * 0.1 is 37.7 and a rounding error.


def _divided(dividend: int, divisor: int) -> int:
    """Towards zero, as processors divide."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _shifted(value: int, places: int) -> int:
    """Left; right for a negative number of places."""
    if not -_BITS < places < _BITS:
        raise ValueError(places)
    return value << places if places >= 0 else value >> -places


def _log(number: float, base: float = math.e) -> float:
    return math.log(number) if base == math.e else math.log10(number) / math.log10(base)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "ABS": _on_numbers(abs),
    "ACOS": _on_numbers(math.acos),
    "ASIN": _on_numbers(math.asin),
    "ATAN": _on_numbers(math.atan),
    "ATN2": _on_numbers(math.atan2, 2),
    "CEILING": _on_numbers(math.ceil),
    "COS": _on_numbers(math.cos),
    "COT": _on_numbers(lambda angle: 1 / math.tan(angle)),
    "DEGREES": _on_numbers(lambda angle: angle * 180 / math.pi),
    "EXP": _on_numbers(math.exp),
    "FLOOR": _on_numbers(math.floor),
    "LOG": _on_numbers(_log, 2, optional=1),
    "LOG10": _on_numbers(math.log10),
    "NUMBERBIN": _on_numbers(_bin, 2, optional=1),
    "PI": _on_numbers(lambda: math.pi, 0),
    "POWER": _on_numbers(math.pow, 2),
    "RADIANS": _on_numbers(lambda angle: angle * math.pi / 180),
    "RAND": _on_numbers(random, 0),
    "ROUND": function(lambda *values: number(_round(*values)), is_number, is_integer, optional=1),
    "SIGN": _on_numbers(lambda value: (value > 0) - (value < 0)),
    "SIN": _on_numbers(math.sin),
    "SQRT": _on_numbers(math.sqrt),
    "SQUARE": _on_numbers(lambda value: value * value),
    "TAN": _on_numbers(math.tan),
    "TRUNC": _on_numbers(math.trunc),
    "INTADD": _on_integers(add),
    "INTBITAND": _on_integers(and_),
    "INTBITLEFTSHIFT": _on_integers(_shifted),
    "INTBITNOT": _on_integers(lambda value: ~value, 1),
    "INTBITOR": _on_integers(or_),
    "INTBITRIGHTSHIFT": _on_integers(lambda value, places: _shifted(value, -places)),
    "INTBITXOR": _on_integers(xor),
    "INTDIV": _on_integers(_divided),
    "INTMOD": _on_integers(lambda dividend, divisor: dividend - divisor * _divided(dividend, divisor)),
    "INTMUL": _on_integers(mul),
    "INTSUB": _on_integers(sub),
}
