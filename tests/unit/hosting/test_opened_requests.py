"""Requests that callers open: what each verb answers, and that nothing is left once they are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import azure.functions as func
import pytest

from exactlyonce import Colocated, ConfigurationError, Outbox, TryAgainLater
from exactlyonce.hosting.requests.opened_door import OpenedDoor, Requests, require_requests, token_of, token_text
from exactlyonce.protocols.outbox.requests import Opened
from exactlyonce.stores.memory.store import Fate
from tests.answering import Add, counters
from tests.unit.fated import Fated
from tests.unit.hosting.desks import Desk, no_time, not_ready, told


async def opened(desk: Desk, message: object = None) -> str:
    response = await desk.open(message)
    assert (response.status_code, response.get_body()) == (201, b"")
    return str(response.headers["Location"])


async def test_a_request_is_opened_carried_out_once_looked_at_and_closed() -> None:
    desk = Desk()
    location = await opened(desk, Add("c", 2, status=201))
    assert location.startswith("/api/counters/c/adds/")
    assert await desk.total == 0
    first = await desk.serve("POST", location)
    assert (first.status_code, first.get_body(), first.mimetype) == (201, b'{"total":2}', "application/json")
    assert dict(first.headers) == {"Location": "/counters/c"}
    for method in ("POST", "GET"):
        again = await desk.serve(method, location)
        assert (again.status_code, again.get_body()) == (201, b'{"total":2}')
        assert dict(again.headers) == {"Location": "/counters/c", "Idempotent-Replayed": "true"}
    for _ in range(2):
        assert (await desk.serve("DELETE", location)).status_code == 204
    for method in ("POST", "GET"):
        assert told(await desk.serve(method, location)) == (404, "No such request")
    assert await desk.total == 2
    assert len(desk.published) == 1


async def test_nothing_is_left_once_a_request_is_closed() -> None:
    desk = Desk()
    location = await opened(desk)
    await desk.serve("POST", location)
    assert len(desk.left()) == 1
    await desk.serve("DELETE", location)
    assert desk.left() == set()
    await desk.ask("k-1", silent=True)
    document = desk.store.entities["counter", "c"].log[-1].document
    assert document is not None
    (entry,) = document.value["_ledger"]["outbox"]
    assert "answer" not in entry, "the next commit drops what was paid, and the answer with it"


async def test_a_request_that_was_not_carried_out_has_no_answer_yet() -> None:
    desk = Desk()
    response = await desk.serve("GET", await opened(desk))
    assert told(response) == (409, "Not answered yet")
    assert response.headers["Retry-After"] == "1"


async def test_copies_that_come_together_are_carried_out_once() -> None:
    desk = Desk()
    location = await opened(desk)
    responses = await asyncio.gather(*(desk.serve("POST", location) for _ in range(5)))
    assert {response.get_body() for response in responses} == {b'{"total":1}'}
    assert await desk.total == 1


async def test_requests_and_messages_with_keys_share_commits() -> None:
    desk = Desk()
    locations = [await opened(desk) for _ in range(3)]
    await asyncio.gather(*(desk.serve("POST", location) for location in locations), desk.post(key="k-1"))
    assert await desk.total == 4
    for location in locations:
        assert (await desk.serve("POST", location)).headers["Idempotent-Replayed"] == "true"
    assert await desk.total == 4


@pytest.mark.parametrize("fate", [Fate.LOST_BEFORE, Fate.LOST_AFTER, Fate.REPEATED])
@pytest.mark.parametrize("write", ["open_request", "save_entity", "keep_answers", "close_request"])
async def test_a_write_that_is_not_acknowledged_changes_nothing_for_the_caller(fate: Fate, write: str) -> None:
    desk = Desk(Fated(fate, write, 1))
    location = await opened(desk)
    assert (await desk.serve("POST", location)).get_body() == b'{"total":1}'
    assert (await desk.serve("DELETE", location)).status_code == 204
    assert await desk.total == 1
    assert len(desk.left()) == (1 if write == "open_request" and fate is Fate.LOST_AFTER else 0)


async def test_an_answer_that_could_not_be_kept_is_not_given_and_the_sweeper_keeps_it() -> None:
    desk = Desk(Fated(Fate.LOST_BEFORE, "keep_answers", 2), tries=2)
    location = await opened(desk)
    assert told(await desk.serve("POST", location)) == (503, "Outcome not known")
    assert told(await desk.serve("GET", location)) == (409, "Not answered yet")
    desk.restart()
    await desk.sweep()
    assert (await desk.serve("GET", location)).get_body() == b'{"total":1}'
    assert await desk.total == 1


async def test_a_handler_that_raises_changes_nothing_and_the_request_may_be_repeated() -> None:
    desk = Desk()
    location = await opened(desk, Add("c", failing=True))
    for _ in range(2):
        assert told(await desk.serve("POST", location)) == (500, "Failed")
    assert told(await desk.serve("GET", location)) == (409, "Not answered yet")


async def test_without_a_reply_there_is_no_content() -> None:
    desk = Desk()
    location = await opened(desk, Add("c", silent=True))
    for _ in range(2):
        response = await desk.serve("POST", location)
        assert (response.status_code, response.get_body()) == (204, b"")


@pytest.mark.parametrize("change", ["", "?at=", "?at=%25", "?at=bm8gdG9rZW4", "?at=" + "A" * 5000])
async def test_an_address_that_is_not_as_it_was_given_is_404(change: str) -> None:
    desk = Desk()
    place = (await opened(desk)).partition("?")[0]
    assert told(await desk.serve("POST", place + change)) == (404, "No such request")


async def test_a_request_is_not_found_at_another_entity() -> None:
    desk = Desk()
    await opened(desk, Add("d"))
    assert told(await desk.serve("POST", await opened(desk), counter="d")) == (404, "No such request")


async def test_another_method_than_post_is_405_and_opens_nothing() -> None:
    desk = Desk()
    response = await desk.open(method="PUT")
    assert told(response) == (405, "Method not allowed")
    assert response.headers["Allow"] == "POST"
    assert desk.left() == set()


@pytest.mark.parametrize("header", [{"Content_Encoding": "gzip"}, {"Content_Type": "text/plain"}], ids=str)
async def test_a_body_other_than_plain_json_is_415_and_opens_nothing(header: dict[str, Any]) -> None:
    desk = Desk()
    assert (await desk.open(**header)).status_code == 415
    assert desk.left() == set()


async def test_a_route_without_the_request_is_the_operators_error() -> None:
    desk = Desk()
    request = func.HttpRequest("POST", "http://localhost/api", body=b"")
    with pytest.raises(ConfigurationError, match="has no parameter request"):
        await OpenedDoor(desk.requests).serve(request, desk.counters, "c")


def test_only_the_outbox_keeps_documents_of_requests() -> None:
    require_requests(counters(Outbox()))
    with pytest.raises(ConfigurationError, match="only Outbox"):
        require_requests(counters(Colocated()))


@pytest.mark.parametrize("token", ["0:-1#7", "12:3#4#1=5#2=-6"])
def test_tokens_survive_addresses(token: str) -> None:
    assert token_of(token_text(token)) == token


@pytest.mark.parametrize("job", ["open", "carry_out", "answer", "close"])
async def test_no_document_of_a_request_is_asked_for_before_the_application_is_ready(job: str) -> None:
    desk = Desk()
    maintenance: Any = None  # Whoever asks it fails.
    requests = Requests(replace(desk.receiver, ready=not_ready, now=no_time), maintenance)
    ref, one = desk.counters.ref("c"), Opened("request", "0:0#1")
    jobs: dict[str, Callable[[], Awaitable[Any]]] = {
        "open": lambda: requests.open(desk.counters, Add("c")),
        "carry_out": lambda: requests.carry_out(desk.counters, ref, one),
        "answer": lambda: requests.answer(ref, one),
        "close": lambda: requests.close(ref, one),
    }
    with pytest.raises(TryAgainLater, match="is not ready"):
        await jobs[job]()
