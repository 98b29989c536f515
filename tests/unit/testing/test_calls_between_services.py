"""One application calls another: it opens a request, has it carried out and closes it, whatever gets lost on the way."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import azure.functions as func
import pytest

from exactlyonce import Api, Context, Destination, Entity, Outbox, Reply, message
from exactlyonce.testing import App
from exactlyonce.testing.interruptions import Lost
from exactlyonce.testing.services import Request, Response
from tests.answering import Add, added_queue, counters

ADDING = Api("adding", "https://counters.example", key_lifetime=timedelta(days=29))


@message("visitor.come")
@dataclass
class Come:
    visitor: str


@message("visitor.opened")
class Opened(Reply):
    """The tag is the visitor, as that of all replies."""


@message("visitor.counted")
class Counted(Reply):
    """The answer of the counter."""


@message("visitor.closed")
class Closed(Reply):
    """Nothing is left of the request."""


@dataclass
class Visitor:
    place: str = ""
    total: int = 0
    counted: int = 0
    closed: bool = False


VISITORS = Destination("visitors", receives=(Opened, Counted, Closed))


def visitors() -> Entity[Visitor]:
    entity = Entity("visitor", state=Visitor, container="visitors", strategy=Outbox())

    @entity.handles(Come, key=lambda item: item.visitor)
    def come(state: Visitor, given: Come, context: Context) -> Visitor:
        context.call(ADDING, "POST", "/api/counters/c/adds", then=Opened, tag=given.visitor)
        return state

    @entity.handles(Opened, key=lambda got: got.tag)
    def opened(state: Visitor, got: Opened, context: Context) -> Visitor:
        place = got.headers["Location"]
        context.call(ADDING, "POST", place, then=Counted, tag=got.tag)
        return replace(state, place=place)

    @entity.handles(Counted, key=lambda got: got.tag)
    def counted(state: Visitor, got: Counted, context: Context) -> Visitor:
        context.call(ADDING, "DELETE", state.place, then=Closed, tag=got.tag)
        assert isinstance(got.body, dict)
        total = got.body["total"]
        assert isinstance(total, int)
        return replace(state, total=total, counted=state.counted + 1)

    @entity.handles(Closed, key=lambda got: got.tag)
    def closed(state: Visitor, got: Closed, context: Context) -> Visitor:
        del context
        return replace(state, closed=got.status == 204)

    return entity


class Pair:
    """Both applications. The service has a thread, since each has an event loop."""

    def __init__(self) -> None:
        self.counters, self.visitors = counters(), visitors()
        self.service = App(self.counters, destinations=(added_queue,))
        self.caller = App(
            self.visitors,
            destinations=(VISITORS, ADDING),
            queues={"visitors": self.visitors},
            apis={ADDING: self.serve},
        )
        self._thread = ThreadPoolExecutor(1)

    def serve(self, tried: Request) -> Response:
        """The service's function for all its routes."""
        place = urlsplit(tried.path)
        request = func.HttpRequest(
            tried.method,
            f"https://counters.example{tried.path}",
            params=dict(parse_qsl(place.query)),
            route_params={"counter": "c", "request": place.path.rpartition("/")[2]},
            body=b"",
        )
        once = self.service.once
        opening = place.path.endswith("/adds")
        done = (
            once.open_request(request, self.counters, Add("c"))
            if opening
            else once.serve_request(request, self.counters, "c")
        )
        response = self.in_service(lambda: self.service.run(done))
        body = response.get_body()
        return Response(response.status_code, json.loads(body) if body else None, dict(response.headers))

    def in_service(self, asked: Any) -> Any:
        return self._thread.submit(asked).result()

    def play(self) -> None:
        """Two visitors come; then late copies of all that was sent reach the service."""
        for visitor in ("ann", "bob"):
            self.caller.send("visitors", Come(visitor), message_id=visitor)
        self.caller.advance(hours=2)
        tries = self.caller.tries(ADDING)
        assert {tried.method for tried in tries} == {"POST", "DELETE"}
        self.in_service(lambda: self.service.advance(minutes=10))
        late = [(tried, self.serve(tried)) for tried in tries]
        for tried, response in late:
            expected = 204 if tried.method == "DELETE" else 201 if tried.path.endswith("/adds") else 404
            assert response.status == expected, tried

    def assert_each_call_was_carried_out_once(self) -> None:
        states = [self.caller.state(self.visitors, visitor) for visitor in ("ann", "bob")]
        assert all(state is not None and state.closed and state.counted == 1 for state in states)
        assert sorted(state.total for state in states if state is not None) == [1, 2]
        state = self.in_service(lambda: self.service.state(self.counters, "c"))
        assert state.total == 2
        self.assert_nothing_is_left()

    def assert_nothing_is_left(self) -> None:
        """But for requests that nobody knows to be open, which clean-up deletes."""
        store = self.service.host.accounts.documents
        partition = store.library[self.counters.ref("c").key]
        left = {id: item.document for id, item in partition.view(len(partition.log)).items()}
        assert all(document is not None and document.value["answer"] is None for document in left.values())
        document = store.entities["counter", "c"].log[-1].document
        assert document is not None
        assert "answers" not in document.value["_ledger"]
        caller = self.caller.host.accounts.documents
        for visitor in ("ann", "bob"):
            document = caller.entities["visitor", visitor].log[-1].document
            assert document is not None
            assert "calls" not in document.value["_ledger"]


def test_a_call_is_opened_carried_out_and_closed() -> None:
    pair = Pair()
    pair.play()
    pair.assert_each_call_was_carried_out_once()
    paths = [(tried.method, urlsplit(tried.path).path.count("/")) for tried in pair.caller.tries(ADDING)]
    assert paths == [("POST", 4), ("POST", 5), ("DELETE", 5)] * 2


@pytest.mark.parametrize("lost", ["reply", "request"])
@pytest.mark.parametrize("side", ["caller", "service"])
def test_whichever_write_is_lost_on_either_side_each_call_is_carried_out_once(side: str, lost: Lost) -> None:
    quiet = Pair()
    quiet.play()
    writes = getattr(quiet, side).host.accounts.documents.writes
    assert writes > 6
    for place in range(writes):
        pair = Pair()
        getattr(pair, side).lose(*(None,) * place, lost)
        pair.play()
        pair.assert_each_call_was_carried_out_once()


@pytest.mark.parametrize("trouble", ["down", "lost"])
@pytest.mark.parametrize("place", range(6))
def test_whichever_verb_is_lost_on_the_way_each_call_is_carried_out_once(trouble: Any, place: int) -> None:
    pair = Pair()
    pair.caller.trouble(ADDING, *(timedelta(0),) * place, trouble, trouble)
    pair.play()
    pair.assert_each_call_was_carried_out_once()


@pytest.mark.parametrize("seed", range(5))
def test_where_every_message_of_the_caller_comes_twice_each_call_is_carried_out_once(seed: int) -> None:
    pair = Pair()
    pair.caller.duplicate_everything(seed)
    pair.play()
    pair.assert_each_call_was_carried_out_once()
