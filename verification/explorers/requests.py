"""Worlds in which messages come by requests: clients are answered with what was committed, or leave without an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exactlyonce.effects.attempt import Again, Finished
from exactlyonce.errors import RequestUnknown
from exactlyonce.records.library import RequestDocument
from exactlyonce.records.outbox import Answer
from exactlyonce.values.frozen_json import Json
from verification.explorers.explorer import GIVES_BACK, Explorer
from verification.explorers.moves import Move, State, without_vain_drafts
from verification.world.outbox import said_on
from verification.world.scenario import AT, Request, without_copies
from verification.world.store import Store, entity_ref
from verification.world.workers import Worker

LEFT = "a client left without an answer"
REFUSED = "a request whose key another one had was refused"


class RequestsExplorer(Explorer):
    """Explores a scenario in which messages come by requests."""

    def _completed(self, move: Move) -> Move:
        """A step, with drafts forgotten that are saved in vain. What is left undone is left to the sweeper."""
        return move._replace(state=without_vain_drafts(self.workers, move.state)) if self._empties else move

    def _moves(self, state: State) -> Iterator[Move]:
        """Every step from a state. Clients whose request was not answered come again, or do not."""
        for move in super()._moves(state):
            yield move
            if move.what in (GIVES_BACK, "crashes") or move.crashed:
                worker = move.begun or state[2][move.slot]
                leaving = tuple(place for place in worker.held if self.scenario.request(place) is not None)
                if leaving:
                    store, queue, *rest = move.state
                    self.witnessed.add(LEFT)
                    yield move._replace(state=(store, without_copies(queue, leaving), *rest), fault=True)  # type: ignore[arg-type]

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        """As elsewhere; what is acknowledged is answered."""
        following, violation, ended = super()._settled(worker, store, violation)
        result = None if worker.situation is None else worker.situation.result
        if ended and isinstance(result, Finished | Again):
            answers, refused = dict(result.answers), self.workers.failed(worker, self._refusals)
            for place in dict.fromkeys(worker.held):
                key, request = self.keys[place], self.scenario.request(place)
                going = place not in following.held if isinstance(result, Finished) else key in result.processed
                if going and request is not None and key not in refused:
                    violation = violation or self.judge.lost(key, store)
                    violation = violation or self._wrong(key, request, answers.get(key), store)
        return following, violation, ended

    def _wrong(self, key: str, request: Request, answer: Answer | None, store: Store) -> str | None:
        """What is wrong with answering a request like this. It is refused if the answer is not to its fingerprint."""
        if answer is None:
            return f"one_answer: a request with the key {key} was carried out, and gets no answer"
        if (key, answer.body) not in store.committed:
            return f"one_answer: a request with the key {key} gets another answer than was committed"
        given = self.scenario.chores.is_to(answer, request.body)
        if not given:
            self.witnessed.add(REFUSED)
        own = self.scenario.companions or (answer.body or "").endswith(said_on("", request.body))
        if given is not own:
            told = "gets the answer to another one" if given else "is refused, though it was carried out"
            return f"fingerprint_decides: a request with the key {key} {told}"
        return None


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
