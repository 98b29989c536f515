"""Channels of what handlers send: numbers without gaps for each receiver and destination, and back with what is dropped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce import (
    ConfigurationError,
    Context,
    Destination,
    EntityKey,
    Envelope,
    HandlerFailed,
    Outbox,
    OutputTooLarge,
    UnknownDestination,
    message,
)
from exactlyonce.effects.entity import Conflict, SaveEntity
from exactlyonce.effects.publish import Publish
from exactlyonce.errors import ExactlyOnceError
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.outputs import OutputRef
from exactlyonce.records.places import Place, place_of
from exactlyonce.records.sequences import MOST_SEQUENCES, Sequence, Sequences, channel_id
from exactlyonce.testing.runner import run
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef, Origin
from tests.samples import Account, accounts, breaking, close, deposit
from tests.unit.script import CHANNEL, ENTITY, ORDERED, READER, Script, attempt, receipt, receipts

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ORIGIN = Origin(EntityRef("range", ("game-7",), "game-7"), "web/m-1")
TX = "9f" * 16


@message("channels.hit")
@dataclass
class Hit:
    player: str = "p-1"
    padding: str = ""


BOARDS = Destination("boards", (Hit,), to="board", entity_by=lambda hit: hit.player)
ARCHIVE = Destination("archive", (Hit,))
ROUTES = Routes.to((BOARDS, ARCHIVE), {"boards": 2_000, "archive": 2_000})
NO_KEYS = pytest.mark.parametrize("key", ["", "x" * 256, "a/b", 7, None, True, b"x", ["x"]], ids=repr)


def context(
    sequences: Sequences = (), *, routes: Routes = ROUTES, sent: tuple[OutputRef, ...] | None = None
) -> Context:
    return Context(ORIGIN, AT, routes, sequences, TX, sent=sent)


def begun(count: int) -> str:
    """The channel that the message begins after so many others."""
    return channel_id(AT, TX, count)


def places(given: Context) -> list[Place | None]:
    return [output.place for output in given.outputs]


class TestTheContext:
    def test_a_message_gets_the_next_number_for_its_receiver(self) -> None:
        given = context((Sequence("boards", "board/p-2", "old", 4),))
        for player in ("p-1", "p-2", "p-1"):
            given.send("boards", Hit(player))
        first, second = Place(begun(0), "board/p-1", 1), Place(begun(0), "board/p-1", 2)
        assert places(given) == [first, Place("old", "board/p-2", 5), second]
        assert given.sequences == (
            Sequence("boards", "board/p-2", "old", 5),
            Sequence("boards", "board/p-1", begun(0), 2),
        )

    def test_every_channel_that_a_message_begins_has_an_id_of_its_own(self) -> None:
        given = context()
        for player in ("p-1", "p-2", "p-1", "p-3"):
            given.send("boards", Hit(player))
        channels = [place.channel for place in places(given) if place is not None]
        assert channels == [begun(0), begun(1), begun(0), begun(2)]

    def test_two_destinations_to_one_receiver_have_a_channel_each(self) -> None:
        other = Destination("others", to="board", entity_by=lambda hit: hit.player)
        given = context(routes=Routes.to((BOARDS, other), {"boards": 2_000, "others": 2_000}))
        given.send("boards", Hit())
        given.send("others", Hit())
        assert places(given) == [Place(begun(0), "board/p-1", 1), Place(begun(1), "board/p-1", 1)]

    def test_receivers_that_share_an_id_have_a_channel_each(self) -> None:
        by_region = Destination("boards", to="board", entity_by=lambda hit: EntityKey("b", hit.player))
        given = context(routes=Routes.to((by_region,), {"boards": 2_000}))
        given.send("boards", Hit("eu"))
        given.send("boards", Hit("us"))
        assert [place.receiver for place in places(given) if place is not None] == ["board/eu/b", "board/us/b"]
        assert [one.last for one in given.sequences] == [1, 1]

    def test_the_place_travels_in_three_extensions(self) -> None:
        given = context((Sequence("boards", "board/p-1", "c1", 11),))
        given.send("boards", Hit())
        (output,) = given.outputs
        wire = output.envelope.value
        assert (wire["channel"], wire["partitionkey"], wire["sequence"]) == ("c1", "board/p-1", "0000000000000012")
        receiver = EntityRef("board", ("p-1",), "p-1")
        assert place_of(Envelope.read(output.envelope.text), receiver, "it") == output.place

    def test_a_message_to_a_destination_that_names_no_receiver_has_no_number(self) -> None:
        given = context()
        given.send("archive", Hit())
        assert given.outputs[0].place is None
        assert given.outputs[0].envelope.value.keys().isdisjoint({"channel", "partitionkey", "sequence"})
        assert given.sequences == ()

    def test_an_event_is_numbered_only_where_its_destination_names_the_receiver(self) -> None:
        given = context()
        given.announce(Hit())
        assert [(output.destination, output.place) for output in given.outputs] == [
            ("boards", Place(begun(0), "board/p-1", 1)),
            ("archive", None),
        ]

    @NO_KEYS
    def test_what_cannot_be_the_key_of_a_receiver_is_refused_and_takes_no_number(self, key: Any) -> None:
        given = context(
            routes=Routes.to((Destination("boards", to="board", entity_by=lambda _: key),), {"boards": 2_000})
        )
        is_text = isinstance(key, str)
        says = (
            "receiver of a message to 'boards' cannot be named"
            if is_text
            else "entity_by= of destination 'boards' gave"
        )
        with pytest.raises(ValueError if is_text else HandlerFailed, match=says):
            given.send("boards", Hit())
        assert (given.sequences, given.outputs) == ((), ())

    def test_a_message_that_is_refused_leaves_no_gap(self) -> None:
        given = context()
        given.send("boards", Hit())
        with pytest.raises(OutputTooLarge):
            given.send("boards", Hit(padding="x" * 3_000))
        with pytest.raises(UnknownDestination):
            given.send("nowhere", Hit())
        with pytest.raises(ValueError, match="7 days"):
            given.send("boards", Hit(), delay=timedelta(days=8))
        given.send("boards", Hit())
        assert [place.number for place in places(given) if place is not None] == [1, 2]
        assert given.sequences == (Sequence("boards", "board/p-1", begun(0), 2),)

    def test_a_place_counts_in_the_size_of_an_output(self) -> None:
        given = context()
        given.send("archive", Hit("p" * 255))
        given.send("boards", Hit("p" * 255))
        plain, placed = given.outputs
        assert placed.size - plain.size > placed.envelope.size - plain.envelope.size + 255 + len(begun(0))

    def test_handled_again_messages_take_the_places_of_the_first_time(self) -> None:
        first = context((Sequence("boards", "board/p-1", "c1", 4),))
        for player in ("p-1", "p-2"):
            first.send("boards", Hit(player))
        first.send("archive", Hit())
        now = (Sequence("boards", "board/p-1", "later", 9),)
        again = context(now, sent=tuple(output.ref for output in first.outputs))
        for player in ("p-1", "p-2"):
            again.send("boards", Hit(player))
        again.send("archive", Hit())
        assert again.outputs == first.outputs
        assert again.sequences == now

    def test_handled_again_a_message_more_than_the_first_time_has_no_place(self) -> None:
        again = context(sent=())
        again.send("boards", Hit())
        assert (places(again), again.sequences) == ([None], ())

    def test_the_channel_of_a_receiver_that_was_forgotten_begins_anew(self) -> None:
        given = context()
        for number in range(MOST_SEQUENCES + 1):
            given.send("boards", Hit(f"p-{number}"))
        given.send("boards", Hit("p-0"))
        assert places(given)[-1] == Place(begun(MOST_SEQUENCES + 1), "board/p-0", 1)
        assert len(given.sequences) == MOST_SEQUENCES


def test_a_handler_can_be_tested_without_any_destination() -> None:
    def handler(state: Account, given: Hit, context: Context) -> Account:
        context.send("anywhere", given)
        return state

    assert run(handler, Account(), Hit()).messages == (Hit(),)


class TestAHandler:
    def failed(self, destination: Destination) -> ExactlyOnceError:
        """The error of a handler that sends to a destination, once."""
        routes = Routes.to((destination,), {"receipts": 1024 * 1024})
        played = Script().play(attempt(Outbox(), deposit("m-1"), handle=Runner(accounts(), ENTITY, routes)))
        ((failing, error),) = played.finished.failed
        assert failing == "web/m-1"
        assert "web/m-1 on entity account/a" in str(error)
        return error

    @NO_KEYS
    def test_it_fails_where_its_destination_names_what_cannot_be_a_key(self, key: Any) -> None:
        error = self.failed(Destination("receipts", to="reader", entity_by=lambda _: key))
        assert isinstance(error, HandlerFailed)
        if isinstance(key, str):
            assert "cannot be named" in str(error.__cause__)
        else:
            assert "entity_by= of destination 'receipts' gave" in str(error)

    def test_it_fails_where_its_destination_cannot_name_the_receiver(self) -> None:
        error = self.failed(Destination("receipts", to="reader", entity_by=lambda it: it.nothing))
        assert isinstance(error.__cause__, AttributeError)

    def test_it_fails_where_the_receiver_has_no_handler_for_its_message(self) -> None:
        error = self.failed(Destination("receipts", to=accounts()))
        assert isinstance(error, ConfigurationError)
        assert "has no handler for messages of type 'account.deposited'" in str(error)


class TestTheOutbox:
    """Numbers are part of the commit: what it drops takes no number, and nothing that it keeps is numbered twice."""

    runner = Runner(accounts(), ENTITY, ORDERED)

    def played(self, script: Script, *messages: Envelope, strategy: Outbox | None = None) -> list[int]:
        """Play an attempt; return the numbers that it published."""
        played = script.play(attempt(strategy or Outbox(), *messages, handle=self.runner))
        published = [output for effect in played.all(Publish) for output in effect.outputs]
        return [output.place.number for output in published if output.place is not None]

    def test_numbers_go_on_over_messages_of_a_group_and_over_groups(self) -> None:
        script = Script()
        assert self.played(script, deposit("m-1", answers=2), deposit("m-2")) == [1, 2, 3]
        assert script.ledger.sequences == (receipts(3),)
        assert self.played(script, deposit("m-3")) == [4]
        assert script.document is not None
        assert script.document.value[LEDGER]["sequences"] == [
            {"destination": "receipts", "receiver": READER, "channel": CHANNEL, "last": 4, "ordered": False}
        ]

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
        assert script.ledger.sequences == (receipts(2),)
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
        assert script.ledger.sequences == (receipts(1),)

    def test_the_same_content_under_another_number_has_another_digest(self) -> None:
        script = Script()
        for id in ("m-1", "m-2"):
            self.played(script, deposit(id, amount=0))
        one, other = script.entries
        assert (one.outputs[0].place, other.outputs[0].place) == (receipt(1), receipt(2))
        assert one.digest != other.digest
