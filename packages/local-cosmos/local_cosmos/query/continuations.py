"""Continuation tokens: where the next page of a query begins."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.sources import Place
from local_cosmos.values import UNDEFINED, MalformedJsonError, parse, serialise


@dataclass(frozen=True, slots=True)
class AfterRow:
    """After this row, whatever was written in between.

    Attributes:
        values: What the row was sorted by.
        place: Where it is in the store.
        passed: How many rows the query has passed so far.
    """

    values: list[Any]
    place: Place
    passed: int

    def text(self) -> str:
        """The token."""
        sorted_by = [[] if value is UNDEFINED else [value] for value in self.values]
        return _encoded(["row", sorted_by, *self.place, self.passed])


@dataclass(frozen=True, slots=True)
class AtResult:
    """At a result's number, for queries whose results are not single rows."""

    number: int

    def text(self) -> str:
        """The token."""
        return _encoded(["result", self.number])


def read(token: str | None) -> AfterRow | AtResult | None:
    """What a token says; None where there is none.

    Raises:
        UnsupportedQueryError: It is not one of this emulator's.
    """
    if token is None:
        return None
    try:
        match parse(base64.b64decode(token, validate=True)):
            case ["row", [*values], str(effective), int(ordinal), int(number), int(passed)]:
                sorted_by = [value[0] if value else UNDEFINED for value in values]
                return AfterRow(sorted_by, (effective, ordinal, number), passed)
            case ["result", int(number)] if number >= 0:
                return AtResult(number)
    except (MalformedJsonError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise _foreign() from error
    raise _foreign()


def _foreign() -> UnsupportedQueryError:
    return UnsupportedQueryError("The continuation token is not one of this emulator's.")


def _encoded(content: list[Any]) -> str:
    return base64.b64encode(serialise(content)).decode("ascii")
