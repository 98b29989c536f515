"""The tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchmarks.report import measured_on
from benchmarks.subjects import TIMED, UNTIMED
from benchmarks.targets import (
    Target,
    kept_a_message,
)

_SITUATIONS: Final = {
    "first": "entity known to the process",
    "entity unknown to the process": "not known",
    "first of an entity": "first of an entity",
    "many entities": "many entities",
    "hot entity": "one hot entity, 64 in flight",
    "large outputs": "outputs of 40 KB",
    "duplicate of the newest": "a duplicate of the newest",
    "duplicate of the oldest": "of the oldest",
    "duplicate in a fresh process": "the same, in a process that knows nothing",
}


def cost_tables(result: Mapping[str, Any]) -> str:
    """What a new message costs in detail, and what messages cost in all situations."""
    contenders: Mapping[str, Any] = result["contenders"]
    detail = [_detail(name, measured["first"]) for name, measured in contenders.items()]
    head = ("", "requests", "round trips, sent after", "acknowledged after", "request units", "bytes written")
    situations = [
        (_code(name), *(_cost(measured.get(situation)) for situation in _SITUATIONS))
        for name, measured in contenders.items()
    ]
    tables = table(head, detail) + table(("requests, request units", *_SITUATIONS.values()), situations)
    return tables + source(result, "cost")


def headline_table(result: Mapping[str, Any]) -> str:
    """What a message costs in every case, clean-up included, compared with what gives no guarantee: for README.md."""
    contenders, spread, clean_up = result["contenders"], result["spread"], result["clean-up"]["request units"]
    ours, naive = contenders[TIMED], contenders["naive"]
    cases = {
        "an entity that the process knows": (ours["first"], naive["first"]),
        "an entity that it does not know": (ours["entity unknown to the process"], naive["first"]),
        "many entities, 16 in flight": (ours["many entities"], naive["many entities"]),
        "one hot entity, 64 in flight": (ours["hot entity"], naive["hot entity"]),
        "one receiver of 10,000 sources": (spread["10,000 sources, later"], naive["first"]),
        "dealt to 4 instances": (spread["dealt to 4 instances"], naive["first"]),
        "outputs of 40 KB": (ours["large outputs"], naive["large outputs"]),
        "the first of an entity": (ours["first of an entity"], naive["first of an entity"]),
        "a message without a stable time": (contenders[UNTIMED]["first"], naive["first"]),
        "a copy, in a process that knows nothing": (ours["duplicate in a fresh process"], naive["first"]),
    }
    rows = [
        (case, *(_figure(item["requests"]) for item in both), *(_figure(item["request units"], 1) for item in both))
        for case, both in cases.items()
    ]
    rows.append(("clean-up, for each message", "", "", _figure(clean_up), "0"))
    head = ("a message for", "requests: exactly once", "no guarantee", "request units: exactly once", "no guarantee")
    return table(head, rows)


def throughput_tables(result: Mapping[str, Any]) -> str:
    """One row for each contender, under the loads that tell contenders apart."""
    rows = []
    for load, contenders in result["loads"].items():
        if not load.endswith((", 64 in flight, 5 ms", ", 4 in flight, 20 ms")):
            continue
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
    return table(head, rows) + source(result, "throughput")


def targets_table(targets: Iterable[Target]) -> str:
    """What is wanted of `Outbox()`, and what came out."""
    rows = ((target.what, target.wanted, _figure(target.measured)) for target in targets)
    return table(("`Outbox()`", "wanted", "measured"), rows)


def growth_tables(result: Mapping[str, Any]) -> str:
    """What a message costs by the messages before it, and the bytes that each message leaves."""
    after = [
        (f"`{name}`" if first else "", f"{int(messages):,}", *map(_in_words, cost.values()))
        for name, measured in result["strategies"].items()
        for first, (messages, cost) in zip((True, False), _ends(measured["after"]), strict=True)
    ]
    head = ("strategy", "messages before", "a new message", "a duplicate of the newest", "a duplicate of the oldest")
    kept = [
        (_code(name), *(f"{bytes:,.2f}" for bytes in kept_a_message(measured["bytes"]).values()))
        for name, measured in result["strategies"].items()
    ]
    stays = ("bytes kept a message", "in the entity's document", "in other documents")
    return table(head, after) + table(stays, kept) + source(result, "growth")


def _ends(rows: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    first, *_, last = rows.items()
    return first, last


def spark_table(result: Mapping[str, Any]) -> str:
    """How long audits take."""
    rows = [
        (f"{int(records):,}", f"{seconds['full']:.1f} s", f"{seconds['incremental']:.1f} s")
        for records, seconds in result["audits"].items()
    ]
    return table(("records", "a full audit", "what changed: 1 %"), rows) + source(result, "spark")


def source(result: Mapping[str, Any], benchmark: str) -> str:
    """Where figures are from, and where all of them are."""
    return f"\n{measured_on(result)}; all figures are in `benchmarks/results/{benchmark}.json`.\n"


def _in_words(cost: Mapping[str, float]) -> str:
    requests = _number(cost["requests"])
    return f"{requests} {'request' if requests == '1' else 'requests'}, {cost['request units']:,.1f} RU"


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


def _cost(cost: Mapping[str, Any] | None) -> str:
    return "" if cost is None else f"{_number(cost['requests'])}, {cost['request units']:.1f}"


def _milliseconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f} ms"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _figure(value: float, digits: int = 2) -> str:
    """With so many digits, unless it is large."""
    return f"{value:,.{0 if value >= 100 else digits}f}"  # noqa: PLR2004  # Three digits say enough.


def _code(name: str) -> str:
    return f"`{name}`" if "(" in name else name


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of a page; all columns but the first have figures."""
    columns = tuple(head)
    lines = [columns, ("---", *("---:" for _ in columns[1:])), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
