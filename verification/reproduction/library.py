"""The outbox and its chores: pages, books, kept messages and parked messages lie in the library's container."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from exactlyonce.attempt import Again, Finished
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Loaded, Publish
from exactlyonce.effects.library import FindPages, FindPagesAbove, FoundAbove, FoundPages, FoundStaged, HasPages
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER, page_id
from verification.explorers.trace import Event
from verification.reproduction.correspondence import Correspondence, TornViewError, library_log, page_name
from verification.reproduction.families import Deeds, Versioned
from verification.reproduction.library_holdings import holding_differences
from verification.reproduction.library_judge import fallen
from verification.reproduction.reality import ENTITIES, Documents, Reality, partition_text
from verification.world.outbox_handler import keys_in
from verification.world.scenario import AT, TICK, Scenario
from verification.world.store import Library, Store, StoredPage, entity_ref, position_of
from verification.world.tasks import Start
from verification.world.workers import COMES_BACK, Workers


class LibraryRecords:
    """Plays scenarios of the outbox.

    Args:
        scenario: what is played.

    Attributes:
        names: what stands for what.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._workers = Workers(scenario)
        self._keys = keys_in(scenario)
        self.names = Correspondence()

    def start(self, event: Event, documents: Documents) -> Start:
        """What a process begins with a step, with the names of reality."""
        start = event.start
        assert start is not None  # noqa: S101
        if start.task == "clean":
            return replace(start, candidates=tuple(map(self.names.transaction, start.candidates)))
        if start.task == "clean pages":
            partition, pages = partition_text(entity_ref(start.entity).key), start.candidates[::2]
            etags = (documents[LIBRARY_CONTAINER][partition, page_id(int(page))]["_etag"] for page in pages)
            return replace(start, candidates=tuple(part for pair in zip(pages, etags, strict=True) for part in pair))
        return start

    def step(self, start: Start) -> Step[Any]:
        """The production generator that does a task."""
        return self._workers.step(start)

    def following(self, start: Start, result: Any) -> Start | None:
        """The same again, if it has to be; or those deliveries that failed and come back."""
        if isinstance(result, Again):
            return start
        failed = result.failed if isinstance(result, Finished) else ()
        again = {key for key, error in failed if isinstance(error, COMES_BACK)}
        messages = tuple(number for number in start.messages if self._keys[number] in again)
        return Start("attempt", start.entity, messages) if messages else None

    def time(self, start: Start, event: Event, store: Store) -> datetime | None:
        """The store's present, or, of an attempt, one as far behind as its may be. Age at sending is by the store's."""
        behind = 0 if isinstance(event.effect, Publish) else start.behind
        return AT + max(store.now - behind, 0) * TICK

    def position(self, event: Event, entity: int, before: Store) -> int | None:
        """The position in the model's log that a read saw: the newest that shows this; None for the newest of all."""
        library, effect = before.libraries[entity], event.effect
        match event.reply:
            case Loaded():
                return position_of(event.reply.token)
            case FoundStaged(documents=documents):
                wanted = {f"staged:{tx}" for tx in effect.transactions}  # type: ignore[union-attr]
                found = {f"staged:{document.tx}" for document in documents}
                fits: Callable[[dict[str, Any]], bool] = lambda view: wanted & view.keys() == found  # noqa: E731
            case FoundPages() | FoundAbove() | bool():
                fits = lambda view: _shown(effect, _living(view, before.now)) == _found(event.reply)  # noqa: E731
            case _:
                return None
        return self._newest(event, library, entity, fits)

    def _newest(self, event: Event, library: Library, entity: int, fits: Callable[[dict[str, Any]], bool]) -> int:
        """The newest view that fits and is none within a batch."""
        oldest = position_of(getattr(event.effect, "token", None))
        for position in range(library.end, oldest - 1, -1):
            if fits(library.view(position)) and not self.names.is_torn(library_log(entity), position):
                return position
        raise TornViewError(f"no view that the service can show has what {event}")

    def versions(self, store: Store) -> Iterator[Versioned]:
        """Entities and pages."""
        for number, entity in enumerate(store.entities):
            ref = entity_ref(number)
            if entity.truth.etag is not None:
                yield Versioned(ref.id, ENTITIES.container, (partition_text(ref.id), ref.id), entity.truth.etag)
            for item in _living(store.libraries[number].now, store.now):
                place = (partition_text(ref.key), page_id(item.page.number))
                yield Versioned(page_name(number, item.page.number), LIBRARY_CONTAINER, place, item.etag)

    def differences(self, reality: Reality, documents: Documents, store: Store) -> Iterator[str]:
        """Where reality holds something else than the model."""
        sweeps = not self.scenario.budget.cleanings
        return holding_differences(reality, documents, store, self.names, sweeps=sweeps)

    def fallen(self, reality: Reality, deeds: Sequence[Deeds]) -> frozenset[str]:
        """The names of the properties that do not hold in reality."""
        return fallen(reality, self.scenario, deeds)


def _living(view: dict[str, Any], now: int) -> tuple[StoredPage, ...]:
    """The pages of a view whose time is not over, at a tick: the service shows no others."""
    seconds = now * int(TICK.total_seconds())
    pages = (item for id, item in sorted(view.items()) if id.startswith("page:"))
    return tuple(page for page in pages if page.expires is None or seconds < page.expires)


def _shown(effect: Any, pages: tuple[StoredPage, ...]) -> object:
    """What a read of pages finds among these."""
    match effect:
        case FindPages():
            return frozenset(effect.found(page.page for page in pages).pages)
        case FindPagesAbove():
            return frozenset((page.page, page.etag) for page in pages if page.page.number > effect.number)
        case HasPages():
            return bool(pages)
    raise TypeError(effect)


def _found(reply: FoundPages | FoundAbove | bool) -> object:
    """What a read of pages found, in any order."""
    return reply if isinstance(reply, bool) else frozenset(reply.pages)
