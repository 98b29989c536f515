"""Worlds in which messages come by requests: clients are answered with what was committed, or leave without an answer."""

from __future__ import annotations

from collections.abc import Iterator

from exactlyonce.attempt import Again, Finished
from exactlyonce.records.outbox import Answer
from verification.explorers.explorer import GIVES_BACK, Explorer
from verification.explorers.moves import Move
from verification.explorers.reductions import State, without_vain_drafts
from verification.world.amounts import without_copies
from verification.world.outbox_handler import said_on
from verification.world.scenario import Request
from verification.world.store import Store
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
