"""Playing traces finds bugs: of the adapter, of the strategy, and of the model itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from exactlyonce.drivers.book import Shelf
from exactlyonce.effects import companions, library
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.records.outbox import Output
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import RunningEmulator
from tests.model.broken_memory import BROKEN_MEMORY
from tests.model.walking import OUTBOX_WALKS, played, walked
from tests.model.walking_companions import WALKS
from verification.checker.search import explore
from verification.explorers.trace import Event
from verification.reproduction.careless import OverwritingStore
from verification.reproduction.conductor import Divergence
from verification.reproduction.correspondence import Correspondence, TornViewError, entity_log, library_log
from verification.reproduction.reality import emulator_of_the_model
from verification.world.companions import ENTITY
from verification.world.scenario import Scenario
from verification.world.writes import WriteDown


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    """A local Cosmos for traces of the model."""
    with emulator_of_the_model() as running:
        yield running


_A_WEEK = 7 * 86_400
"""Longer than pages are kept where messages have an age: elsewhere the model does not look at that."""
TAKEN = (*OUTBOX_WALKS, *WALKS)
"""Walks in the order in which a bug is looked for."""
_OLD = library.Written("0:-1#0")


class Bug(NamedTuple):
    """Of an adapter that asks for something else than an effect says (or for nothing), or takes a reply for another."""

    effect: type
    asks: Callable[[Any], Any] = lambda effect: effect
    takes: Any = None
    taken_for: Any = None
    shows: Callable[[Any, Any], Any] = lambda asked, reply: True
    in_the_model: type | None = None

    def is_taken(self, reply: Any) -> bool:
        return isinstance(reply, self.takes) if isinstance(self.takes, type) else reply is self.takes

    def shows_in(self, event: Event) -> bool:
        """Whether a step of the model meets the bug."""
        met = isinstance(event.effect, self.in_the_model or self.effect)
        heard = self.takes is None or self.in_the_model is not None or self.is_taken(event.reply)
        return met and heard and bool(self.shows(event.effect, event.reply))

    def adapter(self) -> type[CosmosStore]:
        name = re.sub("(?<!^)(?=[A-Z])", "_", self.effect.__name__).lower()
        right = getattr(CosmosStore, name)

        async def wrong(store: CosmosStore, effect: Any) -> Any:
            asked = self.asks(effect)
            reply = None if asked is None else await right(store, asked)
            if not self.is_taken(reply):
                return reply
            return self.taken_for(reply) if callable(self.taken_for) else self.taken_for

        return type("Broken", (CosmosStore,), {name: wrong})


def finds_more(**less: Any) -> Callable[[Any, Any], bool]:
    """Whether a read found a page that it would not find if it asked for less."""
    return lambda asked, reply: (
        isinstance(reply, library.FoundPages) and not all(map(replace(asked, **less).asks_for, reply.pages))
    )


def asks(**other: Any) -> Callable[[Any], Any]:
    return lambda effect: replace(effect, **other)


def nothing(_: Any) -> None:
    """Asked for in place of an effect."""


def several(_: Any, reply: Any) -> bool:
    return isinstance(reply, companions.FoundCompanions) and len(reply.companions) > 1


BUGS = {
    "takes unknown for conflict": Bug(SaveEntity, takes=UNKNOWN, taken_for=Conflict(None)),
    "takes conflict for unknown": Bug(SaveEntity, takes=Conflict, taken_for=UNKNOWN),
    "saves without condition": Bug(
        SaveEntity,
        lambda effect: replace(effect, etag=effect.etag and "*"),
        shows=lambda asked, reply: asked.etag and isinstance(reply, Conflict),
    ),
    "forgets tokens of pages": Bug(
        library.FindPages, asks(token=None), shows=lambda asked, reply: asked.token is not None and reply is BEHIND
    ),
    "takes behind for no pages": Bug(library.FindPages, takes=BEHIND, taken_for=library.FoundPages(())),
    "finds the newest page only": Bug(
        library.FindPages, asks(times=(), hashes=()), shows=finds_more(times=(), hashes=())
    ),
    "finds pages by time only": Bug(library.FindPages, asks(hashes=()), shows=finds_more(hashes=())),
    "finds no page for its number": Bug(library.FindPages, asks(newest=-1), shows=finds_more(newest=-1)),
    "finds no page above": Bug(
        library.FindPagesAbove,
        takes=library.FoundAbove,
        taken_for=library.FoundAbove(()),
        shows=lambda _, reply: reply.pages,
    ),
    "has no pages": Bug(library.HasPages, takes=True, taken_for=False),
    "takes another page for its own": Bug(library.WritePage, takes=library.OTHER, taken_for=_OLD),
    "tells an old token of a page": Bug(library.WritePage, takes=library.Written, taken_for=_OLD),
    "keeps pages too long": Bug(
        library.WritePage,
        lambda effect: replace(effect, seconds=effect.seconds + 1),
        shows=lambda asked, reply: asked.seconds < _A_WEEK and isinstance(reply, library.Written),
    ),
    "keeps pages that are to go": Bug(library.DeletePages, nothing, shows=lambda asked, _: asked.pages),
    "loses a book": Bug(
        library.WriteBook,
        nothing,
        taken_for=_OLD,
        shows=lambda asked, reply: reply is None and asked.written.paid,
        in_the_model=WriteDown,
    ),
    "writes that all is paid": Bug(
        library.WriteBook,
        lambda effect: replace(effect, book=replace(effect.book, open=())),
        shows=lambda asked, _: asked.written.open,
        in_the_model=WriteDown,
    ),
    "writes that nothing is paid": Bug(
        library.WriteBook,
        lambda effect: replace(effect, book=replace(effect.book, used=0)),
        shows=lambda asked, _: asked.written.paid,
        in_the_model=WriteDown,
    ),
    "reads no book": Bug(
        library.ReadBooks,
        nothing,
        taken_for=library.FoundBooks(()),
        shows=lambda _, reply: reply,
        in_the_model=library.FindPaid,
    ),
    "finds nothing staged": Bug(
        library.LoadStaged,
        takes=library.FoundStaged,
        taken_for=library.FoundStaged(()),
        shows=lambda _, reply: reply.documents,
    ),
    "forgets tokens of companions": Bug(
        companions.LoadCompanions,
        asks(token=None),
        shows=lambda asked, reply: asked.token is not None and reply is BEHIND,
    ),
    "takes behind for no companions": Bug(
        companions.LoadCompanions, takes=BEHIND, taken_for=companions.FoundCompanions(())
    ),
    "reads one companion of two": Bug(
        companions.LoadCompanions, lambda effect: replace(effect, ids=effect.ids[:1]), shows=several
    ),
    "reads backwards": Bug(
        companions.FindEntries,
        takes=companions.FoundCompanions,
        taken_for=lambda reply: companions.FoundCompanions(reply.companions[::-1]),
        shows=several,
    ),
    "takes an unknown batch for conflict": Bug(companions.SaveBatch, takes=UNKNOWN, taken_for=Conflict(None)),
    "takes a batch's conflict for unknown": Bug(companions.SaveBatch, takes=Conflict, taken_for=UNKNOWN),
    "tells the etag of a companion": Bug(
        companions.SaveBatch, takes=Saved, taken_for=lambda reply: replace(reply, etag='"of a companion"')
    ),
    "loses one companion of two": Bug(
        companions.SaveBatch,
        lambda effect: replace(effect, create=effect.create[:1]),
        shows=lambda asked, _: len(asked.create) > 1,
    ),
    "writes nothing down": Bug(companions.ReplaceCompanions, nothing),
    "keeps what is to go": Bug(companions.DeleteCompanions, nothing),
}


async def finds(emulator: RunningEmulator, adapter: type[CosmosStore], shows: Callable[[Event], bool]) -> None:
    """The first walk that meets a bug finds it."""
    walks = ((scenario, walked(scenario, seed)) for scenario, seed in TAKEN)
    scenario, trace = next((scenario, trace) for scenario, trace in walks if any(map(shows, trace)))
    with pytest.raises(Divergence, match="reality differs from the model"):
        await played(emulator, scenario, trace, adapter)


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
async def test_an_adapter_with_a_bug_is_found_as_soon_as_a_walk_meets_it(emulator: RunningEmulator, bug: Bug) -> None:
    """The walks would not be worth much if they went well whatever the adapter did."""
    await finds(emulator, bug.adapter(), bug.shows_in)


async def test_an_adapter_that_writes_pages_over_is_found(emulator: RunningEmulator) -> None:
    await finds(emulator, OverwritingStore, lambda event: event.reply is library.OTHER)


class NeverCloses(Shelf):
    """A shelf on which numbers stay open."""

    def close(self, *_: Any) -> None:
        pass


class TestADifference:
    """Names the step, and what is different."""

    twin = next(twin for twin in BROKEN_MEMORY if twin.name == "the page is written after the commit")

    async def test_in_what_is_asked(self, emulator: RunningEmulator) -> None:
        trace = explore(self.twin.scenario_with_twin()).trace
        with pytest.raises(Divergence, match=r"Step \d+, A saves the entity.*\n  SaveEntity: WritePage"):
            await played(emulator, self.twin.scenario, trace)

    async def test_in_what_is_held(self, emulator: RunningEmulator) -> None:
        trace = walked(self.twin.scenario, 0)
        wrong = [replace(event, store=replace(event.store, published=frozenset({"web/m7"}))) for event in trace]
        with pytest.raises(Divergence, match=r"Step 1, .*\n  published: outputs of \[\] in place of \['web/m7'\]"):
            await played(emulator, self.twin.scenario, tuple(wrong))

    async def test_in_a_reply(self, emulator: RunningEmulator) -> None:
        first, *rest = explore(self.twin.scenario_with_twin()).trace
        wrong = replace(first, reply=replace(first.reply, timestamp=1))
        with pytest.raises(Divergence, match=r"Step 1, .*\n  Loaded.timestamp: 0 in place of 1"):
            await played(emulator, self.twin.scenario, (wrong, *rest))

    async def test_in_what_a_process_holds_open(self, emulator: RunningEmulator) -> None:
        scenario, trace = first_that_writes_what_is_paid()
        broken = replace(scenario, chores=replace(scenario.chores, shelf=NeverCloses))
        with pytest.raises(Divergence, match="its process holds it open"):
            await played(emulator, broken, trace)


def first_that_writes_what_is_paid() -> tuple[Scenario, tuple[Event, ...]]:
    """A walk in which a process writes down that something was sent."""
    return next(
        (scenario, walked(scenario, seed))
        for scenario, seed in OUTBOX_WALKS
        if any(isinstance(item.effect, WriteDown) and item.effect.written.paid for item in walked(scenario, seed))
    )


def test_a_token_stands_for_the_same_place_in_the_log() -> None:
    names = Correspondence()
    names.advance(library_log(0), 1, lsn=4)
    assert names.differences(library.Written("0:-1#5"), library.Written("0:-1#1"), 0) == ()
    assert names.differences(library.Written("0:-1#3"), library.Written("0:-1#1"), 0) == (
        "Written.token: a token of position 0 in place of 1",
    )


def test_a_transaction_keeps_its_name() -> None:
    names = Correspondence()
    names.given("real-1", "real-2")
    asked = library.LoadStaged(ENTITY, ("t0", "t1"), None)
    assert names.differences(replace(asked, transactions=("real-1", "real-2")), asked, 0) == ()
    assert names.differences(replace(asked, transactions=("real-2", "real-1")), asked, 0) != ()


def test_a_view_within_a_batch_is_refused() -> None:
    names = Correspondence()
    names.advance(library_log(0), 2, lsn=1)
    with pytest.raises(TornViewError):
        names.lsn_before(library_log(0), 1)
    assert names.lsn_before(library_log(0), 0) == 0
    assert names.lsn_before(library_log(0), 2) is None


class TestNames:
    """Of reality and of the model, where outputs name their transaction and one batch writes several documents."""

    def test_an_output_may_differ_by_the_name_of_its_transaction_only(self) -> None:
        names = Correspondence(outputs_name_tx=True)
        real, model = Json.of({"message": "m", "tx": "real-1"}), Json.of({"message": "m", "tx": "t0"})
        assert names.differences(Output("o", "out", real), Output("o", "out", model), 0) == ()
        other = Json.of({"message": "n", "tx": "real-1"})
        assert names.differences(Output("o", "out", other), Output("o", "out", model), 0) != ()
        swapped = Json.of({"message": "m", "tx": "t1"})
        assert names.differences(Output("o", "out", real), Output("o", "out", swapped), 0) != ()

    def test_a_document_that_was_not_written_over_keeps_its_version(self) -> None:
        names = Correspondence()
        assert tuple(names.version_differences("page:0", "1", '"a"')) == ()
        assert tuple(names.version_differences("page:0", "2", '"a"')) == (
            "page:0: is as in version 1 still, in place of version 2",
        )

    def test_what_is_written_over_without_a_change_has_several_etags(self) -> None:
        names = Correspondence()
        known = [difference for real in ('"a"', '"b"') for difference in names.version_differences("m0", "1", real)]
        assert known == []
        for real in ('"a"', '"b"'):
            asked = companions.DeleteCompanions(ENTITY, (("m0", real),))
            assert names.differences(asked, companions.DeleteCompanions(ENTITY, (("m0", "1"),)), 0) == ()

    def test_the_view_before_a_step_of_several_commits_is_that_before_all_of_them(self) -> None:
        names = Correspondence()
        names.advance(entity_log(0), 1, lsn=1)
        names.advance(entity_log(0), 2, lsn=4)
        assert names.lsn_before(entity_log(0), 1) == 1
