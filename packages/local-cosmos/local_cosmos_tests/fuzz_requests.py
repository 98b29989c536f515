"""Requests that no client should send: for each part of one, what is valid, nearly valid, or nonsense."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

HUGE: Final = "9" * 400
NUMBERS: Final = st.sampled_from(["0", "1", "-1", "1e400", HUGE, "²", "٣", "0x1", "NaN", "", " 5 ", "1_0"])
TEXTS: Final = st.text(st.characters(codec="utf-8"), max_size=12)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
IDS: Final = st.sampled_from(["a", "b", "new", "", "a/b", "x" * 1024, "\ud800", "é", " ", "%", "."])

PATHS: Final = (
    st.sampled_from([["dbs"], ["dbs", "d"], ["dbs", "d", "colls"]])
    | st.lists(st.sampled_from(["c", "docs", "pkranges", "a", "b"]) | TEXTS, max_size=4).map(
        lambda rest: ["dbs", "d", "colls", *rest]
    )
    | st.lists(TEXTS, max_size=6)
)
DOCS: Final = st.just(["dbs", "d", "colls", "c", "docs"]) | st.sampled_from(["a", "b", "none"]).map(
    lambda item: ["dbs", "d", "colls", "c", "docs", item]
)

_FLAGS = st.sampled_from(["True", "true", "False", "yes", ""])
_TOKENS = st.sampled_from(["0:-1#1", "0:-1#" + HUGE, "0:-1#²", "::##", "0", ",", "7:-1#1", "0:0#1#2=3,1:0#4"]) | TEXTS
_HEADERS: Final = {
    "x-ms-documentdb-partitionkey": st.sampled_from(
        ['["p"]', "[]", "{}", "[{}]", "[[]]", "[1e999]", f"[{HUGE}]", '["p","q"]', "[NaN]", '["\\ud800"]', "[" * 200]
    )
    | JSON.map(json.dumps),
    "x-ms-documentdb-isquery": _FLAGS,
    "x-ms-cosmos-is-query-plan-request": _FLAGS,
    "x-ms-cosmos-is-batch-request": _FLAGS,
    "x-ms-cosmos-batch-atomic": _FLAGS,
    "x-ms-cosmos-batch-continue-on-error": _FLAGS,
    "x-ms-documentdb-is-upsert": _FLAGS,
    "x-ms-documentdb-query-enablecrosspartition": _FLAGS,
    "x-ms-documentdb-populatequotainfo": _FLAGS,
    "x-ms-max-item-count": NUMBERS,
    "x-ms-offer-throughput": NUMBERS,
    "x-ms-cosmos-offer-autopilot-settings": JSON.map(json.dumps)
    | st.sampled_from(["[]", '{"maxThroughput":1e400}', '{"maxThroughput":"x"}', "{"]),
    "x-ms-session-token": _TOKENS,
    "x-ms-consistency-level": st.sampled_from(["Session", "Eventual", "Strong", "strong", "x"]),
    "x-ms-documentdb-partitionkeyrangeid": NUMBERS | _TOKENS,
    "x-ms-start-epk": TEXTS | st.sampled_from(["", "FF", "05C1", "zz"]),
    "x-ms-end-epk": TEXTS | st.sampled_from(["", "FF", "05C1", "zz"]),
    "x-ms-continuation": JSON.map(json.dumps)
    | st.sampled_from(["e30=", "MQ==", "W10=", "W3t9LCIiLDAsMF0=", "===", "bnVsbA=="]),
    "x-ms-cosmos-intended-collection-rid": TEXTS,
    "If-Match": st.sampled_from(["*", '"x"', ""]) | TEXTS,
    "If-None-Match": NUMBERS.map(lambda number: f'"{number}"') | st.sampled_from(["*", ""]) | TEXTS,
    "If-Modified-Since": TEXTS
    | st.sampled_from(["Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 -1200", "0", "1 Jan 99999"]),
    "A-IM": st.sampled_from(["Incremental Feed", "Full-Fidelity Feed", ""]),
    "Prefer": st.sampled_from(["return=minimal", "x"]),
    "Content-Encoding": st.sampled_from(["identity", "gzip", "deflate", "br", "zstd", "x"]),
    "Content-Type": st.sampled_from(["application/json", "application/query+json", "text/xml", "x" * 100]),
    "Accept-Encoding": st.sampled_from(["gzip", "x"]),
}


def _printable(value: str) -> str:
    """What may stand in a header: everything but line ends and other control characters."""
    return "".join(sign for sign in value if sign.isprintable()).strip()


HEADERS: Final = (
    st.lists(st.sampled_from(sorted(_HEADERS)), max_size=5, unique=True)
    .flatmap(lambda names: st.fixed_dictionaries({name: _HEADERS[name] for name in names}))
    .map(lambda headers: {name: _printable(value) for name, value in headers.items()})
)

_DOCUMENTS: Final = st.fixed_dictionaries(
    {"id": IDS | JSON, "pk": st.just("p") | JSON},
    optional={"ttl": JSON, "n": JSON, "_etag": JSON, "_ts": JSON, "": JSON},
)
_PATCHES: Final = st.fixed_dictionaries(
    {
        "operations": st.lists(
            JSON
            | st.fixed_dictionaries(
                {"op": st.sampled_from(["add", "set", "replace", "remove", "incr", "move", "Add", "x"])},
                optional={
                    "path": st.sampled_from(
                        ["/n", "/id", "/pk", "/list/0", "/list/-", "/list/²", f"/list/{HUGE}", "/", "n"]
                    ),
                    "from": st.sampled_from(["/n", "/list", "/id", "", "/_etag"]),
                    "value": JSON | st.sampled_from([1e308, -1e308, 10**300]),
                },
            ),
            max_size=4,
        )
    },
    optional={"condition": st.sampled_from(["from c where c.n = 1", "x", "", "from c"]) | JSON},
)
_BATCHES: Final = st.lists(
    JSON
    | st.fixed_dictionaries(
        {"operationType": st.sampled_from(["Create", "Upsert", "Replace", "Patch", "Read", "Delete", "x"])},
        optional={
            "id": IDS | JSON,
            "resourceBody": _DOCUMENTS | _PATCHES | JSON,
            "ifMatch": JSON,
            "ifNoneMatch": JSON,
            "partitionKey": st.just('["p"]') | JSON,
        },
    ),
    max_size=5,
)
_UNIQUE: Final = st.fixed_dictionaries(
    {"paths": st.lists(st.sampled_from(["/n", "/o/p", "/list", "/", "n", "/*", "/\ud800"]) | JSON, max_size=3) | JSON}
)
_DEFINITIONS: Final = st.fixed_dictionaries(
    {"id": IDS | JSON},
    optional={
        "partitionKey": st.fixed_dictionaries(
            {"paths": st.just(["/pk"]) | JSON, "version": st.just(2) | JSON}, optional={"kind": JSON}
        )
        | JSON,
        "defaultTtl": JSON,
        "uniqueKeyPolicy": st.fixed_dictionaries({"uniqueKeys": st.lists(_UNIQUE, max_size=3) | JSON}) | JSON,
        "indexingPolicy": JSON,
    },
)
QUERIES: Final = st.sampled_from(
    ["SELECT * FROM c", "SELECT VALUE COUNT(1) FROM c", "SELECT TOP @x * FROM c ORDER BY c.n", "SELECT 1e999", ""]
)
_QUERIES: Final = st.fixed_dictionaries({"query": QUERIES | JSON}, optional={"parameters": JSON})

BODIES: Final = (
    st.one_of(_DOCUMENTS, _PATCHES, _BATCHES, _DEFINITIONS, _QUERIES, JSON).map(lambda body: json.dumps(body).encode())
    | st.binary(max_size=20)
    | st.sampled_from(
        [b"", b"{", b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"\xef\xbb\xbf{}", HUGE.encode()]
    )
)


@dataclass(frozen=True)
class FuzzedRequest:
    """One request, to be signed and sent."""

    verb: str
    path: list[str]
    headers: dict[str, str]
    body: bytes


_KEYED: Final = {"x-ms-documentdb-partitionkey": '["p"]'}
_FEED: Final = {"x-ms-documentdb-query-enablecrosspartition": "True", "Content-Type": "application/query+json"}
_LIST: Final = ["dbs", "d", "colls", "c", "docs"]


def _nearly(verb: str, path: list[str], headers: dict[str, str], body: Any) -> Any:
    """A request that has the form of a real one, with up to two headers of nonsense and a body of the right kind."""
    few = HEADERS.map(lambda drawn: headers | dict(list(drawn.items())[:2]))
    bodies = body.map(lambda content: json.dumps(content).encode())
    return st.builds(FuzzedRequest, st.just(verb), st.just(path), few, bodies)


_ITEM: Final = st.sampled_from(["a", "b"]).map(lambda item: {"id": item, "pk": "p"})
_NEARLY: Final = st.one_of(
    _nearly("POST", _LIST, _KEYED, _ITEM | _DOCUMENTS),
    _nearly("POST", _LIST, _KEYED | {"x-ms-documentdb-is-upsert": "True"}, _ITEM | _DOCUMENTS),
    _nearly("POST", _LIST, _KEYED | {"x-ms-cosmos-is-batch-request": "True"}, _BATCHES),
    _nearly(
        "POST",
        _LIST,
        {
            "x-ms-cosmos-is-batch-request": "True",
            "x-ms-cosmos-batch-atomic": "False",
            "x-ms-cosmos-batch-continue-on-error": "True",
            "x-ms-documentdb-partitionkeyrangeid": "0",
        },
        _BATCHES,
    ),
    _nearly("POST", _LIST, _FEED, _QUERIES),
    _nearly("GET", _LIST, {"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0"}, st.none()),
    _nearly("GET", _LIST, {}, st.none()),
    _nearly("GET", [*_LIST, "a"], _KEYED, st.none()),
    _nearly("PUT", [*_LIST, "a"], _KEYED, _ITEM | _DOCUMENTS),
    _nearly("PATCH", [*_LIST, "a"], _KEYED, _PATCHES),
    _nearly("PATCH", [*_LIST, "b"], _KEYED, _PATCHES),
    _nearly("DELETE", [*_LIST, "a"], _KEYED, st.none()),
    _nearly("GET", ["dbs", "d", "colls", "c", "pkranges"], {}, st.none()),
    _nearly("POST", ["dbs", "d", "colls"], {}, _DEFINITIONS),
    _nearly("PUT", ["dbs", "d", "colls", "c"], {}, _DEFINITIONS),
    _nearly("POST", ["dbs"], {}, _DEFINITIONS),
)

_WILD: Final = st.builds(
    FuzzedRequest,
    st.sampled_from(["GET", "POST", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "LOCK"]),
    DOCS | PATHS,
    HEADERS,
    BODIES,
)
REQUESTS: Final[Any] = _NEARLY | _WILD
