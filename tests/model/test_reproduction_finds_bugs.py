"""Playing traces finds bugs: of the adapter, of the strategy, and of the model itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FoundCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import (
    DeleteChannels,
    FindChannels,
    FindProcessed,
    Found,
    FoundChannels,
    FoundStaged,
    LoadStaged,
    Stage,
    WriteRecords,
    Written,
)
from exactlyonce.records.library import Seal
from exactlyonce.records.outputs import Output
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import RunningEmulator
from tests.model.walking import SCENARIOS, named, played, walked
from tests.model.walking_companions import WALKS
from verification.checker.search import explore
from verification.reproduction.conductor import Divergence
from verification.reproduction.correspondence import Correspondence, TornViewError, entity_log, library_log
from verification.reproduction.reality import emulator_of_the_model
from verification.scenarios.outbox import SMALL
from verification.world.companions_handler import ENTITY


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    """A local Cosmos for traces of the model."""
    with emulator_of_the_model() as running:
        yield running


class ForgetsTokens(CosmosStore):
    async def find_processed(self, effect: FindProcessed) -> Any:
        return await super().find_processed(replace(effect, token=None))


class TakesBehindForAbsent(CosmosStore):
    async def find_processed(self, effect: FindProcessed) -> Any:
        reply = await super().find_processed(effect)
        return Found(frozenset(), effect.token) if reply is BEHIND else reply


class TakesUnknownForConflict(CosmosStore):
    async def save_entity(self, effect: SaveEntity) -> Any:
        reply = await super().save_entity(effect)
        return Conflict(None) if reply is UNKNOWN else reply


class TakesConflictForUnknown(CosmosStore):
    async def stage(self, effect: Stage) -> Any:
        reply = await super().stage(effect)
        return UNKNOWN if isinstance(reply, Conflict) else reply


class TellsAnOldToken(CosmosStore):
    async def write_records(self, effect: WriteRecords) -> Any:
        reply = await super().write_records(effect)
        return Written("0:-1#0") if isinstance(reply, Written) else reply


class SavesWithoutCondition(CosmosStore):
    async def save_entity(self, effect: SaveEntity) -> Any:
        return await super().save_entity(replace(effect, etag=effect.etag and "*"))


class LosesOneOfTwo(CosmosStore):
    async def write_records(self, effect: WriteRecords) -> Any:
        return await super().write_records(replace(effect, records=effect.records[:1]))


class ForgetsTokensOfChannels(CosmosStore):
    async def find_channels(self, effect: FindChannels) -> Any:
        return await super().find_channels(replace(effect, token=None))


class FindsNoChannel(CosmosStore):
    async def find_channels(self, effect: FindChannels) -> Any:
        reply = await super().find_channels(effect)
        return FoundChannels(()) if isinstance(reply, FoundChannels) else reply


class KeepsChannelsThatCameBack(CosmosStore):
    async def delete_channels(self, effect: DeleteChannels) -> None:
        del effect


class ReadsOneOfTwo(CosmosStore):
    async def load_staged(self, effect: LoadStaged) -> Any:
        return await super().load_staged(replace(effect, transactions=effect.transactions[:1]))


class ForgetsTokensOfCompanions(CosmosStore):
    async def load_companions(self, effect: LoadCompanions) -> Any:
        return await super().load_companions(replace(effect, token=None))


class TakesBehindForNoCompanions(CosmosStore):
    async def load_companions(self, effect: LoadCompanions) -> Any:
        reply = await super().load_companions(effect)
        return FoundCompanions(()) if reply is BEHIND else reply


class ReadsOneCompanionOfTwo(CosmosStore):
    async def load_companions(self, effect: LoadCompanions) -> Any:
        return await super().load_companions(replace(effect, ids=effect.ids[:1]))


class ReadsBackwards(CosmosStore):
    async def find_entries(self, effect: FindEntries) -> Any:
        reply = await super().find_entries(effect)
        return FoundCompanions(reply.companions[::-1]) if isinstance(reply, FoundCompanions) else reply


class TakesUnknownBatchForConflict(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return Conflict(None) if reply is UNKNOWN else reply


class TakesBatchConflictForUnknown(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return UNKNOWN if isinstance(reply, Conflict) else reply


class TellsTheEtagOfACompanion(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return replace(reply, etag='"of a companion"') if isinstance(reply, Saved) else reply


class LosesOneCompanionOfTwo(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        return await super().save_batch(replace(effect, create=effect.create[:1]))


class WritesNothingDown(CosmosStore):
    async def replace_companions(self, effect: ReplaceCompanions) -> None:
        del effect


class KeepsWhatIsToGo(CosmosStore):
    async def delete_companions(self, effect: DeleteCompanions) -> None:
        del effect


TAKEN = (
    *((one, seed) for seed in range(20) for one in SCENARIOS if one.tokens),
    *WALKS,
    *((one, seed) for seed in range(20) for one in SCENARIOS),
)
"""Walks in the order in which a bug is looked for: few of them show what tokens are for, so these come first."""

SHOWS: dict[type[CosmosStore], Callable[[Any, Any], bool]] = {
    ForgetsTokens: lambda asked, reply: (
        isinstance(asked, FindProcessed) and asked.token is not None and reply is BEHIND
    ),
    TakesBehindForAbsent: lambda asked, reply: isinstance(asked, FindProcessed) and reply is BEHIND,
    TakesUnknownForConflict: lambda asked, reply: isinstance(asked, SaveEntity) and reply is UNKNOWN,
    TakesConflictForUnknown: lambda asked, reply: isinstance(asked, Stage) and isinstance(reply, Conflict),
    TellsAnOldToken: lambda asked, reply: isinstance(asked, WriteRecords) and isinstance(reply, Written),
    SavesWithoutCondition: lambda asked, reply: (
        isinstance(asked, SaveEntity) and bool(asked.etag) and isinstance(reply, Conflict)
    ),
    LosesOneOfTwo: lambda asked, reply: (
        isinstance(asked, WriteRecords) and sum(not isinstance(one, Seal) for one in asked.records) > 1
    ),
    ForgetsTokensOfChannels: lambda asked, reply: isinstance(asked, FindChannels) and reply is BEHIND,
    FindsNoChannel: lambda asked, reply: isinstance(reply, FoundChannels) and bool(reply.documents),
    KeepsChannelsThatCameBack: lambda asked, reply: isinstance(asked, DeleteChannels),
    ReadsOneOfTwo: lambda asked, reply: isinstance(reply, FoundStaged) and len(reply.documents) > 1,
    ForgetsTokensOfCompanions: lambda asked, reply: (
        isinstance(asked, LoadCompanions) and asked.token is not None and reply is BEHIND
    ),
    TakesBehindForNoCompanions: lambda asked, reply: isinstance(asked, LoadCompanions) and reply is BEHIND,
    ReadsOneCompanionOfTwo: lambda asked, reply: (
        isinstance(asked, LoadCompanions) and isinstance(reply, FoundCompanions) and len(reply.companions) > 1
    ),
    ReadsBackwards: lambda asked, reply: (
        isinstance(asked, FindEntries) and isinstance(reply, FoundCompanions) and len(reply.companions) > 1
    ),
    TakesUnknownBatchForConflict: lambda asked, reply: isinstance(asked, SaveBatch) and reply is UNKNOWN,
    TakesBatchConflictForUnknown: lambda asked, reply: isinstance(asked, SaveBatch) and isinstance(reply, Conflict),
    TellsTheEtagOfACompanion: lambda asked, reply: isinstance(asked, SaveBatch) and isinstance(reply, Saved),
    LosesOneCompanionOfTwo: lambda asked, _: isinstance(asked, SaveBatch) and len(asked.create) > 1,
    WritesNothingDown: lambda asked, _: isinstance(asked, ReplaceCompanions),
    KeepsWhatIsToGo: lambda asked, _: isinstance(asked, DeleteCompanions),
}


@pytest.mark.parametrize(("adapter", "shows"), SHOWS.items(), ids=lambda one: getattr(one, "__name__", ""))
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


class TestADifference:
    """Names the step, and what is different."""

    scenario = named("publish before commit").scenario

    async def test_in_what_is_asked(self, emulator: RunningEmulator) -> None:
        twin = named("publish before commit").scenario_with_twin()
        with pytest.raises(Divergence, match=r"Step 3, A publishes out:web/m0: .*\n  Publish: SaveEntity"):
            await played(emulator, self.scenario, explore(twin).trace)

    async def test_in_what_is_held(self, emulator: RunningEmulator) -> None:
        trace = walked(self.scenario, 0)
        wrong = [replace(event, store=replace(event.store, published=frozenset({"web/m7"}))) for event in trace]
        with pytest.raises(Divergence, match=r"Step 1, .*\n  published: outputs of \[\] in place of \['web/m7'\]"):
            await played(emulator, self.scenario, tuple(wrong))

    async def test_in_a_reply(self, emulator: RunningEmulator) -> None:
        first, second, *rest = explore(named("publish before commit").scenario_with_twin()).trace
        wrong = replace(second, reply=Found(frozenset({"web/m0"}), "0:-1#0"))
        with pytest.raises(Divergence, match=r"Step 2, .*\n  Found.messages: frozenset\(\) in place of"):
            await played(emulator, self.scenario, (first, wrong, *rest))


def test_a_token_stands_for_the_same_place_in_the_log() -> None:
    names = Correspondence()
    names.advance(library_log(0), 1, lsn=4)
    assert names.differences(Written("0:-1#5"), Written("0:-1#1"), 0) == ()
    assert names.differences(Written("0:-1#3"), Written("0:-1#1"), 0) == (
        "Written.token: a token of position 0 in place of 1",
    )


def test_a_transaction_keeps_its_name() -> None:
    names = Correspondence()
    entity = walked(SMALL[0], 0)[0].effect.entity  # type: ignore[union-attr]
    asked = LoadStaged(entity, ("t0", "t1"), None)
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
        assert tuple(names.version_differences("processed:m0", "1", '"a"')) == ()
        assert tuple(names.version_differences("processed:m0", "2", '"a"')) == (
            "processed:m0: is as in version 1 still, in place of version 2",
        )

    def test_what_is_written_over_without_a_change_has_several_etags(self) -> None:
        names = Correspondence()
        known = [difference for real in ('"a"', '"b"') for difference in names.version_differences("m0", "1", real)]
        assert known == []
        for real in ('"a"', '"b"'):
            asked = DeleteCompanions(ENTITY, (("m0", real),))
            assert names.differences(asked, DeleteCompanions(ENTITY, (("m0", "1"),)), 0) == ()

    def test_the_view_before_a_step_of_several_commits_is_that_before_all_of_them(self) -> None:
        names = Correspondence()
        names.advance(entity_log(0), 1, lsn=1)
        names.advance(entity_log(0), 2, lsn=4)
        assert names.lsn_before(entity_log(0), 1) == 1
