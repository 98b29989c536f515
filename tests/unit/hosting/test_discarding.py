"""Discarding, and renumbering: what operators are shown before, and what is left of a message that is parked no longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Envelope
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.hosting.upkeep.operator import noted_for
from exactlyonce.protocols.steps.load import with_ledger
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.records.outbox import Place, Sequence
from exactlyonce.values.envelope import EntityRef, key_of
from exactlyonce.values.lifetimes import Retention
from tests.samples import deposit
from tests.unit.operated import OLD, OUTBOX, PLACE, SECRET, InMemory, Run, app, run
from tests.unit.script import AT

__all__ = ["app", "run"]

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


def test_parked_messages_are_listed_with_their_places(app: InMemory, run: Run) -> None:
    app.park(numbered(2))
    assert run("parked").out.splitlines()[1].split("  ")[2:4] == [KEY, "c1/2"]


def test_before_a_message_is_discarded_its_place_is_shown(app: InMemory, run: Run) -> None:
    app.park(numbered(2))
    ran = run("discard", PLACE, KEY)
    assert (ran.code, ran.out.splitlines()[:3]) == (
        2,
        [
            f"message  {KEY}",
            "parked   2026-01-01T00:00:00+00:00: its handler raised ValueError",
            "place    number 2 in channel c1, to account/a",
        ],
    )
    assert "waits for a number that it lacks" in ran.out
    assert KEY in run("parked").out


def left(app: InMemory, message: str, place: str = PLACE) -> Any:
    """What is in the place of a parked message."""
    version = app.world.store.library[place].newest(f"parked:{message}")
    return None if version is None or version.document is None else version.document.value


def test_a_discarded_message_leaves_a_note_without_its_body(app: InMemory, run: Run) -> None:
    app.park(deposit("m-1", note=SECRET))
    assert run("discard", PLACE, "web/m-1", "--yes") == (0, "discarded\n", "")
    again = run("discard", PLACE, "web/m-1", "--yes")
    assert (again.code, "no such parked message" in again.out) == (1, True)
    assert not app.world.store.entities
    assert left(app, "web/m-1") == {"entity": PLACE, "message": "web/m-1", "kind": "unparked", "schema": 1}
    app.park(deposit("m-1"))
    assert "web/m-1" in run("parked").out, "it may come back"


@pytest.mark.parametrize("as_new", [False, True])
def test_a_message_that_was_sent_again_leaves_a_note_of_its_identity(app: InMemory, run: Run, as_new: bool) -> None:
    app.park(replace(deposit("m-1"), time=AT - 2 * OLD if as_new else AT))
    again = ("--as-new", "--yes") if as_new else ()
    assert run("requeue", PLACE, "web/m-1", "--to", "receipts", *again).code == 0
    (output,) = app.world.published
    sent = key_of(Envelope.read(output.envelope.text))
    assert left(app, "web/m-1")["sent"] == sent
    assert (sent == "web/m-1") is not as_new


def test_a_note_stays_as_long_as_a_mark_that_names_the_message_is_judged() -> None:
    long, short = timedelta(days=90), timedelta(days=20)
    assert noted_for(Retention(short)) == 22 * 86_400
    assert noted_for(Retention(short, long, AT)) == noted_for(Retention(long, short, AT)) == 92 * 86_400


def test_renumbering_has_to_be_confirmed_and_shows_what_is_forgotten(app: InMemory, run: Run) -> None:
    app.deliver(OUTBOX, deposit("m-1"))
    loaded = app.world.store.perform(LoadEntity(ACCOUNT))
    sequence = Sequence("receipts", "reader/r-1", "c7", 4)
    changed = with_ledger(loaded.document, replace(ledger(app), sequences=(sequence,)))  # type: ignore[union-attr, arg-type]
    app.world.store.perform(SaveEntity(ACCOUNT, changed, loaded.etag))  # type: ignore[union-attr]
    shown = run("renumber", "account", "a")
    assert (shown.code, shown.out.splitlines()[1].split()) == (2, ["receipts", "reader/r-1", "c7", "4"])
    assert "no order holds" in shown.out
    assert ledger(app).sequences == (sequence,)
    done = run("renumber", "account", "a", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 sequences forgotten")
    assert ledger(app).sequences == ()
    assert run("renumber", "account", "a", "--yes").out == "0 sequences forgotten\n"


def test_an_absent_entity_has_nothing_to_renumber(app: InMemory, run: Run) -> None:
    assert run("renumber", "account", "nobody").code == 2
    assert run("renumber", "account", "nobody", "--yes").out == "0 sequences forgotten\n"
