"""Queries with the answer that the service's documentation gives, worked out row by row (`naive_values.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from hypothesis import strategies as st

from local_cosmos_tests import naive_values as naive
from local_cosmos_tests.naive_values import MISSING

Row: TypeAlias = Mapping[str, Any]
"""Values by name."""


class Part(NamedTuple):
    """An expression: its text, and its value in a row."""

    text: str
    value: Callable[[Row], Any]


class AskedQuery(NamedTuple):
    """A query, and its answer for items in the order of the store.

    Attributes:
        can_be_parted: Whether the answers of several physical partitions just follow one another.
    """

    text: str
    answer: Callable[[Sequence[Any]], list[Any]]
    can_be_parted: bool


Parts: TypeAlias = st.SearchStrategy[Part]

PRIMITIVES: Final = (None, True, False, 0, 1, 2.5, -3, 2**53, 1e308, "", "a", "B", "a%b", "ab", "é", "\U0001f600")
_SCALARS: Final = st.sampled_from(PRIMITIVES)
_VALUES: Final = (
    _SCALARS | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.sampled_from("pq"), _SCALARS, max_size=2)
)
_FIELDS: Final = {"a": _VALUES, "b": _VALUES, "list": st.lists(_VALUES, max_size=3), "o": _VALUES}
_DOCUMENTS: Final = st.lists(st.fixed_dictionaries({}, optional=_FIELDS), max_size=6)
_CONSTANTS: Final[tuple[tuple[str, Any], ...]] = (
    *(("null", None), ("true", True), ("false", False), ("undefined", MISSING), ("0", 0), ("1", 1), ("-2.5", -2.5)),
    *(("9007199254740993", 2**53), ("'a'", "a"), ("'%'", "%"), ('"a_b"', "a_b"), ("''", ""), ("[1, 'a']", [1, "a"])),
    *(("[undefined, null]", [None]), ("{'p': 1, 'q': undefined}", {"p": 1}), ("[]", []), ("31", 31)),
)
_COMPARISONS: Final = ("=", "!=", "<>", "<", "<=", ">", ">=")
_AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@st.composite
def collections(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Items in the order of creation. No two have the same `rank`, which some lack, so ORDER BY leaves nothing open."""
    ranks = draw(st.permutations(PRIMITIVES))
    items = []
    for number, document in enumerate(draw(_DOCUMENTS)):
        rank = {"rank": ranks[number]} if draw(st.booleans()) else {}
        items.append({"id": f"i{number}", "pk": "p", **rank, **document})
    return items


def path(text: str, name: str, *steps: str | int) -> Part:
    """The value at steps from a name."""

    def value(row: Row) -> Any:
        found = row[name]
        for step in steps:
            fits = isinstance(found, dict if isinstance(step, str) else list)
            is_there = fits and (step in found if isinstance(step, str) else step < len(found))
            found = found[step] if is_there else MISSING
        return found

    return Part(text, value)


_PATHS: Final = (
    path("c.a", "c", "a"),
    path("c.b", "c", "b"),
    path('c["o"].p', "c", "o", "p"),
    path("c.list[0]", "c", "list", 0),
    path("c.list", "c", "list"),
    path("c.none.p", "c", "none", "p"),
)


def _applied(template: str, call: Callable[..., Any], *parts: Part) -> Part:
    return Part(template.format(*(part.text for part in parts)), lambda row: call(*(part.value(row) for part in parts)))


def _array(*values: Any) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _object(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not MISSING}


def _is_one_of(needle: Any, *hay: Any) -> Any:
    return MISSING if needle is MISSING else naive.is_in(needle, hay)


def _between(value: Any, low: Any, high: Any) -> Any:
    return naive.both(naive.compared(">=", value, low), naive.compared("<=", value, high))


def _like(text: Any, pattern: Any) -> Any:
    return naive.is_like(text, pattern) if naive.have_types("string", text, pattern) else MISSING


def _joined(item: Any, other: Any) -> Any:
    return item + other if naive.have_types("string", item, other) else MISSING


def _operators() -> list[tuple[str, int, Callable[..., Any]]]:
    """Templates with the number of their operands, and what they do."""
    found: list[tuple[str, int, Callable[..., Any]]] = [
        ("({} AND {})", 2, naive.both),
        ("({} OR {})", 2, naive.either),
        ("(NOT {})", 1, naive.negated),
        ("({} ?? {})", 2, lambda item, other: other if item is MISSING else item),
        ("({} ? {} : {})", 3, lambda condition, then, otherwise: then if condition is True else otherwise),
        ("({} || {})", 2, _joined),
        ("({} LIKE {})", 2, _like),
        ("({} NOT LIKE {})", 2, lambda *two: naive.negated(_like(*two))),
        ("({} BETWEEN {} AND {})", 3, _between),
        ("({} IN ({}, {}))", 3, _is_one_of),
        ("({} NOT IN ({}))", 2, lambda *two: naive.negated(_is_one_of(*two))),
        ("[{}, {}]", 2, _array),
        ("{{'p': {}, \"q\": {}}}", 2, lambda p, q: _object(p=p, q=q)),
    ]
    for operator in _COMPARISONS:
        plain = "!=" if operator == "<>" else operator
        found.append((f"({{}} {operator} {{}})", 2, partial(naive.compared, plain)))
    for operator, calculate in naive.CALCULATIONS.items():
        found.append((f"({{}} {operator} {{}})", 2, partial(naive.double, calculate)))
    for name, (arguments, call) in naive.FUNCTIONS.items():
        found.append((f"{name}({', '.join(['{}'] * arguments)})", arguments, call))
    return found


_OPERATORS: Final = _operators()


