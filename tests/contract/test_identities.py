"""Long identities in any script, through the SDK to the local Cosmos DB and back."""

from __future__ import annotations

import pytest

from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import Park, Written
from exactlyonce.records.ledger import Ledger, Mark, entity_document, read_entity
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import PLAIN, a_parked, parked
from exactlyonce.values.envelope import EntityRef, message_key
from exactlyonce.values.frozen_json import Json

LONG = ("中" * 255, "🙂" * 250, "\u0627" * 170 + "x" * 80, "%" * 255, "x" * 255)


@pytest.mark.parametrize("id", LONG, ids=ascii)
async def test_a_long_identity_comes_back_in_all_documents(store: CosmosStore, id: str) -> None:
    entity = EntityRef(PLAIN, (id,), id)
    key = message_key(entity.source, "m-1")
    mark = Mark(1_795_700_000_000, "A" * 16, "i", True, "c0de").text
    ledger = Ledger(version=1, type=PLAIN, entity=entity.key, marks=mark)
    saved = await store.perform(SaveEntity(entity, entity_document(Json.of({"id": id}), ledger), None))
    assert isinstance(saved, Saved)
    loaded = await store.perform(LoadEntity(entity, saved.token))
    assert isinstance(loaded, Loaded)
    assert read_entity(entity, loaded.document).ledger == ledger
    written = await store.perform(Park(entity, a_parked(entity, key)))
    assert isinstance(written, Written)
    assert (await parked(store, entity, key, written.token)).message == a_parked(entity, key)
    assert (await parked(store, entity, f"{key}x", written.token)).message is None
