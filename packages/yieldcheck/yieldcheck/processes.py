"""A ready-made model: processes that share a store, each a program, in every interleaving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .situations import Program, Situation, Situations

Store = TypeVar("Store")
Standing = tuple[Store, tuple[Situation[str], ...]]
"""A state: the store, and where each process stands."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Store]):
    """One way in which a request may be answered.

    Attributes:
        reply: what the program is sent; hashable.
        store: afterwards; hashable.
        said: for the story: what the process does.
        fault: whether it takes a fault, so that finishing the work must not rely on it.
    """

    reply: Any
    store: Store
    said: str = ""
    fault: bool = False


@dataclass(frozen=True, slots=True)
class Turn(Generic[Store]):
    """One request of one process, answered."""

    state: Standing[Store]
    fault: bool
    violation: str | None
    process: str
    said: str

    def __str__(self) -> str:
        return f"{self.process} {self.said}"


class Processes(Generic[Store]):
    """Programs that share a store.

    Args:
        programs: what each process runs, by its name.
        store: as it is in the beginning; hashable.
        answers: every answer to a request, given the store. Where several are possible, all are tried.
        judge: what is wrong with a store and the results of the processes that are at their end, by their names: a sentence, or
            None. A result is what the program returned, or the exception that it raised.
    """

    def __init__(
        self,
        programs: Mapping[str, Callable[[], Program]],
        store: Store,
        answers: Callable[[Any, Store], Iterable[Answer[Store]]],
        judge: Callable[[Store, Mapping[str, Any]], str | None],
    ) -> None:
        self._names = tuple(programs)
        self._store = store
        self._answers = answers
        self._judge = judge
        self._situations: Situations[str] = Situations(lambda name: programs[name]())

    def start(self) -> Standing[Store]:
        """The state in which nothing has happened."""
        return self._store, tuple(map(self._situations.first, self._names))

    def moves(self, state: Standing[Store]) -> Iterator[Turn[Store]]:
        """Every answer to the request of every process."""
        store, standing = state
        for place, situation in enumerate(standing):
            if situation.request is not None:
                for answer in self._answers(situation.request, store):
                    moved = self._situations.after(situation, answer.reply)
                    after = (answer.store, (*standing[:place], moved, *standing[place + 1 :]))
                    violation = self._judge(answer.store, self._results(after))
                    yield Turn(after, answer.fault, violation, self._names[place], answer.said)

    def is_good_end(self, state: Standing[Store]) -> bool:
        """Whether every process is at its end."""
        return all(situation.request is None for situation in state[1])

    def _results(self, state: Standing[Store]) -> dict[str, Any]:
        pairs = zip(self._names, state[1], strict=True)
        return {name: situation.result for name, situation in pairs if situation.request is None}
