"""Long identities in any script, through the SDK to the local Cosmos DB and back."""

from __future__ import annotations

import pytest

from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import FindProcessed, Found
from exactlyonce.records.ledger import Entry, Ledger, entity_document, read_entity
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.testing.contracts.samples import PLAIN, write
from exactlyonce.testing.runner import NOW
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, message_key

LONG = ("中" * 255, "🙂" * 250, "\u0627" * 170 + "x" * 80, "%" * 255, "x" * 255)


@pytest.mark.parametrize("id", LONG, ids=ascii)
async def test_a_long_identity_comes_back_in_documents_and_records(store: CosmosStore, id: str) -> None:
    entity = EntityRef(PLAIN, (id,), id)
    key = message_key(entity.source, "m-1")
    ledger = Ledger(version=1, entries=(Entry(key, "tx", 1, NOW, (), "d", content=8 * "A"),), type=PLAIN)
    saved = await store.perform(SaveEntity(entity, entity_document(Json.of({"id": id}), ledger), None))
    assert isinstance(saved, Saved)
    loaded = await store.perform(LoadEntity(entity, saved.token))
    assert isinstance(loaded, Loaded)
    assert read_entity(entity, loaded.document).ledger == ledger
    token = await write(store, entity, key)
    found = await store.perform(FindProcessed(entity, (key, f"{key}x"), token))
    assert isinstance(found, Found)
    assert found.messages == {key}
