"""The tables of docs/peers.md about retries, of a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.report import measured_on
from benchmarks.tables import table


def retries_tables(result: Mapping[str, Any]) -> str:
    """What each product did with repeated requests, and with keys that have expired."""
    products: Mapping[str, Mapping[str, Any]] = result["products"]
    measured = {name: one for name, one in products.items() if "missing" not in one}
    head = (
        "",
        "keys with one effect",
        "keys with one answer",
        "answers lost",
        "requests without one",
        "seconds",
        "another body",
    )
    keys = result["work"]["requests"]
    rows = [
        (
            name,
            _only_one(one["effects of a key"]),
            _only_one(one["answers of a key"]),
            f"{one['lost answers']:,}",
            f"{one['unanswered']:,}",
            f"{one['seconds']:.0f}",
            one["another body"],
        )
        for name, one in measured.items()
    ]
    expired = [
        (name, known, one["answer"], str(one["effects"]))
        for name, product in measured.items()
        for known, one in product["expired"].items()
    ]
    after = table(("", "a key is", "a retry after that", "effects"), expired)
    return table(head, rows) + after + "\n".join(["", *_sentences(result, keys), ""])


def _sentences(result: Mapping[str, Any], keys: int) -> Iterator[str]:
    for name, one in result["products"].items():
        if "missing" in one:
            yield f"{name} was not measured. {one['missing']}\n"
    work = result["work"]
    versions: dict[str, str] = {}
    for one in result["products"].values():
        versions.update(one.get("versions", {}))
    yield (
        f"{keys:,} requests for {work['entities']} entities, {work['in_flight']} in flight, and {work['kills']} kills of each"
        " product."
        f" {measured_on(result)}, with {', '.join(f'{part} {number}' for part, number in sorted(versions.items()))}."
        " All figures are in `benchmarks/results/retries.json`."
    )


def _only_one(spread: Mapping[str, int]) -> str:
    """How many of all keys have exactly one."""
    return f"{spread.get('1', 0):,} of {sum(spread.values()):,}"
