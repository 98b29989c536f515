"""The whole page: one HTML document with its style inside, no script, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

from local_cosmos.semantics.container import Container
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.request_log import LoggedRequest


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is HTML already; any other text is escaped where it is put into an element."""

    text: str


Content: TypeAlias = Html | str


def trusted(text: str) -> Html:
    """HTML from the emulator's own source."""
    return Html(text)


def join(*parts: Content) -> Html:
    """One after the other."""
    return Html("".join(map(_text, parts)))


def element(tag: str, content: Content = "", **attributes: str) -> Html:
    """An element; `class_` stands for the attribute `class`."""
    written = "".join(f' {name.rstrip("_")}="{escape(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{written}>{_text(content)}</{tag}>")


def table(heads: Sequence[str], rows: Iterable[Sequence[Content]], *, kind: str = "") -> Html:
    """A table; it scrolls by itself where the window is narrow."""
    head = element("tr", join(*(element("th", name) for name in heads)))
    body = join(*(element("tr", join(*(element("td", cell) for cell in row))) for row in rows))
    inside = join(element("thead", head) if heads else "", element("tbody", body))
    return element("div", element("table", inside, class_=kind), class_="wide")


def section(title: str, content: Content) -> Html:
    """A part of the page with its title."""
    return element("section", join(element("h2", title), content))


def hint(text: Content) -> Html:
    """What to say where there is nothing to show."""
    return element("p", text, class_="hint")


def _text(content: Content) -> str:
    return content.text if isinstance(content, Html) else escape(content)


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


HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Nothing of the page may run or be framed, whatever names databases and items have."""

_TITLE: Final = "Local Cosmos DB"
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1"})


def is_wanted(verb: str, path: list[str], headers: Mapping[str, str]) -> bool:
    """Whether a browser asks for the page: `GET /`, unsigned, under a local name, which no foreign site can have."""
    asks = verb == "GET" and not path and "text/html" in headers.get("Accept", "")
    local = headers.get("Host", "").rpartition(":")[0] or headers.get("Host", "")
    return asks and "Authorization" not in headers and local in _LOCAL_HOSTS


def page(emulator: Emulator, endpoint: str) -> str:
    """The page as of now."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    head = join(
        trusted('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        element("title", _TITLE),
        element("style", trusted(style)),
    )
    body = join(
        _header(emulator, endpoint),
        element("main", join(containers(emulator), faults(emulator), recent_requests(emulator), totals(emulator))),
    )
    whole = join(element("head", head), element("body", body))
    return f"<!doctype html>{element('html', whole, lang='en').text}"


def _header(emulator: Emulator, endpoint: str) -> Html:
    settings = emulator.settings
    now = datetime.fromtimestamp(emulator.clock.now(), timezone.utc)
    facts = [
        ("endpoint", element("code", endpoint)),
        ("consistency", settings.consistency),
        ("its time", f"{now:%Y-%m-%d %H:%M:%S} UTC"),
        ("latency", f"{emulator.latency * 1000:g} ms"),
        ("delayed writes", str(emulator.delayed())),
        ("data", "in SQLite" if emulator.keeper.is_durable else "in memory"),
    ]
    note = "For development and tests, on this machine only. Not a production service."
    return element("header", join(element("h1", _TITLE), element("p", note), table([], facts, kind="facts")))
