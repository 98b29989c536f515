"""The parts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Final

from local_cosmos.front_page.html import Content, Html, element, hint, join, section, table
from local_cosmos.semantics.container import Container
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.request_log import LoggedRequest

_SHOWN: Final = 50
"""Requests on the page."""

_LONGEST: Final = 60
"""Characters of a name on the page."""


def containers(emulator: Emulator) -> Html:
    """Databases, their containers, and for each its partitions with their items."""
    databases = emulator.account.containers()
    if not databases:
        return section("Databases", hint("None yet. Any client of Cosmos DB may create one."))
    return join(*(section(f"Database {_short(name)}", _containers(inside)) for name, inside in databases.items()))


def faults(emulator: Emulator) -> Html:
    """The armed rules, and how often each has hit."""
    rows = [
        (str(armed.rule_id), _short(armed.rule.database), _rule(armed.rule), f"{armed.hit} of {armed.matched}")
        for armed in emulator.faults.counters()
    ]
    if not rows:
        return section("Faults", hint("None is armed."))
    return section("Faults", table(["rule", "database", "what goes wrong", "hits"], rows))


def recent_requests(emulator: Emulator) -> Html:
    """The last requests for items, the newest first."""
    if not emulator.observed:
        return section("Recent requests", hint(join("Start with ", element("code", "--admin"), " to see them.")))
    entries = emulator.log.last(_SHOWN)
    if not entries:
        return section("Recent requests", hint("None yet."))
    heads = ["n", "operation", "container", "item", "partition key", "status", "RU", "ms"]
    return section("Recent requests", table(heads, map(_request, entries), kind="requests"))


def totals(emulator: Emulator) -> Html:
    """Sums since the start."""
    rows = [
        (
            _short(f"{t.database}/{t.container}"),
            t.operation,
            str(t.requests),
            str(t.refused),
            str(t.faults),
            f"{t.charge:,.2f}",
        )
        for t in emulator.log.totals()
    ]
    if not rows:
        return Html("")
    return section("Since the start", table(["container", "operation", "requests", "refused", "faults", "RU"], rows))


def _containers(inside: Sequence[Container]) -> Html:
    if not inside:
        return hint("No container yet.")
    rows: list[Sequence[Content]] = []
    for container in inside:
        counts = dict(_counts(container))
        paths = ", ".join("/" + "/".join(path) for path in container.definition.keys.paths)
        ttl = container.definition.default_ttl
        living = "off" if ttl is None else "per item" if ttl < 0 else f"{ttl:,} s"
        bars = join(*(_bar(*pair, sum(counts.values())) for pair in counts.items()))
        rows.append((_short(container.definition.name), _short(paths), living, f"{sum(counts.values()):,}", bars))
    return table(["container", "partition key", "time to live", "items", "items by physical partition"], rows)


def _counts(container: Container) -> Iterator[tuple[str, int]]:
    """Visible items by physical partition."""
    for partition in container.partitions.all():
        items = container.store.scan(partition.low, partition.high)
        yield partition.id, sum(not container.is_expired(item) for _, item in items)


def _bar(range_id: str, items: int, of: int) -> Html:
    share = round(100 * items / of) if of else 0
    line = element("i", "", style=f"width:{share}%")
    return element("div", join(element("b", range_id), element("u", line), f"{items:,}"), class_="bar")


def _request(entry: LoggedRequest) -> Sequence[Content]:
    status = "no answer" if entry.status is None else str(entry.status)
    status += f"/{entry.substatus}" if entry.substatus else ""
    kind = "bad" if entry.status is None or entry.status >= 400 else "good"  # noqa: PLR2004  # HTTP: from here on it failed.
    marks = [f" fault {entry.fault}"] if entry.fault is not None else []
    marks += [" delayed"] if entry.delayed else []
    return (
        str(entry.n),
        entry.operation,
        _short(f"{entry.database}/{entry.container}"),
        _short(entry.id or ""),
        _short(entry.partition_key or ""),
        join(element("span", status, class_=kind), *(element("small", mark) for mark in marks)),
        f"{entry.charge:.2f}",
        f"{(entry.finished - entry.started) * 1000:.1f}",
    )


def _rule(rule: FaultRule) -> str:
    """When and how, then what differs from a rule's defaults, in the words of the admin API."""
    said = [
        f"{field.name}={','.join(value) if isinstance(value, tuple) else value}"
        for field in fields(rule)
        if field.name not in {"database", "when", "action"} and (value := getattr(rule, field.name)) != field.default
    ]
    return _short(f"{rule.when} applying: {rule.action} " + " ".join(said), 3 * _LONGEST)


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
