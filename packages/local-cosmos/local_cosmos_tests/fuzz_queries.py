"""Texts that are queries or almost: sound sentences, wild ones, sentences with a letter changed, soups of words."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from local_cosmos.query.functions import FUNCTIONS, OF_THE_CLOCK

Texts = st.SearchStrategy[str]

_PATHS: Final = st.sampled_from(
    ["c", "c.n", "c['n']", "c.list[0]", "c.list", "c.o.p.q", "c.none", 'c["\\u00e9"]', "c.id", "c._ts"]
)
_CONSTANTS: Final = st.sampled_from(
    [
        *("1", "-1", "1.5", "1e308", "9" * 20, "100000000", "-4611686018427387904"),
        *("'a'", '"a"', "'%'", "'_b%%c%'", "true", "null", "undefined", "@p", "c[@p]", "{'a': 1}.a"),
    ]
)
_ODDITIES: Final = st.sampled_from(
    [
        "1e999",
        "9" * 400,
        "c.list[99999999999999999999]",
        "'\\x'",
        "@none",
        "r.n",
        "COUNT(1)",
        "{'a': 1}",
        "()",
    ]
)
_CALLS: Final = st.sampled_from([*FUNCTIONS, *OF_THE_CLOCK])
_TESTS: Final = st.sampled_from(["CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS", "ARRAY_CONTAINS"])
_KINDS: Final = st.sampled_from(["IS_DEFINED", "IS_NULL", "IS_STRING", "IS_ARRAY", "ARRAY_LENGTH", "IS_PRIMITIVE"])
_AGGREGATES: Final = st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"])
_COMPARISONS: Final = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">=", "LIKE", "NOT LIKE"])
_OPERATORS: Final = st.sampled_from(["+", "-", "*", "/", "%", "||", "??", "&", "|", "^", "<<", ">>", ">>>"])
_SUBQUERIES: Final = st.sampled_from(["EXISTS", "ARRAY", ""])
_PERHAPS: Final = st.sampled_from(["+", "-", "*", "/", "%", "||", "&", "= ="])
_NAMES: Final = st.sampled_from(["LOWER", "ABS", "ROUND", "SUBSTRING", "CONCAT", "NOPE", "COUNT", "IS_NULL"])


def _sound(inner: Texts) -> Texts:
    return st.one_of(
        st.tuples(inner, _COMPARISONS, inner).map(lambda part: f"({' '.join(part)})"),
        st.tuples(inner, st.sampled_from(["AND", "OR", "and"]), inner).map(lambda part: f"({' '.join(part)})"),
        inner.map(lambda part: f"(NOT {part})"),
        inner.map(lambda part: f"({part} LIKE '%!%[^a-c]_' ESCAPE '!')"),
        st.tuples(_TESTS, inner, inner).map(lambda call: f"{call[0]}({call[1]}, {call[2]})"),
        st.tuples(_KINDS, inner).map(lambda call: f"{call[0]}({call[1]})"),
        st.tuples(inner, st.lists(inner, min_size=1, max_size=3)).map(lambda p: f"({p[0]} IN ({', '.join(p[1])}))"),
        st.tuples(inner, inner, inner).map(lambda part: f"({part[0]} BETWEEN {part[1]} AND {part[2]})"),
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.tuples(_CALLS, st.lists(inner, max_size=4)).map(lambda call: f"{call[0]}({', '.join(call[1])})"),
        st.tuples(inner, inner, inner).map(lambda part: f"({part[0]} ? {part[1]} : {part[2]})"),
        st.tuples(inner, _OPERATORS, inner).map(lambda part: f"({' '.join(part)})"),
        st.tuples(_SUBQUERIES, inner, inner).map(lambda part: f"{part[0]}(SELECT VALUE {part[1]} WHERE {part[2]})"),
    )


def _wild(inner: Texts) -> Texts:
    return st.one_of(
        _sound(inner),
        st.tuples(inner, _PERHAPS, inner).map(" ".join),
        st.tuples(_NAMES, st.lists(inner, max_size=3)).map(lambda call: f"{call[0]}({', '.join(call[1])})"),
        inner.map(lambda part: f"{{'a': {part}}}"),
    )


def _sentences(expressions: Texts, heads: list[str], sources: list[str], tails: Texts) -> Texts:
    selections = st.one_of(
        st.just("*"),
        expressions.map(lambda expression: f"VALUE {expression}"),
        st.tuples(_AGGREGATES, expressions).map(lambda part: f"VALUE {part[0]}({part[1]})"),
        expressions.map(lambda expression: f"c.id, {expression} AS x"),
    )
    wheres = st.just("") | expressions.map(lambda expression: f" WHERE {expression}")
    parts = st.tuples(st.sampled_from(heads), selections, st.sampled_from(sources), wheres, tails)
    return parts.map(lambda part: f"SELECT {part[0]}{part[1]} FROM {part[2]}{part[3]}{part[4]}")  # noqa: S608


_ORDERS: Final = st.just("") | _PATHS.map(lambda path: f" ORDER BY {path} DESC")
_SOUND_EXPRESSIONS: Final = st.recursive(_PATHS | _CONSTANTS, _sound, max_leaves=4)
SOUND: Final = _sentences(
    _SOUND_EXPRESSIONS,
    ["", "TOP 1 ", "DISTINCT "],
    ["c", "c JOIN t IN c.list", "t IN c.list", "c JOIN (SELECT VALUE c.n) AS s"],
    _ORDERS | st.sampled_from([" OFFSET 1 LIMIT 1", " GROUP BY c.n, IS_DEFINED(c.list)"]),
)
WILD: Final = _sentences(
    st.recursive(_PATHS | _CONSTANTS | _ODDITIES, _wild, max_leaves=4),
    ["", "DISTINCT ", "TOP @p ", "TOP -1 ", f"TOP {'9' * 5000} ", "VALUE "],
    ["c", "root c", "c AS r", "c JOIN d IN c.list", "c.list", "c, d", ""],
    _ORDERS | st.sampled_from([" GROUP BY c.n", " OFFSET @p LIMIT 'x'", " OFFSET 1", " ORDER BY 1", ";"]),
)
_VOCABULARY: Final = "SELECT VALUE * FROM c WHERE NOT IN ( ) [ ] , EXISTS ' -- \0"
_WORDS: Final = st.sampled_from([*_VOCABULARY.split(), "ORDER BY"])
_SOUPS: Final = st.lists(_WORDS | _PATHS | _CONSTANTS | _ODDITIES | _COMPARISONS, max_size=12).map(" ".join)
_CHANGED: Final = st.tuples(SOUND, st.integers(0, 60), st.text(max_size=3)).map(
    lambda part: part[0][: part[1]] + part[2] + part[0][part[1] + 1 :]
)

TEXTS: Final[Any] = SOUND | WILD | _CHANGED | _SOUPS | st.text(max_size=30)
