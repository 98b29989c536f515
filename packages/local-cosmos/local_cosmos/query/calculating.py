"""Arithmetic on doubles, operators on bits, and `||` on strings. What has operands of other types, or no result that JSON can
hold, is undefined.

Operators on bits take and give signed integers of 32 bits, as those of JavaScript do; `>>>` gives an unsigned one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import add, mul, sub, truediv
from typing import Any, Final

from local_cosmos.values import UNDEFINED

_OPERATIONS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "%": math.fmod,  # The sign is the dividend's.
    "&": lambda left, right: _signed(_bits(left) & _bits(right)),
    "|": lambda left, right: _signed(_bits(left) | _bits(right)),
    "^": lambda left, right: _signed(_bits(left) ^ _bits(right)),
    "<<": lambda left, right: _signed(_bits(left) << (_bits(right) % 32)),
    ">>": lambda left, right: _signed(_bits(left)) >> (_bits(right) % 32),
    ">>>": lambda left, right: _bits(left) >> (_bits(right) % 32),
}


def is_number(value: object) -> bool:
    """Whether a value is a number; unlike in Python, true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def calculate(operator: str, left: Any, right: Any) -> Any:
    """The result of an operation on two values."""
    if operator == "||":
        return left + right if isinstance(left, str) and isinstance(right, str) else UNDEFINED
    if not is_number(left) or not is_number(right):
        return UNDEFINED
    try:
        return number(_OPERATIONS[operator](left, right))
    except (ZeroDivisionError, ValueError, OverflowError):
        return UNDEFINED


def number(result: float) -> Any:
    """A double as JSON says it: without a fraction where it has none."""
    double = float(result)
    if not math.isfinite(double):
        return UNDEFINED
    return int(double) if double.is_integer() else double


def _bits(value: float) -> int:
    return int(value) % 2**32


def _signed(bits: int) -> int:
    bits %= 2**32
    return bits - 2**32 if bits >= 2**31 else bits
