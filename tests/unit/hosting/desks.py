"""A desk where requests are answered, in a world of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import azure.functions as func

from exactlyonce import Entity, TryAgainLater
from exactlyonce.drivers.runtime import Clock, Runtime
from exactlyonce.effects.attempt import Strategy
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.hosting.requests.asker import Answered, Asker, Keys, Request
from exactlyonce.hosting.requests.door import Door
from exactlyonce.hosting.requests.opened_door import OpenedDoor, Requests
from exactlyonce.hosting.upkeep.sweeper import Sweeper, Swept
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import Trouble
from exactlyonce.testing.world import InstantClock, World
from tests.answering import Add, Counter, added_queue, counters
from tests.unit.hosting.settlers import maintenance, ready, receiver, settler

_LATER: Final = InstantClock()
_LATER.advance(timedelta(days=1).total_seconds())


def told(response: func.HttpResponse) -> tuple[int, str]:
    """Status code and title of a problem."""
    assert response.mimetype == "application/problem+json"
    body = json.loads(response.get_body())
    assert body["status"] == response.status_code
    assert set(body) == {"type", "title", "status", "detail"}
    return response.status_code, body["title"]


async def not_ready() -> None:
    """An application that could not start yet."""
    raise TryAgainLater("The application is not ready.")


def no_time() -> datetime:
    """The present, for whoever asks before the application is ready."""
    raise AssertionError("The store's time is not known before the application is ready.")


class Desk(World):
    """A world with processes that answer."""

    def __init__(
        self,
        trouble: Trouble | None = None,
        outcome: Callable[[Output], tuple[bool, bool]] = lambda _: (True, True),
        clock: Clock | None = None,
        tries: int = 10,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__((added_queue,), trouble=trouble, outcome=outcome, clock=clock or InstantClock())
        self.counters = counters(strategy)
        self.tries = tries
        self.restart()

    def restart(self) -> None:
        """Go on in a process that remembers nothing."""
        runs = self.runs = maintenance(self, self.tries)
        self.receiver = receiver(self, runs, Failures(), settler(self))
        self.asker = Asker(self.receiver, ready, self.clock.now)
        self.requests = Requests(self.receiver, runs)

    async def ask(self, key: str, fingerprint: str = "f", time: datetime | None = None, **more: Any) -> Answered:
        """Ask the counter c."""
        return await self.asker.ask(self.counters, Add("c", **more), Request(key, fingerprint, "test", time))

    async def post(
        self,
        body: bytes | str = b"{}",
        key: str | None = "k-1",
        *,
        message: object = None,
        entity: Entity[Counter] | None = None,
        path: str = "/api/counters/c",
        scope: str | None = None,
        keys: Keys = "any",
        **headers: str,
    ) -> func.HttpResponse:
        """Post a request for the counter c."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            given["Idempotency-Key"] = key
        content = body.encode() if isinstance(body, str) else body
        request = func.HttpRequest("POST", f"http://localhost{path}?code=secret", headers=given, body=content)
        made = Add("c") if message is None else message
        return await Door(self.asker).answer(request, entity or self.counters, made, scope, keys)

    async def open(
        self, message: object = None, entity: Entity[Counter] | None = None, method: str = "POST", **headers: str
    ) -> func.HttpResponse:
        """Open a request for the counter c."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = func.HttpRequest(method, "http://localhost/api/counters/c/adds", headers=given, body=b"{}")
        made = Add("c") if message is None else message
        return await OpenedDoor(self.requests).open(request, entity or self.counters, made)

    async def serve(self, method: str, location: str, counter: str = "c") -> func.HttpResponse:
        """Do something with a request of the counter c that was opened."""
        place = urlsplit(location)
        request = func.HttpRequest(
            method,
            f"http://localhost{location}",
            params=dict(parse_qsl(place.query)),
            route_params={"counter": counter, "request": place.path.rpartition("/")[2]},
            body=b"",
        )
        return await OpenedDoor(self.requests).serve(request, self.counters, counter)

    def left(self, counter: str = "c") -> set[str]:
        """Ids of the documents that are left of a counter in the library's partition."""
        partition = self.store.library.get(self.counters.ref(counter).key)
        return set() if partition is None else set(partition.view(len(partition.log)))

    async def sweep(self) -> Swept:
        """Sweep once, as a timer does, when the counter has owed for an hour."""
        runtime = Runtime(_LATER, self.random)
        return await Sweeper(self.runs, MemoryListing(self.store), runtime).sweep(
            [self.counters], timedelta(hours=1), 100
        )

    @property
    async def total(self) -> int:
        """The total of the counter c."""
        state = await self.receiver.maintenance.state(self.counters, self.counters.ref("c"))
        return 0 if state is None else state.total
