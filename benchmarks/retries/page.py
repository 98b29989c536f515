"""The tables of docs/peers.md about retries, of a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.report import measured_on
from benchmarks.tables import table


def retries_tables(result: Mapping[str, Any]) -> str:
    """What each product did with repeated requests, and with keys that have expired."""
    products: Mapping[str, Mapping[str, Any]] = result["products"]
    measured = {name: item for name, item in products.items() if "missing" not in item}
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
            _only_one(item["effects of a key"]),
            _only_one(item["answers of a key"]),
            f"{item['lost answers']:,}",
            f"{item['unanswered']:,}",
            f"{item['seconds']:.0f}",
            item["another body"],
        )
        for name, item in measured.items()
    ]
    expired = [
        (name, known, item["answer"], str(item["effects"]))
        for name, product in measured.items()
        for known, item in product["expired"].items()
    ]
    after = table(("", "a key is", "a retry after that", "effects"), expired)
    return table(head, rows) + after + "\n".join(["", *_sentences(result, keys), ""])


def _sentences(result: Mapping[str, Any], keys: int) -> Iterator[str]:
    for name, one in result["products"].items():
        if "missing" in one:
            yield f"{name} was not measured. {one['missing']}\n"
    work = result["work"]
    versions: dict[str, str] = {}
    for item in result["products"].values():
        versions.update(item.get("versions", {}))
    yield (
        f"{keys:,} requests for {work['entities']} entities, {work['in_flight']} in flight, and {work['kills']} kills of each"
        " product."
        f" {measured_on(result)}, with {', '.join(f'{part} {number}' for part, number in sorted(versions.items()))}."
        " All figures are in `benchmarks/results/retries.json`."
    )


def _only_one(spread: Mapping[str, int]) -> str:
    """How many of all keys have exactly one."""
    return f"{spread.get('1', 0):,} of {sum(spread.values()):,}"
