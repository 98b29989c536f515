"""What a built-in function takes. One that gets an argument of a type it does not expect is undefined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from local_cosmos.query.calculating import is_number
from local_cosmos.values import UNDEFINED

Kind: TypeAlias = Callable[[Any], bool]
"""Whether a value is of a type that an argument may have."""


MANY: Final = 10_000
"""Arguments that a function without a limit of its own takes."""


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in function.

    Attributes:
        fewest, most: How many arguments it takes.
    """

    call: Callable[..., Any]
    fewest: int
    most: int


def function(call: Callable[..., Any], *kinds: Kind, optional: int = 0) -> Function:
    """A function that is undefined unless each argument is of its kind.

    Args:
        call: Gets the arguments' values; may return `UNDEFINED`.
        kinds: Of the arguments, in order.
        optional: How many of the last arguments may be left out.
    """

    def checked(*values: Any) -> Any:
        if all(is_kind(value) for is_kind, value in zip(kinds, values, strict=False)):
            return call(*values)
        return UNDEFINED

    return Function(checked, len(kinds) - optional, len(kinds))


def any_number_of(call: Callable[..., Any], kind: Kind, fewest: int) -> Function:
    """A function that takes at least so many arguments, all of one kind."""
    return Function(lambda *values: call(*values) if all(map(kind, values)) else UNDEFINED, fewest, MANY)


def is_string(value: Any) -> bool:
    """Whether a value is a string."""
    return isinstance(value, str)


def is_boolean(value: Any) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def is_array(value: Any) -> bool:
    """Whether a value is an array."""
    return isinstance(value, list)


def is_object(value: Any) -> bool:
    """Whether a value is an object."""
    return isinstance(value, dict)


def is_integer(value: Any) -> bool:
    """Whether a value is a number without a fraction that 64 bits hold; the largest one of these is 2^63 as a double."""
    return is_number(value) and float(value).is_integer() and -(2**63) <= value <= 2**63


def is_defined(value: Any) -> bool:
    """Whether there is a value."""
    return value is not UNDEFINED


def anything(_: Any) -> bool:
    """Whatever it is, undefined included."""
    return True
