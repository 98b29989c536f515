"""Playing traces finds bugs: of the adapter, of the strategy, and of the model itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

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


class TakesUnknownForConflict(CosmosStore):
    async def save_entity(self, effect: SaveEntity) -> Any:
        reply = await super().save_entity(effect)
        return Conflict(None) if reply is UNKNOWN else reply


class TakesConflictForUnknown(CosmosStore):
    async def save_entity(self, effect: SaveEntity) -> Any:
        reply = await super().save_entity(effect)
        return UNKNOWN if isinstance(reply, Conflict) else reply


class SavesWithoutCondition(CosmosStore):
    async def save_entity(self, effect: SaveEntity) -> Any:
        return await super().save_entity(replace(effect, etag=effect.etag and "*"))


class ForgetsTokensOfPages(CosmosStore):
    async def find_pages(self, effect: library.FindPages) -> Any:
        return await super().find_pages(replace(effect, token=None))


class TakesBehindForNoPages(CosmosStore):
    async def find_pages(self, effect: library.FindPages) -> Any:
        reply = await super().find_pages(effect)
        return library.FoundPages(()) if reply is BEHIND else reply


class FindsTheNewestPageOnly(CosmosStore):
    async def find_pages(self, effect: library.FindPages) -> Any:
        return await super().find_pages(replace(effect, times=(), hashes=()))


class FindsPagesByTimeOnly(CosmosStore):
    async def find_pages(self, effect: library.FindPages) -> Any:
        return await super().find_pages(replace(effect, hashes=()))


class FindsNoPageForItsNumber(CosmosStore):
    async def find_pages(self, effect: library.FindPages) -> Any:
        return await super().find_pages(replace(effect, newest=-1))


class FindsNoPageAbove(CosmosStore):
    async def find_pages_above(self, effect: library.FindPagesAbove) -> Any:
        reply = await super().find_pages_above(effect)
        return library.FoundAbove(()) if isinstance(reply, library.FoundAbove) else reply


class HasNoPages(CosmosStore):
    async def has_pages(self, effect: library.HasPages) -> Any:
        reply = await super().has_pages(effect)
        return False if reply is True else reply


class WritesPagesOver(OverwritingStore):
    """That of twins, which writes over whatever is there."""


class TakesAnotherPageForItsOwn(CosmosStore):
    async def write_page(self, effect: library.WritePage) -> Any:
        reply = await super().write_page(effect)
        return library.Written("0:-1#0") if reply is library.OTHER else reply


class TellsAnOldTokenOfAPage(CosmosStore):
    async def write_page(self, effect: library.WritePage) -> Any:
        reply = await super().write_page(effect)
        return library.Written("0:-1#0") if isinstance(reply, library.Written) else reply


class KeepsPagesTooLong(CosmosStore):
    async def write_page(self, effect: library.WritePage) -> Any:
        return await super().write_page(replace(effect, seconds=effect.seconds + 1))


class KeepsPagesThatAreToGo(CosmosStore):
    async def delete_pages(self, effect: library.DeletePages) -> None:
        del effect


class LosesABook(CosmosStore):
    async def write_book(self, effect: library.WriteBook) -> Any:
        del effect
        return library.Written("0:-1#0")


class WritesThatAllIsPaid(CosmosStore):
    async def write_book(self, effect: library.WriteBook) -> Any:
        return await super().write_book(replace(effect, book=replace(effect.book, open=())))


class WritesThatNothingIsPaid(CosmosStore):
    async def write_book(self, effect: library.WriteBook) -> Any:
        return await super().write_book(replace(effect, book=replace(effect.book, used=0)))


class ReadsNoBook(CosmosStore):
    async def read_books(self, effect: library.ReadBooks) -> Any:
        del effect
        return library.FoundBooks(())


class FindsNothingStaged(CosmosStore):
    async def load_staged(self, effect: library.LoadStaged) -> Any:
        reply = await super().load_staged(effect)
        return library.FoundStaged(()) if isinstance(reply, library.FoundStaged) else reply


class ForgetsTokensOfCompanions(CosmosStore):
    async def load_companions(self, effect: companions.LoadCompanions) -> Any:
        return await super().load_companions(replace(effect, token=None))


class TakesBehindForNoCompanions(CosmosStore):
    async def load_companions(self, effect: companions.LoadCompanions) -> Any:
        reply = await super().load_companions(effect)
        return companions.FoundCompanions(()) if reply is BEHIND else reply


class ReadsOneCompanionOfTwo(CosmosStore):
    async def load_companions(self, effect: companions.LoadCompanions) -> Any:
        return await super().load_companions(replace(effect, ids=effect.ids[:1]))


class ReadsBackwards(CosmosStore):
    async def find_entries(self, effect: companions.FindEntries) -> Any:
        reply = await super().find_entries(effect)
        return (
            companions.FoundCompanions(reply.companions[::-1])
            if isinstance(reply, companions.FoundCompanions)
            else reply
        )


class TakesUnknownBatchForConflict(CosmosStore):
    async def save_batch(self, effect: companions.SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return Conflict(None) if reply is UNKNOWN else reply


class TakesBatchConflictForUnknown(CosmosStore):
    async def save_batch(self, effect: companions.SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return UNKNOWN if isinstance(reply, Conflict) else reply


class TellsTheEtagOfACompanion(CosmosStore):
    async def save_batch(self, effect: companions.SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return replace(reply, etag='"of a companion"') if isinstance(reply, Saved) else reply


class LosesOneCompanionOfTwo(CosmosStore):
    async def save_batch(self, effect: companions.SaveBatch) -> Any:
        return await super().save_batch(replace(effect, create=effect.create[:1]))


class WritesNothingDown(CosmosStore):
    async def replace_companions(self, effect: companions.ReplaceCompanions) -> None:
        del effect


class KeepsWhatIsToGo(CosmosStore):
    async def delete_companions(self, effect: companions.DeleteCompanions) -> None:
        del effect


_A_WEEK = 7 * 86_400
"""Longer than pages are kept where messages have an age: elsewhere the model does not look at that."""
TAKEN = (*OUTBOX_WALKS, *WALKS)
"""Walks in the order in which a bug is looked for."""


def finds_more(asked: Any, reply: Any, **less: Any) -> bool:
    """Whether a read found a page that it would not find if it asked for less."""
    return isinstance(reply, library.FoundPages) and not all(map(replace(asked, **less).asks_for, reply.pages))


SHOWS: dict[type[CosmosStore], Callable[[Any, Any], bool]] = {
    TakesUnknownForConflict: lambda asked, reply: isinstance(asked, SaveEntity) and reply is UNKNOWN,
    TakesConflictForUnknown: lambda asked, reply: isinstance(asked, SaveEntity) and isinstance(reply, Conflict),
    SavesWithoutCondition: lambda asked, reply: (
        isinstance(asked, SaveEntity) and bool(asked.etag) and isinstance(reply, Conflict)
    ),
    ForgetsTokensOfPages: lambda asked, reply: (
        isinstance(asked, library.FindPages) and asked.token is not None and reply is BEHIND
    ),
    TakesBehindForNoPages: lambda asked, reply: isinstance(asked, library.FindPages) and reply is BEHIND,
    FindsTheNewestPageOnly: lambda asked, reply: finds_more(asked, reply, times=(), hashes=()),
    FindsPagesByTimeOnly: lambda asked, reply: finds_more(asked, reply, hashes=()),
    FindsNoPageForItsNumber: lambda asked, reply: finds_more(asked, reply, newest=-1),
    FindsNoPageAbove: lambda _, reply: isinstance(reply, library.FoundAbove) and bool(reply.pages),
    HasNoPages: lambda asked, reply: isinstance(asked, library.HasPages) and reply is True,
    WritesPagesOver: lambda _, reply: reply is library.OTHER,
    TakesAnotherPageForItsOwn: lambda _, reply: reply is library.OTHER,
    TellsAnOldTokenOfAPage: lambda asked, reply: (
        isinstance(asked, library.WritePage) and isinstance(reply, library.Written)
    ),
    KeepsPagesTooLong: lambda asked, reply: (
        isinstance(asked, library.WritePage) and asked.seconds < _A_WEEK and isinstance(reply, library.Written)
    ),
    KeepsPagesThatAreToGo: lambda asked, _: isinstance(asked, library.DeletePages) and bool(asked.pages),
    LosesABook: lambda asked, reply: isinstance(asked, WriteDown) and reply is None and bool(asked.written.paid),
    WritesThatAllIsPaid: lambda asked, _: isinstance(asked, WriteDown) and bool(asked.written.open),
    WritesThatNothingIsPaid: lambda asked, _: isinstance(asked, WriteDown) and bool(asked.written.paid),
    ReadsNoBook: lambda asked, reply: isinstance(asked, library.FindPaid) and bool(reply),
    FindsNothingStaged: lambda _, reply: isinstance(reply, library.FoundStaged) and bool(reply.documents),
    ForgetsTokensOfCompanions: lambda asked, reply: (
        isinstance(asked, companions.LoadCompanions) and asked.token is not None and reply is BEHIND
    ),
    TakesBehindForNoCompanions: lambda asked, reply: isinstance(asked, companions.LoadCompanions) and reply is BEHIND,
    ReadsOneCompanionOfTwo: lambda asked, reply: (
        isinstance(asked, companions.LoadCompanions)
        and isinstance(reply, companions.FoundCompanions)
        and len(reply.companions) > 1
    ),
    ReadsBackwards: lambda asked, reply: (
        isinstance(asked, companions.FindEntries)
        and isinstance(reply, companions.FoundCompanions)
        and len(reply.companions) > 1
    ),
    TakesUnknownBatchForConflict: lambda asked, reply: isinstance(asked, companions.SaveBatch) and reply is UNKNOWN,
    TakesBatchConflictForUnknown: lambda asked, reply: (
        isinstance(asked, companions.SaveBatch) and isinstance(reply, Conflict)
    ),
    TellsTheEtagOfACompanion: lambda asked, reply: isinstance(asked, companions.SaveBatch) and isinstance(reply, Saved),
    LosesOneCompanionOfTwo: lambda asked, _: isinstance(asked, companions.SaveBatch) and len(asked.create) > 1,
    WritesNothingDown: lambda asked, _: isinstance(asked, companions.ReplaceCompanions),
    KeepsWhatIsToGo: lambda asked, _: isinstance(asked, companions.DeleteCompanions),
}


@pytest.mark.parametrize(("adapter", "shows"), SHOWS.items(), ids=lambda item: getattr(item, "__name__", ""))
async def test_an_adapter_with_a_bug_is_found_as_soon_as_a_walk_meets_it(
    emulator: RunningEmulator, adapter: type[CosmosStore], shows: Callable[[Any, Any], bool]
) -> None:
    """The walks would not be worth much if they went well whatever the adapter did."""
    scenario, trace = next(
        (scenario, walked(scenario, seed))
        for scenario, seed in TAKEN
        if any(shows(event.effect, event.reply) for event in walked(scenario, seed))
    )
    with pytest.raises(Divergence, match="reality differs from the model"):
        await played(emulator, scenario, trace, adapter)


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
