"""Damage to a copy of a game's database is planted whatever the game has left."""

from __future__ import annotations

from demo.damage import Database, History, name_of, owed
from exactlyonce.records.ledger import Ledger, Mark, entity_document, read_entity, written
from exactlyonce.values.envelope import message_hash
from exactlyonce.values.frozen_json import Json
from handlers.shooting_range import ranges


def test_a_game_that_owes_nothing_any_more_owes_what_its_newest_message_sent() -> None:
    older, newest = (
        Mark(at, message_hash(f"web/{at}"), "f", timed=True, content="AbCd", sent="-").text for at in (1, 2)
    )
    ledger = Ledger(
        version=2, type="range", entity=ranges.ref("g").key, marks=written((older, newest)), to=("leader-board",)
    )
    game = entity_document(Json.of({"id": "g", "gameId": "g"}), ledger).value
    assert owed(History(Database(games={name_of(game): game}), "g")) == ("owing_too_long",)
    damaged = read_entity(ranges.ref("g"), Json.of(game)).ledger
    assert damaged is not None
    (entry,) = damaged.outbox
    assert (entry.cause, entry.at.timestamp()) == (message_hash("web/2"), 0.002)
    assert [output.destination for output in entry.owed_outputs(ranges.ref("g"), damaged.to, ())] == ["leader-board"]
