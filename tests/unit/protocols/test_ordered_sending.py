"""Numbers of what handlers send: per destination and read model, without gaps, and back with what is dropped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce import (
    Context,
    Destination,
    Envelope,
    HandlerFailed,
    Outbox,
    OutputTooLarge,
    UnknownDestination,
    message,
)
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.effects.publish import Publish
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.sequences import Order, Sequence, Sequences, order_of
from exactlyonce.testing.runner import run
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, Origin
from tests.samples import Account, accounts, breaking, close, deposit
from tests.unit.script import ENTITY, ORDERED, Script, attempt

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ORIGIN = Origin(EntityRef("range", ("game-7",), "game-7"), "web/m-1")


@message("ordered.hit")
@dataclass
class Hit:
    player: str = "p-1"
    padding: str = ""


BOARDS = Destination("boards", (Hit,), order_by=lambda hit: hit.player)
ARCHIVE = Destination("archive", (Hit,))
ROUTES = Routes.to((BOARDS, ARCHIVE), {"boards": 2_000, "archive": 2_000})
BAD_KEYS = pytest.mark.parametrize("key", ["", "x" * 256, 7, None, True, b"x", ["x"]], ids=repr)


def context(sequences: Sequences = ()) -> Context:
    return Context(ORIGIN, AT, ROUTES, sequences)


class TestTheContext:
    def test_a_message_to_an_ordered_destination_gets_the_next_number_for_its_key(self) -> None:
        given = context((Sequence("boards", "p-2", 4),))
        for player in ("p-1", "p-2", "p-1"):
            given.send("boards", Hit(player))
        assert [output.order for output in given.outputs] == [Order("p-1", 1), Order("p-2", 5), Order("p-1", 2)]
        assert given.sequences == (Sequence("boards", "p-2", 5), Sequence("boards", "p-1", 2))

    def test_the_place_travels_in_two_extensions(self) -> None:
        given = context((Sequence("boards", "p-1", 11),))
        given.send("boards", Hit())
        (output,) = given.outputs
        wire = output.envelope.value
        assert (wire["partitionkey"], wire["sequence"]) == ("p-1", "0000000000000012")
        assert order_of(Envelope.read(output.envelope.text), "it") == output.order

    def test_a_message_to_another_destination_has_no_number(self) -> None:
        given = context()
        given.send("archive", Hit())
        assert given.outputs[0].order is None
        assert given.outputs[0].envelope.value.keys().isdisjoint({"partitionkey", "sequence"})
        assert given.sequences == ()

    def test_a_key_given_to_send_goes_before_that_of_the_destination(self) -> None:
        given = context()
        given.send("boards", Hit("p-1"), order_by="p-9")
        given.send("archive", Hit("p-1"), order_by="p-9")
        assert given.sequences == (Sequence("boards", "p-9", 1), Sequence("archive", "p-9", 1))

    def test_an_event_is_numbered_only_where_its_destination_has_an_order(self) -> None:
        given = context()
        given.announce(Hit())
        assert [(output.destination, output.order) for output in given.outputs] == [
            ("boards", Order("p-1", 1)),
            ("archive", None),
        ]

    @BAD_KEYS
    def test_what_cannot_be_an_ordering_key_is_refused_and_takes_no_number(self, key: Any) -> None:
        for_another = context()
        for_its_own = Context(
            ORIGIN, AT, Routes.to((Destination("boards", order_by=lambda _: key),), {"boards": 2_000})
        )
        for given, how in ((for_another, {"order_by": key}), (for_its_own, {})):
            if how != {"order_by": None}:  # As if it was not given.
                with pytest.raises(ValueError, match="string of 1 to 255 characters"):
                    given.send("boards", Hit(), **how)
                assert (given.sequences, given.outputs) == ((), ())

    def test_a_key_may_be_as_long_as_an_id(self) -> None:
        given = context()
        given.send("archive", Hit(), order_by="ü" * 255)
        assert given.sequences == (Sequence("archive", "ü" * 255, 1),)

    def test_a_message_that_is_refused_leaves_no_gap(self) -> None:
        given = context()
        given.send("boards", Hit())
        with pytest.raises(OutputTooLarge):
            given.send("boards", Hit(padding="x" * 3_000))
        with pytest.raises(UnknownDestination):
            given.send("nowhere", Hit(), order_by="p-1")
        with pytest.raises(ValueError, match="7 days"):
            given.send("boards", Hit(), delay=timedelta(days=8))
        given.send("boards", Hit())
        assert [output.order for output in given.outputs] == [Order("p-1", 1), Order("p-1", 2)]
        assert given.sequences == (Sequence("boards", "p-1", 2),)

    def test_a_number_counts_in_the_size_of_an_output(self) -> None:
        given = context()
        given.send("archive", Hit())
        given.send("archive", Hit(), order_by="ü" * 255)
        plain, ordered = given.outputs
        assert ordered.size - plain.size > ordered.envelope.size - plain.envelope.size + 2 * 255


def test_routes_know_which_destinations_have_an_order() -> None:
    assert dict(ROUTES.orders) == {"boards": BOARDS.order_by}
    assert ROUTES.ordering_key("boards", Hit("p-3")) == "p-3"
    assert ROUTES.ordering_key("archive", Hit("p-3")) is None
    assert ROUTES.ordering_key("nowhere", Hit("p-3")) is None
    assert ROUTES.subscribers == {"ordered.hit": ("boards", "archive")}


def test_a_handler_can_be_tested_with_an_order_without_any_destination() -> None:
    def handler(state: Account, given: Hit, context: Context) -> Account:
        context.send("anywhere", given, order_by=given.player)
        return state

    assert run(handler, Account(), Hit()).messages == (Hit(),)


class TestAHandler:
    @BAD_KEYS
    def test_it_fails_where_it_names_what_cannot_be_an_ordering_key(self, key: Any) -> None:
        routes = Routes.to((Destination("receipts", order_by=lambda _: key),), {"receipts": 1024 * 1024})
        played = Script().play(attempt(Outbox(), deposit("m-1"), handle=Runner(accounts(), ENTITY, routes)))
        ((failing, error),) = played.finished.failed
        assert failing == "web/m-1"
        assert isinstance(error, HandlerFailed)
        assert "web/m-1 on entity account/a" in str(error)
        assert "string of 1 to 255 characters" in str(error.__cause__)

    def test_it_fails_where_its_destination_cannot_name_the_key(self) -> None:
        routes = Routes.to((Destination("receipts", order_by=lambda it: it.nothing),), {"receipts": 1024 * 1024})
        played = Script().play(attempt(Outbox(), deposit("m-1"), handle=Runner(accounts(), ENTITY, routes)))
        ((_, error),) = played.finished.failed
        assert isinstance(error.__cause__, AttributeError)


class TestTheOutbox:
    """Numbers are part of the commit: what it drops takes no number, and nothing that it keeps is numbered twice."""

    runner = Runner(accounts(), ENTITY, ORDERED)

    def played(self, script: Script, *messages: Envelope, strategy: Outbox | None = None) -> list[int]:
        """Play an attempt; return the numbers that it published."""
        played = script.play(attempt(strategy or Outbox(), *messages, handle=self.runner))
        published = [output for effect in played.all(Publish) for output in effect.outputs]
        return [output.order.number for output in published if output.order is not None]

    def test_numbers_go_on_over_messages_of_a_group_and_over_groups(self) -> None:
        script = Script()
        assert self.played(script, deposit("m-1", answers=2), deposit("m-2")) == [1, 2, 3]
        assert script.ledger.sequences == (Sequence("receipts", "r-1", 3),)
        assert self.played(script, deposit("m-3")) == [4]
        assert script.document is not None
        assert script.document.value[LEDGER]["sequences"] == [{"destination": "receipts", "key": "r-1", "last": 4}]

    def test_a_message_that_fails_takes_its_numbers_along(self) -> None:
        script = Script()
        assert self.played(script, deposit("m-1"), breaking("m-2"), deposit("m-3")) == [1, 2]
        assert self.played(script, deposit("m-4", padding="x" * 600_000, answers=4), deposit("m-5")) == [3]

    def test_a_message_that_is_too_large_for_the_document_takes_its_numbers_along(self) -> None:
        script = Script(Json.of({"id": "a", "owner": "a", "note": "x" * 1_000_000}))
        unbounded = Outbox(inline_limit=None)
        large = deposit("m-1", padding="x" * 600_000)
        assert self.played(script, large, deposit("m-2"), strategy=unbounded) == [1]

    def test_numbers_go_on_over_a_tombstone(self) -> None:
        script = Script()
        self.played(script, deposit("m-1"))
        assert self.played(script, close("m-2")) == [2]
        assert script.ledger.deleted
        assert script.ledger.sequences == (Sequence("receipts", "r-1", 2),)
        assert self.played(script, deposit("m-3")) == [3]

    def test_numbers_go_on_after_entries_have_left(self) -> None:
        script = Script()
        for number in range(1, 5):
            assert self.played(script, deposit(f"m-{number}"), strategy=Outbox.transaction_id())[-1] == number

    def test_a_lost_attempt_gives_its_numbers_back(self) -> None:
        script = Script()
        lost = script.play(attempt(Outbox(), deposit("m-1"), handle=self.runner), {SaveEntity: Conflict(None)})
        assert lost.again.reason
        assert self.played(script, deposit("m-2")) == [1]

    def test_marking_keeps_the_numbers(self) -> None:
        script = Script()
        first = script.play(attempt(Outbox(), deposit("m-1"), handle=self.runner))
        script.play(Outbox().mark(ENTITY, first.finished.memory))
        assert script.ledger.owing_since is None
        assert script.ledger.sequences == (Sequence("receipts", "r-1", 1),)

    def test_the_same_content_under_another_number_has_another_digest(self) -> None:
        script = Script()
        for id in ("m-1", "m-2"):
            self.played(script, deposit(id, amount=0))
        one, other = script.entries
        assert (one.outputs[0].order, other.outputs[0].order) == (Order("r-1", 1), Order("r-1", 2))
        assert one.digest != other.digest
