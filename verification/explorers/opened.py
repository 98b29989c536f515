"""Worlds in which callers opened their requests, and close them at any time; what they send may arrive at any later time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exactlyonce.errors import RequestUnknown
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import Answer
from exactlyonce.values.frozen_json import Json
from verification.explorers.moves import Move
from verification.explorers.reductions import State
from verification.explorers.requests import RequestsExplorer
from verification.world.scenario import AT, Request
from verification.world.store import Store, entity_ref

CLOSED: Final = "a request was closed that was not answered"
UNKNOWN_NOW: Final = "a copy came after its request was closed"


class OpenedExplorer(RequestsExplorer):
    """Explores a scenario in which all messages come by requests that were opened."""

    _refusals = (RequestUnknown,)

    def start(self) -> State:
        """The state in which nothing has happened but that the requests were opened, one after the other."""
        store, *others = super().start()
        documents = tuple((id, self._open(id)) for id in self._documents)
        library = self.world.stores.library(documents)
        return (self.world.stores.with_library(store, 0, library), *others)  # type: ignore[return-value]

    def is_good_end(self, state: State) -> bool:
        """As elsewhere; and nothing is left of the requests."""
        return super().is_good_end(state) and not any(id in state[0].libraries[0].now for id in self._documents)

    @property
    def _documents(self) -> tuple[str, ...]:
        """Ids of the documents of all requests."""
        return tuple(
            dict.fromkeys(f"request:m{request.key}" for request in self.scenario.requests if request is not None)
        )

    @staticmethod
    def _open(id: str) -> RequestDocument:
        return RequestDocument(entity_ref(0).key, id.removeprefix("request:"), AT, Json("{}"), None)

    def _happenings(self, state: State) -> Iterator[Move]:
        """What happens without a worker: callers close their requests, and what they sent first arrives once more."""
        yield from super()._happenings(state)
        store = state[0]
        library = store.libraries[0]
        for id in self._documents:
            if id not in store.closed:
                if id in library.now and library.now[id].answer is None:
                    self.witnessed.add(CLOSED)
                yield self._written(state, id, None, f"The caller closes {id}")
            elif self.scenario.reopened and library.writes.count((id, self._open(id))) == 1:
                yield self._written(
                    state, id, self._open(id), f"The caller's first message comes once more: {id} is opened"
                )

    def _written(self, state: State, id: str, content: RequestDocument | None, said: str) -> Move:
        store, *others = state
        library = store.libraries[0]
        if library.now.get(id) != content:
            library = self.world.stores.library((*library.writes, (id, content)))
        after = self.world.stores.with_library(store, 0, library)
        after = self.world.stores.changed(after, closed=store.closed | {id})
        return Move((after, *others), content is not None, None, -1, None, said)  # type: ignore[arg-type]

    def _wrong(self, key: str, request: Request, answer: Answer | None, store: Store) -> str | None:
        """As elsewhere; but the answer to a request that its caller has closed is gone with its document."""
        if answer is None and f"request:{key.partition('/')[2]}" in store.closed:
            return None
        return super()._wrong(key, request, answer, store)

    def _refused(self, key: str, store: Store) -> str | None:
        """What is wrong with refusing a message: its caller has not closed the request."""
        if f"request:{key.partition('/')[2]}" not in store.closed:
            return f"nothing_lost: {key} is refused, though its caller has not closed the request"
        self.witnessed.add(UNKNOWN_NOW)
        return None
