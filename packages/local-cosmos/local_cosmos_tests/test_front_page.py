"""The page for a browser: what it shows, that it escapes all of it, and that no client of Cosmos DB ever gets it."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from azure.cosmos.aio import ContainerProxy, DatabaseProxy

from local_cosmos.front_page import page
from local_cosmos.inprocess import RunningEmulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos_tests.raw import RawClient

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HOSTILE = "<script>alert(1)<&\"'>"


class Page(HTMLParser):
    """The text that a browser shows, and the tags with their attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def get(
    emulator: RunningEmulator, headers: Mapping[str, str], path: str = "/"
) -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection(urlsplit(emulator.endpoint).netloc)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


async def test_a_browser_sees_what_the_emulator_holds_and_did(
    emulator: RunningEmulator, database: DatabaseProxy, container: ContainerProxy
) -> None:
    for number in range(3):
        await container.create_item({"id": f"shot-{number}", "pk": "p"})
    await container.create_item({"id": "short-lived", "pk": "p", "ttl": 1})
    emulator.advance_clock(1)
    emulator.add_fault(FaultRule(database.id, operations=("delete",), action="reset", probability=0.25))
    status, headers, source = get(emulator, BROWSER)
    text = Page(source).text
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    values = [
        database.id,
        "items",
        "/pk",
        "shot-2",
        "create",
        "5.50",
        "after applying: reset",
        "probability=0.25",
        "0 of 0",
    ]
    assert [shown for shown in values if shown not in text] == []
    emulator.split(database.id, "items", "0")
    assert text != Page(get(emulator, BROWSER)[2]).text


def test_nothing_on_the_page_runs_or_is_fetched(emulator: RunningEmulator) -> None:
    _, headers, source = get(emulator, BROWSER)
    tags = Page(source).tags
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not {"script", "link", "img", "iframe", "form", "a"} & {tag for tag, _ in tags}
    assert not [attributes for _, attributes in tags if {"src", "href", "onclick"} & attributes.keys()]


def test_whatever_things_are_called_is_shown_as_text(emulator: RunningEmulator) -> None:
    raw = RawClient(emulator.endpoint, emulator.key)
    hostile = HOSTILE.replace("/", "")
    assert raw.send("POST", "dbs", {"id": hostile}).status == 201
    emulator.add_fault(FaultRule(hostile, id=hostile, action="status"))
    raw.send("GET", f"dbs/{hostile}/colls/{hostile}/docs/{hostile}", key=hostile)
    page_source = get(emulator, BROWSER)[2]
    assert Page(page_source).text.count(hostile) >= 2
    assert "script" not in {tag for tag, _ in Page(page_source).tags}


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ({"Accept": "application/json"}, "/"),
        ({}, "/"),
        ({**BROWSER, "Authorization": "type=master"}, "/"),
        ({**BROWSER, "Host": "foreign.example"}, "/"),
        (BROWSER, "/dbs"),
    ],
    ids=["JSON wanted", "nothing wanted", "signed", "under a foreign name", "elsewhere"],
)
def test_all_but_a_local_browser_need_a_signature(
    emulator: RunningEmulator, headers: dict[str, str], path: str
) -> None:
    status, answered, _ = get(emulator, headers, path)
    assert (status, answered["Content-Type"]) == (401, "application/json")


def test_the_page_of_an_empty_emulator_says_so() -> None:
    emulator = Emulator(AccountSettings(), Clock(lambda: 0.0), lambda: 0.0, observed=False)
    text = Page(page(emulator, "http://localhost:1/")).text
    for hint in ("None yet", "None is armed", "--admin", "in memory", "1970-01-01"):
        assert hint in text
