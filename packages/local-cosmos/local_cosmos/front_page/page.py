"""The whole page: one HTML document with its style inside, no script, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from local_cosmos.front_page.html import Html, element, join, table, trusted
from local_cosmos.front_page.sections import containers, faults, recent_requests, totals
from local_cosmos.semantics.emulator import Emulator

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
    """The page as of now.

    Args:
        emulator: What it shows.
        endpoint: The address that clients use.
    """
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
