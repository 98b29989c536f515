"""Playing traces finds bugs of the adapter where records lie beside the entity."""

from __future__ import annotations

from collections.abc import Callable
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
from exactlyonce.effects.entity import Conflict, Saved
from exactlyonce.records.outputs import Output
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.values.frozen_json import Json
from local_cosmos.inprocess import RunningEmulator
from tests.model.walking import played, walked
from tests.model.walking_companions import WALKS
from verification.reproduction.conductor import Divergence
from verification.reproduction.correspondence import Correspondence, entity_log
from verification.world.companions_handler import ENTITY


class ForgetsTokens(CosmosStore):
    async def load_companions(self, effect: LoadCompanions) -> Any:
        return await super().load_companions(replace(effect, token=None))


class TakesBehindForAbsent(CosmosStore):
    async def load_companions(self, effect: LoadCompanions) -> Any:
        reply = await super().load_companions(effect)
        return FoundCompanions(()) if reply is BEHIND else reply


class ReadsOneOfTwo(CosmosStore):
    async def load_companions(self, effect: LoadCompanions) -> Any:
        return await super().load_companions(replace(effect, ids=effect.ids[:1]))


class ReadsBackwards(CosmosStore):
    async def find_entries(self, effect: FindEntries) -> Any:
        reply = await super().find_entries(effect)
        return FoundCompanions(reply.companions[::-1]) if isinstance(reply, FoundCompanions) else reply


class TakesUnknownForConflict(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return Conflict(None) if reply is UNKNOWN else reply


class TakesConflictForUnknown(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return UNKNOWN if isinstance(reply, Conflict) else reply


class TellsTheEtagOfACompanion(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        reply = await super().save_batch(effect)
        return replace(reply, etag='"of a companion"') if isinstance(reply, Saved) else reply


class LosesOneOfTwo(CosmosStore):
    async def save_batch(self, effect: SaveBatch) -> Any:
        return await super().save_batch(replace(effect, create=effect.create[:1]))


class WritesNothingDown(CosmosStore):
    async def replace_companions(self, effect: ReplaceCompanions) -> None:
        del effect


class KeepsWhatIsToGo(CosmosStore):
    async def delete_companions(self, effect: DeleteCompanions) -> None:
        del effect


SHOWS: dict[type[CosmosStore], Callable[[Any, Any], bool]] = {
    ForgetsTokens: lambda asked, reply: (
        isinstance(asked, LoadCompanions) and asked.token is not None and reply is BEHIND
    ),
    TakesBehindForAbsent: lambda asked, reply: isinstance(asked, LoadCompanions) and reply is BEHIND,
    ReadsOneOfTwo: lambda asked, reply: (
        isinstance(asked, LoadCompanions) and isinstance(reply, FoundCompanions) and len(reply.companions) > 1
    ),
    ReadsBackwards: lambda asked, reply: (
        isinstance(asked, FindEntries) and isinstance(reply, FoundCompanions) and len(reply.companions) > 1
    ),
    TakesUnknownForConflict: lambda asked, reply: isinstance(asked, SaveBatch) and reply is UNKNOWN,
    TakesConflictForUnknown: lambda asked, reply: isinstance(asked, SaveBatch) and isinstance(reply, Conflict),
    TellsTheEtagOfACompanion: lambda asked, reply: isinstance(asked, SaveBatch) and isinstance(reply, Saved),
    LosesOneOfTwo: lambda asked, _: isinstance(asked, SaveBatch) and len(asked.create) > 1,
    WritesNothingDown: lambda asked, _: isinstance(asked, ReplaceCompanions),
    KeepsWhatIsToGo: lambda asked, _: isinstance(asked, DeleteCompanions),
}


@pytest.mark.parametrize(("adapter", "shows"), SHOWS.items(), ids=lambda one: getattr(one, "__name__", ""))
async def test_an_adapter_with_a_bug_is_found_as_soon_as_a_walk_meets_it(
    emulator: RunningEmulator, adapter: type[CosmosStore], shows: Callable[[Any, Any], bool]
) -> None:
    scenario, trace = next(
        (scenario, walked(scenario, seed))
        for scenario, seed in WALKS
        if any(shows(event.effect, event.reply) for event in walked(scenario, seed))
    )
    with pytest.raises(Divergence, match="reality differs from the model"):
        await played(emulator, scenario, trace, adapter)


class TestNames:
    """Of reality and of the model, where outputs tell their transaction and one batch writes several documents."""

    def test_an_output_may_differ_by_the_name_of_its_transaction_only(self) -> None:
        names = Correspondence(outputs_tell=True)
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