@st.composite
def _combined(draw: st.DrawFn, inner: Parts) -> Part:
    template, arguments, call = draw(st.sampled_from(_OPERATORS))
    return _applied(template, call, *(draw(inner) for _ in range(arguments)))


@st.composite
def _subquery(draw: st.DrawFn, inner: Parts) -> Part:
    """EXISTS, ARRAY or a number of elements, over an array of the item."""
    kind = draw(st.sampled_from(("EXISTS", "ARRAY", "COUNT")))
    element = st.just(Part("t", lambda row: row["t"])) | inner
    chosen, condition = draw(element), draw(inner | element)
    selected = "COUNT(1)" if kind == "COUNT" else chosen.text
    text = f"(SELECT VALUE {selected} FROM t IN c.list WHERE {condition.text})"  # noqa: S608

    def value(row: Row) -> Any:
        rows = [{**row, "t": element} for element in _elements(row)]
        rows = [item for item in rows if condition.value(item) is True]
        found = _array(*map(chosen.value, rows))
        return len(rows) if kind == "COUNT" else bool(found) if kind == "EXISTS" else found

    return Part(text if kind == "COUNT" else kind + text, value)


def _elements(row: Row) -> list[Any]:
    array = row["c"].get("list")
    return array if isinstance(array, list) else []


def _constant(text: str, value: Any) -> Part:
    return Part(text, lambda _: value)


LEAVES: Final = st.sampled_from([*_PATHS, *(_constant(text, value) for text, value in _CONSTANTS)])
EXPRESSIONS: Final = st.recursive(LEAVES, lambda inner: _combined(inner) | _subquery(inner), max_leaves=6)


@st.composite
def queries(draw: st.DrawFn) -> AskedQuery:
    """A query of rows, or of groups of rows."""
    joins = draw(st.booleans())
    extra = [Part("t", lambda row: row["t"])] if joins else []
    expressions = EXPRESSIONS | st.sampled_from(extra) if extra else EXPRESSIONS
    condition = draw(st.none() | expressions)
    source = " FROM c JOIN t IN c.list" if joins else " FROM c"
    where = f" WHERE {condition.text}" if condition else ""

    def rows(items: Sequence[Any]) -> list[Row]:
        found: list[Row] = [{"c": item} for item in items]
        if joins:
            found = [{**row, "t": element} for row in found for element in _elements(row)]
        return [row for row in found if condition is None or condition.value(row) is True]

    if draw(st.integers(0, 2)) == 0:
        return _of_groups(draw, expressions, source + where, rows)
    return _of_rows(draw, expressions, source + where, rows)


def _of_rows(draw: st.DrawFn, expressions: Parts, tail: str, rows: Callable[[Sequence[Any]], list[Row]]) -> AskedQuery:
    has_order, descending, distinct = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    chosen, other = draw(expressions), draw(expressions)
    is_object = draw(st.booleans())
    skip, limit = draw(st.sampled_from(((0, None), (0, None), (0, 2), (1, 2), (2, 0))))
    head = "SELECT " + ("DISTINCT " if distinct else "") + (f"TOP {limit} " if limit is not None and not skip else "")
    selection = f"{chosen.text} AS x, {other.text} AS y" if is_object else f"VALUE {chosen.text}"
    order = f" ORDER BY c.rank{' DESC' if descending else ''}" if has_order else ""
    limits = f" OFFSET {skip} LIMIT {limit}" if skip else ""

    def answer(items: Sequence[Any]) -> list[Any]:
        found = rows(items)
        if has_order:
            found = [row for row in found if "rank" in row["c"]]  # What lacks the property is left out.
            found = naive.in_order(found, lambda row: row["c"]["rank"], descending=descending)
        results = [
            _object(x=chosen.value(row), y=other.value(row)) if is_object else chosen.value(row) for row in found
        ]
        if distinct:
            results = naive.without_repetitions(_array(*results))
        return _array(*(results[skip:] if limit is None else results[skip : skip + limit]))

    can_be_parted = not (has_order or distinct or limit is not None)
    return AskedQuery(head + selection + tail + order + limits, answer, can_be_parted)


def _of_groups(
    draw: st.DrawFn, expressions: Parts, tail: str, rows: Callable[[Sequence[Any]], list[Row]]
) -> AskedQuery:
    keys = draw(st.lists(expressions, max_size=2, unique_by=lambda part: part.text))
    name, argument = draw(st.sampled_from(_AGGREGATES)), draw(expressions)
    template, _, call = draw(st.sampled_from([operator for operator in _OPERATORS if operator[1] == 2]))
    columns = [f"{key.text} AS k{number}" for number, key in enumerate(keys)]
    aggregate = f"{name}({argument.text})"
    text = ", ".join([*columns, f"{aggregate} AS x", template.format(aggregate, "COUNT(1)") + " AS y"])
    groups = f" GROUP BY {', '.join(key.text for key in keys)}" if keys else ""

    def answer(items: Sequence[Any]) -> list[Any]:
        made: list[tuple[list[Any], list[Row]]] = [] if keys else [([], [])]
        for row in rows(items):
            values = [key.value(row) for key in keys]
            group = next((there for known, there in made if all(map(_same_key, known, values))), None)
            if group is None:
                made.append((values, group := []))
            group.append(row)
        return [result(values, there) for values, there in made]

    def result(values: list[Any], there: list[Row]) -> dict[str, Any]:
        x = naive.aggregated(name, [argument.value(row) for row in there])
        return _object(**{f"k{number}": value for number, value in enumerate(values)}, x=x, y=call(x, len(there)))

    return AskedQuery(f"SELECT {text}{tail}{groups}", answer, can_be_parted=False)


def _same_key(item: Any, other: Any) -> bool:
    return (item is MISSING and other is MISSING) or naive.same(item, other)
