"""A session token that is ahead of the account, on Cosmos DB: nothing can be finished until it is exchanged."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.drivers.driver import AsyncDriver
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.effect import BEHIND
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import FindPages
from exactlyonce.protocols.outbox.repair import TokenReset, reset_token
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.ledger import entity_document as with_ledger
from exactlyonce.testing.contracts.samples import entity_document, find, load, write
from tests.contract.conftest import Place


async def test_documents_that_survived_are_found_at_the_new_token(at: Place) -> None:
    token = await write(at.store, at.entity)
    scope, _, position = token.partition("#")
    ahead = f"{scope}#{int(position.partition('#')[0]) + 10_000}"
    ledger = Ledger(10, at.entity.type, entity=at.entity.key, token=ahead, left=10, cut=1, complete=19_000)
    await at.perform(SaveEntity(at.entity, with_ledger(entity_document(at.entity, total=3), ledger), None))
    assert await at.perform(FindPages(at.entity, (), (), 10, ahead)) is BEHIND

    reset = await AsyncDriver(at.store, Publisher({}), Runtime()).run(reset_token(at.entity, Memory()))

    assert isinstance(reset, TokenReset)
    assert (reset.outcome, reset.kept) == ("reset", ())
    view = read_entity(at.entity, (await load(at.store, at.entity, reset.memory.entity_token)).document)
    assert view.ledger is not None
    assert view.ledger == replace(ledger, token=view.ledger.token, lost=ledger.complete)
    assert view.body == entity_document(at.entity, total=3)
    assert await find(at.store, at.entity, newest=1, token=view.ledger.token) == [1]
    again = await AsyncDriver(at.store, Publisher({}), Runtime()).run(reset_token(at.entity, Memory()))
    assert isinstance(again, TokenReset)
    assert again.outcome == "not ahead"
