"""Messages that a handler sends at a later time, and cancels: what the context and the runner make of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from pydantic import BaseModel

from exactlyonce import ConfigurationError, Context, Destination, Entity, Envelope, Outbox, message
from exactlyonce.attempt import Before, Work, keeps_nothing
from exactlyonce.errors import OutputTooLarge, UnknownDestination
from exactlyonce.handling.context import NUMBERED
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.outbox import MOST_CARRIED, Output
from exactlyonce.testing import run
from exactlyonce.values.envelope import EntityRef, Origin
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATER = AT + timedelta(days=400)
NOTHING: frozenset[str] = frozenset()


@message("keeping.remind")
class Remind(BaseModel):
    """Comes at a later time."""

    to: str = "b-2"
    text: str = ""


class Book(BaseModel):
    """State of a book of reminders."""

    reminders: int = 0


books = Entity("book", state=Book, container="books", strategy=Outbox())


@books.handles(Remind, key=lambda remind: remind.to)
def remind(state: Book, remind: Remind, context: Context) -> Book:
    """Change nothing."""
    del remind, context
    return state


BOOK = EntityRef("book", ("b-1",), "b-1")
ORIGIN = Origin(BOOK, "web/m-1")
DESTINATIONS = (Destination("books", to=books, ordered=True), Destination("mail", session_by=lambda remind: remind.to))


def routes(limit: int = 48 * 1024, *destinations: Destination) -> Routes:
    chosen = destinations or DESTINATIONS
    return Routes.to(chosen, {item.name: limit for item in chosen}, entities=(books,))


def context(kept: frozenset[str] | None = NOTHING, limit: int = 48 * 1024) -> Context:
    return Context(ORIGIN, Before(None, AT, "5f" * 16, kept=kept), routes(limit))


def kept(destination: str = "books", text: str = "") -> Output:
    """What a handler keeps that sends one reminder."""
    given = context()
    given.send(destination, Remind(text=text), at=LATER)
    return given.kept[0][1]


def released(output: Output, body: Json | None = None, given: Routes | None = None) -> Output:
    """A kept message as it is sent in the end."""
    before = Before(body, LATER, "a0" * 16, kept=frozenset({output.id}))
    (sent,) = Runner(books, BOOK, given or routes()).release(before, output).outputs
    return sent


def test_a_message_with_a_time_is_kept_and_not_sent() -> None:
    given = context()
    id = given.send("books", Remind(), at=LATER)
    assert given.outputs == ()
    assert given.sequences == ()
    ((due, output),) = given.kept
    assert (due, output.id, output.destination, output.place) == (LATER, id, "books", None)


def test_every_output_has_the_id_that_send_returned_whether_it_is_kept_or_not() -> None:
    given = context()
    ids = [given.send("books", Remind()), given.send("books", Remind(), at=LATER), given.send("books", Remind())]
    assert ids == [ORIGIN.output_id(index) for index in range(3)]
    assert [output.id for output in given.outputs] == [ids[0], ids[2]]


def test_a_message_that_its_own_handler_cancels_leaves_its_id_to_no_other() -> None:
    given = context()
    first = given.send("books", Remind(), at=LATER)
    assert given.cancel(first)
    second = given.send("books", Remind(), at=LATER)
    assert first != second
    assert [output.id for _, output in given.kept] == [second]
    assert given.cancelled == NOTHING
    assert not given.cancel(first)


def test_cancelling_says_whether_the_message_was_still_kept() -> None:
    given = context(frozenset({"one", "two"}))
    assert given.cancel("one")
    assert not given.cancel("one")
    assert not given.cancel("released, or another entity's")
    assert given.cancelled == {"one"}


def test_a_time_has_a_zone_and_no_delay_and_is_kept_in_utc() -> None:
    given = context()
    given.send("books", Remind(), at=LATER.astimezone(timezone(timedelta(hours=-5))))
    due = given.kept[0][0]
    assert (due, due.utcoffset()) == (LATER, timedelta(0))
    with pytest.raises(ValueError, match="time zone"):
        given.send("books", Remind(), at=LATER.replace(tzinfo=None))
    with pytest.raises(ValueError, match="not both"):
        given.send("books", Remind(), at=LATER, delay=timedelta(1))
    for due in map(datetime.fromisoformat, ("0001-01-01T00:00:00+02:00", "9999-12-31T23:59:00-02:00")):
        with pytest.raises(ValueError, match="at= is a time whose year is 1 to 9999 in UTC"):
            given.send("books", Remind(), at=due)


def test_where_the_ledger_keeps_no_messages_both_are_refused() -> None:
    given = context(kept=None)
    with pytest.raises(ConfigurationError, match=r"Outbox\(\)"):
        given.send("books", Remind(), at=LATER)
    with pytest.raises(ConfigurationError, match=r"Outbox\(\)"):
        given.cancel("any")


def test_a_kept_message_fits_its_queue_with_its_number() -> None:
    size = kept().envelope.size
    context(limit=size + NUMBERED).send("books", Remind(), at=LATER)
    with pytest.raises(OutputTooLarge):
        context(limit=size + NUMBERED - 1).send("books", Remind(), at=LATER)
    with pytest.raises(UnknownDestination):
        context().send("nowhere", Remind(), at=LATER)
    assert released(kept(text="x" * 100)).envelope.size <= kept(text="x" * 100).envelope.size + NUMBERED


def test_a_kept_message_travels_by_reference_only_where_its_queue_needs_that() -> None:
    """It may be kept for longer than such blobs are."""
    for padding, apart in ((MOST_CARRIED, False), (48 * 1024, True)):
        given = Context(ORIGIN, Before(None, AT, "5f", kept=NOTHING), replace(routes(), blobs="https://a.example/b"))
        given.send("books", Remind(text="x" * padding), at=LATER)
        assert bool(given.blobs) is apart


def test_time_and_number_of_a_kept_message_are_those_of_its_release() -> None:
    sent = released(kept())
    envelope = Envelope.read(sent.envelope.text)
    assert (sent.id, envelope.id, envelope.time) == (kept().id, kept().id, LATER)
    assert sent.place is not None
    assert (sent.place.receiver, sent.place.number) == ("book/b-2", 1)
    assert dict(envelope.extensions) == dict(sent.place.extensions)


@pytest.mark.parametrize("destination", [Destination("books"), Destination("books", to=books)])
def test_without_an_order_there_is_no_number(destination: Destination) -> None:
    assert released(kept(), given=routes(48 * 1024, destination)).place is None
    sent = released(kept("mail"))
    assert sent.place is None
    assert dict(Envelope.read(sent.envelope.text).extensions) == {"partitionkey": "b-2"}


def test_a_release_changes_no_state_and_brings_no_deleted_entity_back() -> None:
    runner, body = Runner(books, BOOK, routes()), Json.of({"id": "b-1", "reminders": 3})
    there = runner.release(Before(body, LATER, "a0" * 16), kept())
    assert (there.body, there.deleted, there.cancelled) == (body, False, frozenset({kept().id}))
    gone = runner.release(Before(None, LATER, "a0" * 16), kept())
    assert (gone.body, gone.deleted) == (runner.absent, True)


def test_a_destination_that_the_application_no_longer_has_is_an_error() -> None:
    with pytest.raises(UnknownDestination, match="books"):
        released(kept(), given=routes(48 * 1024, Destination("mail")))


def test_work_without_a_runner_releases_nothing() -> None:
    assert Work(BOOK, (), Runner(books, BOOK, routes()), Json("{}")).release is keeps_nothing
    with pytest.raises(ConfigurationError, match=kept().id):
        keeps_nothing(Before(None, AT, "tx"), kept())


def test_run_shows_the_time_and_what_was_cancelled() -> None:
    def handler(state: Book, _: Remind, context: Context) -> Book:
        context.send("mail", Remind(), at=context.now + timedelta(days=30))
        assert context.cancel("o-1")
        assert not context.cancel("o-2")
        return state

    ran = run(handler, Book(), Remind(), now=AT, kept=("o-1",))
    assert [(sent.destination, sent.at) for sent in ran.sent] == [("mail", AT + timedelta(days=30))]
    assert ran.cancelled == {"o-1"}
