"""Discarding numbered messages, and renumbering: what operators do about numbers, and what they are shown before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactlyonce import Envelope
from exactlyonce.attempt import key_of
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.protocols.steps.save import with_ledger
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.places import Place
from exactlyonce.records.sequences import Sequence
from exactlyonce.values.identity import EntityRef
from tests.samples import deposit
from tests.unit.operated import ASIDE, OUTBOX, PLACE, STREAM, InMemory, Run, app
from tests.unit.script import AT

__all__ = ["app"]

ACCOUNT = OUTBOX.ref("a")
KEY = "shop%2Fc1/c1-2"


def numbered(number: int, *, id: str | None = None, to: str = ACCOUNT.source, source: str = "shop/c1") -> Envelope:
    """A deposit that another entity sent."""
    extensions = Place("c1", to, number).extensions
    return replace(deposit(id or f"c1-{number}"), source=source, extensions=extensions, time=AT)


def ledger(app: InMemory, ref: EntityRef = ACCOUNT) -> Ledger:
    loaded = app.world.store.perform(LoadEntity(ref))
    found = read_entity(ref, loaded.document).ledger  # type: ignore[union-attr]
    assert found is not None
    return found


def total(app: InMemory) -> int | None:
    loaded = app.world.store.perform(LoadEntity(ACCOUNT))
    body = read_entity(ACCOUNT, loaded.document).body  # type: ignore[union-attr]
    return None if body is None else body.value["total"]


def test_parked_messages_are_listed_with_their_places(app: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    app.park(numbered(2))
    assert Run(capsys, "parked").out.splitlines()[1].split("  ")[2:4] == [KEY, "c1/2"]


def test_before_a_message_is_discarded_its_place_is_shown(app: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    app.park(numbered(2))
    run = Run(capsys, "discard", PLACE, KEY)
    assert (run.code, run.out.splitlines()[:3]) == (
        2,
        [
            f"message  {KEY}",
            "parked   2026-01-01T00:00:00+00:00: its handler raised ValueError",
            "place    number 2 in channel c1, to account/a",
        ],
    )
    assert "takes the number for received" in run.out
    assert KEY in Run(capsys, "parked").out


def test_the_number_of_a_discarded_message_leaves_no_gap_and_nothing_is_handled(
    app: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 3):
        app.deliver(OUTBOX, numbered(number))
    before, published = total(app), len(app.world.published)
    app.park(numbered(2))
    assert Run(capsys, "discard", PLACE, KEY, "--yes").out == "discarded; its number is closed\n"
    (channel,) = ledger(app).channels
    assert (channel.received, ledger(app).version) == (((1, 3),), 3)
    assert (total(app), len(app.world.published)) == (before, published)
    app.deliver(OUTBOX, numbered(2))
    assert total(app) == before, "a copy is dropped"


@pytest.mark.parametrize("place", [PLACE, ASIDE])
def test_the_receiver_is_found_wherever_its_message_is_parked(
    app: InMemory, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    app.park(numbered(1), place=place)
    run = Run(capsys, "discard", place, "shop%2Fc1/c1-1", "--yes")
    assert (run.code, run.out) == (0, "discarded; its number is closed\n")
    assert ledger(app).channels[0].received == ((1, 1),)
    assert total(app) is None, "an absent entity stays absent"


def test_a_message_that_was_processed_meanwhile_is_only_discarded(
    app: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    app.deliver(OUTBOX, numbered(2))
    app.park(numbered(2))
    assert Run(capsys, "discard", PLACE, KEY, "--yes").out == "discarded; its number is closed\n"
    assert ledger(app).version == 1
    assert Run(capsys, "parked").out == "nothing is parked\n"


@pytest.mark.parametrize(
    "message",
    [
        numbered(2, id="c1-2", source="shop/other"),  # The channel is of another source.
        numbered(1, id="fork"),
    ],
)
def test_a_number_that_its_receiver_refuses_is_reported(
    app: InMemory, capsys: pytest.CaptureFixture[str], message: Envelope
) -> None:
    app.deliver(OUTBOX, numbered(1))
    app.park(message)
    run = Run(capsys, "discard", PLACE, key_of(message), "--yes")
    assert (run.code, run.out.startswith("discarded; its number is not closed: ")) == (0, True)
    assert ledger(app).channels[0].received == ((1, 1),)
    assert Run(capsys, "parked").out == "nothing is parked\n"


@pytest.mark.parametrize(("first", "last"), [(PLACE, ASIDE), (ASIDE, PLACE)])
def test_a_number_stays_open_while_the_message_is_parked_in_another_place(
    app: InMemory, capsys: pytest.CaptureFixture[str], first: str, last: str
) -> None:
    """Otherwise the receiver would drop the other one when it is requeued."""
    app.park(numbered(1))
    app.park(numbered(1), place=ASIDE)
    run = Run(capsys, "discard", first, "shop%2Fc1/c1-1", "--yes").out
    assert "its number stays open" in run
    assert not app.world.store.entities
    assert Run(capsys, "discard", last, "shop%2Fc1/c1-1", "--yes").out == "discarded; its number is closed\n"


@pytest.mark.parametrize("receiver", [STREAM.ref("a"), EntityRef("elsewhere", ("x",), "x")])
def test_only_an_outbox_of_this_application_closes_a_number(
    app: InMemory, capsys: pytest.CaptureFixture[str], receiver: EntityRef
) -> None:
    app.park(numbered(2, to=receiver.source), place=receiver.key)
    run = Run(capsys, "discard", receiver.key, KEY, "--yes")
    assert (run.code, run.out.startswith("discarded; its number is not closed: ")) == (0, True)
    assert not app.world.store.entities


def test_a_foreign_message_is_just_discarded(app: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    app.park(deposit("m-1"))
    assert Run(capsys, "discard", PLACE, "web/m-1", "--yes").out == "discarded\n"
    again = Run(capsys, "discard", PLACE, "web/m-1", "--yes")
    assert (again.code, "no such parked message" in again.out) == (1, True)
    assert not app.world.store.entities


def test_an_entity_of_another_protocol_keeps_its_message_parked(
    app: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    other = STREAM.using(STREAM.strategy)
    other.name = OUTBOX.name
    app.deliver(other, deposit("m-1"))
    app.park(numbered(2))
    run = Run(capsys, "discard", PLACE, KEY, "--yes")
    assert (run.code, "was processed by the protocol 'stream'" in run.err) == (2, True)
    assert KEY in Run(capsys, "parked").out


def test_the_number_of_a_message_that_goes_on_as_a_new_one_is_closed(
    app: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    app.deliver(OUTBOX, numbered(1))
    app.park(numbered(2))
    run = Run(capsys, "requeue", PLACE, KEY, "--to", "receipts", "--as-new", "--yes")
    assert run.code == 0
    assert "place    number 2 in channel c1, to account/a" in run.out
    assert ledger(app).channels[0].received == ((1, 2),)


def test_renumbering_has_to_be_confirmed_and_shows_what_is_forgotten(
    app: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    app.deliver(OUTBOX, deposit("m-1"))
    loaded = app.world.store.perform(LoadEntity(ACCOUNT))
    sequence = Sequence("receipts", "reader/r-1", "c7", 4)
    changed = with_ledger(loaded.document, replace(ledger(app), sequences=(sequence,)))  # type: ignore[union-attr, arg-type]
    app.world.store.perform(SaveEntity(ACCOUNT, changed, loaded.etag))  # type: ignore[union-attr]
    shown = Run(capsys, "renumber", "account", "a")
    assert (shown.code, shown.out.splitlines()[1].split()) == (2, ["receipts", "reader/r-1", "c7", "4"])
    assert "no order holds" in shown.out
    assert ledger(app).sequences == (sequence,)
    done = Run(capsys, "renumber", "account", "a", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 sequences forgotten")
    assert ledger(app).sequences == ()
    assert Run(capsys, "renumber", "account", "a", "--yes").out == "0 sequences forgotten\n"


def test_an_absent_entity_has_nothing_to_renumber(app: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    assert Run(capsys, "renumber", "account", "nobody").code == 2
    assert Run(capsys, "renumber", "account", "nobody", "--yes").out == "0 sequences forgotten\n"
