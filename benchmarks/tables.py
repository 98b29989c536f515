"""Tables of docs/performance.md that compare the library with what a user would pick instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchmarks.targets import targets

_SITUATIONS: Final = {
    "first, quiet entity": "quiet entity",
    "duplicate in the window": "a duplicate of the newest",
    "duplicate outside the window": "of the oldest",
    "hot entity": "one hot entity, 64 in flight",
    "many entities": "many entities",
    "large outputs": "outputs of 40 KB",
}


def cost_tables(result: Mapping[str, Any]) -> str:
    """What a new message costs in detail, and what messages cost in all situations."""
    contenders: Mapping[str, Any] = result["contenders"]
    detail = [_detail(name, measured["first"]) for name, measured in contenders.items()]
    head = ("", "requests", "round trips, sent after", "acknowledged after", "request units", "bytes written")
    situations = [
        (_code(name), *(_told(measured.get(situation)) for situation in _SITUATIONS))
        for name, measured in contenders.items()
    ]
    return _table(head, detail) + _table(("requests, request units", *_SITUATIONS.values()), situations)


def throughput_tables(result: Mapping[str, Any]) -> str:
    """What is wanted and what came out, and one row for each contender under each load."""
    reached = [(one.told, one.wanted, f"{one.measured:.2f}") for one in targets(result)]
    rows = []
    for load, contenders in result["loads"].items():
        named = load
        for name, one in contenders.items():
            slowest, fastest = one["slowest and fastest"]
            rows.append(
                (
                    named,
                    _code(name),
                    f"{one['messages/s']:,.0f} ({slowest:,.0f} to {fastest:,.0f})",
                    _milliseconds(one["p50 ms"]),
                    _milliseconds(one["p99 ms"]),
                    f"{one['requests']:.2f}",
                    f"{one['request units']:.1f}",
                    f"{one['conflicts']:,}",
                    f"{one['CPU ms']:.2f}",
                )
            )
            named = ""
    head = ("load", "", "messages/s", "p50", "p99", "requests", "RU", "conflicts", "CPU ms")
    return _table(("`Outbox()`", "wanted", "measured"), reached) + _table(head, rows)


def library_table(library: Mapping[str, Any]) -> str:
    """What the records of other entities add to the cost of a message."""
    rows = [
        (_code(name), f"{int(records):,}", _told(cost["first"]), _told(cost["duplicate of the oldest"]))
        for name, beside in library.items()
        for records, cost in beside.items()
    ]
    head = ("requests, request units", "records of other entities", "a new message", "a duplicate of the oldest")
    return _table(head, rows)


def _detail(name: str, cost: Mapping[str, Any]) -> tuple[str, ...]:
    trips = cost["round trips"]
    return (
        _code(name),
        _number(cost["requests"]),
        " or ".join(trips["before sending"]) or "sends nothing",
        " or ".join(trips["until acknowledged"]),
        f"{cost['request units']:.1f}",
        f"{cost['bytes written']:,}",
    )


def _told(cost: Mapping[str, Any] | None) -> str:
    return "" if cost is None else f"{_number(cost['requests'])}, {cost['request units']:.1f}"


def _milliseconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f} ms"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _code(name: str) -> str:
    return f"`{name}`" if "(" in name else name


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = tuple(head)
    lines = [columns, ("---", *("---:" for _ in columns[1:])), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
