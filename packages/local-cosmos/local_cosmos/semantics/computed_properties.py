"""Computed properties: values that queries find in items, although they are not stored.

Documented behaviour ("Computed properties"): at most 20 in a container, at the top of an item, each with a query that gives one
value of the item; in queries they hide stored properties of the same name, `SELECT *` leaves them out, and no wildcard of an
indexing policy covers them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local_cosmos.query.aggregates import is_grouped
from local_cosmos.query.errors import UnsupportedQueryError
from local_cosmos.query.execution import given
from local_cosmos.query.expressions import Evaluator
from local_cosmos.query.parser import parse_query
from local_cosmos.query.sources import Sources
from local_cosmos.query.tree import Expression, Query, Value
from local_cosmos.semantics.errors import bad_request
from local_cosmos.values import UNDEFINED, JsonObject

MOST: Final = 20
_INVALID: Final = "One of the specified inputs is invalid."
_FORM: Final = "SELECT VALUE ... FROM c"
_SYSTEM: Final = frozenset({"id", "_rid", "_self", "_etag", "_attachments", "_ts"})

Completing = Callable[[JsonObject], JsonObject]
"""From a stored document to what a query sees."""


@dataclass(frozen=True, slots=True)
class ComputedProperties:
    """The computed properties of a container.

    Attributes:
        queries: By name, what gives the value.
    """

    queries: tuple[tuple[str, Query], ...] = ()

    @classmethod
    def parse(cls, definition: object) -> ComputedProperties:
        """Read `computedProperties` of a container: `[{"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"}]`.

        Raises:
            RefusedError: 400; not valid, or more than there may be.
        """
        if not definition:
            return cls()
        if not isinstance(definition, list) or len(definition) > MOST:
            raise bad_request(f"{_INVALID} The computedProperties of a container are a list of at most {MOST}.")
        queries = dict(_property(item) for item in definition)
        if len(queries) < len(definition):
            raise bad_request(f"{_INVALID} Two computed properties have the same name.")
        return cls(tuple(queries.items()))

    def mentioned(self, text: str) -> frozenset[str]:
        """The names of those that the text of a query speaks of."""
        return frozenset(name for name, _ in self.queries if name in text)

    def completing(self, names: frozenset[str], now: float) -> Completing | None:
        """What adds these properties to a document; None where there are none. `now` is in seconds since 1970."""
        evaluators = {name: _evaluator(query, now) for name, query in self.queries if name in names}

        def completed(document: JsonObject) -> JsonObject:
            values = {name: value_of(document) for name, value_of in evaluators.items()}
            stored = {name: value for name, value in document.items() if name not in values}
            return stored | {name: value for name, value in values.items() if value is not UNDEFINED}

        return completed if evaluators else None


def _property(definition: object) -> tuple[str, Query]:
    name, text = (definition.get("name"), definition.get("query")) if isinstance(definition, dict) else (None, None)
    if not isinstance(name, str) or not name or name in _SYSTEM or not isinstance(text, str):
        raise bad_request(
            f"{_INVALID} A computed property has a name, which no system property has, and a query; not {definition!r}."
        )
    try:
        query = parse_query(text)
        _evaluator(query, 0.0)
    except UnsupportedQueryError as error:
        raise bad_request(f"{_INVALID} The query of the computed property {name!r}: {error}") from error
    if query != Query(query.selection, query.sources) or len(query.sources) != 1 or is_grouped(query):
        raise bad_request(f"{_INVALID} The computed property {name!r} has a query that does more than {_FORM}.")
    return name, query


def _expression(query: Query) -> Expression:
    if not isinstance(query.selection, Value) or query.item is None:
        raise UnsupportedQueryError(f"it is not of the form {_FORM}.")
    return query.selection.expression


def _evaluator(query: Query, now: float) -> Evaluator:
    expression = _expression(query)
    return Sources(query, given({}, now)).compiler.evaluator(expression)
